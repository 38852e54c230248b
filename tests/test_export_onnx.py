"""Trees as ONNX models, run by onnxruntime beside the estimators themselves."""

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    ObliqueTreeClassifier,
    ObliqueTreeRegressor,
    TAOClassifier,
    TAORegressor,
)
from evotree.export import register_onnx, to_onnx
from evotree.tables.columns import NumericColumn, feature_names
from evotree.tree import ObliqueTree
from tests.quick_models import evolved

skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")

QUICK = {"size_penalty": 0.01, "population_size": 8, "max_generations": 2, "random_state": 0}
CLASSIFIERS = [
    evolved(EvoTreeClassifier, **QUICK),
    ObliqueTreeClassifier(random_state=0),
    ObliqueTreeClassifier("axis", random_state=0),
    ObliqueTreeClassifier("axis", random_state=0, max_depth=3, probability="soft"),
    TAOClassifier(max_iter=2, random_state=0),
    TAOClassifier(max_iter=2, random_state=0, probability="soft"),
]
REGRESSORS = [
    evolved(EvoTreeRegressor, **QUICK),
    ObliqueTreeRegressor(random_state=0),
    TAORegressor(max_iter=2, random_state=0),
]


def kind(model: Any) -> str:
    return type(model).__name__


def run(model: Any, rows: np.ndarray) -> list[Any]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: rows})


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5)) * [1.0, 1e3, 1e-3, 1.0, 7.0]
    return X, np.digitize(X[:, 0] + X[:, 1] / 1e3 + 0.3 * rng.normal(size=150), [-0.5, 0.8])


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.normal(size=(2000, 5)) * [1.0, 1e3, 1e-3, 1.0, 7.0]


def fitted(tree: ObliqueTree, model: Any) -> Any:
    """Give an estimator a tree as if it had been fitted."""
    model.tree_, model.n_features_in_ = tree, tree.n_features
    model.columns_ = tuple(NumericColumn(f"x{j}", 0.0) for j in range(tree.n_features))
    model.feature_names_ = feature_names(model.columns_)
    if tree.values.shape[1] > 1:
        model.classes_ = np.arange(tree.values.shape[1])
    return model


@pytest.mark.parametrize("model", CLASSIFIERS, ids=kind)
def test_classifiers_give_labels_and_shares(model: Any, data: Any, rows: np.ndarray) -> None:
    X, y = data
    model.fit(X, np.array(["ä'b", "c", "d\n"])[y])
    labels, shares = run(to_onnx(model), rows)
    assert model.tree_.n_nodes > 1 and len(set(labels)) > 1
    np.testing.assert_array_equal(labels, model.predict(rows))
    assert shares.dtype == np.float64
    if model.probabilities_ is None:
        np.testing.assert_array_equal(shares, model.predict_proba(rows))
    np.testing.assert_allclose(shares, model.predict_proba(rows), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("opset", [13, None])
def test_far_from_all_hyperplanes_probabilities_are_finite(data: Any, opset: int | None) -> None:
    X, y = data
    model = evolved(EvoTreeClassifier, **QUICK).fit(X, y)
    far = 1e6 * np.random.default_rng(0).normal(size=(50, 5))
    labels, found = run(to_onnx(model, opset), far)
    np.testing.assert_array_equal(labels, model.predict(far))
    np.testing.assert_allclose(found, model.predict_proba(far), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("model", REGRESSORS, ids=kind)
def test_regressors_give_numbers(model: Any, data: Any, rows: np.ndarray) -> None:
    X, _ = data
    model.fit(X, X[:, 0] ** 2 + X[:, 1] / 1e3)
    (values,) = run(to_onnx(model), rows)
    assert model.tree_.n_nodes > 1 and values.dtype == np.float64
    np.testing.assert_array_equal(values[:, 0], model.predict(rows))


@pytest.mark.parametrize("labels", [np.array([-5, 3, 1 << 40]), np.array([0.0, 1.0, 7.0])])
def test_labels_that_are_whole_numbers(labels: np.ndarray, data: Any, rows: np.ndarray) -> None:
    X, y = data
    model = ObliqueTreeClassifier(random_state=0).fit(X, labels[y])
    found = run(to_onnx(model), rows)[0]
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, model.predict(rows))


def test_labels_that_are_truth_values(data: Any, rows: np.ndarray) -> None:
    X, y = data
    model = ObliqueTreeClassifier(random_state=0).fit(X, y > 0)
    np.testing.assert_array_equal(run(to_onnx(model), rows)[0], model.predict(rows))


def test_rows_on_hyperplanes_go_left() -> None:
    """Weights and rows of few digits, whose sums are exact in every order."""
    rng = np.random.default_rng(0)
    sizes = np.array([9, 3, 1, 1, 5, 1, 3, 1, 1], dtype=np.int32)
    inner = (sizes > 1)[:, np.newaxis]
    weights = rng.integers(-2, 3, (9, 3)) * inner
    tree = ObliqueTree(
        weights.astype(float), np.zeros(9), sizes, rng.dirichlet(np.ones(4), 9)
    ).validate()
    model = fitted(tree, ObliqueTreeClassifier())
    X = rng.integers(-2, 3, (500, 3)).astype(float)
    assert (X @ weights[0] == 0.0).sum() > 20
    labels, shares = run(to_onnx(model), X)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_array_equal(shares, model.predict_proba(X))


def test_deep_and_single_leaf_trees() -> None:
    depth = 200
    sizes = np.array([s for n in range(depth, 0, -1) for s in (2 * n + 1, 1)] + [1], np.int32)
    inner = sizes > 1
    thresholds = np.zeros(len(sizes))
    thresholds[inner] = np.arange(depth)
    values = np.arange(len(sizes), dtype=float)[:, np.newaxis] / 3.0
    deep = ObliqueTree(inner[:, np.newaxis] * np.ones(2), thresholds, sizes, values).validate()
    X = np.column_stack([np.arange(-2.0, 203.0), np.zeros(205)])
    for tree in (deep, ObliqueTree(np.zeros((1, 2)), np.zeros(1), sizes[-1:], values[1:2])):
        model = fitted(tree, ObliqueTreeRegressor())
        np.testing.assert_array_equal(run(to_onnx(model), X)[0][:, 0], model.predict(X))


def test_single_precision_in_a_pipeline(data: Any, rows: np.ndarray) -> None:
    """Rows of single precision are routed in double; the scaler has its own rounding."""
    X, y = data
    register_onnx()
    model = ObliqueTreeClassifier(random_state=0).fit(X, y)
    single = rows.astype(np.float32)
    options = {id(model): {"zipmap": False}}
    labels, shares = run(skl2onnx.to_onnx(model, single[:1], options=options), single)
    np.testing.assert_array_equal(labels, model.predict(single))
    assert shares.dtype == np.float32
    np.testing.assert_array_equal(shares, model.predict_proba(single).astype(np.float32))

    chain = make_pipeline(StandardScaler(), ObliqueTreeClassifier(random_state=0)).fit(X, y)
    labels, maps = run(skl2onnx.to_onnx(chain, single[:1]), single)
    assert (labels == chain.predict(single)).mean() > 0.99
    assert sorted(maps[0]) == [0, 1, 2]


def test_older_operators_serve(data: Any, rows: np.ndarray) -> None:
    X, y = data
    model = ObliqueTreeClassifier(random_state=0).fit(X, y)
    exported = to_onnx(model, target_opset=13)
    assert {o.domain: o.version for o in exported.opset_import}[""] <= 13
    np.testing.assert_array_equal(run(exported, rows)[0], model.predict(rows))


def test_what_cannot_be_converted_is_named(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data
    for model in (ObliqueTreeClassifier(), StandardScaler().fit(X), None):
        with pytest.raises(ValueError, match="model=.*a fitted one of EvoTreeClassifier"):
            to_onnx(model)
    model = ObliqueTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="target_opset=9"):
        to_onnx(model, target_opset=9)
    other = ObliqueTreeClassifier(random_state=0).fit(X, y)
    other.classes_ = np.array([0.25, 1.0, 2.0])
    with pytest.raises(ValueError, match=r"classes_ holds \[0.25, 1.0, 2.0\]"):
        to_onnx(other)
    monkeypatch.setattr("evotree.export.onnx.MAX_LEAVES", 1)
    with pytest.raises(ValueError, match="leaves: allowed are up to 1"):
        to_onnx(model)

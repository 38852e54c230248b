"""Explanations of fitted estimators of all kinds."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.feature_selection import SelectFromModel

from evotree import TAOClassifier
from evotree.inspection import counterfactuals, shap_values
from evotree.leaf_models import OutputModels
from evotree.tree import SoftSides
from tests.quick_models import every, outputs, rows_for
from tests.random_trees import estimator_of, random_tree


def mixed_rows(seed=0):
    """Return rows with numbers, missing ones, and categories, and a class that depends on all."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": random.integers(18, 80, 240).astype(float),
            "size": random.normal(size=240),
            "kind": pd.Categorical(random.choice(["p", "q", "r"], 240)),
        }
    )
    score = (
        table.age / 20
        + table["size"]
        + 2.0 * (table.kind == "q")
        + random.normal(0, 0.2, 240)
    )
    table.loc[::7, "age"] = np.nan
    return table, score.to_numpy()


@every
def test_every_estimator_explains_and_finds_counterfactuals(model):
    X, y = rows_for(model)
    fitted = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    np.testing.assert_allclose(fitted.training_rows_.means[0], X.mean(axis=0))
    assert fitted.feature_importances_.shape == (X.shape[1],)
    assert fitted.feature_importances_.min() >= 0.0
    np.testing.assert_allclose(fitted.feature_importances_.sum(), 1.0)
    terms, of_rows = fitted.explain(X)
    assert terms.notna().all(axis=None) and not of_rows.outside.map(len).any()
    assert of_rows.prediction.tolist() == fitted.predict(X).tolist()
    found = shap_values(fitted, X[:2], X[::15], n_permutations=2, random_state=0)
    total = found.values.sum(axis=1) + found.base
    np.testing.assert_allclose(total, outputs(fitted, X[:2]), atol=1e-9)
    predicted = fitted.predict(X)
    target = None if is_classifier(model) else (np.quantile(predicted, 0.9), np.inf)
    row = X[predicted.argmin()]
    for norm in ("l1", "count"):
        one = counterfactuals(fitted, row, target, norm=norm)[0]
        after = fitted.predict(one.row)[0]
        assert after != predicted.min() if target is None else after >= target[0]
        assert one.leaf == fitted.apply(one.row)[0] and one.changes


def test_tables_with_categories_and_missing_values():
    table, score = mixed_rows()
    y = np.array(["low", "middle", "high"])[
        np.digitize(score, np.quantile(score, [0.3, 0.7]))
    ]
    model = TAOClassifier(depth=3, random_state=0).fit(table, y)
    assert model.feature_importances_.shape == (3,)
    kept = SelectFromModel(clone(model), max_features=1).fit(table, y)
    assert kept.get_support().sum() <= 1 and len(kept.get_support()) == 3
    assert shap_values(model, table.head(2), table.head(10)).values.shape == (2, 3, 3)
    assert set(model.explain(table).terms.feature) <= set(model.feature_names_)
    for at in (0, 1):  # the first has no age
        one = counterfactuals(model, table.iloc[[at]], bounds={"size": (-1, 1)})[0]
        assert model.predict(one.row)[0] != model.predict(table.iloc[[at]])[0]
        assert one.row["kind"].isin(["p", "q", "r"]).all()
        assert ("age" in one.changes) <= (at == 1)
        assert one.row["age"].isna().to_numpy().all() == (at == 0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["shares", "soft", "lines", "outputs", "two", "three"])
def test_rows_beyond_all_bounds_are_predicted_and_explained_without_a_word(kind, seed):
    random = np.random.default_rng(seed)
    X = random.uniform(0.0, 4.0, (50, 4))
    rows = random.choice([-1.79e308, -1e308, 0.0, 1e308, 1.79e308], (60, 4))
    of_numbers = kind in ("lines", "outputs")
    scores = {"two": 2, "three": 3}.get(kind, 0)
    tree = random_tree(random, 4, lines=of_numbers, n_scores=scores)
    model = estimator_of(tree, X)
    if kind == "outputs":
        both = tree.replaced(
            values=np.tile(tree.values, 2),
            models=OutputModels((tree.models, tree.models)),
            output_names=("first", "second"),
        ).validate()
        model.fitted_ = replace(model.fitted_, tree=both)
    if kind == "soft":
        inner = np.where(tree.is_leaf, 0.0, 1.0)
        sides = SoftSides(inner, inner, tree.values).validate(tree)
        model.fitted_ = replace(model.fitted_, sides=sides)
    with np.errstate(all="raise", under="ignore"):
        predicted = model.predict(rows)
        leaves = model.apply(rows)
        terms, of_rows = model.explain(rows, 0 if kind == "outputs" else None)
        if not of_numbers:
            assert np.isfinite(model.predict_proba(rows)).all()
            np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
            assert np.isfinite(model.predict_log_proba(rows)).all() or not scores
    assert tree.is_leaf[leaves].all() and (of_rows.leaf == leaves).all()
    assert terms.notna().all(axis=None) and of_rows.notna().all(axis=None)
    if of_numbers:
        low, high = tree.models.lowest[leaves], tree.models.highest[leaves]
        for column in predicted.reshape(len(rows), -1).T:
            assert ((column >= low) & (column <= high)).all()

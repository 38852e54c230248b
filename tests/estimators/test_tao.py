"""The estimators of tree alternating optimization: scikit-learn's checks, starts, the path."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from evotree import ObliqueTreeClassifier, TAOClassifier, TAORegressor, tao_path
from evotree.operators.splitters.perturbation import OC1
from tests.quick_models import checked


@checked(
    [
        TAOClassifier("random", penalty="l2", depth=4),
        TAOClassifier(node="axis", depth=4),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "init", ["axis", "linear", "dipole", "random", OC1(n_restarts=2)]
)
def test_every_start_becomes_an_accurate_classifier(init):
    X, y = load_wine(return_X_y=True)
    model = TAOClassifier(init, depth=3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95 and model.get_depth() <= 3
    assert clone(model).set_params(n_jobs=2).fit(X, y).tree_ == model.tree_
    assert 1 <= model.n_iter_ <= model.max_iter


@pytest.mark.parametrize("node", ["oblique", "axis", OC1(n_restarts=2)])
@pytest.mark.parametrize("init", ["axis", "random"])
def test_regressors_improve_on_their_start(node, init):
    X, y = load_diabetes(return_X_y=True)
    model = TAORegressor(init, depth=3, node=node, random_state=0).fit(X, y)
    greedy = DecisionTreeRegressor(max_depth=3).fit(X, y)
    if init == "axis" or node == "oblique":
        assert model.score(X, y) >= greedy.score(X, y) + (
            0.005 if node != "axis" else -1e-9
        )
    np.testing.assert_allclose(model.predict(X).mean(), y.mean())


def test_a_tree_found_elsewhere_is_a_start():
    X, y = load_breast_cancer(return_X_y=True)
    forms = [DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)]
    forms.append(ObliqueTreeClassifier("axis", max_depth=2).fit(X, y))
    forms.append(forms[1].tree_)
    with pytest.raises(ValueError, match="init has a tree over 30 features: X has 2"):
        TAOClassifier(forms[0]).fit(X[:, :2], y)
    for init in forms:
        model = TAOClassifier(init).fit(X, y)
        assert model.get_depth() <= 2
        assert model.score(X, y) > max(0.97, forms[0].score(X, y))


@pytest.fixture(scope="module")
def digits_path():
    X, y = load_digits(return_X_y=True)
    X, y = X[:900], y[:900]
    return X, y, tao_path(X, y, Cs=(0.01, 1.0, 0.1))


def test_path_gets_sparser_and_smaller(digits_path):
    X, y, path = digits_path
    table = path.table
    assert table["C"].tolist() == [1.0, 0.1, 0.01]
    for column in ("weights", "leaves", "cost", "train_score"):
        assert table[column].is_monotonic_decreasing, column
    assert table["train_score"][0] > 0.97
    assert table["weights"][2] < 0.2 * table["weights"][0]
    for k, estimator in enumerate(path.estimators):
        assert table["C"][k] == estimator.C
        assert estimator.score(X, y) == table["train_score"][k]


def test_figures_of_the_path_are_counted_row_by_row(digits_path):
    X, _, path = digits_path
    for (_, record), model in zip(path.table.iterrows(), path.estimators, strict=True):
        tree, passed = model.tree_, model.decision_path(X).toarray()
        n_terms = np.count_nonzero(tree.weights, axis=1)
        cost, length = (passed @ n_terms).mean(), (passed @ ~tree.is_leaf).mean()
        assert record["cost"] == pytest.approx(cost, rel=1e-3)
        assert record["path_mean"] == pytest.approx(length, rel=1e-3)
        assert record["weights"] == n_terms.sum()


def test_paths_of_regressors_and_bad_calls():
    X, y = load_diabetes(return_X_y=True)
    model = TAORegressor(depth=3)
    path = tao_path(X, y, Cs=(1.0, 1e-6), estimator=model)
    assert model.C == 1.0 and not hasattr(model, "tree_")
    assert path.table["leaves"].tolist()[1] < path.table["leaves"][0]
    for Cs in ((), (0.0,), (1.0, np.inf)):
        with pytest.raises(ValueError, match="Cs=.*allowed are"):
            tao_path(X, y, Cs=Cs, estimator=model)

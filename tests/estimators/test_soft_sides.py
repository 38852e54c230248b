"""Soft probabilities of classifiers, beside a naive twin, and how they are fitted."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.metrics import log_loss

from evotree import Cost, ObliqueTree, ObliqueTreeClassifier
from evotree.dataset import Dataset
from evotree.fitness.probabilities import fit_soft_sides
from evotree.tree import SoftSides
from tests.exported import tame, trees
from tests.quick_models import CLASSIFIERS, brief, by_tree, name_of
from tests.reference import soft_sides as naive

SOFT = [clone(model).set_params(probability="soft") for model in CLASSIFIERS]
every_soft = pytest.mark.parametrize("model", SOFT, ids=name_of)


@given(trees(tame), st.integers(0, 99))
def test_probabilities_are_those_of_the_naive_twin(tree, seed):
    rng = np.random.default_rng(seed)
    sides = SoftSides(
        np.where(tree.is_leaf, 0.0, rng.gamma(1.0, 0.1, len(tree))),
        np.where(tree.is_leaf, 0.0, rng.normal(size=len(tree))),
        rng.dirichlet(np.ones(tree.values.shape[1]), len(tree)),
    ).validate(tree)
    X = rng.normal(scale=30.0, size=(20, tree.n_features))
    found = sides.predict(tree, X)
    np.testing.assert_allclose(
        found, [naive.predict(tree, sides, x) for x in X], atol=1e-9
    )
    np.testing.assert_allclose(
        sides.mix(tree, X), [naive.mix(tree, sides, x) for x in X]
    )
    assert (found >= 0.0).all() and (found <= 1.0).all()
    np.testing.assert_array_equal(
        found.argmax(axis=1), tree.predict_value(X).argmax(axis=1)
    )


@every_soft
def test_soft_probabilities_leave_the_tree_and_its_labels_alone(model):
    X, y = load_wine(return_X_y=True)
    soft, leaf = (
        clone(model).fit(X, y),
        clone(model).set_params(probability="leaf").fit(X, y),
    )
    assert soft.tree_ == leaf.tree_
    np.testing.assert_array_equal(soft.predict(X), leaf.predict(X))
    assert leaf.probabilities_ is None
    np.testing.assert_array_equal(
        leaf.predict_proba(X), leaf.tree_.values[leaf.apply(X)]
    )
    found = soft.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(soft.classes_[found.argmax(axis=1)], soft.predict(X))


def test_every_tree_of_the_front_brings_what_was_fitted_to_the_training_rows():
    X, y = (part[::2] for part in load_wine(return_X_y=True))
    model = brief(max_generations=10).fit(X, y)
    chosen, before = model.tree_, model.predict_proba(X)
    for at, tree in enumerate(model.pareto_front_):
        found = by_tree(model, at).predict_proba(X)
        rule = f"complexity<={tree.complexity}"
        assert model.select_tree(rule).tree_ is tree
        np.testing.assert_array_equal(model.predict_proba(X), found)
        assert model.probabilities_.validate(tree)
    model.select_tree(f"complexity<={chosen.complexity}")
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.slow
@pytest.mark.parametrize("probability", ["soft", "leaf"])
@pytest.mark.parametrize(
    ("objective", "agrees"),
    [
        ("accuracy", True),
        ("log_loss", True),
        ("roc_auc", True),
        ("cost", False),
        ("balanced_accuracy", False),
    ],
)
def test_the_most_probable_class_is_predicted_unless_labels_serve_the_objective(
    objective, agrees, probability
):
    X, y = make_classification(
        1000, 6, n_informative=4, weights=[0.85], flip_y=0.1, random_state=0
    )
    if objective == "cost":
        objective = Cost([[0.0, 1.0], [6.0, 0.0]])
    model = brief(objective=objective, probability=probability, size_penalty=0.003).fit(
        X, y
    )
    found, tree = model.predict_proba(X), model.tree_
    most_frequent = tree.values.argmax(axis=1)[tree.apply(X)]
    np.testing.assert_array_equal(found.argmax(axis=1), most_frequent)
    assert (model.predict(X) == model.classes_[most_frequent]).all() == agrees
    if probability == "leaf":  # they are not bent
        np.testing.assert_array_equal(found, tree.values[tree.apply(X)])


@pytest.mark.parametrize("slope", [0.0, 1.0, 1e308])
def test_rows_and_weights_beyond_all_bounds_have_probabilities_without_a_word_of_numpy(
    slope,
):
    X, y = load_iris(return_X_y=True)
    model = ObliqueTreeClassifier("axis", max_depth=2, probability="soft").fit(X, y)
    tree, rows = model.tree_, Dataset.from_arrays(X, y)
    inner = np.where(tree.is_leaf, 0.0, 1.0)
    sides = SoftSides(slope * inner, 1e308 * inner, tree.values).validate(tree)
    weight = np.random.default_rng(0).permutation(np.logspace(-80, 80, len(y)))
    with np.errstate(all="raise", under="ignore"):
        found = sides.predict(
            tree, np.array([[1e308, -1e308, 1e308, -1e308], np.zeros(4)])
        )
        assert np.isfinite(found).all()
        assert np.isfinite(clone(model).fit(X, y, weight).predict_proba(X)).all()
    for unit in (1e-90, 1e90):
        other = clone(model).fit(unit * X, y).predict_proba(unit * X)
        np.testing.assert_allclose(other, model.predict_proba(X), atol=1e-4)
    hasty, fitted = (fit_soft_sides(tree, rows, end=end) for end in (-np.inf, np.inf))
    assert (
        log_loss(y, fitted.predict(tree, X))
        < log_loss(y, hasty.predict(tree, X))
        < np.inf
    )


def test_no_class_of_the_training_rows_is_impossible_however_rare():
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 3))
    y = (X[:, 0] + X[:, 1] > 0.0).astype(int)
    y[random.choice(len(y), 2, replace=False)] = 2
    rows = Dataset.from_arrays(X, y)
    for max_depth in (2, 4, 6):
        tree = ObliqueTreeClassifier("axis", max_depth=max_depth).fit(X, y).tree_
        sides = fit_soft_sides(tree, rows, brief=True)
        assert sides.predict(tree, X).min() > 0.0
        shares = sides.shares[tree.is_leaf, 2]
        assert shares.max() < 0.1  # and it stays rare


def test_a_brief_fit_of_many_leaves_loses_about_what_the_whole_fit_does():
    """It sees few rows of each leaf: shares of these rows alone lose far more."""
    X, y = make_classification(
        5000, 8, n_informative=8, n_redundant=0, n_classes=6, random_state=0
    )
    rows = Dataset.from_arrays(X[:4000], y[:4000])
    tree = (
        ObliqueTreeClassifier(max_depth=9, random_state=0).fit(X[:4000], y[:4000]).tree_
    )

    def lost(brief):
        shares = fit_soft_sides(tree, rows, brief=brief).predict(tree, X[4000:])
        return log_loss(y[4000:], shares)

    assert tree.n_leaves > 100
    assert lost(brief=True) < 1.1 * lost(brief=False)


def test_few_rows_of_many_have_about_the_class_shares_of_all_on_each_side():
    """Of a rare class no row is left out: one in eight would stand for both sides alike."""
    random = np.random.default_rng(0)
    is_right = random.permutation(120_000) < 60_000
    X = np.where(is_right, 1.0, -1.0) * random.uniform(0.5, 1.5, len(is_right))
    y = (is_right ^ (random.random(len(X)) < 0.1)).astype(int)
    for side, n_rare in ((is_right, 12), (~is_right, 4)):
        y[random.choice(np.flatnonzero(side), n_rare, replace=False)] = 2
    X = X[:, np.newaxis]
    stump = ObliqueTreeClassifier("axis", max_depth=1).fit(X, y).tree_
    sides = fit_soft_sides(stump, Dataset.from_arrays(X, y), brief=True)
    found = sides.predict(stump, X)
    for side in (is_right, ~is_right):
        expected = np.bincount(y[side]) / side.sum()
        np.testing.assert_allclose(found[side].mean(axis=0), expected, rtol=0.2)


@given(st.floats(-1e-12, 1e-12), st.integers(1, 3), st.sampled_from([1e-50, 1.0, 1e50]))
def test_no_slope_is_steeper_than_the_rounding_of_its_projection(shift, n, unit):
    rng = np.random.default_rng(0)
    X = unit * np.repeat(np.c_[rng.normal(size=40), np.full((40, 2), 0.3)], 3, axis=0)
    X[:100, 0] = -2.0 * X[:100, 1]
    weights = np.zeros((3, 3))
    weights[0] = [1.0, 1.0, 1.0] if n > 1 else [1.0, 0.0, 0.0]
    on = float(X[0] @ weights[0]) + shift * unit
    size = np.array([3, 1, 1], dtype=np.int32)
    tree = ObliqueTree(weights, np.array([on, 0.0, 0.0]), size, np.full((3, 2), 0.5))
    assume(0 < tree.apply(X).tolist().count(1) < len(X))
    rows = Dataset.from_arrays(X, np.arange(len(X)) % 2)
    sides = fit_soft_sides(tree, rows).validate(tree)
    # The steepest start is 96, and what is lost by rounding about 1e-16 of the largest number.
    assert 0.0 < sides.slopes[0] < 96.0 / (1e-17 * unit)

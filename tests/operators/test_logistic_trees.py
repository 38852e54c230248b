"""Trees of logistic models: naive twins of them, and what a fit keeps of them."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from evotree import EvoTreeClassifier, LinearLeaves
from evotree.dataset import Dataset
from evotree.engine.config import SearchConfig
from evotree.engine.finish import Finisher
from evotree.engine.problem import Penalties, prepare
from evotree.fitness import probabilities
from evotree.fitness.probabilities import (
    COSTS,
    HALVINGS,
    PROBABILITY_LOSSES,
    ModelRows,
    Strength,
    fit_scores,
    path_of_models,
)
from evotree.operators.initialization import logistic
from evotree.operators.initialization.logistic import (
    LOGISTIC,
    class_hierarchy,
    logistic_trees,
)
from tests.quick_models import FREE, evolved
from tests.reference.criteria import class_score
from tests.strategies import datasets, seeds

TABLES = {"two": load_breast_cancer, "three": load_wine}

strengths = st.builds(Strength, st.sampled_from(COSTS), st.integers(0, HALVINGS))


def quick(**changed):
    shares = {"leaves": "constant", "max_generations": 2}
    return evolved(EvoTreeClassifier, **FREE | shares | changed)


@st.composite
def class_rows(draw, least=2, most=4):
    """Draw rows whose classes are the largest of linear scores with noise, and their weights."""
    rng = np.random.default_rng(draw(seeds))
    k, d = draw(st.integers(least, most)), draw(st.integers(1, 5))
    n = draw(st.integers(5 * k, 60))
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, k)) + rng.normal(size=k)
    noise = draw(st.sampled_from((0.1, 0.5, 2.0)))
    y = (scores + noise * rng.gumbel(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    units = 10.0 ** rng.integers(-3, 4, d)
    weight = rng.choice([0.5, 1.0, 3.0], n) if draw(st.booleans()) else None
    return Dataset.from_arrays(X * units + rng.normal(size=d), y, weight)


def made(rows, strength):
    """Return the tree of one strength, and its soft sides."""
    ((same, tree),) = logistic_trees(rows, (strength,))
    assert same == strength
    return tree


def model_rows(rows):
    """Return the rows of a data set of two classes as models are fitted to them."""
    return ModelRows(rows.X, rows.y, rows.sample_weight, rows.spread)


def scores_of(rows, strength):
    """Return the scores of the logistic regression of a strength."""
    *_, scores = path_of_models(rows, strength.C, halvings=strength.halvings)
    return scores


def shares_by(scores, X):
    return softmax(X @ scores[:, :-1].T + scores[:, -1], axis=1)


def label_of_rows(tree, X):
    return tree.to_tree().majority[tree.apply(X)]


def entropy_of(rows, side):
    """Return the weighted entropy of the classes on both sides of a split."""
    sides = (
        np.bincount(rows.y[inside], rows.sample_weight[inside], rows.n_classes)
        for inside in (side, ~side)
    )
    return class_score("entropy", *sides)


@given(seeds, st.integers(1, 8), st.sampled_from([0.003, 0.03]))
def test_a_class_that_is_never_predicted_still_has_a_split(seed, n_rare, C):
    """It stands where it tells most of the classes; the probabilities stay those of the model."""
    rng = np.random.default_rng(seed)
    y = (np.arange(80) < n_rare).astype(int)
    X = rng.normal(size=(80, 2)) + y[:, None]
    rows = Dataset.from_arrays(X * [0.01, 100.0], y)
    strength = Strength(C)
    scores = scores_of(model_rows(rows), strength)
    shares = shares_by(scores, rows.X)
    assume(shares[:, 1].max() < 0.5)
    tree, sides = made(rows, strength)
    assert tree.n_leaves == 2
    goes_right = tree.apply(rows.X) == 2
    assert shares[goes_right, 1].min() > shares[~goes_right, 1].max()
    cuts = np.sort(shares[:, 1])[:-1]
    least = min(entropy_of(rows, shares[:, 1] <= cut) for cut in cuts)
    assert entropy_of(rows, ~goes_right) == pytest.approx(least)
    np.testing.assert_allclose(sides.mix(tree, rows.X), shares, atol=1e-9)
    is_common = label_of_rows(tree, rows.X) == 0
    np.testing.assert_allclose(
        sides.predict(tree, rows.X)[is_common], shares[is_common], atol=1e-9
    )


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("cells", [0.0, np.inf], ids=["quasi-Newton", "Newton"])
def test_a_model_of_all_terms_is_that_of_scikit_learn(C, cells, monkeypatch):
    monkeypatch.setattr(probabilities, "_NEWTON_CELLS", cells)
    rows = Dataset.from_arrays(*load_breast_cancer(return_X_y=True))
    shares = shares_by(scores_of(model_rows(rows), Strength(C)), rows.X)
    known = LogisticRegression(C=C, tol=1e-8, max_iter=10_000)
    known.fit(rows.X, rows.y, rows.sample_weight)
    np.testing.assert_allclose(shares, known.predict_proba(rows.X), atol=0.005)


@given(class_rows(most=2), seeds, st.sampled_from([0.1, 10.0, 1000.0]))
def test_a_model_is_the_same_from_wherever_it_starts(rows, seed, C):
    """The penalized loss is convex: far from its least value full steps would go astray."""
    is_free = np.ones((2, rows.X.shape[1] + 1), dtype=bool)
    is_free[0] = False
    far = np.random.default_rng(seed).normal(0.0, 30.0, is_free.shape) * is_free
    one, other = (
        fit_scores(model_rows(rows), slice(None), C, start, is_free)
        for start in (np.zeros(is_free.shape), far)
    )
    np.testing.assert_allclose(
        shares_by(one, rows.X), shares_by(other, rows.X), atol=0.01
    )


def naive_shares(rows, strength, X, node, present):
    """Return the probabilities of classes below a node, by a regression of two groups there."""
    shares = np.zeros((len(X), rows.n_classes))
    if node.is_leaf():
        shares[:, present[node.id]] = 1.0
        return shares
    groups = [present[side.pre_order()] for side in (node.left, node.right)]
    inside = np.isin(rows.y, np.concatenate(groups))
    binary = ModelRows(
        rows.X[inside],
        np.isin(rows.y[inside], groups[1]).astype(int),
        rows.sample_weight[inside],
        rows.spread,
    )
    of_sides = shares_by(scores_of(binary, strength), X)
    for j, side in enumerate((node.left, node.right)):
        below = naive_shares(rows, strength, X, side, present)
        shares += of_sides[:, j : j + 1] * below
    return shares


@given(class_rows(most=5), strengths, seeds)
def test_each_split_is_a_logistic_regression_of_two_groups(rows, strength, seed):
    """So of two classes the tree is the logistic regression."""
    tree, sides = made(rows, strength)
    assert tree.origin == LOGISTIC
    k = rows.n_classes
    assume(tree.n_leaves == k)  # else rows of some classes alone reach a leaf together
    shares = sides.shares[tree.is_leaf]
    np.testing.assert_array_equal(shares[shares.argmax(axis=0)], np.eye(k))
    X = np.random.default_rng(seed).normal(scale=2.0, size=(30, rows.X.shape[1]))
    (*_, root), present = class_hierarchy(rows)
    expected = naive_shares(rows, strength, X, root, present)
    np.testing.assert_allclose(sides.mix(tree, X), expected, atol=1e-9)


def naive_groups(rows):
    """Join the groups of the least mean distance of their classes until one group is left."""
    weight, labels = rows.sample_weight, range(rows.n_classes)
    means = np.array(
        [np.average(rows.X, axis=0, weights=weight * (rows.y == k)) for k in labels]
    )
    away = rows.X - means[rows.y]
    within = (away.T * weight) @ away / weight.sum()
    within += logistic._COVARIANCE_RIDGE * np.diag(rows.spread**2)
    apart = cdist(means, means, "mahalanobis", VI=np.linalg.inv(within))
    model = AgglomerativeClustering(1, metric="precomputed", linkage="average")
    groups = [frozenset([k]) for k in labels]
    for a, b in model.fit(apart).children_:
        groups.append(groups[a] | groups[b])
    return set(groups[rows.n_classes :])


@given(class_rows(least=2, most=6))
def test_classes_whose_means_are_nearest_are_parted_last(rows):
    groups, present = class_hierarchy(rows)
    joined = {frozenset(present[one.pre_order()].tolist()) for one in groups}
    assert {one for one in joined if len(one) > 1} == naive_groups(rows)


@given(datasets(), strengths, st.integers(0, 3))
def test_of_any_rows_probabilities_add_up_to_one(rows, strength, without):
    """Of ties, constant columns, few rows, one class, and classes without rows."""
    kept = np.flatnonzero(rows.y != without)
    assume(len(kept))
    rows = rows.take(kept)
    present = np.unique(rows.y)
    found = list(logistic_trees(rows, (strength,)))
    assert len(found) <= (len(present) > 1)
    for _, (tree, sides) in found:
        sides.validate(tree.to_tree())
        assert tree.n_leaves <= len(present)
        assert (tree.to_tree().values.sum(axis=1) > 0.0).all()
        shares = sides.predict(tree, rows.X)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        absent = np.setdiff1d(np.arange(rows.n_classes), present)
        assert not shares[:, absent].any()
        np.testing.assert_array_equal(
            shares.argmax(axis=1), label_of_rows(tree, rows.X)
        )


@given(class_rows(), strengths, seeds)
def test_constant_columns_have_no_terms(rows, strength, seed):
    rng = np.random.default_rng(seed)
    X = np.insert(rows.raw, rng.integers(rows.X.shape[1] + 1), 7.0, axis=1)
    is_constant = np.ptp(X, axis=0) == 0.0
    more = Dataset.from_arrays(X, rows.y, rows.sample_weight)
    tree, _ = made(more, strength)
    assert not tree.weights[:, is_constant].any()
    assert tree.complexity == made(rows, strength).individual.complexity


@given(class_rows())
def test_all_strengths_come_once_and_each_halving_takes_half_of_the_terms(rows):
    found = dict(logistic_trees(rows))
    assert set(found) <= {Strength(C, h) for C in COSTS for h in range(HALVINGS + 1)}
    assume(all(one.individual.n_leaves == rows.n_classes for one in found.values()))
    d = rows.X.shape[1]
    for strength, (tree, _) in found.items():
        n_terms = np.count_nonzero(tree.weights[~tree.is_leaf], axis=1)
        assert (n_terms == max(1, d >> strength.halvings)).all()


@given(class_rows(), strengths, st.sampled_from([1e-3, 2.0, 40.0]))
def test_a_weight_of_two_is_a_row_given_twice(rows, strength, unit):
    weight = np.where(np.arange(len(rows.y)) % 3, 1, 2)
    twice = np.repeat(np.arange(len(rows.y)), weight)
    weighted = Dataset.from_arrays(rows.raw, rows.y, unit * weight)
    repeated = Dataset.from_arrays(rows.raw[twice], rows.y[twice]).unmerged()
    (one, sides), (other, of_other) = (
        made(each, strength) for each in (weighted, repeated)
    )
    np.testing.assert_allclose(
        sides.mix(one, weighted.X), of_other.mix(other, weighted.X), atol=1e-6
    )


# ---- fitted --------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", [[1e99, 1e-98], [1e-98, 1.0], [1.0, 1e90]])
def test_units_that_are_far_apart_end_in_numbers(units):
    X = np.random.default_rng(0).normal(size=(240, 2))
    model = quick(evolution__scaling="common").fit(X * units, X[:, 0] > X[:, 1])
    assert np.isfinite(model.predict_proba(X * units)).all()


@pytest.mark.parametrize("leaves", ["linear", LinearLeaves(["a"])], ids=repr)
def test_leaves_of_classes_hold_shares(leaves):
    message = (
        "leaves=.*: leaves of classes hold shares, or points on a score; allowed are"
    )
    with pytest.raises(ValueError, match=message):
        quick(leaves=leaves).fit(*load_wine(return_X_y=True))


@pytest.fixture(scope="module", params=TABLES.values(), ids=TABLES)
def table(request):
    """Two thirds of the rows of a table, and the others."""
    X, y = request.param(return_X_y=True)
    is_kept = np.arange(len(y)) % 3 > 0
    return X[is_kept], y[is_kept], X[~is_kept], y[~is_kept]


@pytest.fixture(scope="module", params=[None, "auto", 3], ids=str)
def fitted(request, table):
    return quick(precision=request.param).fit(*table[:2])


def chosen_strength(model):
    """Return the strength of the logistic models that a fit has chosen."""
    candidates = model.choice_.to_frame()
    (chosen,) = candidates[candidates["chosen"]].itertuples()
    assert chosen.kind == LOGISTIC
    return Strength(chosen.C, int(chosen.halvings))


def test_a_fit_keeps_the_probabilities_that_were_compared(fitted, table):
    """To the last digits where nothing is rounded, else as far as three digits say them."""
    X, y, others, labels = table
    assert fitted.tree_.origin == LOGISTIC
    assert fitted.tree_ in fitted.pareto_front_
    assert fitted.tree_.n_leaves == len(fitted.classes_)
    rows = Dataset.from_arrays(X, y)
    strength = chosen_strength(fitted)
    tree, sides = made(rows, strength)
    scaled = (others - rows.mean) / rows.scale
    expected = sides.predict(tree, scaled)
    found = fitted.predict_proba(others)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(fitted.predict(others), found.argmax(axis=1))
    if fitted.precision is None:
        np.testing.assert_allclose(found, expected, atol=1e-9)
    else:
        assert np.abs(found - expected).mean() < 0.02
        assert log_loss(labels, found) == pytest.approx(
            log_loss(labels, expected), rel=0.1
        )


@pytest.mark.parametrize("objective", ["log_loss", "brier", "roc_auc"])
def test_the_quality_of_such_a_tree_is_that_of_the_probabilities_it_keeps(objective):
    X, y = load_breast_cancer(return_X_y=True)
    config = SearchConfig(objective=objective)
    problem = prepare(Dataset.from_arrays(X, y), config)
    finisher = Finisher(problem, Penalties(0.01, 0.001))
    tree = finisher.logistic(Strength(0.3))
    loss, weight = PROBABILITY_LOSSES[objective], np.ones(len(y))
    lost = loss(tree.sides.predict(tree, X), y, weight).mean()
    if objective != "roc_auc":
        of_classes = np.tile(np.bincount(y) / len(y), (len(y), 1))
        lost /= loss(of_classes, y, weight).mean()
    assert tree.quality == pytest.approx(1.0 - lost)


def rows_of_leaves(tree, X, rows):
    """Return how many of the rows as they were given each leaf has."""
    return np.bincount(tree.apply(X), rows.multiplicity, len(tree))[tree.is_leaf]


@given(class_rows(), strengths, st.sampled_from([None, "auto", 1, 2]), st.booleans())
def test_what_is_returned_keeps_the_least_rows_of_a_leaf(
    rows, strength, precision, is_one_more
):
    """There is no such tree where the least is more than the rows of its smallest leaf."""
    tree, _ = made(rows, strength)
    smallest = rows_of_leaves(tree, rows.X, rows).min()
    least = max(2, int(smallest) + is_one_more)
    problem = prepare(rows, SearchConfig(min_samples_leaf=least, precision=precision))
    finisher = Finisher(problem, Penalties(0.01, 0.001))
    found = finisher.logistic(strength)
    if precision in (None, "auto"):  # every row stays in its leaf
        assert (found is not None) == (tree.n_leaves == 1 or smallest >= least)
    if found is not None and found.n_leaves > 1:
        assert rows_of_leaves(found, rows.raw, rows).min() >= least


def test_beside_a_logistic_tree_evolution_has_less_patience():
    run = []
    model = quick(max_generations=60, evolution__patience=8, callbacks=[run.append])
    model.fit(*load_breast_cancer(return_X_y=True))
    assert model.tree_.origin == LOGISTIC
    assert model.stop_reason_ == "patience"
    assert model.n_generations_ - run[-1].last_improvement == 2


BOUNDS = [
    {"max_terms": 20},
    {"max_split_terms": 9},
    {"interaction_cst": [[0, 1]]},
    {"monotonic_cst": [1] + [0] * 29},
    {"term_penalty": 0.001},
    {"variation__algorithm": "nsga2"},
    {"init": "dipole"},
]
COMPETE = [
    ("two", {}, True),
    *(("two", bound, False) for bound in BOUNDS),
    # Three classes need two splits, one below the other.
    ("three", {"max_depth": 1}, False),
    ("three", {"max_depth": 2}, True),
]


@pytest.mark.parametrize(("name", "bound", "are_there"), COMPETE)
def test_such_trees_compete_where_terms_are_free(name, bound, are_there):
    X, y = TABLES[name](return_X_y=True)
    model = quick(**bound).fit(X[::4], y[::4])
    origins = {tree.origin for tree in model.pareto_front_}
    assert (LOGISTIC in origins) == are_there
    kinds = set() if model.choice_ is None else set(model.choice_.to_frame()["kind"])
    assert (LOGISTIC in kinds) == are_there

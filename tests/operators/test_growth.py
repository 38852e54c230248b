"""The grower: scikit-learn's trees where the splitter is its own, and where nodes become leaves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from evotree.dataset import Dataset
from evotree.operators.initialization.growth import GrowthLimits, grow
from evotree.operators.splitters.base import Axis, Split
from tests.strategies import datasets, stream_of

LIMITS = (
    {},
    {"max_depth": 3},
    {"max_depth": 1},
    {"min_samples_leaf": 7},
    {"min_samples_split": 20},
    {"max_depth": 6, "min_samples_leaf": 3, "min_samples_split": 9},
)


def problem(seed, n=150, d=3):
    """Make rows without ties: no equal values, and weights that no two splits share by chance.

    Weights are whole numbers: scikit-learn splits pure nodes whose impurity is not 0 by rounding.
    """
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.permutation(n) for _ in range(d)]).astype(float)
    slope = X[:, 0] + X[:, 1] > n
    return rng, X, slope, rng.integers(500, 1500, n).astype(float)


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("criterion", ("gini", "entropy", "squared_error"))
def test_axis_grows_the_trees_of_scikit_learn(limits, criterion):
    rng, X, slope, weight = problem(0, n=90)
    if criterion == "squared_error":
        kind, task, y = (
            DecisionTreeRegressor,
            "regression",
            slope + rng.normal(size=len(slope)),
        )
    else:
        kind, task = DecisionTreeClassifier, "classification"
        y = slope + (rng.random(len(slope)) < 0.15) * rng.integers(0, 3, len(slope))
    dataset = Dataset.from_arrays(X, y, weight, task=task)
    model = kind(criterion=criterion, random_state=0, **limits).fit(X, y, weight)
    individual = grow(
        dataset, Axis(), criterion, GrowthLimits(**limits), stream=stream_of()
    )
    assert individual.n_leaves == model.get_n_leaves()
    assert individual.depth == model.get_depth()
    leaves, theirs = individual.apply(dataset.X), model.apply(dataset.raw)
    assert (
        len(np.unique(np.column_stack([leaves, theirs]), axis=0)) == individual.n_leaves
    )
    if criterion == "squared_error":
        found = (
            dataset.target_mean + dataset.target_scale * individual.values[leaves, 0]
        )
        np.testing.assert_allclose(found, model.predict(dataset.raw), atol=1e-9)
    else:
        shares = individual.predict_value(dataset.X)
        np.testing.assert_allclose(shares, model.predict_proba(dataset.raw), atol=1e-12)


@given(
    datasets(),
    st.integers(0, 3),
    st.integers(2, 9),
    st.integers(1, 5),
    st.sampled_from((0.0, 0.1, 0.3)),
)
def test_limits_hold(
    dataset, max_depth, min_samples_split, min_samples_leaf, least_share
):
    limits = GrowthLimits(max_depth, min_samples_split, min_samples_leaf, least_share)
    individual = grow(dataset, Axis(), limits=limits, stream=stream_of())
    parts = zip(individual.start, individual.end, strict=True)
    n_rows = np.array(
        [dataset.multiplicity[individual.order[i:j]].sum() for i, j in parts]
    )
    assert individual.depth <= max_depth
    assert (n_rows[~individual.is_leaf] >= min_samples_split).all()
    if len(individual) > 1:
        assert (n_rows[individual.is_leaf] >= min_samples_leaf).all()
        weights = individual.counts[individual.is_leaf].sum(axis=1)
        assert (weights >= least_share * dataset.total_weight * (1.0 - 1e-9)).all()


@pytest.mark.parametrize("threshold", (-9.0, 9.0, -1.3, None))
@pytest.mark.parametrize("is_split_first", (False, True))
def test_no_split_or_one_that_leaves_too_few_rows_makes_a_leaf(
    threshold, is_split_first
):
    """The splitter does not keep to ``min_rows``; the rows stand as before, in order."""
    dataset = Dataset.from_arrays(np.arange(12.0)[:, None], np.arange(12) % 2)

    def stubborn(node, stream):
        if is_split_first and len(node.X) == 12:
            return Split(np.ones(1), 0.0, 0.0)
        return None if threshold is None else Split(-np.ones(1), threshold, 0.0)

    limits = GrowthLimits(min_samples_leaf=3)
    tree = grow(dataset, stubborn, limits=limits, stream=stream_of())
    assert len(tree) == (3 if is_split_first else 1)
    assert (
        not tree.weights[tree.is_leaf].any() and not tree.thresholds[tree.is_leaf].any()
    )
    np.testing.assert_array_equal(tree.order, np.arange(12))

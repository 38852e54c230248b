"""Hard bounds on the shape and the terms of trees: what repaired trees and operators keep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree.engine.toolbox import feature_bound
from evotree.operators.constraints import (
    Interactions,
    ShapeLimits,
    keeps_all,
    repair,
)
from evotree.operators.initialization.growth import init_dipolar
from evotree.operators.initialization.population import ONE_BY_ONE, init_seed
from evotree.operators.pruning import cost_complexity_path, node_risk
from evotree.rng import make_streams
from tests.strategies import (
    OPERATORS,
    any_populations,
    apply_operator,
    assert_sound,
    datasets,
    operators_for,
    seeds,
)

limits = st.builds(
    ShapeLimits,
    max_depth=st.none() | st.integers(1, 4),
    max_leaves=st.none() | st.integers(2, 6),
    max_terms=st.none() | st.integers(0, 8),
    min_leaf_share=st.sampled_from((0.0, 0.05, 0.3)),
)


@st.composite
def interactions(draw, n_features):
    jumps = st.lists(
        st.integers(0, 1), min_size=n_features - 1, max_size=n_features - 1
    )
    column_of = np.cumsum([0, *draw(jumps)])
    n_columns = int(column_of[-1]) + 1
    if draw(st.booleans()):
        return Interactions(column_of, max_columns=draw(st.integers(1, 2)))
    column = st.lists(st.booleans(), min_size=n_columns, max_size=n_columns)
    groups = np.array(draw(st.lists(column, max_size=3)), dtype=bool).reshape(
        -1, n_columns
    )
    rest = ~groups.any(axis=0)
    return Interactions(column_of, np.vstack([groups, rest]) if rest.any() else groups)


@settings(max_examples=40)
@given(any_populations, st.data())
def test_repaired_trees_keep_all_and_are_sound(drawn, data):
    dataset, individuals = drawn
    of_columns = data.draw(interactions(dataset.X.shape[1]))
    constraints = [of_columns, data.draw(limits)]
    for tree in individuals:
        before = tree.clone()
        repaired = repair(tree.clone(), dataset, constraints)
        assert keeps_all(repaired, dataset, constraints)
        assert_sound(repaired, dataset)
        assert np.count_nonzero(repaired.weights, axis=1).max() <= max(
            1, min(one.max_width or 99 for one in constraints)
        )
        assert keeps_all(before, dataset, constraints) <= (repaired == before)


@settings(max_examples=40)
@given(any_populations, st.integers(2, 6))
def test_of_leaves_above_the_bound_the_weakest_links_go(drawn, max_leaves):
    dataset, individuals = drawn
    for tree in individuals:
        risk = node_risk(tree.counts, dataset.n_classes)
        _, risks = cost_complexity_path(risk, tree.subtree_size)
        is_cut = tree.n_leaves > max_leaves
        repair(tree, dataset, [ShapeLimits(max_leaves=max_leaves)])
        left = node_risk(tree.counts, dataset.n_classes)[tree.is_leaf].sum()
        assert not is_cut or np.abs(risks - left).min() < 1e-9


bounds = st.integers(1, 3)


def widths(tree):
    return np.count_nonzero(tree.weights, axis=1)


@st.composite
def bounded_tasks(draw, names):
    """Draw rows of some features, a bound, trees that keep it, and an operator."""
    task = draw(st.sampled_from(("classification", "regression")))
    dataset, bound = draw(datasets(task=task)), draw(bounds)
    streams = make_streams(draw(seeds), 0, 2)
    parents = [init_dipolar(dataset, 0.0, one, max_width=bound) for one in streams]
    assert max(widths(one).max() for one in parents) <= bound
    return dataset, bound, parents, draw(st.sampled_from(operators_for(dataset, names)))


@settings(max_examples=40)
@given(bounded_tasks(OPERATORS) | bounded_tasks(ONE_BY_ONE), seeds, st.booleans())
def test_every_operator_and_every_seed_keeps_the_bound(drawn, seed, is_seed):
    dataset, bound, parents, name = drawn
    stream = make_streams(seed, 1, 1)[0]
    if is_seed and name in ONE_BY_ONE or name not in OPERATORS:
        children = [init_seed(dataset, 0.001, name, stream, max_features=bound)]
    else:
        children = apply_operator(name, *parents, dataset, stream, max_features=bound)
    for child in children:
        assert_sound(child, dataset)
        assert widths(child).max() <= bound


@pytest.mark.parametrize(
    ("given_", "n_features", "expected"),
    [
        (None, 9, None),
        (1, 9, 1),
        (9, 9, None),
        (12, 9, None),
        (0.5, 9, 4),
        (0.01, 9, 1),
        (1.0, 9, None),
    ],
)
def test_a_bound_may_be_a_share_of_the_features(given_, n_features, expected):
    assert feature_bound(given_, n_features) == expected

"""The axis-parallel splitter against the search of every midpoint, and C4.5's choice."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree.fitness.criteria import CLASSIFICATION, REGRESSION, Criterion
from evotree.fitness.node import Node, score_hyperplane
from evotree.operators.splitters.axis import Axis
from evotree.rng import make_streams
from tests.reference.perturbation import axis_search, gain_ratio_search
from tests.strategies import seeds

STREAM = make_streams(0, 0, 1)[0]

by_itself = pytest.mark.parametrize("name", [n for n in (*CLASSIFICATION, *REGRESSION)
                                             if n != "gain_ratio"])  # fmt: skip


@st.composite
def nodes(draw, name, max_rows=40):
    """Draw the rows of a node, some on a grid, with a constant feature at times."""
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.integers(2, max_rows)), draw(st.integers(1, 4))
    X = np.round(rng.normal(size=(n, d)), draw(st.sampled_from((0, 1, 9))))
    if draw(st.booleans()):
        X[:, 0] = 3.0
    n_classes = draw(st.integers(2, 4)) if name in CLASSIFICATION else 0
    y = rng.normal(size=n)
    if n_classes > 0:
        y = (rng.integers(0, n_classes, n) * (X[:, -1] > 0)).astype(np.int32)
    # Sums of such weights are exact: classes of equal weight tie, whatever the order of their rows.
    weight = rng.choice([1.0, 2.0, 0.25], n) if draw(st.booleans()) else np.ones(n)
    min_rows = draw(st.sampled_from((1, 1, 5)))
    return Node.of(X, y, weight, n_classes, int(Criterion[name.upper()]), min_rows)


@by_itself
@settings(max_examples=40)
@given(st.data())
def test_the_best_of_all_midpoints(name, data):
    node = data.draw(nodes(name))
    best, feature, _ = axis_search(node, name)
    split = Axis()(node, STREAM)
    if feature < 0:
        assert split is None
        return
    assert split.score == pytest.approx(best, abs=1e-9)
    found = score_hyperplane(node, split.weights, split.threshold)
    assert found == pytest.approx(best, abs=1e-9)
    assert sorted(split.weights)[-1] == split.weights.sum() == 1.0


@given(nodes("gain_ratio"))
def test_the_rule_of_c45(node):
    ratio, feature, _ = gain_ratio_search(node)
    split = Axis()(node, STREAM)
    if feature < 0:
        assert split is None
        return
    assert split.score == pytest.approx(-ratio, abs=1e-9)
    assert split.score == score_hyperplane(node, split.weights, split.threshold)


def test_c45_without_any_gain_takes_the_first_split():
    X = np.array([[5.0, 0.0, 0.0], [5.0, 0.0, 1.0], [5.0, 1.0, 0.0], [5.0, 1.0, 1.0]])
    node = Node.of(
        X, np.array([0, 1, 1, 0], dtype=np.int32), np.ones(4), 2, Criterion.GAIN_RATIO, 1
    )
    split = Axis()(node, STREAM)
    assert split.weights[1] == 1.0 and split.score == pytest.approx(0.0)


def test_equal_splits_go_to_the_first_feature():
    column = np.arange(6.0)
    node = Node.of(np.column_stack([column] * 3), np.array([0, 0, 0, 1, 1, 1], dtype=np.int32),
                np.ones(6), 2, Criterion.GINI, 1)  # fmt: skip
    split = Axis()(node, STREAM)
    assert split.weights.tolist() == [1.0, 0.0, 0.0] and split.threshold == 2.5

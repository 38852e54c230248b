"""C4.5 against its program, and CO2 against a naive twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from evotree.experiments.experiment import tree_sizes
from evotree.operators.splitters.base import Axis, scale_rows
from evotree.rng import below
from experiments.methods.c45 import C45, added_errors
from experiments.methods.co2 import (
    CO2,
    MOMENTUM,
    bound_gradient,
    grown_by_co2,
    lower_bound,
)
from tests.reference import smooth
from tests.strategies import seeds, stream_of
from tests.studies import naive_co2


def test_the_tree_of_c45_is_that_of_the_program_for_iris():
    """The tree of Weka's J48, a copy of the program, with as many rows and errors."""
    X, y = load_iris(return_X_y=True)
    model = C45().fit(X, y)

    def printed(node):
        if not node.children:
            return int(node.counts.sum()), int(node.counts.sum() - node.counts.max())
        return node.feature, node.threshold, *map(printed, node.children)

    narrow = 2, 4.9, (48, 1), (3, 1.5, (3, 0), (3, 1))
    assert printed(model.root_) == (3, 0.6, (50, 0), (3, 1.7, narrow, (46, 1)))
    assert tree_sizes(model)["complexity"] == 9
    np.testing.assert_allclose(model.predict_proba(X[-1:]), [[0.0, 1 / 46, 45 / 46]])
    assert model.score(X, y) == 1.0 - 3 / 150


def test_errors_to_expect_of_the_book():
    """U25%(0, 6) = .206, U25%(0, 9) = .143, U25%(0, 1) = .75 and U25%(1, 16) = .157 (section 4.2).

    The last is of the binomial distribution; the program has the normal one for it.
    """
    for n, bound in ((6, 0.206), (9, 0.143), (1, 0.750)):
        assert added_errors(n, 0.0, 0.25) / n == pytest.approx(bound, abs=5e-4)
    assert (1.0 + added_errors(16, 1.0, 0.25)) / 16 == pytest.approx(0.157, abs=0.004)


def test_c45_takes_complete_rows():
    with pytest.raises(ValueError, match="missing values"):
        C45().fit([[0.0], [np.nan]], [0, 1])


@st.composite
def stumps(draw):
    """Draw scaled rows, a hyperplane and leaves."""
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.integers(2, 30)), draw(st.integers(1, 5))
    n_classes = draw(st.integers(2, 5))
    X, y = rng.standard_normal((n, d)), rng.integers(0, n_classes, n)
    node = smooth.make_node(X, y, rng.uniform(0.1, 3.0, n), n_classes)
    scaled = scale_rows(node, rescale=True)
    theta = rng.standard_normal(d + 1) * draw(st.sampled_from((0.1, 1.0, 10.0)))
    size = draw(st.sampled_from((0.1, 5.0)))
    return scaled, theta, size * rng.standard_normal((2, scaled.totals.size))


def bound_of(scaled, theta, leaves, batch):
    grad, leaf_grad = np.empty_like(theta), np.empty_like(leaves)
    rows = scaled.rows, scaled.codes, scaled.shares
    value = bound_gradient(
        *rows, batch.astype(np.int32), theta, leaves, grad, leaf_grad
    )
    return value, grad, leaf_grad


@settings(max_examples=50)
@given(stumps(), st.data())
def test_bound_and_gradient_of_co2_are_those_of_its_twin(case, data):
    scaled, theta, leaves = case
    places = st.lists(st.integers(0, len(scaled.rows) - 1), min_size=1)
    batch = np.array(data.draw(places))
    value, grad, leaf_grad = bound_of(scaled, theta, leaves, batch)
    arrays = (scaled.rows[batch], scaled.codes[batch], scaled.shares[batch])
    assert value == pytest.approx(naive_co2.upper_bound(theta, leaves, *arrays))
    assert value >= naive_co2.stump_loss(theta, leaves, *arrays) - 1e-9
    expected, expected_leaves = naive_co2.bound_gradient(theta, leaves, *arrays)
    np.testing.assert_allclose(grad, expected, atol=1e-9)
    np.testing.assert_allclose(leaf_grad, expected_leaves, atol=1e-9)


@settings(max_examples=15)
@given(stumps(), seeds, st.integers(1, 40), st.sampled_from((0.5, 4.0)))
def test_the_descent_of_co2_is_that_of_its_twin(case, seed, batch_size, nu):
    scaled, theta, leaves = case
    n = len(scaled.rows)
    size = min(batch_size, n)
    n_batches = -(-n // size)
    random, order, batches = stream_of(seed), np.arange(n), []
    for step in range(max(2 * n_batches, 100)):
        k = step % n_batches
        if k == 0:
            for i in range(n - 1, 0, -1):
                j = below(random, i + 1)
                order[i], order[j] = order[j], order[i]
        batches.append(order[k * size : (k + 1) * size].copy())
    arrays = (scaled.rows, scaled.codes, scaled.shares)
    # A row of two equal bounds would follow rounding: few steps stay comparable.
    expected, expected_leaves = naive_co2.descend_bound(
        theta, leaves, *arrays, batches, nu, 0.01, MOMENTUM
    )
    lower_bound(scaled, theta, leaves, nu, 0.01, batch_size, 2, stream_of(seed))
    np.testing.assert_allclose(theta, expected, atol=1e-6)
    np.testing.assert_allclose(leaves, expected_leaves, atol=1e-6)
    assert theta @ theta <= nu * (1.0 + 1e-12)


@pytest.mark.parametrize("is_random", [False, True])
def test_splits_of_co2_part_separable_classes(is_random):
    X, y = smooth.separable(0)
    node = smooth.make_node(X, y)
    split = CO2(is_random)(node, stream_of())
    smooth.check_split(node, split)
    assert split.score == 0.0 < Axis()(node, stream_of()).score
    assert grown_by_co2(is_random, random_state=0).fit(X, y).get_n_leaves() == 2

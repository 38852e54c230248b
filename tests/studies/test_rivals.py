"""C4.5 against its program, and CO2 against its formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.datasets import load_iris

from evotree.experiments.experiment import tree_sizes
from evotree.operators.splitters.base import Axis
from experiments.methods.c45 import C45, added_errors
from experiments.methods.co2 import (
    CO2,
    bound_gradient,
    grown_by_co2,
    lower_bound,
)
from tests.operators.test_linear import hyperplanes
from tests.reference import smooth
from tests.strategies import seeds, stream_of


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


def log_loss(leaf, k):
    """Return the log loss of class k under the softmax of a leaf."""
    return float(np.logaddexp.reduce(leaf) - leaf[k])


def upper_bound(theta, leaves, rows, codes, shares):
    """Return the mean of the bound of CO2, row by row, and that of the loss below it."""
    bounds, losses = [], []
    for x, k in zip(rows, codes, strict=True):
        s = float(x @ theta)
        each = [log_loss(leaf, k) for leaf in leaves]
        bounds.append(max(each[0] - s, each[1] + s) - abs(s))
        losses.append(each[int(s > 0.0)])
    return np.average(bounds, weights=shares), np.average(losses, weights=shares)


@st.composite
def stumps(draw):
    """Draw scaled rows, a hyperplane and leaves."""
    scaled, theta = draw(hyperplanes())
    rng, size = np.random.default_rng(draw(seeds)), draw(st.sampled_from((0.1, 5.0)))
    return scaled, theta, size * rng.standard_normal((2, scaled.totals.size))


@settings(max_examples=50)
@given(stumps(), st.data())
def test_bound_and_gradient_of_co2_are_those_of_its_formula(case, data):
    scaled, theta, leaves = case
    places = st.lists(st.integers(0, len(scaled.rows) - 1), min_size=1)
    batch = np.array(data.draw(places))
    grad, leaf_grad = np.empty_like(theta), np.empty_like(leaves)
    rows = scaled.rows, scaled.codes, scaled.shares
    value = bound_gradient(
        *rows, batch.astype(np.int32), theta, leaves, grad, leaf_grad
    )
    arrays = [part[batch] for part in rows]
    bound, loss = upper_bound(theta, leaves, *arrays)
    assert value == pytest.approx(bound) and value >= loss - 1e-9

    def bound_at(point):
        moved = point[: len(theta)], point[len(theta) :].reshape(leaves.shape)
        return upper_bound(*moved, *arrays)[0]

    expected = approx_fprime(np.concatenate([theta, leaves.ravel()]), bound_at, 1e-7)
    slope = np.concatenate([grad, leaf_grad.ravel()])
    np.testing.assert_allclose(slope, expected, atol=1e-4)


@settings(max_examples=15)
@given(stumps(), seeds, st.integers(1, 40), st.sampled_from((0.5, 4.0)))
def test_the_descent_of_co2_lowers_the_bound_within_its_ball(
    case, seed, batch_size, nu
):
    """But for what the last steps by single rows may add."""
    scaled, theta, leaves = case
    rows = scaled.rows, scaled.codes, scaled.shares
    theta *= min(1.0, np.sqrt(nu / (theta @ theta)))
    before, _ = upper_bound(theta, leaves, *rows)
    lower_bound(scaled, theta, leaves, nu, 1e-4, batch_size, 2, stream_of(seed))
    assert upper_bound(theta, leaves, *rows)[0] <= before + 1e-2
    assert theta @ theta <= nu * (1.0 + 1e-12)


@pytest.mark.parametrize("is_random", [False, True])
def test_splits_of_co2_part_separable_classes(is_random):
    X, y = smooth.separable(0)
    node = smooth.make_node(X, y)
    split = CO2(is_random)(node, stream_of())
    smooth.check_split(node, split)
    assert split.score == 0.0 < Axis()(node, stream_of()).score
    assert grown_by_co2(is_random, random_state=0).fit(X, y).get_n_leaves() == 2

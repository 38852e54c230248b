"""The synthetic problems: definitions, optimal trees, class shares, seeds and errors."""

import numpy as np
import pytest

from experiments.problems import PROBLEMS, make_problem


def bands(weights, thresholds, leaves):
    """Return a balanced tree over the bands between parallel hyperplanes."""
    if not thresholds:
        return leaves[0]
    m = len(thresholds) // 2
    lower = bands(weights, thresholds[:m], leaves[: m + 1])
    upper = bands(weights, thresholds[m + 1 :], leaves[m + 1 :])
    return weights, thresholds[m], lower, upper


def tree_of_stripes(n, degrees=45.0):
    weights = np.array([np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))])
    edges = [k * weights.sum() / n for k in range(1, n)]
    return bands(weights, edges, [k % 2 for k in range(n)])


def tree_of_board(*labels):
    halves = [bands((1.0, -1.0), [0.0], labels[i : i + 2]) for i in (0, 2)]
    return (1.0, 1.0), 1.0, *halves


def tree_of_house():
    """What lies outside an edge is a leaf at once."""
    tree, slope = 1, 0.29 / 0.488
    for weights, threshold in (
        ((1.0, 0.0), 0.988),
        ((-1.0, 0.0), -0.012),
        ((0.0, -1.0), -0.008),
        ((slope, 1.0), 0.99 + 0.5 * slope),
        ((-slope, 1.0), 0.99 - 0.5 * slope),
    ):
        tree = weights, threshold, tree, 0
    return tree


def tree_of_checkerboard():
    """The column of the turned board first, and then the row."""
    along, across = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2.0)
    quarters = np.array([-0.25, 0.0, 0.25])
    rows = [
        bands(
            across,
            list(quarters + 0.5 * sum(across)),
            [(4 * i + j) % 8 for j in range(4)],
        )
        for i in range(4)
    ]
    return bands(along, list(quarters + 0.5 * sum(along)), rows)


TREES = {
    "chessboard2": tree_of_board(0, 1, 1, 0),
    "chessboard4": tree_of_board(0, 1, 2, 3),
    "zebra1": tree_of_stripes(4),
    "zebra2": tree_of_stripes(3),
    "zebra3": tree_of_stripes(8, 10.0),
    "house": tree_of_house(),
    "LS10": ((1.0,) * 5 + (-1.0,) * 5, 0.0, 1, 0),
    "POL": tree_of_stripes(5),
    "RCB": tree_of_checkerboard(),
}


def n_nodes(tree):
    return 1 + sum(map(n_nodes, tree[2:])) if isinstance(tree, tuple) else 1


def classify(tree, X):
    if not isinstance(tree, tuple):
        return np.full(len(X), tree)
    weights, threshold, left, right = tree
    goes_left = X @ np.asarray(weights) <= threshold
    return np.where(goes_left, classify(left, X), classify(right, X))


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_optimal_tree_has_no_error(name):
    X, y = make_problem(name, 20_000, random_state=1)
    np.testing.assert_array_equal(classify(TREES[name], X), y)
    assert n_nodes(TREES[name]) == PROBLEMS[name].optimal_nodes


@pytest.mark.parametrize("name", PROBLEMS)
def test_samples_have_their_classes_and_region_and_follow_their_seed(name):
    problem = PROBLEMS[name]
    X, y = make_problem(name, random_state=0)
    assert X.shape == (problem.default_samples, problem.n_features) and len(y) == len(X)
    X, y = make_problem(name, 20_000, random_state=7)
    assert len(np.bincount(y)) == problem.n_classes and np.bincount(y).min() > 1000
    np.testing.assert_allclose(X.mean(axis=0), 0.5, atol=0.02)
    np.testing.assert_allclose(X.var(axis=0), 1 / 12, atol=0.005)
    again, labels = make_problem(name, 20_000, np.random.default_rng(7))
    assert (again == X).all() and (y == labels).all()
    others = [make_problem(name, 50, seed)[0] for seed in (8, None, None)]
    assert len({rows.tobytes() for rows in (X[:50], *others)}) == 4


def test_a_name_that_is_none_is_refused():
    with pytest.raises(ValueError, match="'zebra9'.*allowed: chessboard2, .*RCB"):
        make_problem("zebra9")

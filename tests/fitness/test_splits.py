"""Scores of splits and the search along a line, against every midpoint scored by definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree.fitness.bounded_search import search_line_below
from evotree.fitness.criteria import CLASSIFICATION, REGRESSION, Criterion
from evotree.fitness.line_search import choose_threshold, search_line
from evotree.fitness.node import Node, score_hyperplane, score_undivided
from tests.reference import criteria as naive
from tests.strategies import seeds

quickly = settings(max_examples=20)
each_criterion = pytest.mark.parametrize("name", (*CLASSIFICATION, *REGRESSION))


def draw_weights(rng, n, kind):
    """Weights: whole, large, in halves, or any; entropies of whole ones come from a table."""
    if kind == "one":
        return np.ones(n)
    if kind == "whole":
        return rng.integers(1, 4, n).astype(float)
    if kind == "large":
        return rng.integers(1, 4, n) * 1e6
    return rng.choice([0.5, 1.0, 2.5], n) if kind == "halves" else rng.random(n) + 1e-3


@st.composite
def nodes(draw, name, max_rows=40):
    """Draw the rows of a node on a grid of eighths, so that no rounding parts equal rows."""
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.integers(1, max_rows)), draw(st.integers(1, 4))
    n_classes = draw(st.integers(1, 5)) if name in CLASSIFICATION else 0
    X = rng.integers(-8, 9, (n, d)) / draw(st.sampled_from((1.0, 8.0)))
    if n_classes > 0:
        y = rng.integers(0, n_classes, n).astype(np.int32)
    else:
        y = np.round(rng.normal(size=n), draw(st.sampled_from((0, 8))))
    kinds = ("one", "whole", "large", "halves", "any")
    weight = draw_weights(rng, n, draw(st.sampled_from(kinds)))
    min_rows = draw(st.sampled_from((1, 1, 2, 5)))
    return Node.of(X, y, weight, n_classes, int(Criterion[name.upper()]), min_rows)


@st.composite
def lines(draw, name):
    """Draw a node and a line of hyperplanes; some rows do not move along it."""
    node = draw(nodes(name))
    rng = np.random.default_rng(draw(seeds))
    d = node.X.shape[1]
    s = node.X @ rng.integers(-2, 3, d) - rng.integers(-8, 9) / 8
    t = node.X @ rng.integers(-1, 2, d) - rng.integers(-1, 2)
    return node, s, t


@each_criterion
@quickly
@given(st.data())
def test_line_search_finds_the_best_of_all_splits(name, data):
    node, s, t = data.draw(lines(name))
    score, alpha = search_line(node, s, t)
    best, intervals = naive.line_search(node, name, s, t)
    if not intervals:
        assert (score, alpha) == (np.inf, 0.0)
        return
    assert score == pytest.approx(best, abs=1e-9)
    middles = np.array([low + (high - low) / 2 for low, high in intervals])
    assert np.isclose(alpha, middles, rtol=1e-12, atol=1e-12).any()
    assert naive.score(node, name, s + alpha * t <= 0) == pytest.approx(best, abs=1e-9)


@each_criterion
@quickly
@given(st.data(), st.sampled_from((2.0**-500, 2.0**-30, 2.0**30, 2.0**500)))
def test_lines_have_no_unit(name, data, unit):
    """Powers of two round nothing: the same split, and alpha in the other unit."""
    node, s, t = data.draw(lines(name))
    score, alpha = search_line(node, s, t)
    assert search_line(node, unit * s, t) == (score, unit * alpha)
    assert search_line(node, s, unit * t) == (score, alpha / unit)


@each_criterion
@quickly
@given(st.data(), seeds, st.sampled_from((0.0, 0.1, 0.5, 0.9, 1.0)))
def test_score_of_a_hyperplane(name, data, seed, share):
    node = data.draw(nodes(name))
    w = np.random.default_rng(seed).integers(-2, 3, node.X.shape[1]).astype(float)
    projection = node.X @ w
    threshold = np.quantile(projection, share, method="lower")
    left = projection <= threshold
    found = score_hyperplane(node, w, threshold)
    if min(left.sum(), (~left).sum()) < node.min_rows:
        assert found == np.inf
    else:
        assert found == pytest.approx(naive.score(node, name, left), abs=1e-9)
    undivided = naive.score(node, name, np.ones(len(left), dtype=bool))
    assert score_undivided(node) == pytest.approx(undivided, abs=1e-9)


@each_criterion
@quickly
@given(st.data(), seeds)
def test_the_chosen_threshold_is_the_best_of_all(name, data, seed):
    node = data.draw(nodes(name))
    w = np.random.default_rng(seed).integers(-2, 3, node.X.shape[1]).astype(float)
    score, threshold = choose_threshold(node, w)
    values = np.unique(node.X @ w)
    middles = values[:-1] + np.diff(values) / 2
    every = np.array([score_hyperplane(node, w, middle) for middle in middles])
    if not np.isfinite(every).any():
        assert (score, threshold) == (np.inf, 0.0)
        return
    assert score == pytest.approx(every.min(), abs=1e-9)
    assert threshold in middles[every <= every.min() + 1e-9]
    assert score_hyperplane(node, w, threshold) == pytest.approx(score, abs=1e-9)


@each_criterion
def test_of_equal_splits_the_first_is_taken(name):
    """Rows of alternate classes: the lower of two mirror images, exactly equal scores."""
    y = np.array([0, 1, 1, 0])
    y = y.astype(np.int32) if name in CLASSIFICATION else y.astype(float)
    node = Node.of(
        np.arange(4.0).reshape(4, 1), y, np.ones(4), 2 if name in CLASSIFICATION else 0,
        int(Criterion[name.upper()]), 1,
    )  # fmt: skip
    score, threshold = choose_threshold(node, np.ones(1))
    scores = [score_hyperplane(node, np.ones(1), cut) for cut in (0.5, 1.5, 2.5)]
    assert scores[0] == scores[2]
    assert score == pytest.approx(min(scores))
    assert threshold == 0.5 + np.argmin(scores)


@each_criterion
@pytest.mark.parametrize("kind", ("one", "any"))
def test_long_scans_do_not_drift(name, kind):
    """Sums that are renewed row by row, over thousands of them, against a score from scratch."""
    rng = np.random.default_rng(1)
    n = 3000
    X = rng.normal(size=(n, 1))
    if name in CLASSIFICATION:
        y, n_classes = (rng.random(n) * 4 + (X[:, 0] > 0.3)).astype(np.int32), 5
    else:
        y, n_classes = rng.normal(size=n) + (X[:, 0] > 0.3), 0
    weight = draw_weights(rng, n, kind)
    node = Node.of(X, y, weight, n_classes, int(Criterion[name.upper()]), 20)
    score, threshold = choose_threshold(node, np.ones(1))
    assert score_hyperplane(node, np.ones(1), threshold) == pytest.approx(score, abs=1e-10)
    for cut in np.quantile(X, np.linspace(0.05, 0.95, 40)):
        assert score_hyperplane(node, np.ones(1), cut) >= score - 1e-10


# Hostile lines


def two_classes(values, criterion="gini"):
    values = np.asarray(values, dtype=float)
    y, n_classes = (np.arange(len(values)) >= len(values) // 2).astype(np.int32), 2
    if criterion in REGRESSION:
        y, n_classes = y + np.arange(len(values)) / 8, 0
    code = int(Criterion[criterion.upper()])
    return Node.of(values.reshape(-1, 1), y, np.ones(len(values)), n_classes, code, 1)


@each_criterion
@pytest.mark.parametrize("n", (1, 2, 100))
def test_rows_that_do_not_move_or_coincide_are_not_parted(name, n):
    y = np.arange(n) % 2
    y = y.astype(np.int32) if name in CLASSIFICATION else y.astype(float)
    code = int(Criterion[name.upper()])
    node = Node.of(np.full((n, 1), 3.0), y, np.ones(n), 2 * (name in CLASSIFICATION), code, 1)
    nothing = (np.inf, 0.0)
    assert choose_threshold(node, np.ones(1)) == nothing
    last = (np.arange(n) == n - 1) * 1.0
    few = node._replace(min_rows=n // 2 + 1)
    for search in (search_line, lambda *line: search_line_below(*line, np.inf)):
        for t in (np.zeros(n), last):
            assert search(node, np.arange(n) - 1.5, t) == nothing
        assert search(node, np.full(n, 0.3), np.full(n, 0.7)) == nothing
        assert search(few, np.arange(n) - n / 2.0, np.full(n, -1.0)) == nothing


@pytest.mark.parametrize("scale", (1e-300, 1.0, 1e300))
@pytest.mark.parametrize("gap", (1.0, 1e-3, 1e-10))
def test_thresholds_part_close_rows_of_any_size(scale, gap):
    values = scale * np.array([1.0, 1.0, 1.0 + gap, 1.0 + gap])
    score, threshold = choose_threshold(two_classes(values), np.ones(1))
    assert score == 0.0
    assert values[0] <= threshold < values[2]


def test_rows_apart_by_rounding_are_not_parted():
    """Places on a line are quotients: what differs in the last bits alone is no split."""
    above = np.nextafter(1.0, 2.0)
    assert choose_threshold(two_classes([1.0, above]), np.ones(1)) == (np.inf, 0.0)
    score, threshold = choose_threshold(two_classes([1.0, above, 2.0, 2.0]), np.ones(1))
    assert score == 0.0 and above <= threshold < 2.0


@each_criterion
def test_changes_too_small_to_count_leave_rows_where_they_are(name):
    """Quotients that overflow are no places on the line; the rows keep their sides."""
    node = two_classes([0.0, 1.0, 2.0, 3.0], criterion=name)
    s = np.array([1.0, -1.0, 1.0, -1.0])
    t = np.array([1e-320, -1e-320, -1.0, -1.0])
    left = np.array([False, True, False, True])
    score, alpha = search_line(node, s, t)
    assert alpha == 0.0
    assert score == pytest.approx(naive.score(node, name, left))

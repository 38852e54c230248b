"""Sorting, criteria, and searches along a line, against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evotree._jit import kernel
from evotree.fitness.node import (
    CLASSIFICATION,
    Criterion,
    Node,
    argsort,
    choose_threshold,
    line_search,
    make_split_scratch,
    score_hyperplane,
    split_score,
    undivided_score,
)
from tests.reference import criteria as naive
from tests.strategies import seeds

quickly = settings(max_examples=20)
each_criterion = pytest.mark.parametrize("name", (*CLASSIFICATION, "squared_error"))
of_classes = pytest.mark.parametrize("name", CLASSIFICATION)
NOTHING = (np.inf, 0.0)


@kernel
def scored(criterion, left, right):
    """The inner kernel, for Python."""
    return split_score(criterion, left, right)


@kernel
def score_undivided(node):
    """The inner kernel, for Python."""
    return undivided_score(node, make_split_scratch(node))


@kernel
def search_line(node, s, t):
    """The inner kernel, for Python."""
    return line_search(node, s, t, make_split_scratch(node))


def score(name, left, right):
    left, right = np.array(left, dtype=float), np.array(right, dtype=float)
    return scored(Criterion[name.upper()], left, right)


def undivided(name, counts):
    return score(name, counts, np.zeros(len(counts)))


@st.composite
def sides(draw):
    """Draw the class weights of two sides: zeros, ties, fractions, an empty or a pure side."""
    rng, n_classes = np.random.default_rng(draw(seeds)), draw(st.integers(1, 6))
    counts = rng.integers(0, 6, (2, n_classes)).astype(float)
    unit = draw(
        st.sampled_from((np.ones, rng.random, lambda s: 10.0 ** rng.integers(-2, 3, s)))
    )
    counts *= unit((2, n_classes))
    first = draw(st.sampled_from((n_classes, 0, 1)))  # an empty side, or a pure one
    counts[draw(st.integers(0, 1)), first:] = 0.0
    if not counts.any():
        counts[0, 0] = 1.0
    return counts


@of_classes
@given(sides())
def test_scores_are_those_of_the_definition_and_the_undivided_node_bounds_them(
    name, drawn
):
    left, right = drawn
    whole = left + right
    found, bound = score(name, left, right), undivided(name, whole)
    assert found == pytest.approx(
        naive.class_score(name, left, right), rel=1e-9, abs=1e-9
    )
    assert found <= bound + 1e-9
    # Sides of the node's shares are no better than the node, nor is an empty side.
    if name != "max_minority":
        assert score(name, 0.25 * whole, 0.75 * whole) == pytest.approx(bound, abs=1e-9)
    assert score(name, whole, 0 * whole) == score(name, 0 * whole, whole) == bound


def test_squared_error_is_never_negative():
    """Equal targets of which rounding makes a variance below 0."""
    sums = np.zeros(3)
    for _ in range(200):
        sums += (1.0, 0.1, 0.1 * 0.1)
        assert scored(Criterion.SQUARED_ERROR, sums, np.zeros(3)) >= 0.0


def make_node(rng, name, X, n_classes=2, kind="one", min_rows=1, y=None):
    """Make a node of random classes or targets, and weights of which entropies may have a table."""
    n = len(X)
    weight = {
        "one": np.ones(n),
        "whole": rng.integers(1, 4, n).astype(float),
        "large": rng.integers(1, 4, n) * 1e6,
        "halves": rng.choice([0.5, 1.0, 2.5], n),
        "any": rng.random(n) + 1e-3,
    }[kind]
    if y is None:
        y = (
            rng.integers(0, n_classes, n)
            if name in CLASSIFICATION
            else rng.normal(size=n)
        )
    if name in CLASSIFICATION:
        y = np.asarray(y, dtype=np.int32)
    else:
        y, n_classes = np.asarray(y, dtype=float), 0
    return Node.of(X, y, weight, n_classes, int(Criterion[name.upper()]), min_rows)


kinds = st.sampled_from(("one", "whole", "large", "halves", "any"))
fewest = st.sampled_from((1, 1, 2, 5))


@st.composite
def nodes(draw, name):
    """Draw the rows of a node on a grid of eighths, so that no rounding parts equal rows."""
    rng = np.random.default_rng(draw(seeds))
    X = rng.integers(-8, 9, (draw(st.integers(1, 40)), draw(st.integers(1, 4))))
    X = X / draw(st.sampled_from((1.0, 8.0)))
    return make_node(rng, name, X, draw(st.integers(1, 5)), draw(kinds), draw(fewest))


@st.composite
def lines(draw, name):
    """Draw a node and a line of hyperplanes; some rows do not move along it."""
    node, rng = draw(nodes(name)), np.random.default_rng(draw(seeds))
    d = node.X.shape[1]
    s = node.X @ rng.integers(-2, 3, d) - rng.integers(-8, 9) / 8
    return node, s, node.X @ rng.integers(-1, 2, d) - rng.integers(-1, 2)


@each_criterion
@quickly
@given(st.data())
def test_line_search_finds_the_best_of_all_splits(name, data):
    node, s, t = data.draw(lines(name))
    found, alpha = search_line(node, s, t)
    best, intervals = naive.line_search(node, name, s, t)
    if not intervals:
        assert (found, alpha) == NOTHING
        return
    assert found == pytest.approx(best, abs=1e-9)
    middles = np.array([low + (high - low) / 2 for low, high in intervals])
    assert np.isclose(alpha, middles, rtol=1e-12, atol=1e-12).any()
    assert naive.score(node, name, s + alpha * t <= 0) == pytest.approx(best, abs=1e-9)


@each_criterion
@quickly
@given(st.data(), seeds, st.sampled_from((0.0, 0.1, 0.5, 0.9, 1.0)))
def test_scores_of_hyperplanes_and_the_best_threshold(name, data, seed, share):
    node = data.draw(nodes(name))
    w = np.random.default_rng(seed).integers(-2, 3, node.X.shape[1]).astype(float)
    projection = node.X @ w
    threshold = np.quantile(projection, share, method="lower")
    left = projection <= threshold
    wanted = naive.score(node, name, left)
    if min(left.sum(), (~left).sum()) < node.min_rows:
        wanted = np.inf
    assert score_hyperplane(node, w, threshold) == pytest.approx(wanted, abs=1e-9)
    whole = naive.score(node, name, np.ones(len(left), dtype=bool))
    assert score_undivided(node) == pytest.approx(whole, abs=1e-9)
    best, chosen = choose_threshold(node, w)
    if best < np.inf:
        assert score_hyperplane(node, w, chosen) == pytest.approx(best, abs=1e-9)
        assert best <= wanted + 1e-9


@each_criterion
def test_of_equal_splits_the_first_is_taken(name):
    """Rows of alternate classes: the lower of two mirror images, exactly equal scores."""
    node = make_node(
        np.random.default_rng(0), name, np.arange(4.0)[:, None], y=[0, 1, 1, 0]
    )
    found, threshold = choose_threshold(node, np.ones(1))
    scores = [score_hyperplane(node, np.ones(1), cut) for cut in (0.5, 1.5, 2.5)]
    assert scores[0] == scores[2] and found == pytest.approx(min(scores))
    assert threshold == 0.5 + np.argmin(scores)


@each_criterion
@pytest.mark.parametrize("n", (1, 2, 100))
def test_rows_that_do_not_move_or_coincide_are_not_parted(name, n):
    node = make_node(
        np.random.default_rng(0), name, np.full((n, 1), 3.0), y=np.arange(n) % 2
    )
    assert choose_threshold(node, np.ones(1)) == NOTHING
    last = (np.arange(n) == n - 1) * 1.0
    few = node._replace(min_rows=n // 2 + 1)
    for t in (np.zeros(n), last):
        assert search_line(node, np.arange(n) - 1.5, t) == NOTHING
    assert search_line(node, np.full(n, 0.3), np.full(n, 0.7)) == NOTHING
    assert search_line(few, np.arange(n) - n / 2.0, np.full(n, -1.0)) == NOTHING


def halves(values):
    values = np.asarray(values, dtype=float)[:, None]
    y = np.arange(len(values)) >= len(values) // 2
    return make_node(np.random.default_rng(0), "gini", values, y=y)


@pytest.mark.parametrize("scale", (1e-300, 1.0, 1e300))
@pytest.mark.parametrize("gap", (1.0, 1e-3, 1e-10))
def test_thresholds_part_close_rows_of_any_size(scale, gap):
    values = scale * np.array([1.0, 1.0, 1.0 + gap, 1.0 + gap])
    found, threshold = choose_threshold(halves(values), np.ones(1))
    assert found == 0.0 and values[0] <= threshold < values[2]


def test_rows_apart_by_rounding_are_not_parted():
    """Places on a line are quotients: what differs in the last bits alone is no split."""
    above = np.nextafter(1.0, 2.0)
    assert choose_threshold(halves([1.0, above]), np.ones(1)) == NOTHING
    found, threshold = choose_threshold(halves([1.0, above, 2.0, 2.0]), np.ones(1))
    assert found == 0.0 and above <= threshold < 2.0


@each_criterion
def test_changes_too_small_to_count_leave_rows_where_they_are(name):
    """Quotients that overflow are no places on the line; the rows keep their sides."""
    X, s = np.arange(4.0)[:, None], np.array([1.0, -1.0, 1.0, -1.0])
    node = make_node(np.random.default_rng(0), name, X, y=[0, 0, 1, 1])
    found, alpha = search_line(node, s, np.array([1e-320, -1e-320, -1.0, -1.0]))
    assert alpha == 0.0 and found == pytest.approx(naive.score(node, name, s < 0.0))


@each_criterion
@quickly
@given(st.data(), st.sampled_from((2.0**-400, 2.0**-30, 2.0**30, 2.0**400)))
def test_lines_have_no_unit(name, data, unit):
    """Powers of two round nothing: the same split, and alpha in the other unit."""
    node, s, t = data.draw(lines(name))
    found, alpha = search_line(node, s, t)
    assert search_line(node, unit * s, t) == (found, unit * alpha)
    assert search_line(node, s, unit * t) == (found, alpha / unit)


# ---- sorting, against NumPy's stable sort --------------------------------------------------------

# Around the length from which on another algorithm takes over.
LENGTHS = (0, 1, 2, 3, 25, 48, 95, 96, 97, 193, 500)
lengths = st.sampled_from(LENGTHS)


def check_order(values):
    """Rising values, every position once, equal numbers as they came; the values are only read."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    before = values.copy()
    order = argsort(values)
    assert order.dtype == np.int32
    np.testing.assert_array_equal(np.sort(order), np.arange(len(values)))
    np.testing.assert_array_equal(values[order], np.sort(values))
    # -0.0 equals 0.0 and may come first
    if not (np.signbit(values) & (values == 0.0)).any():
        np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    assert values.tobytes() == before.tobytes()


@given(
    arrays(
        np.float64, lengths, elements=st.floats(allow_nan=False, allow_infinity=False)
    )
)
def test_any_finite_numbers(values):
    check_order(values)


@given(
    lengths, seeds, st.integers(1, 40), st.sampled_from((1.0, -1.0, 1e-300, 2.0**900))
)
def test_ties_extremes_and_numbers_that_differ_in_their_last_bits(
    n, seed, n_values, base
):
    """The leading bits, by which positions are sorted first, are the same for all of the last."""
    rng = np.random.default_rng(seed)
    check_order(rng.integers(-n_values, n_values, n))
    tiny, huge = np.finfo(float).smallest_subnormal, np.finfo(float).max
    special = np.array([0.0, tiny, 2 * tiny, 1e-310, huge, 1.0])
    check_order(rng.choice(special, n) * rng.choice([-1.0, 1.0], n))
    steps = rng.permutation(n)
    for repeated in (1, 3):
        check_order(base * (1.0 + np.finfo(float).eps * (steps // repeated)))

"""The search by bounds, against the scan of the whole line, which has a naive twin itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree.fitness.bounded_search import search_line_below
from evotree.fitness.criteria import CLASSIFICATION, REGRESSION, Criterion
from evotree.fitness.line_search import search_line
from evotree.fitness.node import Node
from tests.reference import criteria as naive
from tests.strategies import seeds

quickly = settings(max_examples=15)
each_criterion = pytest.mark.parametrize("name", (*CLASSIFICATION, *REGRESSION))

KINDS = ("one", "whole", "large", "any")


def make_node(rng, name, n, n_classes, kind, min_rows=1):
    """Make a node without features: lines bring their own distances."""
    weight = {
        "one": np.ones(n),
        "whole": rng.integers(1, 4, n).astype(float),
        "large": rng.integers(1, 4, n) * 1e6,
        "any": rng.random(n) + 1e-3,
    }[kind]
    if name in CLASSIFICATION:
        y = rng.integers(0, n_classes, n).astype(np.int32)
    else:
        y, n_classes = rng.normal(size=n), 0
    return Node(np.zeros((n, 1)), y, weight, n_classes, int(Criterion[name.upper()]), min_rows)


@st.composite
def lines(draw, name, changes=(1.0, 0.0, 1e-320)):
    """Draw a node and a line along which some classes part, on a grid or not.

    A quarter of the rows changes by so many times as much as the others.
    """
    rng = np.random.default_rng(draw(seeds))
    n = draw(st.sampled_from((5, 33, 50, 120, 400)))
    node = make_node(
        rng, name, n, draw(st.integers(1, 6)), draw(st.sampled_from(KINDS)),
        draw(st.sampled_from((1, 1, 2, 20))),
    )  # fmt: skip
    s = rng.normal(size=n) + draw(st.sampled_from((0.0, 0.5, 4.0))) * node.y
    t = rng.normal(size=n) + draw(st.sampled_from((0.0, -3.0, 30.0)))
    if draw(st.booleans()):
        s, t = np.round(s, 1), np.round(t)
    if draw(st.booleans()):
        t = np.full(n, -1.0)
    t[: n // 4] *= draw(st.sampled_from(changes))
    return node, s * 10.0 ** draw(st.integers(-8, 8)), t * 10.0 ** draw(st.integers(-8, 8))


def assert_as_the_scan(node, name, s, t, known):
    best, place = search_line(node, s, t)
    score, alpha = search_line_below(node, s, t, known)
    if best == np.inf:
        assert (score, alpha) == (np.inf, 0.0)
        return
    assert score == pytest.approx(best, abs=1e-9)
    if alpha != place:  # another split, or rounding has put another one of equals first
        assert naive.score(node, name, s + alpha * t <= 0) == pytest.approx(best, abs=1e-9)


@each_criterion
@quickly
@given(st.data())
def test_the_search_finds_what_the_scan_finds(name, data):
    node, s, t = data.draw(lines(name))
    best = search_line(node, s, t)[0]
    assert_as_the_scan(node, name, s, t, np.inf)
    if best < np.inf:
        assert_as_the_scan(node, name, s, t, best + 1e-9)
        assert_as_the_scan(node, name, s, t, best + 0.1)


@each_criterion
@quickly
@given(st.data(), st.sampled_from((2.0**-500, 2.0**-30, 2.0**30, 2.0**400)))
def test_lines_have_no_unit_and_nothing_is_as_good_as_what_is_known(name, data, unit):
    node, s, t = data.draw(lines(name, changes=(1.0, 0.0)))
    score, alpha = search_line_below(node, s, t, np.inf)
    assert search_line_below(node, unit * s, t, np.inf) == (score, unit * alpha)
    assert search_line_below(node, s, unit * t, np.inf) == (score, alpha / unit)
    best = search_line(node, s, t)[0]
    if best < np.inf:
        known = best - 1e-6 - 1e-3 * abs(best)
        score, alpha = search_line_below(node, s, t, known)
        assert score > known
        if score < np.inf:
            assert naive.score(node, name, s + alpha * t <= 0) == pytest.approx(score, abs=1e-9)


@each_criterion
@pytest.mark.parametrize("n_classes", (2, 7))
def test_searches_near_the_best_split(name, n_classes, n=3000):
    """What the splitters do: distances from a hyperplane that parts most rows well."""
    rng = np.random.default_rng(n_classes)
    node = make_node(rng, name, n, n_classes, "one")
    for noise in (0.0, 0.3, 3.0):
        s = node.y - np.median(node.y) + noise * rng.normal(size=n) + 0.01 * rng.normal(size=n)
        for t in (rng.normal(size=n), np.ones(n)):
            assert_as_the_scan(node, name, s, t, np.inf)
            assert_as_the_scan(node, name, s, t, search_line(node, s, t)[0] + 1e-12)


@pytest.mark.parametrize("name", CLASSIFICATION)
@pytest.mark.parametrize("gap", (1e-15, 1e-11))
def test_a_bucket_ends_between_rows_at_one_place(name, gap):
    """The classes part there, but rows are apart only where more than rounding lies between them.

    The mean size of the places is 2, so that a bucket ends at 1.
    """
    y = np.repeat(np.array([0, 1], dtype=np.int32), (50, 150))
    y[119::20] = 0
    s = -np.concatenate([np.full(50, 1.0 - gap), np.ones(50), np.linspace(1.5, 4.5, 100)])
    node = make_node(np.random.default_rng(0), name, 200, 2, "one")._replace(y=y)
    assert_as_the_scan(node, name, s, np.ones(200), np.inf)
    alpha = search_line_below(node, s, np.ones(200), np.inf)[1]
    assert (alpha == pytest.approx(1.0, abs=1e-9)) == (gap > 1e-12)


@pytest.mark.parametrize("name", CLASSIFICATION)
@quickly
@given(seeds, st.integers(2, 4), st.integers(1, 40), st.booleans())
def test_a_split_that_no_end_of_a_bucket_shows(name, seed, n_classes, n_needle, is_left):
    """Rows of one class come to the side where it belongs, and others of it leave at once.

    All within a bucket: before and after it the split is mediocre, and the bounds are sharp.
    """
    rng = np.random.default_rng(seed)
    n_fixed, n_others = 150, 50
    y = rng.integers(0, n_classes, n_fixed + n_others + 2 * n_needle)
    s = np.where((y == 0) == (rng.random(len(y)) < 0.9), -1.0, 1.0)  # the left side is for class 0
    t = np.zeros(len(y))
    t[n_fixed:] = rng.choice([-1.0, 1.0], len(y) - n_fixed)
    places = rng.normal(size=len(y))
    needle = np.arange(n_fixed + n_others, len(y))
    y[needle] = 0 if is_left else 1
    t[needle] = np.repeat([-1.0, 1.0] if is_left else [1.0, -1.0], n_needle)
    places[needle] = rng.normal() + 1e-6 * np.arange(2 * n_needle)
    s[n_fixed:] = -places[n_fixed:] * t[n_fixed:]
    node = make_node(rng, name, len(y), n_classes, "one")._replace(y=y.astype(np.int32))
    best = search_line(node, s, t)[0]
    assert search_line_below(node, s, t, best + 1e-12)[0] == pytest.approx(best, abs=1e-12)
    assert search_line_below(node, s, t, np.inf)[0] == pytest.approx(best, abs=1e-12)

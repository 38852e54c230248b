"""OC1, CART-LC and simulated annealing: their moves against naive twins, and what they promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree._jit import read_only
from evotree.fitness.criteria import CLASSIFICATION, REGRESSION, Criterion
from evotree.fitness.line_search import choose_threshold
from evotree.fitness.node import Node, score_hyperplane
from evotree.operators.splitters.annealing import Annealing
from evotree.operators.splitters.axis import Axis
from evotree.operators.splitters.cart_lc import CartLC, search_cart_lc
from evotree.operators.splitters.cart_lc import Plan as CartPlan
from evotree.operators.splitters.oc1 import OC1, ORDERS, Plan, search_oc1
from evotree.rng import make_streams
from tests.reference.perturbation import allowed_score, cart_lc_cycle, perturb_coefficient
from tests.strategies import seeds

each_criterion = pytest.mark.parametrize("name", (*CLASSIFICATION, *REGRESSION))

SPLITTERS = {
    "oc1": OC1(n_restarts=4),
    "oc1 best": OC1(n_restarts=2, order="best"),
    "oc1 random": OC1(n_restarts=3, order="random", n_random=9, min_rows_per_feature=0.0),
    "oc1r": OC1(n_restarts=3, random_start=True, min_rows_per_feature=0.0),
    "cart-lc": CartLC(),
    "cart-lc whole": CartLC(elimination=0.0, tol=0.0, max_cycles=7),
    "cart-lcr": CartLC(start="random"),
    "annealing": Annealing(max_moves=300, patience=100),
}
each_splitter = pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=SPLITTERS)


def stream_of(seed):
    return make_streams(seed, 0, 1)[0]


def make_node(rng, name, n, d, n_classes=3, min_rows=1):
    """Make a node with an oblique boundary and some noise."""
    X = rng.normal(size=(n, d))
    s = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    y, n_classes = (s, 0) if name in REGRESSION else (s, n_classes)
    if n_classes > 0:
        y = np.digitize(s, np.quantile(s, np.arange(1, n_classes) / n_classes)).astype(np.int32)
    return Node.of(X, y, np.ones(n), n_classes, int(Criterion[name.upper()]), min_rows)


@st.composite
def hostile_nodes(draw, name):
    """Draw constant and repeated columns, repeated rows, few rows, wild scales, odd weights."""
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.sampled_from((2, 3, 7, 40, 70))), draw(st.integers(1, 5))
    X = np.round(rng.normal(size=(n, d)), draw(st.sampled_from((0, 1, 9))))
    X[:, 0] = draw(st.sampled_from((X[:, 0], X[:, -1], np.full(n, 0.1))))
    X *= 10.0 ** rng.integers(-8, 9, d) if draw(st.booleans()) else 1.0
    if draw(st.booleans()):
        X[n // 2 :] = X[: n - n // 2]
    n_classes = 0 if name in REGRESSION else draw(st.integers(2, 5))
    y = np.round(rng.normal(size=n), 1) if n_classes == 0 else rng.integers(0, n_classes, n)
    if n_classes > 0:
        y = y.astype(np.int32)
    weight = rng.choice([1e-3, 1.0, 2.5, 1e3], n) if draw(st.booleans()) else np.ones(n)
    min_rows = draw(st.sampled_from((1, 1, 3)))
    return Node.of(X, y, weight, n_classes, int(Criterion[name.upper()]), min_rows)


# What every splitter promises


@each_splitter
@each_criterion
@settings(max_examples=25)
@given(st.data(), seeds)
def test_a_split_is_what_it_says(splitter, name, data, seed):
    node = data.draw(hostile_nodes(name))
    for array in node[:3]:
        array.flags.writeable = True
    before = [array.copy() for array in node[:3]]
    split = splitter(node, stream_of(seed))
    assert all((a == b).all() for a, b in zip(before, node[:3], strict=True))
    if split is None:
        assert Axis()(node, stream_of(seed)) is None
        return
    assert np.isfinite(split.weights).all() and np.isfinite(split.threshold)
    assert split.weights.any()
    found = score_hyperplane(node, split.weights, split.threshold)
    assert found < np.inf  # so that both sides have enough rows
    assert split.score == found
    again = splitter(node, stream_of(seed))
    assert (again.weights == split.weights).all() and again[1:] == split[1:]


@each_criterion
@pytest.mark.parametrize("splitter", (SPLITTERS["oc1"], SPLITTERS["oc1r"], SPLITTERS["cart-lc"]))
@settings(max_examples=25)
@given(st.data(), seeds)
def test_never_worse_than_the_best_axis_parallel_split(name, splitter, data, seed):
    node = data.draw(hostile_nodes(name))
    axis, split = Axis()(node, stream_of(seed)), splitter(node, stream_of(seed))
    if axis is not None:
        assert split.score <= axis.score + 1e-9 * abs(axis.score)


@each_splitter
@each_criterion
def test_one_feature_gives_the_best_axis_parallel_split(splitter, name):
    rng = np.random.default_rng(0)
    for seed in range(3):
        node = make_node(rng, name, 60, 1)
        axis, split = Axis()(node, stream_of(seed)), splitter(node, stream_of(seed))
        if name == "gain_ratio":  # the best ratio of all, not that of the highest gain
            assert split.score <= axis.score + 1e-9
        else:
            assert split.score == pytest.approx(axis.score, abs=1e-9)


@pytest.mark.parametrize("name", ("gini", "entropy", "twoing", "gain_ratio", "sum_minority"))
@pytest.mark.parametrize(
    "splitter", (OC1(), OC1(order="best"), OC1(random_start=True), Annealing())
)
def test_parted_classes_are_parted(name, splitter):
    """Two classes in the plane with a gap between them, along an oblique line."""
    rng = np.random.default_rng(1)
    for seed in range(5):
        X = rng.normal(size=(80, 2))
        s = X @ rng.normal(size=2)
        X, s = X[abs(s) > 0.2], s[abs(s) > 0.2]
        code = int(Criterion[name.upper()])
        node = Node.of(X, (s > 0).astype(np.int32), np.ones(len(s)), 2, code, 1)
        split = splitter(node, stream_of(seed))
        sides = X @ split.weights <= split.threshold
        assert len({(side, label) for side, label in zip(sides, node.y, strict=True)}) == 2


# OC1


def test_a_perturbation_takes_the_best_value_of_a_coefficient():
    """One move changes one coefficient, and none of its values is better."""
    rng = np.random.default_rng(0)
    plan = Plan(
        n_restarts=1, n_jumps=0, order=ORDERS.index("random"), n_random=1, stagnation_step=1.0
    )
    moved = set()
    for name in (*CLASSIFICATION, *REGRESSION):
        for seed in range(12):
            node = make_node(rng, name, 45, 3)
            start = np.append(rng.normal(size=3), 0.0)
            start[3] = -np.median(node.X @ start[:3])
            X = np.column_stack([node.X, np.ones(45)])
            goal, found = allowed_score(node, name, X @ start <= 0), np.zeros(4)
            search_oc1(node, plan, start, goal, stream_of(seed), found)
            if not found.any():
                continue
            (m,) = np.flatnonzero(found != start)
            moved.add(m)
            best = perturb_coefficient(node, name, start, m)
            assert allowed_score(node, name, X @ found <= 0) == pytest.approx(best, abs=1e-9)
            assert best < goal
    assert moved == {0, 1, 2, 3}


def test_a_local_minimum_is_one():
    """Without lateral moves and jumps the search ends where no coefficient alone can help."""
    rng = np.random.default_rng(2)
    for name in ("twoing", "gini", "max_minority", "squared_error"):
        for order in ("sequential", "best"):
            plan = Plan(1, 0, ORDERS.index(order), 1, 1.0)
            node = make_node(rng, name, 60, 3)
            start, found = np.append(rng.normal(size=3), 0.0), np.zeros(4)
            X = np.column_stack([node.X, np.ones(60)])
            goal = allowed_score(node, name, X @ start <= 0)
            search_oc1(node, plan, start, goal, stream_of(0), found)
            reached = allowed_score(node, name, X @ found <= 0)
            assert reached < goal
            for m in range(4):
                assert perturb_coefficient(node, name, found, m) >= reached - 1e-9


@pytest.mark.parametrize("name", ("twoing", "entropy", "squared_error"))
def test_more_restarts_and_jumps_are_never_worse(name):
    rng = np.random.default_rng(3)
    for seed in range(4):
        node = make_node(rng, name, 90, 4)
        scores = [OC1(n_restarts=k)(node, stream_of(seed)).score for k in (0, 1, 2, 5, 12)]
        assert scores[0] == Axis()(node, stream_of(seed)).score
        assert all(later <= earlier for earlier, later in zip(scores[:-1], scores[1:], strict=True))
        assert scores[-1] < scores[0]
    jumps = [np.mean([OC1(1, k)(node, stream_of(s)).score for s in range(12)]) for k in (0, 40)]
    assert jumps[1] < jumps[0]


def test_when_oc1_is_axis_parallel():
    node = make_node(np.random.default_rng(4), "gini", 40, 5)
    axis, oblique = Axis()(node, stream_of(0)), OC1(2)(node, stream_of(0))
    assert oblique.score < axis.score
    undivided = 1.0 - ((np.bincount(node.y) / 40) ** 2).sum()
    ratio = (undivided - oblique.score) / (undivided - axis.score)
    few = OC1(2, min_rows_per_feature=8.1), OC1(2, bias=ratio + 0.01)
    for splitter in few:
        assert splitter(node, stream_of(0)).weights.tolist() == axis.weights.tolist()
    for splitter in (OC1(2, min_rows_per_feature=8.0), OC1(2, bias=ratio - 0.01)):
        assert (splitter(node, stream_of(0)).weights != 0.0).sum() > 1


def test_constant_features_have_no_weight():
    node = make_node(np.random.default_rng(5), "twoing", 80, 4)
    X = node.X.copy()
    X[:, 1] = 0.7
    node = node._replace(X=read_only(X))
    for splitter in SPLITTERS.values():
        split = splitter(node, stream_of(1))
        assert split.weights[1] == 0.0 and (split.weights != 0.0).sum() > 1


def test_classes_that_do_not_occur_change_nothing():
    node = make_node(np.random.default_rng(6), "twoing", 80, 3)
    more = node._replace(y=2 * node.y + 1, n_classes=9)
    for splitter in SPLITTERS.values():
        few, many = splitter(node, stream_of(1)), splitter(more, stream_of(1))
        assert (few.weights == many.weights).all() and few.threshold == many.threshold


# CART-LC


@pytest.mark.parametrize("name", ("gini", "entropy", "twoing", "squared_error"))
def test_a_cycle_of_cart_lc(name):
    """From a random hyperplane, rows of random weights: no two splits are equally good."""
    rng = np.random.default_rng(7)
    for _ in range(6):
        node = make_node(rng, name, 48, 3)._replace(sample_weight=rng.random(48) + 0.1)
        mean = np.average(node.X, axis=0, weights=node.sample_weight)
        scale = np.sqrt(np.average((node.X - mean) ** 2, axis=0, weights=node.sample_weight))
        weights = rng.normal(size=3)
        threshold = np.median(node.X @ weights)
        standard = node._replace(X=(node.X - mean) / scale)
        b, c = cart_lc_cycle(standard, name, weights * scale, threshold - weights @ mean)
        search_cart_lc(node, CartPlan(1, 0.0, 0.0), weights, threshold, stream_of(0))
        assert weights * scale == pytest.approx(b, abs=1e-9)
        goes_left = standard.X @ b <= c
        found = choose_threshold(node, weights)[0]
        assert found == pytest.approx(allowed_score(node, name, goes_left), abs=1e-9)


@pytest.mark.parametrize("name", ("twoing", "gini", "absolute_error"))
def test_elimination_costs_less_than_its_share_of_the_gain(name):
    rng = np.random.default_rng(8)
    sizes = []
    for _ in range(5):
        node = make_node(rng, name, 150, 6)
        flat = score_hyperplane(node._replace(min_rows=0), np.zeros(6), 1.0)
        scores, used = [], []
        for share in (0.0, 0.1, 0.3):
            weights, axis = np.zeros(6), Axis()(node, stream_of(0))
            weights[:] = axis.weights
            search_cart_lc(node, CartPlan(50, 0.0, share), weights, axis.threshold, stream_of(0))
            scores.append(choose_threshold(node, weights)[0])
            used.append((weights != 0.0).sum())
            assert flat - scores[-1] > (1.0 - share) * (flat - scores[0]) - 1e-9
        assert used[0] >= used[1] >= used[2]
        sizes.append(used)
    assert np.mean(sizes, axis=0)[2] < np.mean(sizes, axis=0)[0]


def test_units_of_features_do_not_matter_to_cart_lc():
    """Powers of two, so that standardizing rounds alike."""
    node = make_node(np.random.default_rng(9), "gini", 100, 3)
    unit = np.array([2.0**-20, 1.0, 2.0**30])
    split, other = (
        CartLC()(node, stream_of(0)),
        CartLC()(node._replace(X=np.ascontiguousarray(node.X * unit)), stream_of(0)),
    )
    assert other.score == split.score
    directions = [w / np.linalg.norm(w) for w in (split.weights, other.weights * unit)]
    assert directions[0] == pytest.approx(directions[1])


# Annealing


def test_longer_annealing_finds_better_splits():
    rng = np.random.default_rng(10)
    nodes = [make_node(rng, "gini", 100, 4) for _ in range(6)]
    means = []
    for moves in (0, 30, 3000):
        splitter = Annealing(max_moves=moves)
        scores = [splitter(node, stream_of(k)).score for k, node in enumerate(nodes)]
        means.append(np.mean(scores))
    assert means[0] > means[1] > means[2]


def test_the_hottest_search_keeps_the_best_it_saw():
    """At an infinite temperature every move is accepted; the first hyperplane remains the bar."""
    node = make_node(np.random.default_rng(11), "twoing", 60, 3)
    first = Annealing(max_moves=0)(node, stream_of(0)).score
    for moves in (10, 100, 1000):
        hot = Annealing(temperature=1e9, cooling=1.0, max_moves=moves)
        assert hot(node, stream_of(0)).score <= first + 1e-9


# Parameters


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OC1(n_restarts=-1), "n_restarts=-1: allowed are integers of at least 0."),
        (lambda: OC1(n_jumps=1.5), "n_jumps=1.5: allowed are integers of at least 0."),
        (lambda: OC1(n_random=0), "n_random=0: allowed are integers of at least 1."),
        (lambda: OC1(order="worst"), "order='worst': allowed are 'sequential', 'best', 'random'."),
        (lambda: OC1(stagnation_step=0.0), "stagnation_step=0.0: allowed are numbers in (0, 1]."),
        (lambda: OC1(bias=0.9), "bias=0.9: allowed are numbers of at least 1.0."),
        (lambda: OC1(min_rows_per_feature=np.nan), "min_rows_per_feature=nan: allowed are"),
        (lambda: CartLC(start="here"), "start='here': allowed are 'axis', 'random'."),
        (lambda: CartLC(max_cycles=-1), "max_cycles=-1: allowed are integers of at least 0."),
        (lambda: CartLC(tol=-0.1), "tol=-0.1: allowed are numbers of at least 0."),
        (lambda: CartLC(elimination=1.0), "elimination=1.0: allowed are numbers in [0, 1)."),
        (lambda: Annealing(temperature=-1.0), "temperature=-1.0: allowed are numbers of at least"),
        (lambda: Annealing(cooling=0.0), "cooling=0.0: allowed are numbers in (0, 1]."),
        (lambda: Annealing(max_moves=-1), "max_moves=-1: allowed are integers of at least 0."),
        (lambda: Annealing(patience=0), "patience=0: allowed are integers of at least 1."),
    ],
)  # fmt: skip
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError) as raised:
        make()
    assert message in str(raised.value)

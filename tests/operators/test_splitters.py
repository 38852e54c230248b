"""What holds for every splitter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from evotree import operators
from evotree._jit import read_only
from evotree.fitness.node import CLASSIFICATION
from evotree.operators.initialization.growth import random_halves
from evotree.operators.splitters.base import Axis
from evotree.operators.splitters.cross_entropy import CrossEntropy
from evotree.operators.splitters.dipole import Dipole
from evotree.operators.splitters.linear import GROUPS, Linear, Sparse
from evotree.operators.splitters.perturbation import OC1, Annealing, CartLC
from evotree.operators.splitters.registry import SPLITTERS, bounded
from evotree.operators.splitters.wodt import WODT
from tests.reference import smooth
from tests.strategies import seeds, stream_of

# Those that fall back on the best test of one feature; quick ones, and ones that go other ways.
SEARCHES = {
    "annealing": Annealing(max_moves=300, patience=100),
    "axis": Axis(),
    "cart_lc": CartLC(),
    "cart_lc whole": CartLC(elimination=0.0, tol=0.0, max_cycles=7),
    "cart_lc random": CartLC(start="random"),
    "cross_entropy": CrossEntropy(max_samples=25, max_iter=8),
    "cross_entropy of few rows": CrossEntropy(
        max_samples=25,
        max_iter=8,
        max_rows=4,
        refine_threshold=False,
    ),
    "linear": Linear(fallback=True),
    "linear halves": Linear("logistic", "l1", groups="random", fallback=True),
    "oc1": OC1(n_restarts=4),
    "oc1 anywhere": OC1(n_restarts=3, random_start=True, min_rows_per_feature=0.0),
    "wodt": WODT(start="groups"),
    "wodt random": WODT(start="random", rescale=False, max_iter=5),
    "cart_lc as given": CartLC(standardized=False, elimination=0.0),
}
OTHERS = {
    "bounded": bounded(OC1(n_restarts=2, min_rows_per_feature=0.0), 2),
    "dipole": Dipole(max_width=2),
    "linear strict": Linear(C=1e6),
    "random halves": random_halves,
}
NEVER_WORSE = ("cart_lc", "oc1", "oc1 anywhere")


def of(names):
    """Parametrize a test over splitters."""
    every = SEARCHES | OTHERS
    return pytest.mark.parametrize(
        "splitter", [every[name] for name in names], ids=names
    )


def is_for_classes(splitter):
    return isinstance(splitter, WODT)


def same(split, other):
    return (split.weights == other.weights).all() and split[1:3] == other[1:3]


def test_all_registered_splitters_are_here():
    assert set(SPLITTERS) <= set(SEARCHES | OTHERS)
    for kind in SPLITTERS.values():  # they can be imported from the package
        assert getattr(operators, kind.__name__) is kind
    assert (
        repr(SPLITTERS["oc1"]()) == "OC1()"
        and repr(CartLC("random")) == "CartLC(start='random')"
    )


@of(SEARCHES | OTHERS)
@settings(max_examples=20)
@given(st.data(), seeds)
def test_a_split_is_what_it_says_and_comes_again(splitter, data, seed):
    tasks = (
        ("classification",)
        if is_for_classes(splitter)
        else ("classification", "regression")
    )
    node = data.draw(smooth.hostile_nodes(data.draw(st.sampled_from(tasks))))
    split, axis = splitter(node, stream_of(seed)), Axis()(node, stream_of(seed))
    if split is None:
        assert axis is None or splitter in OTHERS.values()
        return
    smooth.check_split(node, split)
    if axis is not None and any(splitter is SEARCHES[name] for name in NEVER_WORSE):
        assert split.score <= axis.score + 1e-9 * abs(axis.score)
    if splitter is OTHERS["bounded"]:
        assert np.count_nonzero(split.weights) <= 2
    assert same(split, splitter(node, stream_of(seed)))


@of(SEARCHES)
@pytest.mark.parametrize("name", (*CLASSIFICATION, "squared_error"))
def test_one_feature_gives_its_best_test(splitter, name):
    if is_for_classes(splitter) and name == "squared_error":
        return
    node = smooth.oblique_node(np.random.default_rng(0), name, d=1)
    axis, split = Axis()(node, stream_of()), splitter(node, stream_of())
    assert split.score == pytest.approx(axis.score, abs=1e-9)


@of(
    (
        "annealing",
        "cart_lc",
        "cross_entropy",
        "oc1",
        "wodt",
    )
)
def test_constant_features_get_no_weight_and_absent_classes_change_nothing(splitter):
    node = smooth.oblique_node(np.random.default_rng(0), "gini", 80, 4)
    X = node.X.copy()
    X[:, 1] = 0.7
    node = node._replace(X=read_only(X))
    split = splitter(node, stream_of(1))
    assert split.weights[1] == 0.0 and np.count_nonzero(split.weights) > 1
    more = splitter(
        node._replace(y=read_only(2 * node.y + 1), n_classes=9), stream_of(1)
    )
    np.testing.assert_allclose(more.weights, split.weights, atol=1e-12)
    assert more.threshold == pytest.approx(split.threshold, abs=1e-12)


SHARP = (
    *(
        WODT(start=start, rescale=rescale)
        for start in ("groups", "random")
        for rescale in (True, False)
    ),
    *(
        Linear(loss, penalty, C=1e3)
        for loss in ("svm", "logistic")
        for penalty in ("l1", "l2")
    ),
    OC1(),
    OC1(random_start=True),
)


@pytest.mark.parametrize("splitter", SHARP, ids=str)
def test_separable_classes_are_parted(splitter):
    for seed in range(2):
        node = smooth.make_node(*smooth.separable(seed))
        assert splitter(node, stream_of(seed)).score == 0.0


@of(("cart_lc", "wodt"))
def test_units_of_features_do_not_matter(splitter):
    X, y = load_iris(return_X_y=True)
    X, unit = X[:, :2], 2.0 ** np.array([-20, 30])
    first, second = (
        splitter(smooth.make_node(rows, y), stream_of()) for rows in (X, X * unit)
    )
    sides = X @ first.weights <= first.threshold
    np.testing.assert_array_equal(
        (X * unit) @ second.weights <= second.threshold, sides
    )


@pytest.mark.parametrize(
    ("splitter", "atol"),
    # L-BFGS, Newton
    [
        (WODT(start="groups"), 1e-3),
        *((Linear(groups=groups), 1e-6) for groups in GROUPS),
    ],
)
def test_a_weight_of_two_is_a_row_given_twice_and_order_does_not_matter(splitter, atol):
    X, y = load_iris(return_X_y=True)
    weight = np.where(np.arange(150) % 3 == 0, 2.0, 1.0)
    repeated = np.repeat(np.arange(150), weight.astype(int))
    shuffled = np.random.default_rng(0).permutation(len(repeated))
    nodes = (
        smooth.make_node(X, y, weight),
        smooth.make_node(X[repeated], y[repeated]),
        smooth.make_node(X[repeated[shuffled]], y[repeated[shuffled]]),
    )
    first, *others = (splitter(node, stream_of()).weights for node in nodes)
    for weights in others:
        np.testing.assert_allclose(first, weights, atol=atol)


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (
            Annealing,
            {"temperature": -1.0, "cooling": 0.0, "max_moves": -1, "patience": 0},
        ),
        (CartLC, {"start": "here", "max_cycles": -1, "tol": -0.1, "elimination": 1.0}),
        (CartLC, {"standardized": "yes"}),
        (
            CrossEntropy,
            {"smoothing": 1.0, "elite_share": 0.0, "patience": 0, "max_iter": 0},
        ),
        (
            CrossEntropy,
            {"max_samples": 2.5, "max_rows": 1},
        ),
        (
            Linear,
            {"loss": "tree", "penalty": "l0", "groups": "both"},
        ),
        (Linear, {"C": 0.0, "tol": np.inf, "n_groups": 0, "max_iter": 0}),
        (OC1, {"n_restarts": -1, "n_jumps": 1.5}),
        (OC1, {"stagnation_step": 0.0, "min_rows_per_feature": np.nan}),
        (Sparse, {"widths": "other", "loss": "other", "max_features": 0}),
        (WODT, {"start": "zero", "max_iter": 0, "tol": np.nan}),
    ],
)
def test_parameters_are_checked(kind, bad):
    for name, value in bad.items():
        message = f"'{name}' parameter of {kind.__name__} must be .*Got"
        with pytest.raises(ValueError, match=message):
            kind(**{name: value})

"""Refiners: sound trees, untouched parents, margins, one node at a time, sweeps that never hurt."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_wine

from evotree.dataset import Dataset
from evotree.operators.initialization.dipolar import init_dipolar
from evotree.operators.refinement.refiners import (
    LinearResplit,
    Prune,
    Resplit,
    TaoSweep,
    centre_margins,
    draw_linear,
    make_refiner,
)
from evotree.operators.splitters.axis import Axis
from evotree.operators.splitters.linear import Linear
from evotree.operators.splitters.linear_fit import LOSSES
from evotree.operators.splitters.oc1 import OC1
from evotree.operators.structure.reduced import leaf_table, reduced_problem
from evotree.rng import make_streams
from tests.strategies import any_populations, seeds

bounds = st.sampled_from(((0.1, 10.0), (1e-3, 1e-3), (5.0, 500.0)))


def refined(name, individual, dataset, seed=0, C=(0.1, 10.0)):
    """Apply a refiner to a clone."""
    clone = individual.clone()
    clone.stream = make_streams(seed, 1, 1)[0]
    (result,) = make_refiner(name, 0.01, C)(clone, dataset)
    assert result is clone
    return clone


def dipolar_trees(load, task="classification", n=4):
    """Return a data set and some larger trees on it."""
    dataset = Dataset.from_arrays(*load(return_X_y=True), task=task)
    return dataset, [init_dipolar(dataset, 0.0, stream) for stream in make_streams(3, 0, n)]


@given(any_populations, seeds, bounds)
def test_a_sweep_never_lowers_the_quality(drawn, seed, C):
    dataset, individuals = drawn
    for individual in individuals:
        for _ in range(3):
            after = refined("tao", individual, dataset, seed, C)
            assert after.quality >= individual.quality
            individual = after


@given(any_populations)
def test_centred_margins_move_no_row(drawn):
    dataset, individuals = drawn
    for individual in individuals:
        centred = refined("centre", individual, dataset)
        for at in (0, 2, 3, 4, 5, 6):  # all but the thresholds
            np.testing.assert_array_equal(centred.nodes()[at], individual.nodes()[at])
        assert centred.quality == individual.quality
        for k in np.flatnonzero(centred.thresholds != individual.thresholds):
            children = k + 1, k + 1 + individual.subtree_size[k + 1]
            s = dataset.X[individual.order] @ individual.weights[k]
            left, right = (s[individual.start[child] : individual.end[child]] for child in children)
            middle, scale = (left.max() + right.min()) / 2.0, 1.0 + np.abs(s).max()
            assert centred.thresholds[k] == pytest.approx(middle, abs=1e-9 * scale)


def test_margins_that_are_centred_stay_and_keep_the_fitness():
    dataset, trees = dipolar_trees(load_wine)
    for tree in trees:
        once = refined("centre", tree, dataset)
        assert not once.fitness.valid
        once.fitness.values = (0.5,)
        twice = refined("centre", once, dataset)
        assert twice.fitness.values == (0.5,)
        assert all(a is b for a, b in zip(once.nodes(), twice.nodes(), strict=True))


@pytest.mark.parametrize("name", ["linear", "axis", "oc1"])
def test_a_resplit_changes_one_test(name):
    dataset, trees = dipolar_trees(load_wine, n=6)
    n_changed = 0
    for seed, tree in enumerate(trees):
        after = refined(name, tree, dataset, seed)
        tests = {(w.tobytes(), t) for w, t in zip(tree.weights, tree.thresholds, strict=True)}
        new = [
            w
            for w, t in zip(after.weights, after.thresholds, strict=True)
            if (w.tobytes(), t) not in tests
        ]
        assert len(new) <= 1
        n_changed += len(new)
        if name == "axis":
            assert all((w != 0.0).sum() == 1 for w in new)
    assert n_changed >= 3


def test_a_resplit_meets_every_node_that_matters():
    dataset, (tree, *_) = dipolar_trees(load_wine)
    seen = set()

    def splitter(node, stream):
        seen.add(node.X.tobytes())

    for seed in range(30 * len(tree)):
        clone = tree.clone()
        clone.stream = make_streams(seed, 0, 1)[0]
        Resplit(splitter)(clone, dataset)
    predictions = leaf_table(tree, dataset.n_classes)
    problems = [
        reduced_problem(
            tree, dataset, k, tree.weights, tree.thresholds, predictions, make_streams(0, 0, 1)[0]
        )
        for k in np.flatnonzero(tree.subtree_size > 1)
    ]
    # Where all rows belong to one side no splitter is needed.
    open_ones = [node.X.tobytes() for node in problems if node is not None and np.ptp(node.y) > 0]
    assert len(open_ones) > 3 and seen == set(open_ones)


def test_drawn_costs_are_log_uniform_and_losses_alike():
    stream = make_streams(5, 0, 1)[0]
    drawn = [draw_linear((0.01, 100.0), "l1", stream) for _ in range(2000)]
    assert all(isinstance(one, Linear) and one.penalty == "l1" for one in drawn)
    assert draw_linear((0.3, 0.3), "l2", stream).C == 0.3
    losses, times = np.unique([one.loss for one in drawn], return_counts=True)
    assert set(losses) == set(LOSSES) and stats.chisquare(times).pvalue > 0.001
    costs = [one.C for one in drawn]
    assert stats.kstest(np.log10(costs), stats.uniform(-2.0, 4.0).cdf).pvalue > 0.001


def test_names_of_refiners():
    C = (0.5, 2.0)
    assert make_refiner("tao", 0.0, C, "l1") == TaoSweep(C, "l1")
    assert make_refiner("linear", 0.0, C, "l1") == LinearResplit(C, "l1")
    assert make_refiner("prune", 0.25, C) == Prune(0.25)
    assert make_refiner("centre", 0.0, C) is centre_margins
    assert make_refiner("axis", 0.0, C) == Resplit(Axis())
    assert make_refiner("oc1", 0.0, C) == Resplit(OC1())
    own = Resplit(OC1(random_start=True))
    assert make_refiner(own, 0.0, C) is own
    with pytest.raises(
        ValueError, match=r"refinement names 'polish': allowed are \[.*'axis'.*'tao'"
    ):
        make_refiner("polish", 0.0, C)
    with pytest.raises(ValueError, match="refinement names 3: allowed are names and callables"):
        make_refiner(3, 0.0, C)

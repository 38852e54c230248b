"""Tree alternating optimization: reduced problems, monotone loss, partitions, threads, prunings."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine

from evotree.dataset import Dataset, jitter
from evotree.fitness.base import leaf_table
from evotree.fitness.linear_leaves import LinearLeafObjective
from evotree.operators.initialization.growth import (
    GrowthLimits,
    grow,
    grow_on_sample,
    random_halves,
)
from evotree.operators.pruning import prune
from evotree.operators.refinement import (
    misrouted,
    reduced_problem,
    tao_sweep,
    tao_sweeps,
)
from evotree.operators.splitters.base import Axis, Split
from evotree.operators.splitters.linear import Linear
from evotree.operators.splitters.perturbation import OC1
from evotree.operators.structure.splice import make_individual
from tests.fitness.test_several_outputs import cases as of_several_outputs
from tests.reference import tao as naive
from tests.strategies import any_populations, assert_sound, seeds, stream_of

SPLITTERS = {
    "logistic, l2": Linear("logistic", "l2"),
    "logistic, l1": Linear("logistic", "l1"),
    "svm": Linear("svm", "l2"),
    "axis": Axis(),
    "oc1": OC1(),
}
splitters = st.sampled_from(tuple(SPLITTERS.values()))


def grown(X, y, *, max_depth=6, splitter=None, task="classification", seed=0):
    dataset = Dataset.from_arrays(X, y, task=task)
    criterion = "entropy" if dataset.n_classes else "squared_error"
    state = stream_of(seed)
    individual = grow(
        dataset, splitter or Axis(), criterion, GrowthLimits(max_depth), stream=state
    )
    individual.stream = state
    return dataset, individual


def optimize(individual, dataset, splitter, **parameters):
    """Sweep over a tree until its loss falls no further, and prune it."""
    list(tao_sweeps(individual, dataset, splitter, **parameters))
    prune(individual, dataset, 0.0)


def rows_of(individual, k):
    return individual.order[individual.start[k] : individual.end[k]]


@st.composite
def judged_populations(draw):
    """Draw a population, for targets also one of lines in its leaves, or of several outputs."""
    if draw(st.booleans()) and draw(st.booleans()):
        dataset, individual = draw(of_several_outputs())
        return dataset, [individual]
    dataset, individuals = draw(any_populations)
    if dataset.n_classes or draw(st.booleans()):
        return dataset, individuals
    dataset = dataset.evolved_for(LinearLeafObjective())
    return dataset, [make_individual(dataset, *one.nodes()[:3]) for one in individuals]


@given(judged_populations())
def test_care_rows_are_those_that_matter(population):
    dataset, individuals = population
    for individual in individuals:
        table = leaf_table(individual, dataset.n_classes)
        for k in np.flatnonzero(individual.subtree_size > 1):
            rows = rows_of(individual, k)
            node = reduced_problem(
                individual, dataset, k, *individual.splits[:2], table, stream_of()
            )
            chosen, wanted, costs = naive.reduced_problem(
                individual, dataset, rows, k, table
            )
            if node is None:
                assert chosen.size == 0
                continue
            care, goes_right, cost = node[:3]
            np.testing.assert_array_equal(care, dataset.X[chosen])
            np.testing.assert_array_equal(goes_right == 1, wanted)
            np.testing.assert_allclose(cost, costs, atol=1e-12)  # differences of losses
            w, t = individual.weights[k], float(individual.thresholds[k])
            assert misrouted(care, goes_right, cost, w, t) == pytest.approx(
                naive.misrouted(care, wanted, cost, w, t)
            )


@settings(max_examples=25)
@given(judged_populations(), splitters, st.booleans())
def test_sweeps_never_raise_the_loss(population, splitter, monotone):
    dataset, individuals = population
    for individual in individuals:
        individual.stream, qualities = stream_of(), [individual.quality]
        for _ in range(3):
            before = individual.clone()
            kept = [array.copy() for array in before.nodes()]
            (same,) = tao_sweep(individual, dataset, splitter, monotone=monotone)
            assert same is individual
            for array, copy in zip(before.nodes(), kept, strict=True):
                np.testing.assert_array_equal(array, copy)
            assert_sound(individual, dataset)
            qualities.append(individual.quality)
        if monotone:
            assert qualities == sorted(qualities)


def test_a_part_without_rows_may_fill_again_in_a_later_sweep():
    """A sweep that lets no row reach a leaf, and one that does: the leaf is there again."""
    X = np.arange(8.0)[:, np.newaxis]
    dataset = Dataset.from_arrays(X, [0, 0, 1, 1, 0, 0, 0, 0])
    x = dataset.X[:, 0]
    thresholds = np.array([x[3:5].mean(), x[1:3].mean(), 0.0, 0.0, 0.0])
    weights = np.array([[1.0], [1.0], [0.0], [0.0], [0.0]])
    size = np.array([5, 3, 1, 1, 1], dtype=np.int32)
    individual = make_individual(dataset, weights, thresholds, size)
    individual.stream, found = stream_of(), individual.clone()
    all_left = iter([Split(np.ones(1), 100.0, 0.0)])

    def all_left_at_first(node, stream):
        return next(all_left, None) or Axis()(node, stream)

    sweeps = tao_sweeps(individual, dataset, all_left_at_first, monotone=False)
    assert next(sweeps) == 1
    assert individual.n_leaves < 3 and individual.quality == 0.75
    assert_sound(individual, dataset)
    assert next(sweeps) == 2
    assert_sound(individual, dataset)
    assert individual.quality == 1.0
    np.testing.assert_array_equal(individual.apply(dataset.X), found.apply(dataset.X))


@settings(max_examples=25)
@given(any_populations, splitters)
def test_sweeps_over_parts_without_rows_leave_sound_trees(population, splitter):
    dataset, individuals = population
    for individual in individuals:
        individual.stream = stream_of()
        qualities = [individual.quality]
        for _ in tao_sweeps(individual, dataset, splitter, max_sweeps=4, tol=0.0):
            assert_sound(individual, dataset)
            qualities.append(individual.quality)
        assert qualities == sorted(qualities)


@pytest.mark.parametrize("name", SPLITTERS)
@pytest.mark.parametrize("task", ("classification", "regression"))
def test_the_same_stream_gives_the_same_tree_and_threads_change_nothing(name, task):
    X, y = load_wine(return_X_y=True)
    trees = []
    with ThreadPoolExecutor(3) as pool:
        for mapper in (map, pool.map):
            dataset, individual = grown(
                X, y, task=task, max_depth=4, splitter=random_halves
            )
            optimize(individual, dataset, SPLITTERS[name], max_sweeps=3, map=mapper)
            trees.append(individual.to_tree())
    assert trees[0] == trees[1]


@pytest.mark.parametrize("max_nodes", [1, 3, 10, 1000])
def test_no_more_nodes_are_fitted_than_asked_for(max_nodes):
    X, y = load_breast_cancer(return_X_y=True)
    dataset, tree = grown(X[:, :2], y, max_depth=8)
    assert len(tree) // 2 > 20
    fitted, drawn = [], set()

    def note(node, stream):
        fitted.append(node.X.shape[0])
        return Axis()(node, stream)

    for seed in range(5):
        tree.stream = stream_of(seed)
        fitted.clear()
        tao_sweep(tree.clone(), dataset, note, max_nodes=max_nodes)
        assert len(fitted) <= max_nodes
        drawn.add(tuple(fitted))
    assert (len(drawn) > 1) == (max_nodes <= 10)  # others each time, where not all


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_random_trees_are_complete_and_halve_the_rows(task):
    X = np.random.default_rng(0).standard_normal((64, 3))
    dataset = Dataset.from_arrays(X, np.arange(64) % 63, task=task)
    limits = GrowthLimits(max_depth=3, min_samples_split=5)
    tree = grow_on_sample(dataset, dataset, random_halves, stream_of(), limits=limits)
    assert_sound(tree, dataset)
    assert tree.n_leaves == 8 and tree.depth == 3
    assert ((tree.end - tree.start)[tree.subtree_size == 1] == 8).all()
    assert (tree.weights[tree.subtree_size > 1] != 0.0).all()


@given(any_populations, st.integers(1, 40), seeds)
def test_a_part_of_the_rows_stands_for_all(drawn, max_rows, seed):
    dataset, (individual, *_) = drawn
    internal = np.flatnonzero(individual.subtree_size > 1)
    if internal.size == 0:
        return
    table = leaf_table(individual, dataset.n_classes)
    tests = individual.weights, individual.thresholds, table
    for k in internal:
        stream = stream_of(seed)
        whole = reduced_problem(individual, dataset, k, *tests, stream)
        part = reduced_problem(individual, dataset, k, *tests, stream, max_rows)
        n = individual.end[k] - individual.start[k]
        if n <= max_rows:
            assert (part is None) == (whole is None)
            if part is not None:
                np.testing.assert_array_equal(part.X, whole.X)
                np.testing.assert_array_equal(part.sample_weight, whole.sample_weight)
        elif part is not None:
            # All rows have the same chance, so that costs must rise by as much as rows are fewer.
            costs = whole.sample_weight * (n / max_rows)
            assert len(part.X) <= max_rows
            assert all(np.isclose(costs, one).any() for one in part.sample_weight)


@pytest.mark.parametrize(
    ("n", "n_copies", "wanted"), [(300, 4, 1024), (1500, 2, 1500), (1500, 0, 1500)]
)
def test_copies_with_noise_do_not_add_rows_beyond_a_few(n, n_copies, wanted):
    X = np.random.default_rng(0).normal(size=(n, 2))
    dataset = Dataset.from_arrays(X, X[:, 0] > 0.0, task="classification")
    dataset = jitter(dataset, 0.1, n_copies, stream_of()) if n_copies else dataset
    split = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), np.zeros(3)
    stump = make_individual(dataset, *split, np.array([3, 1, 1], dtype=np.int32))
    table = leaf_table(stump, dataset.n_classes)
    part = reduced_problem(stump, dataset, 0, *split, table, stream_of(), 4096)
    assert len(part.X) == wanted
    assert part.sample_weight.sum() == pytest.approx(dataset.total_weight)

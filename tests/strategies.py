"""Hypothesis strategies: awkward data sets, individuals on them, and sequences of operators.

And what holds for every individual, however it came about.
"""

import numpy as np
from hypothesis import strategies as st

from evotree.dataset import SCALINGS, Dataset
from evotree.operators.initialization.growth import init_dipolar
from evotree.operators.refinement import REFINERS, make_refiner
from evotree.operators.structure.splice import make_individual
from evotree.operators.variation import cx_trees, mut_nodes, mut_terms
from evotree.rng import make_streams

seeds = st.integers(0, 2**32)


def stream_of(seed=0):
    """Return a new random stream."""
    return make_streams(seed, 0, 1)[0]


def assert_sound(individual, dataset):
    """Check that the tree is valid and its partition and quality are those made from scratch."""
    individual.to_tree().validate()
    scratch = make_individual(dataset, *individual.splits)
    for name in (
        "weights",
        "thresholds",
        "subtree_size",
        "order",
        "start",
        "end",
        "counts",
    ):
        ours, theirs = getattr(individual, name), getattr(scratch, name)
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    assert individual.quality == scratch.quality


@st.composite
def datasets(draw, max_rows=60, task="classification"):
    """Draw data with ties, duplicates, constant columns, few rows and odd weights."""
    rng = np.random.default_rng(draw(seeds))
    n = draw(st.integers(1, max_rows))
    d = draw(st.integers(1, 6))
    n_classes = draw(st.integers(1, 4))
    grid = draw(st.sampled_from((2, 4, 1000)))
    X = rng.integers(0, grid, (n, d)) * 10.0 ** draw(st.integers(-3, 3))
    if draw(st.booleans()):
        X[:, 0] = 7.0
    y = rng.integers(0, n_classes, n)
    weight = None
    if draw(st.booleans()):
        weight = rng.choice([0.0, 0.3, 1.0, 2.5], n)  # no multiples of the least
        weight[0] = 1.0
    scaling = draw(st.sampled_from(SCALINGS))
    return Dataset.from_arrays(X, y, weight, scaling=scaling, task=task)


TASKS = st.sampled_from(("classification", "regression"))
any_datasets = TASKS.flatmap(lambda task: datasets(task=task))


@st.composite
def populations(draw, size=3, task="classification"):
    """Draw a data set and individuals of its first population."""
    dataset = draw(datasets(task=task))
    penalty = draw(st.sampled_from((0.0, 0.01)))
    streams = make_streams(draw(seeds), 0, size)
    return dataset, [init_dipolar(dataset, penalty, stream) for stream in streams]


def with_random_zeros(individual, dataset, seed):
    """Return an individual of the same shape, or less, half of whose weights are 0."""
    rng = np.random.default_rng(seed)
    weights = np.where(
        rng.random(individual.weights.shape) < 0.5, 0.0, individual.weights
    )
    return make_individual(
        dataset, weights, individual.thresholds, individual.subtree_size
    )


any_populations = TASKS.flatmap(lambda task: populations(task=task))


def apply_operator(name, first, second, dataset, stream, max_features=None):
    """Apply an operator to clones; return the changed individuals."""
    first, second = first.clone(), second.clone()
    first.stream = second.stream = stream
    if name.startswith("mutate nodes"):
        dipolar = 0.0 if name.endswith("without dipoles") else 0.5
        width = max_features or (dataset.X.shape[1] if "few" in name else 0)
        return mut_nodes(first, dataset, 0.4, dipolar, max_width=width)
    if name == "mutate terms":
        return mut_terms(first, dataset, 0.01, 0.002, max_features)
    if name == "mate":
        return cx_trees(first, second, dataset, max_features=max_features)
    return make_refiner(name, (0.1, 10.0), max_features=max_features)(first, dataset)


VARIATION = (
    "mutate nodes",
    "mutate nodes of few features",
    "mutate nodes without dipoles",
    "mutate nodes of few features without dipoles",
    "mutate terms",
    "mate",
)
OPERATORS = (*VARIATION, *REFINERS)
NEEDS_CLASSES = {"wodt"}  # this search has no form for targets


def operators_for(dataset, names=OPERATORS):
    """Return the registered operators, or seeds, that a data set allows."""
    return [name for name in names if dataset.n_classes or name not in NEEDS_CLASSES]


@st.composite
def tasks(draw, names=OPERATORS, max_size=1):
    """Draw a population with data, and operators that they allow."""
    dataset, individuals = draw(any_populations)
    allowed = st.sampled_from(operators_for(dataset, names))
    return dataset, individuals, draw(st.lists(allowed, min_size=1, max_size=max_size))

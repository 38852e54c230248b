"""Objectives: the price of nodes and of weights, and two objectives at once."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree.fitness.objectives import (
    FitnessQualitySize,
    PenalizedAccuracy,
    QualityAndSize,
    used_share,
)
from evotree.operators.structure.splice import make_individual
from tests.strategies import any_populations, seeds


def naive_used_share(weights, subtree_size):
    """Add up the shares of the weights in use, node by node."""
    return sum(
        np.count_nonzero(row) / len(row)
        for row, size in zip(weights, subtree_size, strict=True)
        if size > 1
    )


@given(any_populations, st.floats(0.0, 0.1))
def test_without_a_price_of_weights_the_fitness_is_the_papers(drawn, size_penalty):
    for individual in drawn[1]:
        expected = (individual.quality - size_penalty * len(individual),)
        assert PenalizedAccuracy(size_penalty)(individual) == expected
        assert PenalizedAccuracy(size_penalty, 0.0)(individual) == expected


@given(any_populations, seeds)
def test_weights_cost_their_share(drawn, seed):
    dataset, population = drawn
    rng = np.random.default_rng(seed)
    for individual in population:
        weights = np.where(rng.random(individual.weights.shape) < 0.5, 0.0, individual.weights)
        tree = make_individual(dataset, weights, individual.thresholds, individual.subtree_size)
        share = naive_used_share(tree.weights, tree.subtree_size)
        assert used_share(tree.weights, tree.subtree_size) == pytest.approx(share)
        assert share <= tree.n_leaves - 1
        plain = PenalizedAccuracy(0.01)(tree)[0]
        assert PenalizedAccuracy(0.01, 0.002)(tree)[0] == pytest.approx(plain - 0.002 * share)
        assert QualityAndSize(3.0)(tree) == (tree.quality, pytest.approx(len(tree) + 3.0 * share))


def test_leaves_have_no_weights_in_use():
    weights = np.array([[1.0, 0.0, -2.0, 0.0], [9.0, 9.0, 9.0, 9.0], [0.0, 0.0, 0.0, 0.0]])
    assert used_share(weights, np.array([3, 1, 1], dtype=np.int32)) == 0.5
    assert used_share(weights[1:2], np.array([1], dtype=np.int32)) == 0.0


@given(any_populations)
def test_quality_and_size_fill_their_fitness(drawn):
    for individual in drawn[1]:
        fitness = FitnessQualitySize(QualityAndSize()(individual))
        assert fitness.values == (individual.quality, len(individual))


def test_quality_comes_before_size():
    better, smaller, larger = (FitnessQualitySize(v) for v in ((0.9, 9), (0.8, 3), (0.8, 5)))
    assert better > smaller > larger
    assert smaller.dominates(larger)
    assert not smaller.dominates(better) and not better.dominates(smaller)
    twin = pickle.loads(pickle.dumps(better))
    assert type(twin) is FitnessQualitySize and twin == better and hash(twin) == hash(better)

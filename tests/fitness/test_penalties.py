"""Penalties: those for nodes and terms, and two objectives at once."""

import pickle

import numpy as np
import pytest
from hypothesis import given

from evotree.fitness.base import (
    FitnessQualityComplexity,
    PenalizedAccuracy,
    quality_and_complexity,
)
from tests.strategies import any_populations, seeds, with_random_zeros


@given(any_populations, seeds)
def test_terms_after_the_first_of_a_split_are_penalized(drawn, seed):
    dataset, population = drawn
    for individual in population:
        tree = with_random_zeros(individual, dataset, seed)
        widths = [
            sum(w != 0.0 for w in tree.weights[k])
            for k in np.flatnonzero(~tree.is_leaf)
        ]
        assert all(width >= 1 for width in widths) and tree.n_terms == sum(widths)
        plain = tree.quality - 0.01 * len(tree)
        assert (
            PenalizedAccuracy(0.01)(tree)
            == PenalizedAccuracy(0.01, 0.0)(tree)
            == (plain,)
        )
        expected = plain - sum(0.002 * (width - 1) for width in widths)
        assert PenalizedAccuracy(0.01, 0.002)(tree)[0] == pytest.approx(expected)
        values = quality_and_complexity(tree)
        assert values == (tree.quality, tree.n_leaves + sum(widths))
        assert FitnessQualityComplexity(values).values == values


def test_quality_comes_before_complexity():
    better, simpler, other = (
        FitnessQualityComplexity(v) for v in ((0.9, 9), (0.8, 3), (0.8, 5))
    )
    assert better > simpler > other
    assert simpler.dominates(other)
    assert not simpler.dominates(better) and not better.dominates(simpler)
    twin = pickle.loads(pickle.dumps(better))
    assert (
        type(twin) is FitnessQualityComplexity
        and twin == better
        and hash(twin) == hash(better)
    )

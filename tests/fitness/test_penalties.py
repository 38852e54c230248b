"""Penalties: those for nodes and terms, and two objectives at once."""

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

"""Linear scaling, universal sampling, proportional selection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from evotree.dataset import Dataset
from evotree.fitness.scaling import linear_scaling
from evotree.operators.selection import sel_proportional, universal_sampling
from evotree.rng import make_streams
from evotree.toolbox import make_toolbox
from tests.reference import naive
from tests.strategies import seeds

fitness_values = st.lists(st.floats(-5, 1).map(lambda v: round(v, 6)), min_size=2, max_size=30)


@given(fitness_values, st.floats(1.1, 3.0))
def test_scaling_agrees_with_its_naive_twin(fitness, pressure):
    scaled = linear_scaling(np.array(fitness), pressure)
    np.testing.assert_allclose(scaled, naive.linear_scaling(fitness, pressure), atol=1e-6)
    assert scaled.min() >= 0.0
    assert scaled.mean() == pytest.approx(1.0, abs=1e-6)
    assert scaled.max() <= pressure + 1e-6


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=20).filter(lambda s: sum(s) > 0.1),
    st.integers(1, 50),
    seeds,
)
def test_universal_sampling_draws_expected_numbers_rounded(share, k, seed):
    share = np.array(share)
    drawn = universal_sampling(share, k, make_streams(seed, 0, 1)[0])
    times = np.bincount(drawn, minlength=len(share))
    expected = k * share / share.sum()
    assert (times >= np.floor(expected - 1e-9)).all()
    assert (times <= np.ceil(expected + 1e-9)).all()


def test_selection_prefers_the_fit_and_shuffles():
    dataset = Dataset.from_arrays(*load_iris(return_X_y=True))
    population = make_toolbox(dataset, random_state=0).population(n=20)
    for rank, individual in enumerate(population):
        individual.fitness.values = (float(rank),)
    times = np.zeros(20)
    first = []
    for stream in make_streams(1, 0, 300):
        population[0].stream = stream
        selected = sel_proportional(population, 20)
        assert len(selected) == 20
        positions = [next(i for i, p in enumerate(population) if p is s) for s in selected]
        first.append(positions[0])
        times += np.bincount(positions, minlength=20)
    assert np.corrcoef(times, np.arange(20))[0, 1] > 0.99
    assert times[-1] / 300 == pytest.approx(2.0, abs=0.1)
    assert len(set(first)) > 10

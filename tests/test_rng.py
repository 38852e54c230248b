"""Random streams: their distributions, and that they depend on nothing else."""

import numpy as np
import pytest
from scipy import stats

from evotree.rng import (
    as_generator,
    below,
    failures,
    make_streams,
    next_uint64,
    normal,
    open_uniform,
    seed_from,
    uniform,
)


def sample(draw, n=20_000, *arguments):
    stream = make_streams(5, 3, 1)[0]
    return np.array([draw(stream, *arguments) for _ in range(n)])


def test_splitmix64_reference_values():
    """The first outputs from state 1234567, as published with the reference implementation."""
    stream = np.array([1234567], dtype=np.uint64)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [int(next_uint64(stream)) for _ in range(3)] == expected


@pytest.mark.parametrize(
    ("draw", "distribution"),
    [(uniform, stats.uniform()), (open_uniform, stats.uniform()), (normal, stats.norm())],
)
def test_continuous_draws(draw, distribution):
    assert stats.kstest(sample(draw), distribution.cdf).pvalue > 0.001


def test_below_is_uniform():
    times = np.bincount(sample(below, 20_000, 7), minlength=7)
    assert len(times) == 7
    assert stats.chisquare(times).pvalue > 0.001


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.97])
def test_failures_are_geometric(probability):
    drawn = np.minimum(sample(failures, 20_000, probability), 20)
    expected = stats.geom(probability, loc=-1).pmf(np.arange(21))
    expected[20] = 1.0 - expected[:20].sum()
    times = np.bincount(drawn, minlength=21)
    common = expected * 20_000 >= 5
    assert abs(times[common] - 20_000 * expected[common]).max() < 5 * np.sqrt(20_000 / 4)
    assert drawn.mean() == pytest.approx((expected * np.arange(21)).sum(), abs=0.1)


def test_failures_at_the_ends():
    stream = make_streams(0, 0, 1)[0]
    assert failures(stream, 0.0) == 2**62
    assert failures(stream, 1.0) == 0


def test_streams_depend_on_seed_generation_and_slot_alone():
    few, many = make_streams(1, 2, 3), make_streams(1, 2, 50)
    np.testing.assert_array_equal(few, many[:3])
    states = {
        int(stream[0])
        for seed in range(10)
        for generation in range(10)
        for stream in make_streams(seed, generation, 50)
    }
    assert len(states) == 10 * 10 * 50


def test_neighbouring_streams_look_independent():
    draws = np.array([[uniform(s) for _ in range(4)] for s in make_streams(9, 1, 5000)])
    assert stats.kstest(draws[:, 0], stats.uniform().cdf).pvalue > 0.001
    neighbours = np.corrcoef(draws[:-1, 0], draws[1:, 0])[0, 1]
    within = np.corrcoef(draws[:, 0], draws[:, 1])[0, 1]
    assert max(abs(neighbours), abs(within)) < 0.05


def test_as_generator_is_a_function_of_the_stream():
    first, second = (as_generator(make_streams(1, 1, 1)[0]).random() for _ in range(2))
    assert first == second
    stream = make_streams(1, 1, 1)[0]
    assert as_generator(stream).random() != as_generator(stream).random()


def test_seed_from():
    assert seed_from(7) == seed_from(np.int64(7)) == 7
    assert seed_from(None) != seed_from(None)
    assert seed_from(np.random.default_rng(1)) == seed_from(np.random.default_rng(1))
    assert seed_from(np.random.RandomState(1)) == seed_from(np.random.RandomState(1))
    for wrong in (-1, 2**63, "seed", 1.5):
        with pytest.raises(ValueError, match="random_state"):
            seed_from(wrong)

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


def sample(draw, *arguments):
    stream = make_streams(5, 3, 1)[0]
    return np.array([draw(stream, *arguments) for _ in range(20_000)])


def test_splitmix64_reference_values():
    """The first outputs from state 1234567, as published with the reference implementation."""
    stream = np.array([1234567], dtype=np.uint64)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [int(next_uint64(stream)) for _ in range(3)] == expected


@pytest.mark.parametrize(
    ("draw", "distribution"),
    [
        (uniform, stats.uniform()),
        (open_uniform, stats.uniform()),
        (normal, stats.norm()),
    ],
)
def test_continuous_draws(draw, distribution):
    assert stats.kstest(sample(draw), distribution.cdf).pvalue > 0.001


@pytest.mark.parametrize(
    ("draw", "argument", "distribution"),
    [(below, 7, stats.randint(0, 7))]
    + [(failures, p, stats.geom(p, loc=-1)) for p in (0.1, 0.5, 0.97)],
)
def test_discrete_draws(draw, argument, distribution):
    drawn = sample(draw, argument)
    values = np.arange(max(drawn.max(), 6) + 1)
    expected = 20_000 * distribution.pmf(values)
    common = expected >= 5.0
    times = np.bincount(drawn, minlength=len(values))[common]
    expected = expected[common] * times.sum() / expected[common].sum()
    assert stats.chisquare(times, expected).pvalue > 0.001
    assert times.sum() > 0.99 * 20_000


def test_streams_depend_on_seed_generation_and_slot_alone():
    np.testing.assert_array_equal(make_streams(1, 2, 3), make_streams(1, 2, 50)[:3])
    places = [(seed, generation) for seed in range(10) for generation in range(10)]
    states = {int(stream[0]) for place in places for stream in make_streams(*place, 50)}
    assert len(states) == 10 * 10 * 50


def test_seeds_and_generators():
    stream, again = make_streams(1, 1, 1)[0], make_streams(1, 1, 1)[0]
    first = as_generator(stream).random()
    assert first == as_generator(again).random() != as_generator(stream).random()
    assert seed_from(7) == seed_from(np.int64(7)) == 7
    assert seed_from(None) != seed_from(None)
    for make in (np.random.default_rng, np.random.RandomState):
        assert seed_from(make(1)) == seed_from(make(1))
    for wrong in (-1, 2**63, "seed", 1.5):
        with pytest.raises(ValueError, match="random_state"):
            seed_from(wrong)

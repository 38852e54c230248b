"""Explicit random streams: one array of state per offspring, drawn from inside compiled code.

A stream is an array ``(1,)`` of ``uint64``, the state of a SplitMix64 generator (Steele, Lea and
Flood 2014). The stream of an offspring is a function of the run's seed, the generation and the
slot alone, so that a run does not depend on the number of workers, and its random state is two
integers.
"""

import math
from typing import Any

import numpy as np

from evotree._jit import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2 ** -53


@kernel
def mix(z):
    """SplitMix64's finalizer: a bijection of 64-bit integers whose output bits look independent."""
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@kernel
def next_uint64(stream):
    """Advance the stream and return 64 random bits."""
    stream[0] += _GOLDEN
    return mix(stream[0])


@kernel
def uniform(stream):
    """Draw from the uniform distribution on [0, 1)."""
    return (next_uint64(stream) >> _S11) * _TO_UNIT


@kernel
def open_uniform(stream):
    """Draw from the uniform distribution on the open interval (0, 1)."""
    return ((next_uint64(stream) >> _S11) + 0.5) * _TO_UNIT


@kernel
def below(stream, n):
    """Draw an integer uniformly from 0, ..., n - 1 (n at most 2**53)."""
    return np.int64(uniform(stream) * n)


@kernel
def normal(stream):
    """Draw from the standard normal distribution (Box and Muller 1958)."""
    radius = math.sqrt(-2.0 * math.log(open_uniform(stream)))
    return radius * math.cos(2.0 * math.pi * uniform(stream))


@kernel
def failures(stream, probability):
    """Draw the number of failures before the first success of independent trials."""
    u = open_uniform(stream)
    if probability >= 1.0:
        return np.int64(0)
    if probability <= 0.0:
        return np.int64(1) << 62
    return np.int64(min(math.log(u) / math.log1p(-probability), 4.0e18))


@kernel
def shuffle(stream, places):
    """Bring an array into random order (Fisher and Yates)."""
    # One call for all draws: as many calls as draws took a thirtieth of the time of the loop.
    for i in range(places.shape[0] - 1, 0, -1):
        j = below(stream, i + 1)
        places[i], places[j] = places[j], places[i]


@kernel
def fill_streams(seed, generation, streams):
    """Write the states of the streams of one generation, one for each row of `streams`."""
    base = mix(mix(seed + _GOLDEN) ^ (generation * _MIX_1 + _MIX_2))
    for slot in range(streams.shape[0]):
        streams[slot, 0] = mix(base + np.uint64(slot + 1) * _GOLDEN)


def make_streams(seed: int, generation: int, n_streams: int) -> list[np.ndarray]:
    """Return the independent streams of one generation."""
    streams = np.empty((n_streams, 1), dtype=np.uint64)
    fill_streams(np.uint64(seed), np.uint64(generation), streams)
    return list(streams)


def row_keys(seed: int, first: int, n: int) -> np.ndarray:
    """Return random numbers for rows that are counted over many parts."""
    # The kernel would be compiled again, for arrays.
    scramble = getattr(mix, "py_func", mix)
    with np.errstate(over="ignore"):
        base = scramble(np.array([seed], dtype=np.uint64) + _GOLDEN)
        numbers = np.arange(first + 1, first + n + 1, dtype=np.uint64)
        return (scramble(base + numbers * _GOLDEN) >> _S11) * _TO_UNIT


def as_generator(stream: np.ndarray) -> np.random.Generator:
    """Return a NumPy generator seeded by the next draw of a stream."""
    return np.random.default_rng(int(next_uint64(stream)))


def seed_from(random_state: Any) -> int:
    """Turn scikit-learn's forms of a random state into the seed of a run."""
    if random_state is None:
        return int(
            np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1)
        )
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, (int, np.integer)) and 0 <= random_state < 2**63:
        return int(random_state)
    raise ValueError(
        f"random_state={random_state!r}: allowed are None, an integer in [0, 2**63), "
        "a numpy.random.RandomState and a numpy.random.Generator."
    )


OWN_SEED, _OWN_STREAMS = 0, 2**62  # the number of a generation that no run reaches


def own_streams() -> list[np.ndarray]:
    """Return the streams for folds, noise, samples and trees for the front only.

    They are the same for all seeds: so what is chosen depends on the rows alone.
    """
    return list(make_streams(OWN_SEED, _OWN_STREAMS, 4))

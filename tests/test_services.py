"""What serves all rooms: Ctrl-C as a flag, threads of linear algebra, random streams."""

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import permutations

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (brings a library of its own)
from scipy import stats
from threadpoolctl import threadpool_info, threadpool_limits

from evotree.engine.evolution import interrupt_as_flag
from evotree.parallel import one_blas_thread
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
from tests.quick_models import interrupts_raise

# ---- Ctrl-C --------------------------------------------------------------------------------------


@pytest.fixture
def in_the_foreground():
    with interrupts_raise():
        yield


@pytest.mark.usefixtures("in_the_foreground")
def test_the_first_is_noted_and_the_second_raised():
    with interrupt_as_flag() as interrupted:
        assert not interrupted()
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert interrupted()
    with pytest.raises(ZeroDivisionError), interrupt_as_flag():
        _ = 1 / 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("in_the_foreground")
def test_a_block_inside_another_notes_the_same():
    with interrupt_as_flag() as outer:
        with interrupt_as_flag() as inner:
            signal.raise_signal(signal.SIGINT)
            assert inner()
        with interrupt_as_flag() as later:
            assert outer() and later()
    with interrupt_as_flag() as afterwards:
        assert not afterwards()


@pytest.mark.usefixtures("in_the_foreground")
def test_an_ignored_interrupt_stays_ignored_and_other_threads_are_left_alone():
    def work(press):
        with interrupt_as_flag() as interrupted:
            if press:
                signal.raise_signal(signal.SIGINT)
            return interrupted()

    with ThreadPoolExecutor(1) as threads:
        assert not threads.submit(work, False).result()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert not work(True)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


# ---- threads of linear algebra -------------------------------------------------------------------


def blas_threads():
    return {
        lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"
    }


@pytest.mark.parametrize("leaving", list(permutations(range(3))))
def test_threads_come_back_when_the_last_holder_leaves_in_any_order(leaving):
    with threadpool_limits(2, user_api="blas"):
        holders = [ExitStack() for _ in leaving]
        for holder in holders:
            holder.enter_context(one_blas_thread())
        for k in leaving:
            assert blas_threads() == {1}
            holders[k].close()
        assert blas_threads() == {2}


# ---- random streams ------------------------------------------------------------------------------


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

"""Ctrl-C as a flag."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from evotree.engine.evolution import interrupt_as_flag
from tests.quick_models import interrupts_raise


@pytest.fixture(autouse=True)
def _interrupts_raise():
    with interrupts_raise():
        yield


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


def test_a_block_inside_another_notes_the_same():
    with interrupt_as_flag() as outer:
        with interrupt_as_flag() as inner:
            signal.raise_signal(signal.SIGINT)
            assert inner()
        with interrupt_as_flag() as later:
            assert outer() and later()
    with interrupt_as_flag() as afterwards:
        assert not afterwards()


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

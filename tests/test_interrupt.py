"""Ctrl-C as a flag."""

import signal
import threading

import pytest

from evotree.engine.interrupt import interrupt_as_flag
from tests.quick_models import interrupts_raise


@pytest.fixture(autouse=True)
def _interrupts_raise():
    """Handle the interrupt as a program in the foreground does."""
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
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_block_inside_another_notes_the_same():
    with interrupt_as_flag() as outer:
        with interrupt_as_flag() as inner:
            signal.raise_signal(signal.SIGINT)
            assert inner()
        assert outer()
        with interrupt_as_flag() as later:
            assert later()
    with interrupt_as_flag() as afterwards:
        assert not afterwards()


def test_the_handler_is_put_back_after_an_error():
    with pytest.raises(ZeroDivisionError), interrupt_as_flag():
        _ = 1 / 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_interrupt_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupt_as_flag() as interrupted:
        signal.raise_signal(signal.SIGINT)
        assert not interrupted()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_threads_are_left_alone():
    seen = []

    def work():
        with interrupt_as_flag() as interrupted:
            seen.append(interrupted())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]

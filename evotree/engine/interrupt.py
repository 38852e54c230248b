"""Ctrl-C as a wish to stop soon, not as an exception in the middle of something."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interrupt_as_flag"]


@contextmanager
def interrupt_as_flag() -> Iterator[Callable[[], bool]]:
    """Take note of a first Ctrl-C while a block runs; a second one raises KeyboardInterrupt.

    Python raises KeyboardInterrupt wherever it is. Where that is the way in or out of a compiled
    function, numba makes a SystemError of it, so that a run which spends its time in kernels cannot
    count on catching it.

    A block inside such a block takes note of the same Ctrl-C. Nothing changes in other threads than
    the main one, or where the interrupt is ignored or handled by others already.
    """
    present = signal.getsignal(signal.SIGINT)
    outer: Callable[[], bool] | None = getattr(present, "was_pressed", None)
    if outer is not None:
        yield outer
        return
    pressed = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            signal.default_int_handler(number, frame)
        pressed = True

    handle.was_pressed = lambda: pressed  # type: ignore[attr-defined]
    ours = (
        threading.current_thread() is threading.main_thread()
        and present is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: pressed
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

"""Log records of worker processes reach the handlers of the process that started them.

Each worker has a connection of its own to the parent, where every record is handed to the logger of
its name. So handlers, filters, propagation and child loggers act in the parent as if the work were
done there, and the parent's loggers are never touched. A record has left its process when the call
that logs it returns: a worker that is killed takes none with it that were logged before, and holds
no lock that others wait for.
"""

from __future__ import annotations

import copy
import logging
import multiprocessing
import os
import pickle
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from logging.handlers import QueueHandler, QueueListener
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, Pipe, wait
from multiprocessing.context import BaseContext
from queue import Queue
from types import SimpleNamespace
from typing import Any, NamedTuple
from weakref import WeakSet

__all__ = ["Initializer", "collect_logs"]

# What a log record has without the attributes that a caller's `extra` gives it.
PLAIN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({})))
# How many records may wait for the handlers before workers wait.
CAPACITY = 10_000


class Initializer(NamedTuple):
    """What a worker calls first, with arguments that can be pickled."""

    function: Callable[..., object]
    arguments: tuple[Any, ...] = ()


@contextmanager
def collect_logs(
    mp_context: BaseContext, logger: logging.Logger | None = None
) -> Iterator[Initializer]:
    """Let the log records of worker processes reach the handlers of this process.

    Workers log at the levels that the loggers have here when the block begins; all else about
    logging (handlers, filters, propagation) is done here. Tracebacks arrive as text, and so do
    values of `extra` that cannot be pickled. At the end of the block everything that workers have
    logged before is handled; what a worker logs afterwards is dropped. Where the handlers are
    slower than the workers, the workers wait. Blocks may be nested and repeated.

    Where processes are forked, fork is the default of this process too, and multiprocessing-logging
    is installed, records go through its handler; elsewhere through the standard library's.

    Parameters
    ----------
    mp_context : BaseContext
        How the worker processes are started, such as ``multiprocessing.get_context("spawn")``.
        For workers on this machine that others start (Dask, loky), the context "spawn".
    logger : Logger, optional
        The logger whose records, and those of its children, are collected; by default the root.

    Yields
    ------
    Initializer
        To hand to a ``ProcessPoolExecutor``; without effect in this process itself (threads).

    Raises
    ------
    TypeError
        If `mp_context` is no context, or `logger` no logger.

    Examples
    --------
    >>> context = multiprocessing.get_context("spawn")
    >>> with (
    ...     log_to_file("study.log"),
    ...     collect_logs(context) as (function, arguments),
    ...     ProcessPoolExecutor(4, context, function, arguments) as pool,
    ... ):
    ...     results = list(pool.map(run, tasks))
    """
    if not isinstance(mp_context, BaseContext):
        raise TypeError(f"mp_context must be a context of multiprocessing; got {mp_context!r}")
    if not isinstance(logger, logging.Logger | None):
        raise TypeError(f"logger must be a logging.Logger or None; got {logger!r}")
    top = logging.getLogger() if logger is None else logger
    levels = {x.name: (x.level, x.propagate, x.disabled) for x in _family(top)}
    # A worker has other levels above it.
    levels[top.name] = (top.getEffectiveLevel(), False, top.disabled)
    start = _start_package if _package_serves(mp_context) else _start_standard_library
    stop = start(inbox := _Inbox())
    try:
        yield Initializer(_send_home, (inbox.channel, top.name, levels, top.manager.disable))
    finally:
        inbox.end()
        stop()


def _family(top: logging.Logger) -> list[logging.Logger]:
    """Return a logger and all below it."""
    start = "" if top is logging.getLogger() else f"{top.name}."
    others = [x for x in list(top.manager.loggerDict.values()) if isinstance(x, logging.Logger)]
    return [top, *(logger for logger in others if logger.name.startswith(start))]


def _send_home(
    channel: _Channel, top: str, levels: dict[str, tuple[int, bool, bool]], disabled: int
) -> None:
    """Replace all handlers of this process by one that sends records to the parent."""
    if channel.home == os.getpid():
        return
    outlet: Any = channel
    # A forked worker finds the parent's handler of the package among its own globals.
    if (package_handler := _package_handlers.get(channel.address)) is not None:
        package_handler.queue = channel
        outlet = SimpleNamespace(put_nowait=package_handler.handle)
    sender = _Sender(outlet)
    logging.disable(disabled)
    for name, (level, propagate, off) in levels.items():
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.propagate, logger.disabled = propagate, off
    for logger in _family(logging.getLogger(top)):
        # Handlers and filters are the parent's affair, once for each record.
        logger.handlers = [] if logger.propagate else [sender]
        logger.filters = []


class _Sender(QueueHandler):
    """Sends records that hold nothing but text and what can be pickled."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        record = copy.copy(record)
        record.msg, record.args = record.getMessage(), None
        if record.exc_info:
            text = record.exc_text or logging.Formatter().formatException(record.exc_info)
            record.exc_text, record.exc_info = text, None
        for name in vars(record).keys() - PLAIN_ATTRIBUTES:
            setattr(record, name, _can_travel(getattr(record, name)))
        return record


def _can_travel(value: Any) -> Any:
    """Return a value, as text if it cannot be pickled."""
    with suppress(Exception):
        # Some exceptions can be pickled, but not unpickled.
        pickle.loads(pickle.dumps(value))
        return value
    with suppress(Exception):
        return str(value)
    return object.__repr__(value)


class _Channel:
    """The way to the parent, whose number is `home`: a connection made at the first record."""

    def __init__(self, address: Any, key: bytes, home: int) -> None:
        self.address, self.key, self.home = address, key, home
        self._begin()

    def __reduce__(self) -> tuple[type[_Channel], tuple[Any, ...]]:
        return type(self), (self.address, self.key, self.home)

    def _begin(self) -> None:
        self._process = os.getpid()
        self._connection: Connection | None = None
        self._waiting: deque[bytes] = deque()
        self._is_sending = self._is_over = False

    def put_nowait(self, record: logging.LogRecord) -> None:
        """Send a record; drop it if the parent does not listen any more."""
        if self._process != os.getpid():
            self._begin()
        if self._is_over:
            return
        self._waiting.append(pickle.dumps(vars(record)))
        if self._is_sending:
            return  # A signal handler logs in the middle of another record.
        self._is_sending = True
        try:
            while self._waiting:
                if self._connection is None:
                    self._connection = Client(self.address, authkey=self.key)
                self._connection.send_bytes(self._waiting.popleft())
        except (OSError, EOFError, AuthenticationError):
            self._is_over, self._connection = True, None
            self._waiting.clear()
        except BaseException:
            # An interrupt may have cut a record in two: nothing can follow on this connection.
            self._connection = None
            raise
        finally:
            self._is_sending = False


class _Inbox(Queue[logging.LogRecord | None]):
    """The records of all workers.

    A queue of multiprocessing will not do: its writers share a lock and a count of records, and a
    worker that is killed may leave the lock closed and the count wrong. All others then wait.
    """

    def __init__(self) -> None:
        super().__init__(CAPACITY)
        # What arrives is unpickled: only who knows the key is admitted.
        key = secrets.token_bytes(32)
        try:
            self._listener = Listener(authkey=key, backlog=64)
        except OSError:  # the name of the folder for temporary files is too long for a socket's
            self._listener = Listener(("127.0.0.1", 0), authkey=key, backlog=64)
        self.channel = _Channel(self._listener.address, key, os.getpid())
        self._end = float("inf")
        self._stop, self._button = Pipe(duplex=False)
        self._readers: list[tuple[threading.Thread, Connection]] = []
        self._door = threading.Thread(target=self._admit, name="log-door", daemon=True)
        self._door.start()
        _inboxes.add(self)

    def _admit(self) -> None:
        while self._end == float("inf"):
            try:
                connection = self._listener.accept()
            except (OSError, EOFError, AuthenticationError):
                time.sleep(0.01)  # killed before it could say who it was, or a stranger
                continue
            reader = threading.Thread(target=self._read, args=(connection,), daemon=True)
            self._readers.append((reader, connection))
            reader.start()
        self._listener.close()  # sends away whoever still knocks

    def _read(self, connection: Connection) -> None:
        with connection, suppress(EOFError, OSError):
            while True:
                wait([connection, self._stop])
                if not connection.poll():
                    return
                record = self._unpickle(connection.recv_bytes())
                # A worker that outlives the block and goes on logging must not prolong it.
                if record.created > self._end:
                    return
                self.put(record)

    def _unpickle(self, content: bytes) -> logging.LogRecord:
        try:
            return logging.makeLogRecord(pickle.loads(content))
        except Exception as error:
            # A class of the worker's main module, perhaps.
            text = f"a worker's log record cannot be unpickled: {error!r}"
            record = logging.LogRecord(__name__, logging.ERROR, __file__, 0, text, None, None)
            record.created = min(record.created, self._end)
            return record

    def end(self) -> None:
        """Admit no more workers, and take what the others have sent."""
        self._end = time.time()
        # Wakes the door up, after those who knocked before.
        with suppress(OSError, EOFError, AuthenticationError):
            Client(self.channel.address, authkey=self.channel.key).close()
        self._door.join()
        self._button.send_bytes(b"end")
        for reader, _ in self._readers:
            reader.join()
        self.abandon()

    def abandon(self) -> None:
        """Close everything; in a forked process, which would keep it open beyond its end."""
        self._listener.close()
        for end in [self._stop, self._button, *(connection for _, connection in self._readers)]:
            end.close()


_inboxes: WeakSet[_Inbox] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: list(map(_Inbox.abandon, list(_inboxes))))


class _Relay(logging.Handler):
    """Hands records to the loggers of their names."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            logging.getLogger(record.name).handle(record)
        except BaseException:
            # The thread that calls this has to live on: workers wait for it.
            self.handleError(record)


def _start_standard_library(inbox: _Inbox) -> Callable[[], None]:
    """Start to handle records; return a function that handles the last ones and stops."""
    listener = QueueListener(inbox, _Relay())
    listener.start()

    def stop() -> None:
        # The listener could not put its sentinel into a full queue.
        inbox.join()
        listener.stop()

    return stop


# The handlers of multiprocessing-logging, by the address of their channel.
_package_handlers: dict[Any, Any] = {}


def _package_serves(mp_context: BaseContext) -> bool:
    """Tell whether multiprocessing-logging is installed and works with this way of starting."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    default = chosen or multiprocessing.get_all_start_methods()[0]
    is_forked = mp_context.get_start_method() == default == "fork"
    return is_forked and find_spec("multiprocessing_logging") is not None


def _start_package(inbox: _Inbox) -> Callable[[], None]:
    """Do the same by multiprocessing-logging."""
    package = import_module("multiprocessing_logging")
    chosen = multiprocessing.get_start_method(allow_none=True)
    # A logger of nobody's: the parent's own records and the handlers of children stay out of it.
    private = logging.Logger("relay")
    private.addHandler(_Relay())
    package.install_mp_handler(private)
    if chosen is None:
        # The package has fixed the default of the process by asking for it.
        multiprocessing.set_start_method(None, force=True)
    handler: Any = private.handlers[0]
    ended = threading.Event()
    handler.queue = SimpleNamespace(
        get=inbox.get, qsize=inbox.qsize, close=lambda: None, join_thread=ended.set
    )
    _package_handlers[inbox.channel.address] = handler

    def stop() -> None:
        del _package_handlers[inbox.channel.address]
        # Waits for five seconds only, and a slow handler may need more.
        handler.close()
        ended.wait()

    return stop

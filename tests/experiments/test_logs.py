"""Records of workers reach the parent's handlers: all of them, whole, and nobody waits for ever."""

import io
import logging
import multiprocessing
import os
import pickle
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import pytest

from evotree.experiments.log_file import log_to_file
from evotree.experiments.logs import collect_logs

LOG = logging.getLogger("study")

# Processes that are spawned take long to begin; "fork" is without multiprocessing-logging.
on_all = pytest.mark.parametrize("route", ["package", "fork", "forkserver", "spawn"], indirect=True)
on_two = pytest.mark.parametrize("route", ["package", "forkserver"], indirect=True)


@pytest.fixture
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a start method, and see to it that fork uses multiprocessing-logging or does not."""
    method = "fork" if request.param == "package" else request.param
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    if request.param == "package":
        pytest.importorskip("multiprocessing_logging")
    elif request.param == "fork":
        monkeypatch.setitem(sys.modules, "multiprocessing_logging", None)
    return method


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    """No thread, handler, filter or level remains."""
    threads, before = set(threading.enumerate()), (LOG.handlers[:], LOG.filters[:], LOG.level)
    yield
    assert set(threading.enumerate()) <= threads
    assert (LOG.handlers, LOG.filters, LOG.level) == before


class Records(logging.Handler):
    """Keeps the records."""

    def __init__(self, level: int = 0) -> None:
        super().__init__(level)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def messages(self) -> list[str]:
        return [record.getMessage() for record in self.records]


@contextmanager
def handled(handler: logging.Handler, name: str = "study", level: int = 0) -> Iterator[None]:
    """Give a logger a handler and a level for a while."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(level or before)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@pytest.fixture
def seen() -> Iterator[Records]:
    """Return a handler of the logger of this file, at level INFO."""
    with handled(records := Records(), level=logging.INFO):
        yield records


@contextmanager
def workers(method: str, n: int = 1, logger: Any = None) -> Iterator[ProcessPoolExecutor]:
    """Start workers whose records are collected."""
    context = multiprocessing.get_context(method)
    with collect_logs(context, logger) as start, ProcessPoolExecutor(n, context, *start) as pool:
        yield pool


def run(method: str, work: Any, *args: Any) -> Any:
    """Do one piece of work in a worker."""
    with workers(method) as pool:
        return pool.submit(work, *args).result(30)


def fields(path: Path) -> list[Any]:
    """Return level, process and message of each line, all of which have to be whole."""
    pattern = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ([A-Z]+) (\d+) (.*)"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [re.fullmatch(pattern, x).groups() for x in lines]  # type: ignore[union-attr]


def line(worker: int, k: int) -> str:
    """Return a line; some are longer than what a pipe takes at once."""
    return f"w{worker} line {k} {'x' * (100_000 if k % 500 == 7 else k % 90)}."


def chatter(worker: int, lines: int) -> int:
    for k in range(lines):
        LOG.info(line(worker, k))
    return os.getpid()


def say(text: str, level: int = logging.INFO, name: str = "study") -> int:
    logging.getLogger(name).log(level, text)
    return os.getpid()


def talk(path: Path) -> None:
    """Log for long, and note in a file how far it came."""
    end = time.monotonic() + 20
    with path.open("w", buffering=1) as file:
        for k in takewhile(lambda _: time.monotonic() < end, count()):
            LOG.info("k%d %s", k, "y" * 5000)
            file.write(f"{k}\n")


def slowly(record: logging.LogRecord) -> bool:
    time.sleep(0.002)
    return True


class Unpicklable:
    __reduce__: Any = None

    def __str__(self) -> str:
        return "an unpicklable thing"


class Picky(Exception):  # can be pickled, but not unpickled
    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


class Stranger:  # can be unpickled in its own process only
    def __reduce__(self) -> Any:
        return eval, (f"1 // (__import__('os').getpid() == {os.getpid()})",)


def log_difficult_things() -> None:
    extra = {"ids": (1, 2), "lock": Unpicklable(), "error": Picky(1, 2)}
    LOG.info("of %s", Unpicklable(), extra=extra)
    try:
        raise Picky(3, 4)
    except Picky:
        LOG.exception("failed: %d", 5)
    LOG.info("stranger", extra={"stranger": Stranger()})
    LOG.info("after")


def log_from_a_pool_below(method: str) -> int:
    inner: int = run(method, say, "from below")
    LOG.info("from the middle")
    return inner


@on_all
def test_eight_workers_lose_nothing_and_mix_nothing(route: str, tmp_path: Path) -> None:
    n, lines = 8, 600
    text, path = io.StringIO(), tmp_path / "study.log"
    with log_to_file(path), handled(logging.StreamHandler(text)), workers(route, n) as pool:
        done = [pool.submit(chatter, worker, lines) for worker in range(n)]
        for k in range(lines):
            LOG.info("parent %d", k)
        ids = {str(os.getpid()), *(str(future.result(60)) for future in done)}
    expected = [line(worker, k) for worker in range(n) for k in range(lines)]
    expected += [f"parent {k}" for k in range(lines)]
    levels, processes, messages = zip(*fields(path), strict=True)
    assert (set(levels), set(processes)) == ({"INFO"}, ids)
    assert Counter(messages) == Counter(expected)
    # The lines of each process come in their order.
    ordered = sorted(text.getvalue().splitlines(), key=lambda x: x.split()[0])
    assert ordered == sorted(expected, key=lambda x: x.split()[0])


@on_all
def test_text_arrives_where_objects_cannot(route: str, seen: Records) -> None:
    with handled(root := Records(), "root"):
        run(route, log_difficult_things)
    first, second, third, last = root.records
    assert first.getMessage() == "of an unpicklable thing"
    extra = [vars(first)[name] for name in ("ids", "lock", "error")]
    assert [*extra[:2], str(extra[2])] == [(1, 2), "an unpicklable thing", "1 and 2"]
    assert second.getMessage() == "failed: 5"
    assert second.process != os.getpid()
    assert re.match(r"Traceback[\s\S]*raise Picky[\s\S]*3 and 4$", str(second.exc_text))
    assert logging.Formatter().format(second).endswith("3 and 4")
    assert third.name == "evotree.experiments.logs" and "ZeroDivisionError" in third.getMessage()
    assert last.getMessage() == "after"


@on_all
def test_levels_filters_propagation_and_children(
    route: str, seen: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def keep(record: logging.LogRecord) -> bool:
        asked.append(record.getMessage())
        return record.getMessage() != "filtered"

    monkeypatch.setattr(LOG, "filters", [keep])
    monkeypatch.setattr(logging.getLogger("study.deaf"), "disabled", True)
    monkeypatch.setattr(logging.getLogger("study.alone"), "propagate", False)
    calls = [("a", 10, "study"), ("b", 20, "study"), ("c", 30, "study"), ("d", 10, "study.child")]
    calls += [("filtered", 40, "study"), ("e", 40, "study.deaf"), ("g", 30, "elsewhere")]
    calls += [("h", 20, "study.alone")]
    root, warnings, child, alone = Records(), Records(logging.WARNING), Records(), Records()
    with (
        handled(root, "root"),
        handled(warnings),
        handled(child, "study.child", logging.DEBUG),
        handled(alone, "study.alone"),
        workers(route) as pool,
    ):
        for text, level, name in calls:
            pool.submit(say, text, level, name).result(30)
    assert asked == ["b", "c", "filtered"]
    assert seen.messages == ["b", "c", "d"]
    assert (warnings.messages, child.messages, alone.messages) == (["c"], ["d"], ["h"])
    assert root.messages == ["b", "c", "d", "g"]


@on_two
def test_one_logger_alone(route: str, seen: Records) -> None:
    with handled(root := Records(), "root"), workers(route, logger=LOG) as pool:
        for name in ("study.child", "study", "elsewhere"):
            pool.submit(say, name, logging.ERROR, name).result(30)
    assert seen.messages == root.messages == ["study.child", "study"]


@on_all
def test_a_killed_worker_takes_no_record_with_it(route: str, seen: Records, tmp_path: Path) -> None:
    notes = [tmp_path / f"{k}" for k in range(3)]
    with workers(route, 3) as pool:
        done = [pool.submit(talk, note) for note in notes]
        while not all(note.exists() and note.stat().st_size > 500 for note in notes):
            time.sleep(0.01)
        os.kill(next(iter(pool._processes)), signal.SIGKILL)
        assert all(isinstance(future.exception(30), BrokenProcessPool) for future in done)
        LOG.info("still here")
        begin = time.monotonic()
    assert time.monotonic() - begin < 4
    times = Counter(message.split()[0] for message in seen.messages)
    # What was noted was logged before; a last line may be cut.
    least = [int(note.read_text().split("\n")[-2]) for note in notes]
    assert all(times[f"k{k}"] >= sum(last >= k for last in least) for k in range(max(least) + 1))
    assert times["still"] == 1
    assert all(text.endswith("y" * 5000) for text in seen.messages if text.startswith("k"))


@on_two
def test_blocks_may_be_repeated_and_nested_and_fail(route: str, seen: Records) -> None:
    run(route, say, "a")
    with pytest.raises(ZeroDivisionError), workers(route) as pool:
        pool.submit(say, "b").result(30)
        _ = 1 / 0
    with workers(route) as first:
        first.submit(say, "c").result(30)
        with workers(route) as second:
            second.submit(say, "d").result(30)
            first.submit(say, "e").result(30)
        first.submit(say, "f").result(30)
        LOG.info("parent")
    LOG.info("after")
    assert sorted(seen.messages) == ["a", "after", "b", "c", "d", "e", "f", "parent"]


@on_two
def test_a_worker_has_workers_of_its_own(route: str, seen: Records) -> None:
    inner = run(route, log_from_a_pool_below, route)
    assert seen.messages == ["from below", "from the middle"]
    assert seen.records[0].process == inner != seen.records[1].process


@on_two
@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_handler_that_fails_stops_nobody(
    route: str, seen: Records, error: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(record: logging.LogRecord) -> bool:
        raise error("no room on the disk")

    seen.addFilter(fail)
    run(route, chatter, 0, 3)
    assert capfd.readouterr().err.count("--- Logging error ---") == 3


@on_two
def test_a_slow_handler_gets_all(
    route: str, seen: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    join, opened = threading.Thread.join, threading.Event()
    # The package's five seconds are a tenth of one here.
    monkeypatch.setattr("threading.Thread.join", lambda self, t=None: join(self, t and 0.1))
    monkeypatch.setattr("evotree.experiments.logs.CAPACITY", 100)
    seen.addFilter(lambda record: opened.wait(30) and slowly(record))
    timer = threading.Timer(0.5, opened.set)
    timer.start()
    run(route, chatter, 0, 150)
    assert len(seen.records) == 150
    timer.join()


@on_two
def test_a_worker_may_outlive_the_block(
    route: str, seen: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, note = multiprocessing.get_context(route), tmp_path / "note"
    monkeypatch.setattr("evotree.experiments.logs.CAPACITY", 10)
    # Slower than the worker: there is always something left to read.
    seen.addFilter(slowly)
    with ProcessPoolExecutor(1, context) as bystander:
        with collect_logs(context) as start:
            pool = ProcessPoolExecutor(1, context, *start)
            talking = pool.submit(talk, note)
            while len(seen.records) < 10:
                time.sleep(0.01)
            # Forked now, it inherits the connection.
            bystander.submit(os.getpid).result(30)
        assert not talking.done()
        heard, size = len(seen.records), note.stat().st_size
        with ProcessPoolExecutor(1, context, *start) as other:
            other.submit(say, "too late").result(30)
        # A connection that is open, but not read, takes much less than this.
        time.sleep(0.5)
        assert note.stat().st_size > size + 1000
        os.kill(next(iter(pool._processes)), signal.SIGKILL)
    assert len(seen.records) == heard
    pool.shutdown()


def test_the_initializer_can_be_pickled_and_is_harmless_at_home(seen: Records) -> None:
    with collect_logs(multiprocessing.get_context("spawn")) as start:
        again = pickle.loads(pickle.dumps(start))
        with ThreadPoolExecutor(2, "thread", *again) as pool:
            pool.submit(say, "from a thread").result(30)
        assert seen.messages == ["from a thread"]
        channel = start.arguments[0]
        forged = type(channel)(channel.address, b"another key", 0)
        forged.put_nowait(logging.makeLogRecord({"msg": "forged", "name": "study"}))
    assert seen.messages == ["from a thread"]


def test_the_package_leaves_the_default_start_method_open() -> None:
    pytest.importorskip("multiprocessing_logging")
    multiprocessing.set_start_method(None, force=True)
    with collect_logs(multiprocessing.get_context("fork")):
        assert multiprocessing.get_start_method(allow_none=True) is None
        is_used = any("mp-handler" in thread.name for thread in threading.enumerate())
        assert is_used == (multiprocessing.get_all_start_methods()[0] == "fork")


def test_bad_arguments_are_named() -> None:
    wrong, context = "spawn", multiprocessing.get_context("spawn")
    with pytest.raises(TypeError, match="mp_context .*'spawn'"):
        collect_logs(wrong).__enter__()
    with pytest.raises(TypeError, match="logger .*'spawn'"):
        collect_logs(context, wrong).__enter__()

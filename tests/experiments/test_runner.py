"""Tasks side by side: what becomes of each, whatever another one does, and the log."""

import multiprocessing
import os
import re
import signal
import sys
import time

import pytest

from evotree.experiments.runner import outcomes_of
from tests.test_log import STARTS, assert_no_record_is_lost, chatter


def act(task):
    """Do what a task says."""
    what, value = task
    if what == "sleep":
        end = time.monotonic() + value
        while time.monotonic() < end:
            time.sleep(0.01)
    if what == "hang":
        pattern = re.compile("(a+)+$")
        pattern.match(64 * "a" + "b")
    if what == "fail":
        raise KeyError(value)
    if what == "exit":
        sys.exit(value)
    if what == "interrupt":
        raise KeyboardInterrupt
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "lambda":
        return lambda: value
    return what, value, os.getpid()


def done(tasks, *arguments, **options):
    outcomes = {
        outcome.task: outcome
        for outcome in outcomes_of(act, tasks, *arguments, **options)
    }
    assert set(outcomes) == set(tasks)
    return outcomes


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_task_has_an_outcome_and_costs_no_other(jobs):
    """Also one that exits, is interrupted, or has a result that cannot be sent."""
    bad = {
        ("fail", 3): ("failed", "KeyError: 3"),
        ("exit", 0): ("failed", "SystemExit: 0"),
        ("exit", "bye"): ("failed", "SystemExit: bye"),
        ("exit", "half a sign: \udcff"): ("failed", r"half a sign: \udcff"),
        ("interrupt", 0): ("failed", "KeyboardInterrupt"),
        ("lambda", 0): ("crashed", "<locals>"),
        ("lambda", 2): ("crashed", "<locals>"),
    }
    good = [("give", k) for k in range(20)]
    outcomes = done([*good[:9], *bad, *good[9:]], jobs)
    for task, (status, error) in bad.items():
        assert outcomes[task].status == status and error in outcomes[task].error
    assert "in act" in outcomes["fail", 3].error
    assert all(outcomes[task].result[:2] == task for task in good)
    assert os.getpid() not in {outcomes[task].result[2] for task in good}


@pytest.mark.parametrize(
    "method",
    [
        "fork",
        *(pytest.param(m, marks=pytest.mark.slow) for m in ("spawn", "forkserver")),
    ],
)
def test_a_task_that_kills_its_process_takes_no_other_with_it(method):
    tasks = [
        *(("give", k) for k in range(6)),
        ("die", 0),
        *(("give", -k) for k in range(1, 6)),
    ]
    outcomes = done(tasks, 2, mp_context=multiprocessing.get_context(method))
    assert outcomes.pop(("die", 0)).status == "crashed"
    assert {outcome.status for outcome in outcomes.values()} == {"done"}


def test_a_task_whose_time_is_up_is_ended_whatever_it_does():
    """Also one that never comes back to Python; the others have their results."""
    tasks = [("give", 1), ("hang", 0), ("sleep", 60.0), ("give", 2), ("give", 3)]
    outcomes = done(tasks, 2, time_limit=1.0)
    for task in (("hang", 0), ("sleep", 60.0)):
        assert outcomes.pop(task)[1:] == ("timeout", None, "stopped after 1 s")
    assert {outcome.status for outcome in outcomes.values()} == {"done"}


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    path = tmp_path / "pids"
    parent = multiprocessing.get_context("spawn").Process(
        target=_endless, args=(str(path),)
    )
    parent.start()
    end = time.monotonic() + 60.0
    while (
        not (path.exists() and path.read_text().endswith("\n"))
        and time.monotonic() < end
    ):
        time.sleep(0.05)
    pids = [int(pid) for pid in path.read_text().split()]
    parent.kill()
    parent.join()
    end = time.monotonic() + 10.0
    while any(map(_lives, pids)) and time.monotonic() < end:
        time.sleep(0.1)
    assert pids and not any(map(_lives, pids))


def _report_pid(path):
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(600.0)


def _endless(path):
    list(outcomes_of(_report_pid, [path]))


def _lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_stopping_early_kills_the_workers():
    outcomes = outcomes_of(act, [("give", 1), ("sleep", 600.0), ("sleep", 601.0)], 2)
    (_, _, (_, _, pid), _) = next(outcomes)
    outcomes.close()
    assert not _lives(pid)


# ---- the log -------------------------------------------------------------------------------------


def in_runner(start, tasks):
    context = multiprocessing.get_context(start)
    return [one.result for one in outcomes_of(chatter, tasks, 3, mp_context=context)]


@pytest.mark.parametrize("start", STARTS)
def test_workers_lose_no_record_and_mix_none(start, tmp_path):
    assert_no_record_is_lost(in_runner, start, tmp_path / "a.log")

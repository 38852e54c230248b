"""Tasks side by side: what becomes of each, whatever another one does, and the log."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from evotree.experiments.execution import TimeIsUp, deadline, outcomes_of


def act(task):
    """Do what a task says."""
    what, value = task
    if what == "sleep":
        end = time.monotonic() + value
        while time.monotonic() < end:
            time.sleep(0.01)
    if what == "fail":
        raise KeyError(value)
    if what == "exit":
        sys.exit(value)
    if what == "interrupt":
        raise KeyboardInterrupt
    if what == "die" or (what.startswith("die once") and not os.path.exists(value)):
        if what != "die":
            open(value, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    if what.endswith("lambda"):
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
def test_every_task_has_an_outcome(jobs):
    tasks = [("give", k) for k in range(20)] + [("fail", 3)]
    outcomes = done(tasks, jobs)
    assert all(outcomes["give", k].result[:2] == ("give", k) for k in range(20))
    failed = outcomes.pop(("fail", 3))
    assert (
        failed.status == "failed"
        and "KeyError: 3" in failed.error
        and "in act" in failed.error
    )
    pids = {outcome.result[2] for outcome in outcomes.values()}
    assert os.getpid() not in pids and len(pids) <= jobs


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor, ProcessPoolExecutor])
def test_a_task_that_exits_has_failed_and_the_others_go_on(executor):
    """Whatever executor is handed in stays open."""
    executor = executor and executor(2)
    bad = [("exit", 0), ("exit", "bye"), ("interrupt", 0)]
    outcomes = done([("give", 1), *bad, ("give", 2)], executor=executor)
    assert {outcomes[task].status for task in bad} == {"failed"}
    assert "SystemExit: bye" in outcomes["exit", "bye"].error
    assert outcomes["give", 1].status == outcomes["give", 2].status == "done"
    if executor is not None:
        assert executor.submit(act, ("give", 0)).result()[0] == "give"
        executor.shutdown()


def test_a_result_that_cannot_be_sent_costs_its_own_task_alone(tmp_path):
    """Also on the second try, after the process has died in the first one."""
    second = ("die once, then lambda", str(tmp_path / "died"))
    outcomes = done([("lambda", 0), second, ("give", 1)])
    assert outcomes["lambda", 0].status == outcomes[second].status == "crashed"
    assert "<locals>" in outcomes[second].error and outcomes["give", 1].status == "done"


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


def test_a_deadline_strikes_once_and_only_inside():
    with pytest.raises(TimeIsUp), deadline(0.05):
        act(("sleep", 5.0))
    for _ in range(200):  # one that comes at the end arrives inside or not at all
        try:
            with deadline(0.0005):
                act(("sleep", 0.0005))
        except TimeIsUp:
            pass
    act(("sleep", 0.05))


def test_a_deadline_leaves_the_interpreter_as_it_was():
    """Profilers are the first to notice."""
    code = (
        "import cProfile\nfrom evotree.experiments.execution import deadline\n"
        "with deadline(5.0):\n    pass\n"
        "print(cProfile.Profile().runcall(sum, [i * i for i in range(9)]))\n"
        "print(cProfile.Profile().runcall(lambda n: sum(i for i in range(n)), 9))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["204", "36"], done.stderr


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

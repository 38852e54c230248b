"""Tasks side by side: what becomes of each, and of the others when one takes a process down."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from evotree.experiments.runner import (
    CRASHED,
    DONE,
    FAILED,
    TIMEOUT,
    Initializer,
    TimeIsUp,
    Workers,
    attempt,
    deadline,
    run_tasks,
)


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
    if what == "base":
        raise BaseException(value)
    if what == "lambda":
        return lambda: value
    if what == "die once, then lambda":
        act(("die once", value))
        return lambda: value
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "die once" and not os.path.exists(value):
        open(value, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return what, value, os.getpid()


def outcomes_of(tasks, *, time_limit=None, **workers):
    found = list(run_tasks(act, tasks, Workers(**workers), time_limit))
    assert sorted(map(str, (one.task for one in found))) == sorted(map(str, tasks))
    return {one.task: one for one in found}


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_task_has_an_outcome(jobs):
    tasks = [("give", k) for k in range(20)] + [("fail", 3)]
    found = outcomes_of(tasks, jobs=jobs)
    assert all(found["give", k].result[:2] == ("give", k) for k in range(20))
    assert {one.status for one in found.values()} == {DONE, FAILED}
    assert "KeyError: 3" in found["fail", 3].error and "in act" in found["fail", 3].error
    pids = {one.result[2] for one in found.values() if one.result}
    assert os.getpid() not in pids and len(pids) <= jobs


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor])
def test_a_task_that_exits_has_failed_and_the_others_go_on(executor):
    bad = [("exit", 0), ("exit", "bye"), ("interrupt", 0), ("base", 0)]
    found = outcomes_of([("give", 1), *bad, ("give", 2)], executor=executor and executor(2))
    assert {found[task].status for task in bad} == {FAILED}
    assert "SystemExit: bye" in found["exit", "bye"].error
    assert "KeyboardInterrupt" in found["interrupt", 0].error
    assert found["give", 1].status == found["give", 2].status == DONE


def test_a_result_that_cannot_be_sent_costs_its_own_task_alone(tmp_path):
    """Also on the second try, after the process has died in the first one."""
    second = ("die once, then lambda", str(tmp_path / "died"))
    found = outcomes_of([("lambda", 0), second, ("give", 1)], jobs=1)
    assert found["lambda", 0].status == found[second].status == CRASHED
    assert "pickle" in found[second].error and found["give", 1].status == DONE


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_task_that_kills_its_process_takes_no_other_with_it(method):
    context = multiprocessing.get_context(method)
    tasks = [("give", k) for k in range(6)] + [("die", 0)] + [("give", k) for k in range(6, 12)]
    found = outcomes_of(tasks, jobs=2, mp_context=context)
    assert found.pop(("die", 0)).status == CRASHED
    assert all(one.status == DONE for one in found.values())


def test_a_process_that_dies_of_another_cause_costs_nothing(tmp_path):
    tasks = [("give", k) for k in range(4)] + [("die once", str(tmp_path / "died"))]
    found = outcomes_of(tasks, jobs=2)
    assert {one.status for one in found.values()} == {DONE}


def test_the_time_of_a_task_is_limited():
    tasks = [("sleep", 30.0), ("give", 1), ("sleep", 0.05)]
    begin = time.monotonic()
    found = outcomes_of(tasks, time_limit=0.5, jobs=2)
    assert time.monotonic() - begin < 10.0
    assert found["sleep", 30.0].status == TIMEOUT and "of 0.5 s" in found["sleep", 30.0].error
    assert found["give", 1].status == found["sleep", 0.05].status == DONE


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
    with deadline(None):
        act(("sleep", 0.01))


def test_a_deadline_leaves_the_interpreter_as_it_was():
    """Profilers are the first to notice."""
    with pytest.raises(TimeIsUp), deadline(0.01):
        act(("sleep", 5.0))
    with deadline(5.0):
        act(("sleep", 0.01))
    code = (
        "import cProfile\nfrom evotree.experiments.runner import deadline\n"
        "with deadline(5.0):\n    pass\n"
        "print(cProfile.Profile().runcall(sum, [i * i for i in range(9)]))\n"
        "print(cProfile.Profile().runcall(lambda n: sum(i for i in range(n)), 9))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["204", "36"], done.stderr


def test_tasks_have_one_thread():
    def threads(task):
        np.ones((50, 50)) @ np.ones((50, 50))
        return {pool["num_threads"] for pool in threadpool_info()}

    assert attempt(threads, None).result == {1}


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor_will_do_and_stays_open(kind):
    with kind(2) as executor:
        tasks = [("give", k) for k in range(10)] + [("fail", 1)]
        found = outcomes_of(tasks, executor=executor)
        assert [one.status for one in found.values()].count(DONE) == 10
        assert executor.submit(act, ("give", 0)).result()[0] == "give"


def note(path, text):
    with open(path, "a") as file:
        file.write(text)


def test_an_initializer_is_called_in_each_process(tmp_path):
    path = tmp_path / "calls"
    call = Initializer(note, (path, "a"))
    outcomes_of([("sleep", 0.2), ("sleep", 0.21)], jobs=2, initializer=call)
    assert path.read_text() == "aa"


def test_workers_end_with_their_parent(tmp_path):
    """Even one that is killed."""
    context = multiprocessing.get_context("spawn")
    path = tmp_path / "pids"
    parent = context.Process(target=_endless, args=(str(path),))
    parent.start()
    end = time.monotonic() + 60.0
    while not (path.exists() and path.read_text().endswith("\n")) and time.monotonic() < end:
        time.sleep(0.05)
    pids = [int(pid) for pid in path.read_text().split()]
    parent.kill()
    parent.join()
    end = time.monotonic() + 10.0
    while any(map(_lives, pids)) and time.monotonic() < end:
        time.sleep(0.1)
    assert pids and not any(map(_lives, pids))


def _report_pid(task):
    note(task, f"{os.getpid()}\n")
    time.sleep(600.0)


def _endless(path):
    list(run_tasks(_report_pid, [path], Workers(jobs=1)))


def _lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_stopping_early_stops_the_workers():
    run = run_tasks(act, [("give", 1), ("sleep", 600.0), ("sleep", 601.0)], Workers(jobs=2))
    assert next(run).task == ("give", 1)
    begin = time.monotonic()
    run.close()
    assert time.monotonic() - begin < 10.0


def test_bad_jobs_are_named():
    with pytest.raises(ValueError, match="jobs=0: allowed are integers of at least 1"):
        Workers(jobs=0)

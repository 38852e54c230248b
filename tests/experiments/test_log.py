"""The log of tasks in processes, some of which are killed."""

import multiprocessing
import os
import signal
import time

import pytest

from evotree.experiments.runner import outcomes_of
from evotree.log import log_to_file
from tests.test_log import (
    STARTS,
    assert_no_record_is_lost,
    chatter,
    counts_of,
    expected_counts,
)


def in_runner(start, tasks):
    context = multiprocessing.get_context(start)
    return [one.result for one in outcomes_of(chatter, tasks, 3, mp_context=context)]


@pytest.mark.parametrize("start", STARTS)
def test_workers_lose_no_record_and_mix_none(start, tmp_path):
    assert_no_record_is_lost(in_runner, start, tmp_path / "a.log")


def chatters_or_dies(task):
    """Die, or wait until another has died, and chatter then."""
    if task == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1.0)
    return chatter(task)


@pytest.mark.slow
def test_a_worker_that_is_killed_beside_others_costs_them_nothing(tmp_path):
    with log_to_file(tmp_path / "a.log"):
        outcomes = list(outcomes_of(chatters_or_dies, [1, 0, 2, 3], 3))
    assert sorted(outcome.status for outcome in outcomes) == ["crashed", *3 * ["done"]]
    expected = expected_counts(4)
    for k in range(100):
        del expected["w0", str(k)]
    assert counts_of(tmp_path / "a.log") == expected

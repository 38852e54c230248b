"""The log of tasks in processes."""

import multiprocessing

import pytest

from evotree.experiments.runner import outcomes_of
from tests.test_log import STARTS, assert_no_record_is_lost, chatter


def in_runner(start, tasks):
    context = multiprocessing.get_context(start)
    return [one.result for one in outcomes_of(chatter, tasks, 3, mp_context=context)]


@pytest.mark.parametrize("start", STARTS)
def test_workers_lose_no_record_and_mix_none(start, tmp_path):
    assert_no_record_is_lost(in_runner, start, tmp_path / "a.log")

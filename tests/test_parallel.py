"""How many threads linear algebra has while it is held to one."""

from contextlib import ExitStack
from itertools import permutations

import pytest
import scipy.linalg  # noqa: F401  (brings a library of its own)
from threadpoolctl import threadpool_info, threadpool_limits

from evotree.parallel import one_blas_thread


def blas_threads():
    return {
        lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"
    }


@pytest.mark.parametrize("leaving", list(permutations(range(3))))
def test_threads_come_back_when_the_last_holder_leaves_in_any_order(leaving):
    with threadpool_limits(2, user_api="blas"):
        holders = [ExitStack() for _ in leaving]
        for holder in holders:
            holder.enter_context(one_blas_thread())
        for k in leaving:
            assert blas_threads() == {1}
            holders[k].close()
        assert blas_threads() == {2}

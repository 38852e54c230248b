"""The study of SRBench: the size of a tree as an expression, ranks, and failed fits."""

import ast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from experiments.studies import srbench


@pytest.mark.parametrize(
    ("code", "n"),
    [
        ("-0.5", 1),
        ("x[3]", 1),
        ("-x[12] - 2.0 * x[0]", 5),
        ("if not x[0] + 0.4 * x[1] <= 9.3:\n    y = 1.0\ny = -2.0", 10),
        ("-1.5 if s < -1.5 else s if s <= 2.0 else 2.0", 4),
        ("max(x[3] - 52.0, 0.0)", 5),
        ("log(max(x[3], 1.0))", 4),
    ],
)
def test_pieces_of_code_have_so_many_nodes(code, n):
    assert srbench.count_nodes(ast.parse(code)) == n


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 12), min_size=1, max_size=5))
def test_who_is_behind_whom(figures):
    """A method is behind those that are as good by both ranks, and better by one."""
    r2, size = (
        pd.DataFrame(part, columns=list("abcdef"), dtype=float)
        for part in np.split(np.array(figures), 2, axis=1)
    )
    ranks = srbench.mean_ranks({"r2": r2, "size": size})
    np.testing.assert_allclose(ranks["r2"], rankdata(-r2, axis=1).mean(axis=0))
    np.testing.assert_allclose(ranks["size"], rankdata(size, axis=1).mean(axis=0))
    for _, own in ranks.iterrows():
        before = []
        for other, rank in ranks.iterrows():
            gains = (own["r2"] - rank["r2"], own["size"] - rank["size"])
            if min(gains) >= 0.0 and max(gains) > 0.0:
                before.append(other)
        assert own["behind"] == ", ".join(before)
    assert (ranks["behind"] == "").any()


def test_a_fit_worse_than_the_mean_counts_as_0():
    row = {
        "dataset": "1027_ESL",
        "method": srbench.EVOTREE,
        "r2": -1.0,
        "expression_nodes": 9,
        "complexity": 2,
        "seconds": 1.5,
    }
    r2 = srbench.figures_by_method(pd.DataFrame([row]))["r2"]
    assert r2.loc["1027_ESL", srbench.EVOTREE] == 0.0

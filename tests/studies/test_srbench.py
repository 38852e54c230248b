"""The study of SRBench: its rows, the size of a tree as an expression, ranks, and the picture."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from evotree import EvoTreeRegressor
from evotree.experiments.protocols import Task
from experiments.studies import srbench
from experiments.suites import OFFICIAL
from tests.quick_models import brief

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def write_numbers(folder, n_rows):
    """Write a data set whose only feature is the number of the row, and return its targets."""
    y = np.random.default_rng(0).normal(50.0, 7.0, n_rows)
    table = pd.DataFrame({"x": np.arange(float(n_rows)), "target": y})
    table.to_csv(folder / "toy.csv", index=False)
    return y


@pytest.mark.parametrize("most", [10, 10_000])
def test_rows_are_drawn_as_srbench_draws_them(tmp_path, monkeypatch, most):
    monkeypatch.setattr(srbench, "MAX_TRAIN_ROWS", most)
    y = write_numbers(tmp_path, 61)
    for seed in srbench.SEEDS[:2]:
        task = Task("toy", srbench.EVOTREE, OFFICIAL, seed)
        parts = srbench.SRBenchProtocol().take_parts(task, tmp_path)
        train, test = train_test_split(
            np.arange(61), train_size=0.75, test_size=0.25, random_state=seed
        )
        if most < len(train):
            stream = np.random.RandomState(seed)
            train = train[stream.choice(len(train), size=most, replace=False)]
        np.testing.assert_array_equal(parts.X_train[:, 0], train)
        np.testing.assert_array_equal(parts.X_test[:, 0], test)
        # Of the training rows mean and deviation are 0 and 1.
        scaled = (y - y[train].mean()) / y[train].std()
        np.testing.assert_allclose(parts.y_train, scaled[train])
        np.testing.assert_allclose(parts.y_test, scaled[test])


def nodes_of_sum(weights):
    """Count a sum: a column alone where its weight is 1, else a product, and the signs between."""
    return sum(1 if abs(w) == 1.0 else 3 for w in weights) + len(weights) - 1


def naive_nodes(tree):
    """Count the nodes of a tree as an expression, node by node."""
    n = 0
    for k in range(tree.n_nodes):
        if not tree.is_leaf[k]:
            # A choice, a comparison, the threshold, and the sum.
            n += 3 + nodes_of_sum(tree.weights[k][tree.weights[k] != 0.0])
            continue
        models = tree.models
        weights = [] if models is None else models.coefficients[k]
        weights = [w for w in weights if w != 0.0]
        # The intercept, and what is added to it between two bounds.
        n += 1 + (1 + nodes_of_sum(weights) + 4 if weights else 0)
    return n


@pytest.mark.parametrize("leaves", ["constant", "linear"])
@pytest.mark.parametrize("seed", range(2))
def test_the_size_of_an_expression_is_counted_node_by_node(leaves, seed):
    X, y = make_friedman1(200, n_features=7, noise=0.3, random_state=seed)
    model = brief(EvoTreeRegressor, leaves=leaves, size_penalty=0.001).fit(X, y)
    assert model.tree_.n_leaves > 1
    assert srbench.expression_nodes(model) == naive_nodes(model.tree_)


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
    row = {"dataset": "1027_ESL", "method": srbench.EVOTREE, "r2": -1.0}
    figures = {"expression_nodes": 9, "complexity": 2, "seconds": 1.5}
    r2 = srbench.figures_by_method(pd.DataFrame([row | figures]))["r2"]
    assert r2.loc["1027_ESL", srbench.EVOTREE] == 0.0

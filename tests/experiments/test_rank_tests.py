"""Tests of methods by their ranks on data sets: published examples, scipy and scikit-posthocs."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evotree.experiments.comparison import friedman, mean_table
from evotree.experiments.method_runs import rank_methods

# Demšar (2006), table 6: areas under the curve of C4.5 and three ways of tuning it. The paper ranks
# its fourth column of voting behind the third, which its three digits do not show.
DEMSAR = """
    adult 0.763 0.768 0.771 0.798
    breast-cancer 0.599 0.591 0.590 0.569
    breast-cancer-wisconsin 0.954 0.971 0.968 0.967
    cmc 0.628 0.661 0.654 0.657
    ionosphere 0.882 0.888 0.886 0.898
    iris 0.936 0.931 0.916 0.931
    liver 0.661 0.668 0.609 0.685
    lung-cancer 0.583 0.583 0.563 0.625
    lymphography 0.775 0.838 0.866 0.875
    mushroom 1.000 1.000 1.000 1.000
    primary-tumor 0.940 0.962 0.965 0.962
    rheum 0.619 0.666 0.614 0.669
    voting 0.972 0.981 0.975 0.9749
    wine 0.957 0.978 0.946 0.970
"""
METHODS = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]


@pytest.fixture(scope="module")
def demsar():
    lines = [line.split() for line in DEMSAR.strip().splitlines()]
    rows = [
        {"dataset": name, "method": method, "auc": float(value)}
        for name, *values in lines
        for method, value in zip(METHODS, values, strict=True)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def runs():
    """Three methods on four data sets, five folds and two seeds."""
    rng = np.random.default_rng(3)
    key = [
        (f"d{i}", method, fold, seed)
        for i in range(4)
        for method in ("A", "B", "C")
        for fold in range(5)
        for seed in range(2)
    ]
    runs = pd.DataFrame(key, columns=["dataset", "method", "fold", "seed"])
    shift = runs.method.map({"A": 0.0, "B": 0.03, "C": -0.1})
    return runs.assign(accuracy=0.8 + shift + 0.03 * rng.normal(size=len(runs)), status="done")


def shuffled(runs, seed=0):
    return runs.sample(frac=1.0, random_state=seed)


def test_ranks_are_those_of_the_example_of_demsar(demsar):
    test = friedman(shuffled(demsar), "auc", post_hoc="nemenyi")
    assert {name: round(rank, 3) for name, rank in test.mean_ranks.items()} == {
        "C4.5": 3.143,
        "C4.5+m": 2.000,
        "C4.5+cf": 2.893,
        "C4.5+m+cf": 1.964,
    }
    assert round(test.critical_difference(), 2) == 1.25
    assert round(test.critical_difference(0.1), 2) == 1.12
    # No pair differs at 0.05; two do at 0.1.
    upper = test.adjusted.to_numpy()[np.triu_indices(4, 1)]
    assert (upper < 0.05).sum() == 0 and (upper < 0.1).sum() == 2
    differences = abs(np.subtract.outer(*[test.mean_ranks[test.adjusted.index].to_numpy()] * 2))
    for level in (0.1, 0.3):
        expected = differences > test.critical_difference(level)
        np.testing.assert_array_equal(test.adjusted < level, expected)
    table = demsar.pivot(index="dataset", columns="method", values="auc")
    assert test.statistic == pytest.approx(stats.friedmanchisquare(*table.to_numpy().T).statistic)


def test_incomplete_data_sets_are_named(runs):
    lacking = runs[
        ~((runs.dataset == "d1") & (runs.method == "B"))
        & ~((runs.dataset == "d3") & (runs.method == "C") & (runs.fold == 4))
    ]
    whole = runs[runs.dataset.isin(["d0", "d2"])]
    found, expected = friedman(lacking, "accuracy"), friedman(whole, "accuracy")
    assert found.datasets == ["d0", "d2"] and found.left_out == ["d1", "d3"]
    pd.testing.assert_frame_equal(found.adjusted, expected.adjusted)
    table = mean_table(lacking, "accuracy")
    assert table.left_out == ["d1", "d3"]
    np.testing.assert_array_equal(
        table.mean_ranks, mean_table(whole, "accuracy").mean_ranks[table.mean_ranks.index]
    )
    with pytest.raises(ValueError, match="runs has 1 data sets with all.*incomplete are d1, d3"):
        friedman(lacking[lacking.dataset != "d2"], "accuracy")


def test_equal_methods_do_not_differ(runs):
    same = runs.assign(accuracy=[0.1 + 0.2 if name == "A" else 0.3 for name in runs.method])
    test = friedman(same, "accuracy")
    assert test.p_value == 1.0 and test.mean_ranks.eq(2.0).all()


@given(seed=st.integers(0, 99), factor=st.sampled_from([1e-12, 1e-3, 7.0, 1e9]))
def test_ranks_do_not_depend_on_the_unit(seed, factor):
    scores = np.random.default_rng(seed).integers(0, 5, size=(4, 3)) / 7.0
    ranks = rank_methods(pd.DataFrame(factor * scores), True)
    np.testing.assert_array_equal(ranks, stats.rankdata(-scores, axis=1))


def test_too_few_methods_and_wrong_choices_are_refused(runs):
    two = runs[runs.method != "C"]
    with pytest.raises(ValueError, match="has the methods A, B: .* three or more"):
        friedman(two, "accuracy")
    with pytest.raises(ValueError, match="post_hoc='tukey': allowed are holm, nemenyi"):
        friedman(runs, "accuracy", post_hoc="tukey")


def as_runs(scores):
    """Return scores of data sets and methods as runs of one fold."""
    long = scores.rename_axis(index="dataset", columns="method").stack().rename("accuracy")
    return long.reset_index()


def test_equal_systems_have_equal_ranks():
    found = friedman(as_runs(pd.DataFrame(np.ones((4, 3)), columns=list("ABC"))), "accuracy")
    assert found.mean_ranks.tolist() == [2, 2, 2]
    assert (found.statistic, found.p_value) == (0, 1) and (found.adjusted == 1).all(axis=None)


@pytest.mark.parametrize("larger_is_better", [True, False])
def test_ranks_and_tests_by_hand(larger_is_better):
    rng = np.random.default_rng(0)
    scores = pd.DataFrame(rng.random((12, 3)) + [0.3, 0.0, 0.1], columns=["A", "B", "C"])
    scores.iloc[0] = [0.3, 0.1 + 0.2, 0.9]  # a tie but for the last bits
    found = friedman(as_runs(scores), "accuracy", larger_is_better)
    rounded = scores.round(9)
    ranks = stats.rankdata(-rounded if larger_is_better else rounded, axis=1)
    np.testing.assert_allclose(found.mean_ranks, ranks.mean(axis=0))
    assert ranks[0, 0] == ranks[0, 1]
    expected = stats.friedmanchisquare(*rounded.to_numpy().T)
    np.testing.assert_allclose([found.statistic, found.p_value], expected)
    # Holm: the smallest p times 3, the next times 2, the largest once; never falling, at most 1.
    pairs = [("A", "B"), ("A", "C"), ("B", "C")]
    error = np.sqrt(3 * 4 / (6 * len(scores)))
    p = np.array([abs(found.mean_ranks[a] - found.mean_ranks[b]) for a, b in pairs]) / error
    p = 2 * stats.norm.sf(p)
    order = np.argsort(p)
    adjusted = np.empty(3)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * [3, 2, 1]), 1.0)
    np.testing.assert_allclose([found.adjusted.loc[a, b] for a, b in pairs], adjusted)

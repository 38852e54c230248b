"""Paired t-tests: the papers' formulas written naively, scipy, statsmodels, a published example."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import make_moons
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.svm import SVC
from statsmodels.stats.multitest import multipletests

from evotree.experiments.paired_tests import adjust_by_holm, paired_t_test, paired_t_tests


def naive_test(first, second, test_ratio):
    """Nadeau and Bengio (2003), section 4, word for word."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    n = len(differences)
    mean = sum(differences) / n
    variance = sum((d - mean) ** 2 for d in differences) / (n - 1)
    statistic = mean / math.sqrt((1 / n + test_ratio) * variance)
    return mean, statistic, 2.0 * stats.t(df=n - 1).cdf(-abs(statistic))


def runs_of(scores, n_folds):
    """Return runs from scores of shape (n_datasets, n_seeds * n_folds), by methods."""
    rows = [
        {
            "dataset": f"d{i}",
            "method": name,
            "fold": k % n_folds,
            "seed": k // n_folds,
            "auc": value,
        }
        for name, table in scores.items()
        for i, values in enumerate(np.atleast_2d(table))
        for k, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


@given(
    first=st.lists(st.integers(0, 20), min_size=2, max_size=12),
    seed=st.integers(0, 99),
    ratio=st.sampled_from([0.0, 1.0 / 9.0, 0.5]),
    scale=st.sampled_from([1e-9, 1.0, 1e6]),
)
def test_the_test_is_its_formula(first, seed, ratio, scale):
    rng = np.random.default_rng(seed)
    first = scale * np.array(first, dtype=float)
    second = first + scale * rng.normal(size=len(first))
    found, turned = paired_t_test(first, second, ratio), paired_t_test(second, first, ratio)
    difference, statistic, p_value = naive_test(first, second, ratio)
    assert found.n_pairs == len(first)
    assert found.difference == pytest.approx(difference, rel=1e-6)
    assert found.statistic == pytest.approx(statistic, rel=1e-6)
    assert found.p_value == pytest.approx(p_value, rel=1e-6)
    assert found.difference / found.standard_error == pytest.approx(found.statistic)
    assert turned.p_value == found.p_value and turned.statistic == -found.statistic


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=10))
def test_without_the_correction_it_is_that_of_scipy(pairs):
    first, second = np.array(pairs).round(3).T
    assume(np.ptp((first - second).round(6)) > 0.0)
    expected = stats.ttest_rel(first, second)
    found = paired_t_test(first, second)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-6, abs=1e-6)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)
    assert paired_t_test(first, second, 0.25).p_value >= found.p_value


def test_it_is_that_of_the_example_of_scikit_learn():
    """The example "Statistical comparison of models using grid search" prints these figures."""
    X, y = make_moons(noise=0.352, random_state=1, n_samples=100)
    folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)
    rbf, linear = (
        cross_val_score(SVC(kernel=kernel, random_state=0), X, y, scoring="roc_auc", cv=folds)
        for kernel in ("rbf", "linear")
    )
    runs = runs_of({"rbf": rbf, "linear": linear}, 10).sample(frac=1.0, random_state=0)
    plain, corrected = (
        paired_t_tests(runs, "auc", "rbf", test=test).iloc[0] for test in ("paired", "corrected")
    )
    # Theirs are one-sided.
    assert round(plain.p_value / 2.0, 3) == 0.005 and round(corrected.p_value / 2.0, 3) == 0.227
    assert round(corrected.statistic, 3) == 0.750
    assert plain.verdict == "win" and corrected.verdict == "tie"


def test_equal_differences_and_single_pairs():
    first = pd.Series([0.1 + 0.2, 0.5, 0.7])
    last_bits = paired_t_test(first, pd.Series([0.3, 0.5, 0.7]), 0.5)
    assert last_bits == (3, 0.0, 0.0, 0.0, 1.0) == paired_t_test(0.0 * first, 0.0 * first)
    better, worse = paired_t_test(first + 0.1, first, 0.5), paired_t_test(first - 0.1, first, 0.5)
    assert better[2:] == (0.0, math.inf, 0.0) and worse[2:] == (0.0, -math.inf, 0.0)
    assert better.difference == pytest.approx(0.1) == -worse.difference
    one = paired_t_test([0.75], [0.5], 0.5)
    assert one[:2] == (1, 0.25) and all(map(math.isnan, one[2:]))


@pytest.mark.parametrize("n", range(8))
def test_holm_is_that_of_statsmodels(n):
    p_values = np.random.default_rng(n).random(n) ** 3
    expected = multipletests(p_values, method="holm")[1] if n else p_values
    np.testing.assert_allclose(adjust_by_holm(p_values), expected)
    with_gap = np.insert(p_values, n // 2, math.nan)
    np.testing.assert_allclose(adjust_by_holm(with_gap), np.insert(expected, n // 2, math.nan))
    np.testing.assert_allclose(adjust_by_holm([0.04] * n), [min(0.04 * n, 1.0)] * n)


def test_each_method_is_a_family_over_the_data_sets():
    rng = np.random.default_rng(0)
    reference = 0.8 + 0.02 * rng.normal(size=(5, 20))
    shifts = np.array([0.0, 0.02, 0.03, 0.05, -0.05])[:, None]
    scores = {
        "z": reference - shifts + 0.02 * rng.normal(size=(5, 20)),
        "ours": reference,
        "a": reference + 0.02 * rng.normal(size=(5, 20)),
    }
    tests = paired_t_tests(runs_of(scores, 10), "auc", "ours")
    assert list(tests.method) == ["z"] * 5 + ["a"] * 5  # in the order of the runs
    for method, group in tests.groupby("method"):
        expected = [
            naive_test(ours, theirs, 1 / 9)
            for ours, theirs in zip(reference, scores[method], strict=True)
        ]
        np.testing.assert_allclose(group.p_value, [p_value for *_, p_value in expected])
        adjusted = multipletests(group.p_value, method="holm")[1]
        np.testing.assert_allclose(group.adjusted, adjusted)
        signs = np.where(group.difference > 0.0, "win", "loss")
        assert list(group.verdict) == list(np.where(adjusted < 0.05, signs, "tie"))
    of_z = tests[tests.method == "z"].verdict
    assert {"win", "loss", "tie"} == set(of_z)
    turned = paired_t_tests(runs_of(scores, 10), "auc", "ours", larger_is_better=False)
    assert list(turned.verdict) == list(tests.verdict.replace({"win": "loss", "loss": "win"}))
    # Holm decides: the family of the larger level has more rows below it.
    plain = (tests.p_value < 0.05).sum()
    assert plain > (tests.adjusted < 0.05).sum() > 0


def test_the_correction_needs_folds():
    rng = np.random.default_rng(1)
    scores = {"A": rng.normal(size=(2, 6)), "B": rng.normal(size=(2, 6))}
    with pytest.raises(ValueError, match="test_ratio=None: d0 has runs on one fold"):
        paired_t_tests(runs_of(scores, 1), "auc", "A")
    tests = paired_t_tests(runs_of(scores, 1), "auc", "A", test_ratio=0.5)
    expected = [naive_test(*pair, 0.5)[2] for pair in zip(*scores.values(), strict=True)]
    np.testing.assert_allclose(tests.p_value, expected)
    whole = paired_t_tests(runs_of(scores, 3), "auc", "A")
    pd.testing.assert_frame_equal(
        whole, paired_t_tests(runs_of(scores, 3), "auc", "A", test_ratio=0.5)
    )


def test_data_sets_without_pairs_have_no_test():
    scores = {"A": np.arange(8.0).reshape(2, 4), "B": np.ones((2, 4))}
    runs = runs_of(scores, 4)
    fewer = runs[(runs.method == "A") | ((runs.dataset == "d1") & (runs.fold == 0))]
    (row,) = paired_t_tests(fewer, "auc", "A").itertuples()
    assert (row.dataset, row.n_pairs, row.difference, row.verdict) == ("d1", 1, 3.0, "")
    assert math.isnan(row.p_value) and math.isnan(row.adjusted)
    nothing = paired_t_tests(runs[runs.method == "A"], "auc", "A")
    assert nothing.empty and {"adjusted", "verdict"} <= set(nothing)

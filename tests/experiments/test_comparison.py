"""Methods compared over data sets: naive formulas, and tables of means."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evotree.experiments.comparison import (
    complete_datasets,
    mean_table,
    paired_t_test,
    paired_t_tests,
    plot_accuracy_against_size,
)


def runs_of(scores, n_folds=1):
    """Return runs from scores of shape (n_datasets, n_seeds * n_folds), by methods."""
    rows = [
        (f"d{i}", name, k % n_folds, k // n_folds, value)
        for name, table in scores.items()
        for i, values in enumerate(np.atleast_2d(table))
        for k, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=["dataset", "method", "fold", "seed", "accuracy"])


def naive_test(first, second, test_ratio):
    """Nadeau and Bengio (2003), section 4, word for word."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    n = len(differences)
    mean = sum(differences) / n
    variance = sum((d - mean) ** 2 for d in differences) / (n - 1)
    statistic = mean / math.sqrt((1 / n + test_ratio) * variance)
    return mean, statistic, 2.0 * stats.t(df=n - 1).cdf(-abs(statistic))


def naive_holm(p_values):
    """Holm (1979): the smallest times n, the next times n - 1, ..., never falling, at most 1."""
    adjusted, largest = np.empty(len(p_values)), 0.0
    for k, i in enumerate(np.argsort(p_values)):
        largest = max(largest, (len(p_values) - k) * p_values[i])
        adjusted[i] = min(largest, 1.0)
    return adjusted


@given(
    first=st.lists(st.integers(0, 20), min_size=2, max_size=12),
    seed=st.integers(0, 99),
    ratio=st.sampled_from([0.0, 1.0 / 9.0, 0.5]),
    scale=st.sampled_from([1e-9, 1.0, 1e6]),
)
def test_a_paired_test_is_its_formula(first, seed, ratio, scale):
    first = scale * np.array(first, dtype=float)
    second = first + scale * np.random.default_rng(seed).normal(size=len(first))
    result, turned = (
        paired_t_test(first, second, ratio),
        paired_t_test(second, first, ratio),
    )
    expected = naive_test(first, second, ratio)
    figures = (result.difference, result.statistic, result.p_value)
    assert result.n_pairs == len(first) and figures == pytest.approx(expected, rel=1e-6)
    assert result.difference / result.standard_error == pytest.approx(result.statistic)
    assert turned.p_value == result.p_value and turned.statistic == -result.statistic


def test_equal_differences_and_single_pairs():
    first = pd.Series([0.1 + 0.2, 0.5, 0.7])
    last_bits = paired_t_test(first, pd.Series([0.3, 0.5, 0.7]), 0.5)
    assert (
        last_bits == (3, 0.0, 0.0, 0.0, 1.0) == paired_t_test(0.0 * first, 0.0 * first)
    )
    assert paired_t_test(first + 0.1, first, 0.5)[2:] == (0.0, math.inf, 0.0)
    assert paired_t_test(first - 0.1, first, 0.5)[2:] == (0.0, -math.inf, 0.0)
    tests = paired_t_tests(runs_of({"A": [[0.75]], "B": [[0.5]]}), "accuracy", "A", 0.5)
    assert tests.verdict.tolist() == [""] and tests.adjusted.isna().all()
    single = paired_t_test([0.75], [0.5], 0.5)
    assert single[:2] == (1, 0.25) and all(map(math.isnan, single[2:]))


def test_each_method_is_a_family_over_the_data_sets():
    rng = np.random.default_rng(0)
    reference = 0.8 + 0.02 * rng.normal(size=(5, 20))
    shifts = np.array([0.0, 0.02, 0.03, 0.05, -0.05])[:, None]
    scores = {
        "z": reference - shifts + 0.02 * rng.normal(size=(5, 20)),
        "ours": reference,
        "a": reference + 0.02 * rng.normal(size=(5, 20)),
    }
    tests = paired_t_tests(runs_of(scores, 10), "accuracy", "ours", 1 / 9)
    assert list(tests.method) == ["z"] * 5 + ["a"] * 5  # in the order of the runs
    for method, group in tests.groupby("method"):
        pairs = zip(reference, scores[method], strict=True)
        np.testing.assert_allclose(
            group.p_value, [naive_test(*pair, 1 / 9)[2] for pair in pairs]
        )
        adjusted = naive_holm(group.p_value.to_numpy())
        np.testing.assert_allclose(group.adjusted, adjusted)
        better = np.where(group.difference > 0.0, "win", "loss")
        assert list(group.verdict) == list(np.where(adjusted < 0.05, better, "tie"))
    assert {"win", "loss", "tie"} == set(tests[tests.method == "z"].verdict)


def test_incomplete_data_sets_are_named_and_left_out():
    rng = np.random.default_rng(3)
    runs = runs_of({name: rng.random((4, 10)) for name in "ABC"}, 5)
    lacking = runs[
        ~(runs.dataset.eq("d1") & runs.method.eq("B"))
        & ~(runs.dataset.eq("d3") & runs.method.eq("C") & runs.fold.eq(4))
    ]
    assert complete_datasets(lacking) == (["d0", "d2"], ["d1", "d3"])
    text = mean_table(lacking, "accuracy", 4)
    assert "mean: over 2 of 4 data sets, without d1, d3; ±" in text
    whole = runs[runs.dataset.isin(["d0", "d2"])]
    last = [
        one for one in mean_table(whole, "accuracy", 4).split("\n") if "| mean" in one
    ]
    assert last[0] in text


@pytest.mark.parametrize("best", ["max", "min", None])
def test_a_table_has_means_deviations_and_verdicts(best):
    scores = {"my_tree": [0.9, 0.8, 0.85], "50%|*": [0.4, 0.32, 0.33]}
    scores["C"] = [0.96, 0.87, 0.9]
    runs = runs_of({name: [values] for name, values in scores.items()}, 3)
    tests = paired_t_tests(runs, "accuracy", "my_tree", 0.0)
    text = mean_table(runs, "accuracy", 3, best, tests)
    bold = {"max": "0.910", "min": "0.350", None: ""}[best]
    cells = ["0.850 ± 0.050", "0.350 ± 0.044 •", "0.910 ± 0.046 ◦"]
    row = " | ".join(cells).replace(bold, f"**{bold}**") if bold else " | ".join(cells)
    assert (
        r"| data set | my\_tree | 50%\|\* | C |" in text and f"| d0 | {row} |" in text
    )
    assert "| win/tie/loss | – | 1/0/0 | 0/0/1 |" in text


def test_points_of_the_picture_are_means_over_complete_data_sets():
    rng = np.random.default_rng(0)
    runs = runs_of({name: rng.random((6, 2)) for name in ("A", "B_1", "C$x$")}, 2)
    runs["leaves"] = 10.0 ** rng.uniform(0.0, 3.0, len(runs))
    runs = runs[~(runs.dataset.eq("d1") & runs.method.eq("B_1") & runs.fold.eq(1))]
    ax = plot_accuracy_against_size(runs)
    kept = runs[runs.dataset != "d1"].groupby("method")[["leaves", "accuracy"]].mean()
    for line in ax.get_lines():
        np.testing.assert_allclose(line.get_xydata()[0], kept.loc[line.get_label()])
    assert ax.get_xscale() == "log" and "mean of 5 of 6 data sets" in ax.get_xlabel()
    some = (runs.method == "A") ^ (runs.dataset < "d3")
    with pytest.raises(ValueError, match="no data set with leaves and accuracy"):
        plot_accuracy_against_size(runs[some])

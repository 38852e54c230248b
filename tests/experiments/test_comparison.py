"""Methods compared over data sets: tables of means, paired tests, and what runs they take."""

import io
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from evotree.experiments.comparison import friedman, mean_table
from evotree.experiments.method_runs import done_runs, rank_methods
from evotree.experiments.pictures.comparison import plot_accuracy_against_size, plot_times


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


def scores_of(runs, dataset, method):
    chosen = runs[(runs.dataset == dataset) & (runs.method == method)]
    return chosen.sort_values(["fold", "seed"]).accuracy.to_numpy()


# ---- runs ----------------------------------------------------------------------------------------


def test_runs_that_are_not_done_are_left_out_with_a_warning(runs):
    more = runs.head(3).assign(fold=7, status=["failed", "timeout", None], accuracy=0.0)
    with pytest.warns(UserWarning, match="3 of 123 runs are left out: .* other than 'done'"):
        found = mean_table(pd.concat([runs, more]), "accuracy")
    pd.testing.assert_frame_equal(found.means, mean_table(runs, "accuracy").means)
    runs.loc[[0, 5], "accuracy"] = np.nan
    with pytest.warns(UserWarning, match="2 of 120 runs are left out: those without accuracy"):
        assert len(done_runs(runs, "accuracy")) == 118
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(done_runs(runs.dropna(), "accuracy")) == 118


def test_a_warning_comes_once_and_points_to_the_caller(runs):
    runs = runs.assign(status=["done"] * 119 + ["failed"], seconds=1.0, leaves=3.0)
    for call in (
        lambda: mean_table(runs, "accuracy"),
        lambda: friedman(runs, "accuracy"),
        lambda: plot_times(runs),
        lambda: plot_accuracy_against_size(runs),
    ):
        with pytest.warns(UserWarning) as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]
    plt.close("all")


def test_bad_runs_are_refused(runs):
    with pytest.raises(TypeError, match="runs is a dict"):
        mean_table({}, "accuracy")
    with pytest.raises(ValueError, match="no column 'auc'; it has dataset, method, fold"):
        mean_table(runs, "auc")
    with pytest.raises(ValueError, match="more than one row of the same fit: dataset d0, method A"):
        mean_table(runs.drop(columns="seed"), "accuracy")
    with pytest.raises(ValueError, match="runs has inf as accuracy"):
        mean_table(runs.replace({"accuracy": runs.accuracy[3]}, np.inf), "accuracy")
    with pytest.raises(ValueError, match="runs has 'high' as accuracy"):
        mean_table(runs.astype({"accuracy": object}).replace(runs.accuracy[3], "high"), "accuracy")
    with pytest.raises(ValueError, match="runs has no fold in 1 rows"):
        mean_table(runs.assign(fold=runs.fold.where(runs.index > 0)), "accuracy")
    with pytest.raises(ValueError, match="no row that is done"), pytest.warns(UserWarning):
        mean_table(runs.assign(status="failed"), "accuracy")


# ---- table of means ------------------------------------------------------------------------------


def result_of(table, dataset, method):
    """Return the row of one test."""
    (row,) = table.tests.query("dataset == @dataset and method == @method").itertuples()
    return row


def test_means_and_verdicts_are_those_of_scipy(runs):
    table = mean_table(shuffled(runs), "accuracy", reference="A", test="paired")
    datasets = list(table.means.index)
    assert set(datasets) == {"d0", "d1", "d2", "d3"}
    for method in ("A", "B", "C"):
        scores = {dataset: scores_of(runs, dataset, method) for dataset in datasets}
        for dataset in datasets:
            assert table.means.loc[dataset, method] == pytest.approx(scores[dataset].mean())
            assert table.stds.loc[dataset, method] == pytest.approx(scores[dataset].std(ddof=1))
        if method == "A":
            continue
        results = [stats.ttest_rel(scores_of(runs, name, "A"), scores[name]) for name in datasets]
        adjusted = multipletests([result.pvalue for result in results], method="holm")[1]
        for dataset, result, p_value in zip(datasets, results, adjusted, strict=True):
            assert result_of(table, dataset, method).p_value == pytest.approx(result.pvalue)
            assert result_of(table, dataset, method).adjusted == pytest.approx(p_value)
            better = "win" if result.statistic > 0 else "loss"
            verdict = table.verdicts.loc[dataset, method]
            assert verdict == (better if p_value < 0.05 else "tie")
    assert "A" not in set(table.tests.method) and table.verdicts["A"].eq("").all()
    assert table.counts["C"] == "4/0/0" and table.counts["B"].startswith("0/")
    strict = mean_table(runs, "accuracy", reference="A", level=1e-9, test="paired")
    assert list(strict.counts) == ["0/4/0", "0/4/0"]
    assert mean_table(runs, "accuracy").tests.empty


def test_smaller_may_be_better(runs):
    larger = mean_table(runs, "accuracy", reference="B")
    smaller = mean_table(runs, "accuracy", False, reference="B")
    swap = {"win": "loss", "loss": "win"}
    pd.testing.assert_frame_equal(smaller.verdicts, larger.verdicts.replace(swap))
    np.testing.assert_allclose(smaller.mean_ranks, 4.0 - larger.mean_ranks)
    np.testing.assert_allclose(larger.mean_ranks, rank_methods(larger.means, True).mean())


def test_runs_are_paired_by_fold_and_seed(runs):
    fewer = runs[(runs.method != "A") | (runs.seed == 0)]  # A draws nothing: one seed is all
    table = mean_table(shuffled(fewer), "accuracy", reference="A", test="paired")
    ours, theirs = scores_of(fewer, "d0", "A"), scores_of(fewer[fewer.seed == 0], "d0", "B")
    expected = stats.ttest_rel(ours, theirs).pvalue
    assert result_of(table, "d0", "B").p_value == pytest.approx(expected)
    assert table.left_out == []
    one = runs[(runs.method != "A") | ((runs.seed == 0) & (runs.fold == 0))]
    table = mean_table(one, "accuracy", reference="A", test="paired")
    assert table.verdicts.eq("").all(axis=None) and list(table.counts) == ["0/0/0", "0/0/0"]
    assert table.left_out == ["d0", "d1", "d2", "d3"]
    assert "| d0 | 0." in table.to_markdown().replace("**", "")


def test_bad_arguments_are_refused(runs):
    for options, message in (
        ({"reference": "Z"}, "reference='Z': allowed are A, B, C"),
        ({"test": "sign"}, "test='sign': allowed are paired, corrected"),
        ({"level": 5}, "level=5"),
        ({"test_ratio": 0.0}, "test_ratio=0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            mean_table(runs, "accuracy", **options)


EXACT = pd.DataFrame(
    [
        ("iris|x", method, fold, value)
        for method, values in {
            "my_tree": (0.9, 0.8, 0.85),
            "50%&*": (0.4, 0.32, 0.33),
            "C": (0.96, 0.87, 0.9),
        }.items()
        for fold, value in enumerate(values)
    ]
    + [("wine", "my_tree", 0, 0.5), ("wine", "C", 0, 0.25)],
    columns=["dataset", "method", "fold", "accuracy"],
)


def test_markdown():
    text = mean_table(EXACT, "accuracy", reference="my_tree", test="paired").to_markdown(1, 100.0)
    assert text.splitlines() == [
        r"| data set | my\_tree | 50%&\* | C |",
        "|---|---:|---:|---:|",
        r"| iris\|x | 85.0 ± 5.0 | 35.0 ± 4.4 • | **91.0** ± 4.6 ◦ |",
        "| wine | **50.0** | – | 25.0 |",
        "| mean | 85.0 | 35.0 | **91.0** |",
        "| mean rank | 2.0 | 3.0 | **1.0** |",
        "| win/tie/loss | – | 1/0/0 | 0/0/1 |",
        "",
        r"•/◦: my\_tree is significantly better/worse (paired t-tests, Holm over data sets, "
        "level 0.05). "
        "±: standard deviation over folds and seeds. "
        "Last rows: over 1 of 2 data sets, without wine.",
    ]
    plain = mean_table(EXACT, "accuracy").to_markdown(1, 100.0)
    assert "win/tie/loss" not in plain and "•" not in plain and "| 35.0 ± 4.4 |" in plain


def test_latex():
    text = mean_table(EXACT, "accuracy", reference="my_tree", test="paired").to_latex(1, 100.0)
    assert text.splitlines()[1:] == [
        r"\begin{tabular}{lrrr}",
        r"\toprule",
        r" & my\_tree & 50\%\&* & C \\",
        r"\midrule",
        r"iris|x & 85.0 $\pm$ 5.0 & 35.0 $\pm$ 4.4 $\bullet$ "
        r"& \textbf{91.0} $\pm$ 4.6 $\circ$ \\",
        r"wine & \textbf{50.0} & -- \phantom{$\bullet$} & 25.0 \phantom{$\bullet$} \\",
        r"\midrule",
        r"mean & 85.0 & 35.0 & \textbf{91.0} \\",
        r"mean rank & 2.0 & 3.0 & \textbf{1.0} \\",
        r"win/tie/loss & -- & 1/0/0 & 0/0/1 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert text.startswith(r"% $\bullet$/$\circ$: my_tree is significantly better/worse")
    odd = mean_table(EXACT.replace("C", r"a\b^{c}~$#"), "accuracy").to_latex()
    assert r"a\textbackslash b\textasciicircum \{c\}\textasciitilde \$\#" in odd


def test_csv_holds_all_digits(runs):
    table = mean_table(runs, "accuracy", reference="A", test="paired")
    back = pd.read_csv(io.StringIO(table.to_csv()), index_col="dataset")
    assert list(back.index) == ["d0", "d1", "d2", "d3", "mean", "mean rank", "win/tie/loss"]
    for name in "ABC":
        np.testing.assert_array_equal(back[f"{name} mean"][:4], table.means[name])
        np.testing.assert_array_equal(back[f"{name} std"][:4], table.stds[name])
        assert back.loc["mean", f"{name} mean"] == table.means[name].mean()
        assert back.loc["mean rank", f"{name} mean"] == table.mean_ranks[name]
    assert list(back["C verdict"][:4]) == list(table.verdicts["C"])
    assert back.loc["win/tie/loss", "C verdict"] == "4/0/0" and "A verdict" not in back
    plain = pd.read_csv(io.StringIO(mean_table(runs, "accuracy").to_csv()), index_col=0)
    assert plain.index[-1] == "mean rank" and len(plain.columns) == 6


def test_means_that_look_equal_are_all_bold():
    runs = EXACT[EXACT.dataset == "wine"].assign(accuracy=[0.91004, 0.91001])
    assert mean_table(runs, "accuracy").to_markdown().count("**0.91**") == 4

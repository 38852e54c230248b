"""Pictures of methods compared over data sets: ranks, scores against sizes, times, curves."""

import numpy as np
import pandas as pd
import pytest

from evotree.experiments import comparison, pictures, report
from evotree.plotting.style import PALETTE, save_picture


@pytest.fixture
def runs():
    rng = np.random.default_rng(0)
    rows = [
        (f"d{i}", m, fold)
        for i in range(6)
        for m in ("A", "B_1", "C$x$")
        for fold in (0, 1)
    ]
    runs = pd.DataFrame(rows, columns=["dataset", "method", "fold"])
    size = 10.0 ** rng.uniform(0.0, 3.0, len(runs))
    return runs.assign(
        accuracy=rng.random(len(runs)), leaves=size, seconds=size / 100.0
    )


def test_bars_join_what_does_not_differ(tmp_path):
    ranks = pd.Series({"A": 1.0, "B$": 1.5, "C": 3.5})
    p_values = pd.DataFrame(1.0, ranks.index, ranks.index)
    p_values.loc["C", ["A", "B$"]] = p_values.loc[["A", "B$"], "C"] = [0.01, 0.04]
    test = comparison.FriedmanTest(
        ranks, 1.0, 0.1, p_values.loc[["C", "A", "B$"]], ["a"]
    )

    ax = pictures.plot_critical_differences(test)
    drawn = [line for line in ax.get_lines() if line.get_color() == PALETTE[0]]
    assert [list(line.get_xdata()) for line in drawn] == [[1.0, 1.5]]
    texts = [text.get_text().strip() for text in ax.texts]
    assert texts == ["A (1.00)", "B$ (1.50)", "(3.50) C"]
    assert save_picture(ax, tmp_path / "ranks.png").stat().st_size > 1000


def test_points_are_means_over_complete_data_sets(runs):
    runs = runs[~(runs.dataset.eq("d1") & runs.method.eq("B_1") & runs.fold.eq(1))]
    ax = pictures.plot_accuracy_against_size(runs)
    kept = runs[runs.dataset != "d1"].groupby("method")[["leaves", "accuracy"]].mean()
    points = {line.get_label(): line.get_xydata()[0] for line in ax.get_lines()}
    for method, point in points.items():
        np.testing.assert_allclose(point, kept.loc[method])
    assert ax.get_xscale() == "log" and "mean of 5 of 6 data sets" in ax.get_xlabel()
    with pytest.raises(ValueError, match="no data set with leaves and accuracy"):
        some = (runs.method == "A") ^ (runs.dataset < "d3")
        pictures.plot_accuracy_against_size(runs[some])


def test_times_are_means_and_the_fastest_data_set_is_first(runs):
    ax = pictures.plot_times(runs)
    names = [text.get_text() for text in ax.get_yticklabels()]
    means = runs.groupby(["dataset", "method"]).seconds.mean().unstack()
    assert (
        names == list(means.median(axis=1).sort_values().index) and ax.yaxis_inverted()
    )
    for line in ax.get_lines():
        np.testing.assert_allclose(line.get_xdata(), means.loc[names, line.get_label()])


def test_a_method_looks_the_same_in_all_pictures_of_a_report(runs):
    """Those without trees among them, whose sizes are none."""
    sizes = runs.leaves.where(runs.method != "A", 0.0)
    runs = runs.assign(leaves=sizes, terms=sizes, complexity=sizes)
    looks = {
        (line.get_label(), line.get_color(), line.get_marker())
        for name, ax in report._draw_pictures(runs, "accuracy")
        for line in ax.get_lines()
        if name != "critical_differences"
    }
    assert {name for name, *_ in looks} == {"A", "B_1", "C$x$"}
    assert len(looks) == len({tuple(look) for _, *look in looks}) == 3

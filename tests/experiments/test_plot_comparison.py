"""Pictures of methods compared over data sets."""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.transforms import Bbox

from evotree.experiments.comparison import FriedmanTest, friedman
from evotree.experiments.pictures import comparison
from evotree.experiments.pictures.comparison import (
    plot_accuracy_against_size,
    plot_critical_differences,
    plot_times,
)
from evotree.plotting import style

DRAWERS = (plot_accuracy_against_size, plot_times)


def make_runs(scores, n_folds=2, **columns):
    """Make runs whose means over folds are the scores."""
    scores = pd.DataFrame(scores)
    rows = [
        {
            "dataset": f"d{i}",
            "method": name,
            "fold": fold,
            "accuracy": value + 0.01 * (2 * fold - 1),
        }
        for i, values in enumerate(scores.to_dict("records"))
        for name, value in values.items()
        for fold in range(n_folds)
    ]
    return pd.DataFrame(rows).assign(**{"leaves": 5.0, "seconds": 1.0, **columns})


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def runs():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.6, 0.7, size=(6, 4)) + [0.0, 0.1, 0.2, 0.21]
    runs = make_runs(pd.DataFrame(scores, columns=["A", "B_1", "C$x$", "D"]))
    size = 10.0 ** rng.uniform(0.0, 3.0, len(runs))
    return runs.assign(leaves=size, seconds=size / 100.0)


# ---- critical differences ------------------------------------------------------------------------


def test_bars_join_what_does_not_differ():
    ranks = pd.Series({"A": 1.0, "B": 1.5, "C": 3.5})
    p_values = pd.DataFrame(1.0, ranks.index, ranks.index)
    p_values.loc["C", ["A", "B"]] = p_values.loc[["A", "B"], "C"] = [0.01, 0.04]
    ax = plt.subplots()[1]

    test = FriedmanTest(ranks, 1.0, 0.1, p_values.loc[["C", "A", "B"]], "holm", ["a"], [])

    def bars(**options):
        ax.clear()
        assert plot_critical_differences(test, ax=ax, **options) is ax
        colour = comparison.PALETTE[0]
        drawn = (line for line in ax.get_lines() if line.get_color() == colour)
        return sorted(sorted(set(line.get_xdata())) for line in drawn)

    assert bars() == [[1.0, 1.5]]
    assert bars(level=0.03) == [[1.0, 1.5], [1.5, 3.5]]
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["A (1.00)", "B (1.50)", "(3.50) C"]
    assert ax.get_xlabel() == "mean rank"


def test_nemenyi_tells_the_critical_difference(runs):
    test = friedman(runs, "accuracy", post_hoc="nemenyi")
    ax = plot_critical_differences(test, level=0.1)
    assert f"critical difference {test.critical_difference(0.1):.2f}" in ax.get_xlabel()
    assert any("C$x$" in text.get_text() for text in ax.texts)
    ax.figure.draw_without_rendering()
    holm = plot_critical_differences(friedman(runs, "accuracy"))
    assert holm.get_xlabel() == "mean rank"


# ---- scores against sizes ------------------------------------------------------------------------


def labels(ax):
    return [text for text in ax.texts if text.get_text()]


def test_points_are_means_over_complete_data_sets(runs):
    runs = runs[~((runs.dataset == "d1") & (runs.method == "D") & (runs.fold == 1))]
    ax = plt.subplots()[1]
    assert plot_accuracy_against_size(runs, ax=ax) is ax
    kept = runs[runs.dataset != "d1"].groupby("method")[["leaves", "accuracy"]].mean()
    drawn = {
        label.get_text(): line.get_xydata()[0]
        for label, line in zip(labels(ax), ax.get_lines(), strict=True)
    }
    assert list(drawn) == ["A", "B_1", "C$x$", "D"]
    for method, point in drawn.items():
        np.testing.assert_allclose(point, kept.loc[method])
    assert ax.get_xscale() == "log" and "mean of 5 of 6 data sets" in ax.get_xlabel()
    assert [tuple(text.xy) for text in labels(ax)] == [tuple(point) for point in drawn.values()]


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), n_methods=st.integers(2, 12), spread=st.sampled_from([0.2, 1.0]))
def test_labels_hide_nothing(seed, n_methods, spread):
    rng = np.random.default_rng(seed)
    names = [f"Method {'x' * int(n)}" for n in rng.integers(1, 9, n_methods)]
    names = [f"{name}{i}" for i, name in enumerate(names)]
    scores = pd.DataFrame([0.8 + 0.02 * rng.normal(size=n_methods)], columns=names)
    sizes = np.repeat(10.0 ** rng.normal(1.5, spread, n_methods), 2)
    ax = plot_accuracy_against_size(make_runs(scores, leaves=sizes))
    ax.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in labels(ax)]
    assert [label.get_text() for label in labels(ax)] == names
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    radius = 0.5 * comparison.MARKER_POINTS * ax.figure.dpi / 72.0 - 1.0
    for line in ax.get_lines():
        point = ax.transData.transform(line.get_xydata()[0])
        marker = Bbox.from_extents(*(point - radius), *(point + radius))
        assert not any(box.overlaps(marker) for box in boxes)
    frame = ax.get_window_extent().padded(1.0)
    assert all(frame.contains(*corner) for box in boxes for corner in box.corners())
    plt.close(ax.figure)


@pytest.mark.slow
def test_more_labels_than_there_is_room_for_are_all_there():
    scores = pd.DataFrame([np.full(30, 0.5)], columns=[f"a long name {i}" for i in range(30)])
    ax = plt.subplots(figsize=(1.5, 1.5))[1]
    assert len(labels(plot_accuracy_against_size(make_runs(scores), ax=ax))) == 30


def test_axes_may_lie_in_a_subfigure(runs):
    parts = plt.figure(figsize=(9, 4), layout="constrained").subfigures(1, 2)
    ax = plot_accuracy_against_size(runs, ax=parts[1].subplots())
    boxes = [label.get_window_extent() for label in labels(ax)]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


# ---- times ---------------------------------------------------------------------------------------


def test_times_are_means_and_the_fastest_data_set_is_first(runs):
    runs = runs[~((runs.dataset == "d2") & (runs.method == "A"))]
    ax = plt.subplots()[1]
    assert plot_times(runs, ax=ax) is ax
    names = [text.get_text() for text in ax.get_yticklabels()]
    means = runs.groupby(["dataset", "method"]).seconds.mean().unstack()
    assert names == list(means.median(axis=1).sort_values().index)
    for line in ax.get_lines():
        np.testing.assert_allclose(line.get_xdata(), means.loc[names, line.get_label()])
        np.testing.assert_array_equal(line.get_ydata(), range(len(names)))
    assert ax.get_xscale() == "log" and ax.yaxis_inverted()
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == [line.get_label() for line in ax.get_lines()] == list(means.columns)


def test_many_methods_look_different():
    looks = [tuple(style.point_style(i).values()) for i in range(64)]
    assert len(set(looks)) == 64


@pytest.mark.parametrize("largest", [3.0, 50.0, 1e6])
def test_ticks_are_plain_numbers(largest):
    scores = pd.DataFrame({"A": [0.1], "B": [0.2]})
    ax = plot_times(make_runs(scores, n_folds=1, seconds=[1.0, largest]))
    ax.figure.draw_without_rendering()
    low, high = ax.get_xlim()
    shown = [t.get_text() for t in ax.get_xticklabels() if low <= t.get_position()[0] <= high]
    assert len(shown) >= 3 and all(text == f"{float(text):g}" for text in shown)


# ---- input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", DRAWERS)
def test_bad_input_is_refused(draw, runs):
    with pytest.raises(TypeError, match="runs is a list"):
        draw([])
    with pytest.raises(ValueError, match="runs has no column 'method'"):
        draw(runs.drop(columns="method"))
    with pytest.raises(ValueError, match="runs has 0 as .*: allowed are positive"):
        draw(runs.assign(leaves=0.0, seconds=0.0))
    with pytest.raises(TypeError, match="ax is a str"):
        draw(runs, ax="here")
    assert not plt.get_fignums()


def test_methods_without_a_common_data_set_are_refused(runs):
    with pytest.raises(ValueError, match="no data set with leaves and accuracy of all methods"):
        plot_accuracy_against_size(runs[(runs.method == "A") ^ (runs.dataset < "d3")])

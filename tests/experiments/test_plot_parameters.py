"""Pictures of a parameter's influence: the size penalty, the maximal depth."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree.experiments.pictures.parameters import plot_accuracy_against_depth, plot_size_penalty

PENALTIES = (0.001, 0.01, 0.1)


def make_sweep(n_runs=4, seed=0, **columns):
    """Make up runs whose quality and size fall with the penalty."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "size_penalty": penalty,
            "accuracy": 0.9 - penalty + 0.01 * rng.standard_normal(),
            "nodes": 2 * int(rng.integers(1, 4)) + 1,
        }
        for _ in range(n_runs)
        for penalty in PENALTIES
    ]
    return pd.DataFrame(rows).assign(**columns)


def make_runs(datasets=("a", "b"), methods=("P_1", "Q$x$"), depths=(1, 2, 5), folds=3, seed=0):
    """Make up a fit for each data set, method, depth and fold."""
    rng = np.random.default_rng(seed)
    rows = [
        {"dataset": dataset, "method": method, "depth": depth, "fold": fold, "seed": 0}
        for dataset in datasets
        for method in methods
        for depth in depths
        for fold in range(folds)
    ]
    return pd.DataFrame(rows).assign(accuracy=rng.uniform(0.5, 1.0, len(rows)))


def right_of(ax):
    """Return the twin of an Axes."""
    (twin,) = (other for other in ax.figure.axes if other is not ax)
    return twin


def bars_of(side):
    """Return the points of the error bars on an Axes, and the ends of the bars."""
    (container,) = side.containers
    line, _, (bars,) = container
    return line.get_xydata(), np.array(bars.get_segments())[:, :, 1]


def limits_of(ax):
    """Return the lines of an Axes by name, and the ends of the bands in the same order."""
    lines = {line.get_label(): line.get_xydata() for line in ax.get_lines()}
    bands = [band.get_paths()[0].vertices for band in ax.collections]
    ends = [
        [(v[v[:, 0] == x, 1].min(), v[v[:, 0] == x, 1].max()) for x in np.unique(v[:, 0])]
        for v in bands
    ]
    return lines, np.array(ends)


# ---- size penalty --------------------------------------------------------------------------------


@given(st.integers(0, 1000), st.integers(2, 5))
@settings(max_examples=10)
def test_quality_and_size_are_means_with_standard_deviations(seed, n_runs):
    runs = make_sweep(n_runs, seed).sample(frac=1.0, random_state=seed)
    ax = plt.subplots()[1]
    assert plot_size_penalty(runs, ax=ax) is ax
    for side, column in ((ax, "accuracy"), (right_of(ax), "nodes")):
        points, ends = bars_of(side)
        values = [runs.loc[runs.size_penalty == p, column].to_numpy() for p in PENALTIES]
        means = [value.mean() for value in values]
        spreads = np.array([value.std(ddof=1) for value in values])
        np.testing.assert_allclose(points, np.column_stack([PENALTIES, means]))
        np.testing.assert_allclose(ends, np.column_stack([means - spreads, means + spreads]))
        assert side.get_ylabel() == column
    assert ax.get_xscale() == "log"
    plt.close("all")


def test_quality_lies_above_size_and_each_has_ticks_of_its_own_half():
    ax = plot_size_penalty(make_sweep(), optimal_size=11)
    ax.figure.draw_without_rendering()
    pixels = []
    for side in (ax, right_of(ax)):
        ends = bars_of(side)[1].ravel()
        pixels.append(side.transData.transform(np.column_stack([np.full_like(ends, 0.01), ends])))
        assert min(side.get_ylim()) <= ends.min() <= ends.max() <= max(side.get_ylim())
        assert 2 <= len(side.get_yticks()) <= 8
    assert pixels[0][:, 1].min() > pixels[1][:, 1].max()
    assert right_of(ax).get_ylim()[0] == 0.0
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.001", "0.01", "0.1"]


def test_the_optimal_size_is_a_dashed_line():
    ax = plot_size_penalty(make_sweep(), optimal_size=7)
    (line,) = (line for line in right_of(ax).get_lines() if line.get_linestyle() == "--")
    assert set(line.get_ydata()) == {7}
    assert "optimal size, 7 (right)" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(plot_size_penalty(make_sweep()).get_legend().get_texts()) == 2


def test_other_columns_and_many_values():
    runs = make_sweep().rename(columns={"accuracy": "f_1", "nodes": "leaves"})
    runs = runs.assign(alpha=np.geomspace(1e-4, 1.0, len(runs)), dataset="x", method=None)
    runs = pd.concat([runs, runs.assign(alpha=2.0 * runs.alpha)], ignore_index=True)
    before = runs.copy()
    ax = plot_size_penalty(runs, parameter="alpha", metric="f_1", size="leaves")
    pd.testing.assert_frame_equal(runs, before)
    assert len(bars_of(ax)[0]) == 24
    assert len(ax.get_xticks()) <= 10
    one = plot_size_penalty(make_sweep(1).iloc[:1].assign(accuracy=0.0))
    one.figure.draw_without_rendering()


def test_only_runs_that_are_done_are_drawn():
    status = ["done"] * 9 + ["error"] * 3
    runs = make_sweep(4, status=status)
    with pytest.warns(UserWarning, match="3 of 12 runs are left out") as warned:
        ax = plot_size_penalty(runs)
    assert warned[0].filename == __file__
    expected = bars_of(plot_size_penalty(runs[:9]))
    np.testing.assert_array_equal(bars_of(ax)[0], expected[0])


@pytest.mark.parametrize(
    ("runs", "options", "error", "message"),
    [
        (3, {}, TypeError, "runs is a int: allowed is a DataFrame"),
        (make_sweep(), {"size": "leaves"}, ValueError, "no column 'leaves'; it has size_penalty, "),
        (make_sweep(size_penalty=0.0), {}, ValueError, "has 0 as size_penalty: allowed are pos"),
        (make_sweep(nodes="many"), {}, ValueError, "runs has 'many' as nodes: allowed are finite"),
        (make_sweep(), {"optimal_size": 0}, ValueError, "optimal_size=0: allowed are None and "),
        (make_sweep(), {"ax": 3}, TypeError, "ax is a int"),
    ],
)
def test_bad_sweeps_are_named(runs, options, error, message):
    with pytest.raises(error, match=message):
        plot_size_penalty(runs, **options)
    assert not plt.get_fignums()


# ---- depth ---------------------------------------------------------------------------------------


@given(st.integers(0, 1000), st.integers(2, 4))
@settings(max_examples=10)
def test_lines_of_one_data_set_are_means_and_bands_standard_deviations(seed, folds):
    runs = make_runs(("wine_1",), folds=folds, seed=seed).sample(frac=1.0, random_state=seed)
    ax = plt.subplots()[1]
    assert plot_accuracy_against_depth(runs, ax=ax) is ax
    lines, ends = limits_of(ax)
    assert list(lines) == list(runs.method.unique())
    for (method, line), band in zip(lines.items(), ends, strict=True):
        for (depth, mean), (low, high) in zip(line, band, strict=True):
            chosen = runs[(runs.method == method) & (runs.depth == depth)].accuracy.to_numpy()
            assert mean == pytest.approx(chosen.mean())
            assert high - mean == pytest.approx(chosen.std(ddof=1))
            assert mean - low == pytest.approx(chosen.std(ddof=1))
    assert ax.get_ylabel() == "accuracy (wine_1)"
    assert ax.get_xlabel() == "maximal depth"
    ax.figure.draw_without_rendering()
    plt.close("all")


def test_of_several_data_sets_the_mean_over_those_with_all_fits():
    runs = make_runs(("a", "b", "c", "d"))
    holes = (runs.dataset == "c") & (runs.method == "P_1") & (runs.depth == 5)
    holes |= (runs.dataset == "d") & (runs.method == "P_1") & (runs.depth == 1) & (runs.fold == 2)
    ax = plot_accuracy_against_depth(runs[~holes])
    assert ax.get_ylabel() == "accuracy (mean of 2 of 4 data sets)"
    lines, ends = limits_of(ax)
    cells = runs[runs.dataset.isin(["a", "b"])].groupby(["method", "depth", "dataset"]).accuracy
    means = cells.mean().groupby(["method", "depth"]).mean()
    for method, line in lines.items():
        np.testing.assert_array_equal(line[:, 0], [1, 2, 5])
        np.testing.assert_allclose(line[:, 1], means[method])
    # The deviation of a mean of two independent numbers.
    spread = np.sqrt(cells.var().groupby(["method", "depth"]).mean() / 2)
    np.testing.assert_allclose(0.5 * np.ptp(ends, axis=2).ravel(), spread)


def test_a_single_fit_has_no_band_and_columns_may_have_other_names():
    runs = make_runs(("a",), folds=1).drop(columns=["fold", "seed"])
    runs = runs.rename(columns={"depth": "max_leaves", "accuracy": "f_1"})
    runs["max_leaves"] = [1.0, "2", 5] * 2  # as a table of mixed types has it
    ax = plot_accuracy_against_depth(runs, metric="f_1", depth="max_leaves")
    lines, ends = limits_of(ax)
    assert all(list(line[:, 0]) == [1, 2, 5] for line in lines.values())
    assert np.ptp(ends, axis=2).max() == 0.0
    assert {text.get_text() for text in ax.get_legend().get_texts()} == set(runs.method)


def test_fits_without_a_limit_are_left_out():
    runs = make_runs()
    endless = runs[runs.depth == 5].assign(depth=None)
    with pytest.warns(UserWarning, match=r"12 of 48 runs .* without accuracy or depth") as warned:
        ax = plot_accuracy_against_depth(pd.concat([runs, endless.astype({"depth": float})]))
    assert warned[0].filename == __file__
    expected = limits_of(plot_accuracy_against_depth(runs))
    for name, line in limits_of(ax)[0].items():
        np.testing.assert_allclose(line, expected[0][name])


def test_bad_tables_of_depths_are_named():
    runs = make_runs()
    with pytest.raises(TypeError, match="runs is a list: allowed is a DataFrame"):
        plot_accuracy_against_depth([1])
    with pytest.raises(ValueError, match="runs has no column 'limit'; it has dataset"):
        plot_accuracy_against_depth(runs, depth="limit")
    with pytest.raises(ValueError, match="runs has 'deep' as depth: allowed are finite"):
        plot_accuracy_against_depth(runs.assign(depth="deep"))
    with pytest.raises(ValueError, match="same fit: dataset a, method P_1, depth 1, fold 0"):
        plot_accuracy_against_depth(pd.concat([runs, runs], ignore_index=True))
    with pytest.raises(ValueError, match="runs has no method in 18 rows"):
        plot_accuracy_against_depth(runs.assign(method=runs.method.replace("P_1", None)))
    lacks = (runs.method == "P_1") & (runs.depth == 2)
    with pytest.raises(ValueError, match="no data set with accuracy of all methods at each depth"):
        plot_accuracy_against_depth(runs[~lacks])
    assert not plt.get_fignums()

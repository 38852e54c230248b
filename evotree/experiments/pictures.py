"""Pictures of methods compared over data sets: ranks, scores against sizes, times, curves.

In: tables of runs, one row a fit, as `evotree.experiments.comparison` describes them, its ranks, or
learning curves. Out: the Axes that were drawn on. A method has the same colour wherever it is.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from evotree.experiments.comparison import (
    FriedmanTest,
    complete_datasets,
    done_runs,
    mean_scores,
)
from evotree.plotting import plot_learning_curves, style
from evotree.plotting.style import INK, PALETTE, axes_or_new, draw_grid, legend_below

# Chapters of the histories, and the least range that their axes show.
_PANELS = {"quality": 0.02, "complexity": 2.0}


def plot_critical_differences(
    test: FriedmanTest, *, level: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw the mean ranks of methods; a bar joins those that cannot be told apart (Demšar 2006)."""
    ranks = test.mean_ranks.sort_values(kind="stable")
    differs = test.adjusted.loc[ranks.index, ranks.index].to_numpy() < level
    n = len(ranks)
    n_left = (n + 1) // 2
    # From each method as far as no two differ; what another bar covers is no bar of its own.
    ends = [
        max(j for j in range(i, n) if not differs[i : j + 1, i : j + 1].any())
        for i in range(n)
    ]
    bars = [(i, j) for i, j in enumerate(ends) if j > i and (i == 0 or j > ends[i - 1])]
    ax = axes_or_new(ax, (7.0, 1.3 + 0.3 * n_left))
    low = math.floor(ranks.min())
    high = math.ceil(ranks.max())
    margin = 0.03 * (high - low + 1.0)
    top = 0.6 + 0.4 * len(bars)
    for i, (name, rank) in enumerate(ranks.items()):
        if i < n_left:
            end, height = low - margin, -top - i
            text, side = f"{name} ({rank:.2f}) ", "right"
        else:
            end, height = high + margin, -top - (n - 1 - i)
            text, side = f" ({rank:.2f}) {name}", "left"
        ax.plot([rank, rank, end], [0.0, height, height], color=INK, lw=0.9)
        ax.text(end, height, text, ha=side, va="center", parse_math=False)
    for k, bar in enumerate(bars):
        height = -0.4 - 0.4 * k
        ax.plot(ranks.iloc[list(bar)], [height, height], color=PALETTE[0], lw=3.0)
    ax.plot(ranks, np.zeros(n), "o", color=INK, ms=4)
    ax.set(xlim=(low - margin, high + margin), ylim=(-top - n_left, 0.0))
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.yaxis.set_visible(False)
    ax.xaxis.tick_top()
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("mean rank")
    return ax


def plot_accuracy_against_size(
    runs: pd.DataFrame,
    size: str = "leaves",
    *,
    metric: str = "accuracy",
    ax: Axes | None = None,
) -> Axes:
    """Draw each method at its mean size and its mean score, over the data sets that all have."""
    runs = done_runs(runs, size, metric)
    _check_positive(runs, size)
    datasets, left_out = complete_datasets(runs)
    if not datasets:
        raise ValueError(
            f"runs has no data set with {size} and {metric} of all methods."
        )
    x = mean_scores(runs, size).loc[datasets].mean()
    y = mean_scores(runs, metric).loc[datasets].mean()
    ax = axes_or_new(ax, (6.5, 4.5))
    use_log_scale(ax, x)
    for i, method in enumerate(x.index):
        ax.plot(x[method], y[method], ms=7.0, label=method, **style.point_style(i))
    ax.margins(0.12)
    n_datasets = len(datasets) + len(left_out)
    ax.set(
        xlabel=f"{size} (mean of {len(datasets)} of {n_datasets} data sets)",
        ylabel=f"mean {metric}",
    )
    draw_grid(ax)
    ax.set_axisbelow(True)
    style.take_as_written(legend_below(ax, min(4, len(x))))
    return ax


def plot_times(
    runs: pd.DataFrame, seconds: str = "seconds", *, ax: Axes | None = None
) -> Axes:
    """Draw the mean time of a fit for each data set and method, the fastest data set at the top."""
    runs = done_runs(runs, seconds)
    _check_positive(runs, seconds)
    times = mean_scores(runs, seconds)
    times = times.loc[times.median(axis=1).sort_values(kind="stable").index]
    ax = axes_or_new(ax, (6.5, 1.6 + 0.24 * len(times)))
    rows = np.arange(len(times))
    ax.hlines(
        rows,
        times.min(axis=1),
        times.max(axis=1),
        color=INK,
        lw=0.6,
        alpha=0.4,
        zorder=1,
    )
    for i, method in enumerate(times):
        ax.plot(times[method], rows, ms=6, label=method, **style.point_style(i))
    use_log_scale(ax, pd.Series(times.to_numpy().ravel()))
    ax.set_yticks(rows, times.index, parse_math=False)
    ax.set_ylim(len(times) - 0.4, -0.6)
    ax.set_xlabel(f"{seconds} a fit")
    draw_grid(ax, "x")
    style.take_as_written(legend_below(ax, min(4, times.shape[1])))
    return ax


def _check_positive(runs: pd.DataFrame, column: str) -> None:
    if (smallest := runs[column].min()) <= 0.0:
        raise ValueError(
            f"runs has {smallest:g} as {column}: allowed are positive numbers."
        )


def use_log_scale(ax: Axes, values: pd.Series) -> None:
    """Make the x axis logarithmic, with the more plain numbers the fewer decades it has."""
    ax.set_xscale("log")
    decades = np.log10(values.max() / values.min())
    subs = range(1, 10) if decades < 0.7 else (1, 2, 5) if decades < 2.5 else (1,)
    ax.xaxis.set_major_locator(LogLocator(subs=subs))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def plot_curves_of_datasets(
    curves: Mapping[tuple[Any, ...], pd.DataFrame],
    datasets: Sequence[str],
    methods: Sequence[str],
) -> Figure | None:
    """Draw medians and quartiles of curves, a row a data set; return None where there are none."""
    needed = {"gen", *(f"{chapter}_best" for chapter in _PANELS)}
    groups: dict[str, dict[str, list[pd.DataFrame]]] = {}
    for dataset in datasets:
        for method in methods:
            histories = [
                curve
                for key, curve in curves.items()
                if key[:2] == (dataset, method) and len(curve) and needed <= set(curve)
            ]
            if histories:
                groups.setdefault(dataset, {})[method] = histories
    if not groups:
        return None
    figure, axes = plt.subplots(
        len(groups),
        2,
        figsize=(7.5, 2.2 * len(groups) + 0.8),
        layout="constrained",
        sharex="row",
        squeeze=False,
    )
    lines: dict[str, Any] = {}
    for row, (dataset, histories_of) in zip(axes, groups.items(), strict=True):
        for ax, (chapter, least_range) in zip(row, _PANELS.items(), strict=True):
            for method in methods:
                if method not in histories_of:
                    ax.plot([], [])  # keeps the colours of those that follow
                    continue
                plot_learning_curves(
                    {method: histories_of[method]}, chapter=chapter, ax=ax
                )
                lines[method] = ax.get_lines()[-1]
                ax.get_legend().remove()
            ax.set(xlabel="generation", ylabel=f"{chapter}, best tree")
            ax.yaxis.set_major_locator(MaxNLocator(5, integer=chapter == "complexity"))
            low, high = ax.get_ylim()
            if (
                high - low < least_range
            ):  # the steps of a flat curve are no more than they are
                middle = 0.5 * (low + high)
                ax.set_ylim(middle - 0.5 * least_range, middle + 0.5 * least_range)
        row[0].set_title(dataset, loc="left", fontsize="medium", parse_math=False)
    shown = [name for name in methods if name in lines]
    legend = figure.legend(
        [lines[name] for name in shown],
        shown,
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    style.take_as_written(legend)
    return figure

"""Pictures of methods compared over data sets: ranks, scores against sizes, and times.

In: what `comparison` takes and gives. Out: the Axes that were drawn on. A method has the same
colour and marker in all pictures that are told the same `methods`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from evotree.experiments.comparison import (
    LEVEL,
    FriedmanTest,
    complete_datasets,
    done_runs,
    mean_scores,
)
from evotree.plotting import style
from evotree.plotting.style import INK, PALETTE, axes_or_new


def plot_critical_differences(test: FriedmanTest, ax: Axes | None = None) -> Axes:
    """Draw the mean ranks of methods; a bar joins those that cannot be told apart (Demšar 2006)."""
    ranks = test.mean_ranks.sort_values(kind="stable")
    differs = test.adjusted.loc[ranks.index, ranks.index].to_numpy() < LEVEL
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
    methods: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each method at its mean size and its mean score, over the data sets that all have.

    The place of a method among `methods`, by default those drawn, says its colour and marker.
    """
    runs = done_runs(runs, size, metric)
    datasets, left_out = complete_datasets(runs)
    if not datasets:
        raise ValueError(
            f"runs has no data set with {size} and {metric} of all methods."
        )
    x = mean_scores(runs, size).loc[datasets].mean()
    y = mean_scores(runs, metric).loc[datasets].mean()
    ax = _draw_methods(x, y, methods or list(x.index), axes_or_new(ax, (6.5, 4.5)))
    ax.margins(0.12)
    n_datasets = len(datasets) + len(left_out)
    ax.set(
        xlabel=f"{size} (mean of {len(datasets)} of {n_datasets} data sets)",
        ylabel=f"mean {metric}",
    )
    return ax


def plot_times(
    runs: pd.DataFrame,
    seconds: str = "seconds",
    *,
    methods: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean time of a fit for each data set and method, the fastest data set at the top.

    The place of a method among `methods`, by default those drawn, says its colour and marker.
    """
    times = mean_scores(done_runs(runs, seconds), seconds)
    times = times.loc[times.median(axis=1).sort_values(kind="stable").index]
    ax = axes_or_new(ax, (6.5, 1.6 + 0.24 * len(times)))
    rows = np.arange(len(times))
    least, most = times.min(axis=1), times.max(axis=1)
    ax.hlines(rows, least, most, color=INK, lw=0.6, alpha=0.4, zorder=1)
    ax = _draw_methods(times, dict.fromkeys(times, rows), methods or list(times), ax)
    ax.set_yticks(rows, times.index, parse_math=False)
    ax.set_ylim(len(times) - 0.4, -0.6)
    ax.set_xlabel(f"{seconds} a fit")
    return ax


def _draw_methods(
    x: pd.Series | pd.DataFrame, y: Any, methods: Sequence[str], ax: Axes
) -> Axes:
    """Draw points of each method, whose place among all methods says how they look."""
    points = dict(x)
    for method, places in points.items():
        look = style.point_style(methods.index(method))
        ax.plot(places, y[method], ms=7.0, label=method, **look)
    use_log_scale(ax, pd.Series(np.ravel(x)))
    style.draw_grid(ax)
    ax.set_axisbelow(True)
    style.take_as_written(style.legend_below(ax, min(4, len(points))))
    return ax


def use_log_scale(ax: Axes, values: pd.Series) -> None:
    """Make the x axis logarithmic, with the more plain numbers the fewer decades it has."""
    if (smallest := values.min()) <= 0.0:
        raise ValueError(
            f"{smallest:g} has no place on a logarithmic axis: allowed are positive numbers."
        )
    ax.set_xscale("log")
    decades = np.log10(values.max() / smallest)
    subs = range(1, 10) if decades < 0.7 else (1, 2, 5) if decades < 2.5 else (1,)
    ax.xaxis.set_major_locator(LogLocator(subs=subs))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())

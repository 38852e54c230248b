"""Pictures of one parameter's influence: the size penalty, and the maximal depth.

In: tables of runs, one row a fit, with the parameter's value in a column. Out: the Axes that were
drawn on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import MaxNLocator

from evotree.plotting.style import INK, PALETTE, axes_or_new, legend_below, point_style

MAX_TICKS = 10


def plot_size_penalty(runs: pd.DataFrame, optimal_size: int) -> Axes:
    """Draw quality and size of the trees against the size penalty: means and standard deviations.

    Quality has the left axis and the upper half, size the right axis and the lower half.

    Parameters
    ----------
    runs : DataFrame
        Fits on one problem: ``size_penalty`` above 0, along a logarithmic axis, ``accuracy`` and
        ``nodes``.
    optimal_size : int
        Nodes of the smallest tree that knows the problem, drawn as a dashed line.

    Returns
    -------
    matplotlib Axes
        The left axes, new ones.

    References
    ----------
    Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary
    approach. Intelligent Information Processing and Web Mining, Advances in Soft Computing 31,
    309-318. Figure 5.
    """
    groups = runs.groupby("size_penalty")[["accuracy", "nodes"]]
    means, spreads = groups.mean(), groups.std().fillna(0.0)
    ax = axes_or_new(None, (7.0, 4.5))
    right = ax.twinx()
    bars: dict[str, Any] = {"capsize": 3.0, "markersize": 5.0, "linewidth": 1.8, "elinewidth": 1.0}
    for side, column, form, color, where in (
        (ax, "accuracy", "o-", PALETTE[0], ""),
        (right, "nodes", "s-", PALETTE[3], " (right)"),
    ):
        side.set_ylabel(column, color=color)
        label = f"{column}{where}, mean ± std"
        error = spreads[column]
        side.errorbar(
            means.index, means[column], yerr=error, fmt=form, color=color, label=label, **bars
        )
    label = f"optimal size, {optimal_size} (right)"
    right.axhline(optimal_size, color=INK, linestyle="--", linewidth=1.0, label=label)
    lowest, highest = (means - spreads).min(), (means + spreads).max()
    _use_half(right.yaxis, 0.0, max(highest["nodes"], optimal_size), is_upper=False)
    _use_half(ax.yaxis, lowest["accuracy"], highest["accuracy"], is_upper=True)
    ax.set_xscale("log")
    ax.set_xlabel("size penalty")
    _tick_values(ax, means.index.to_numpy())
    _finish(ax, 3, [right])
    return ax


def plot_accuracy_against_depth(runs: pd.DataFrame, ax: Axes) -> Axes:
    """Draw each method's mean accuracy on a data set against the maximal depth, one line a method.

    A band of one standard deviation over folds goes with each line.

    Parameters
    ----------
    runs : DataFrame
        Fits on one data set: ``method``, ``max_depth`` and ``accuracy``.
    ax : matplotlib Axes
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The axes.

    References
    ----------
    Yang B.-B., Shen S.-Q., Gao W. (2019). Weighted oblique decision trees. Proceedings of the AAAI
    Conference on Artificial Intelligence 33, 5621-5627. Figures 2 and 3.
    """
    names = runs["method"].unique()
    for i, name in enumerate(names):
        groups = runs[runs["method"] == name].groupby("max_depth")["accuracy"]
        mean, spread = groups.mean(), groups.std().fillna(0.0)
        style = {key: point_style(i)[key] for key in ("color", "marker")}
        low, high = mean - spread, mean + spread
        ax.fill_between(mean.index, low, high, color=style["color"], alpha=0.13, linewidth=0.0)
        ax.plot(mean.index, mean, **style, ms=5.5, lw=1.8, label=str(name))
    ax.set_ylabel("accuracy")
    ax.set_xlabel("maximal depth")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    _finish(ax, min(4, len(names)))
    return ax


def _use_half(axis: Axis, low: float, high: float, *, is_upper: bool) -> None:
    """Set the limits so that an interval fills one half, and number that half alone."""
    length = high - low or 0.1 * abs(high) or 1.0
    first, last = (-1.1, 0.1) if is_upper else (0.0, 1.1)
    locator = MaxNLocator(5, integer=not is_upper, steps=[1, 2, 5, 10])
    ticks = np.array(locator.tick_values(low, low + length))
    axis.set_ticks(ticks[(ticks >= low - 0.1 * length) & (ticks <= low + 1.1 * length)])
    axis.axes.set_ylim(low + first * length, low + (1.0 + last) * length)


def _tick_values(ax: Axes, values: np.ndarray) -> None:
    """Put the ticks of the x axis at the values tried, at some of them if they are many."""
    shown = values[:: -(-len(values) // MAX_TICKS)]
    ax.set_xticks(shown, [f"{value:g}" for value in shown])
    ax.set_xticks([], minor=True)


def _finish(ax: Axes, n_columns: int, others: list[Axes] | None = None) -> None:
    """Give the axes their grid and legend."""
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    legend_below(ax, n_columns, others or [])

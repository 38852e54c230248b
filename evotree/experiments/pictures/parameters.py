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

from evotree.experiments.method_runs import complete_datasets, done_runs, mean_scores
from evotree.plotting.style import INK, PALETTE, axes_or_new, check_axes, legend_below, point_style

MAX_TICKS = 10


def plot_size_penalty(
    runs: pd.DataFrame,
    *,
    parameter: str = "size_penalty",
    metric: str = "accuracy",
    size: str = "nodes",
    optimal_size: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw quality and size of the trees against the size penalty: means and standard deviations.

    Quality has the left axis and the upper half, size the right axis and the lower half.

    Parameters
    ----------
    runs : DataFrame
        Runs on one problem, one row a fit; where there is a column ``status``, those ``done``.
    parameter : str, default="size_penalty"
        Column of positive numbers along the axis, which is logarithmic.
    metric, size : str, default="accuracy", "nodes"
        Columns of the scores and of the sizes.
    optimal_size : float above 0, optional
        Size of the smallest tree that knows the problem, drawn as a dashed line.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes
        The left axes.

    Raises
    ------
    TypeError, ValueError
        If `runs` lacks columns or values, a value of the parameter is not positive, or there is no
        such optimal size.

    References
    ----------
    Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary
    approach. Intelligent Information Processing and Web Mining, Advances in Soft Computing 31,
    309-318. Figure 5.
    """
    check_axes(ax)
    if optimal_size is not None and not 0.0 < optimal_size < np.inf:
        raise ValueError(f"optimal_size={optimal_size!r}: allowed are None and positive numbers.")
    _check_columns(runs, parameter, metric, size)
    fits = runs.assign(dataset="", method="", fold=0, seed=np.arange(len(runs)))
    fits = done_runs(fits, parameter, metric, size)
    if (smallest := fits[parameter].min()) <= 0.0:
        raise ValueError(f"runs has {smallest:g} as {parameter}: allowed are positive numbers.")
    groups = fits.groupby(parameter)[[metric, size]]
    means, spreads = groups.mean(), groups.std().fillna(0.0)

    ax = axes_or_new(ax, (7.0, 4.5))
    right = ax.twinx()
    bars: dict[str, Any] = {"capsize": 3.0, "markersize": 5.0, "linewidth": 1.8, "elinewidth": 1.0}
    for side, column, form, color, label in (
        (ax, metric, "o-", PALETTE[0], metric),
        (right, size, "s-", PALETTE[3], f"{size} (right)"),
    ):
        side.set_ylabel(column, color=color, parse_math=False)
        side.errorbar(
            means.index,
            means[column],
            yerr=spreads[column],
            fmt=form,
            color=color,
            label=f"{label}, mean ± std",
            **bars,
        )
    lowest, highest = (means - spreads).min(), (means + spreads).max()
    top = highest[size]
    if optimal_size is not None:
        label = f"optimal size, {optimal_size:g} (right)"
        right.axhline(optimal_size, color=INK, linestyle="--", linewidth=1.0, label=label)
        top = max(top, optimal_size)
    _use_half(right.yaxis, 0.0, top, is_upper=False)
    _use_half(ax.yaxis, lowest[metric], highest[metric], is_upper=True)
    ax.set_xscale("log")
    ax.set_xlabel(parameter.replace("_", " "))
    _tick_values(ax, means.index.to_numpy())
    _finish(ax, n_columns=3, others=[right])
    return ax


def plot_accuracy_against_depth(
    runs: pd.DataFrame,
    *,
    metric: str = "accuracy",
    depth: str = "depth",
    ax: Axes | None = None,
) -> Axes:
    """Draw each method's mean score against the maximal depth allowed, one line a method.

    A band of one standard deviation over folds and seeds goes with each line. Where there are
    several data sets, the line is the mean over those on which all methods have runs at all depths,
    and the band that of such a mean, for folds that are independent between data sets.

    Parameters
    ----------
    runs : DataFrame
        Runs, one row a fit, as `evotree.experiments.method_runs` describes them, with a fit for
        each depth.
    metric : str, default="accuracy"
        Column of the scores.
    depth : str, default="depth"
        Column of the limits.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    TypeError, ValueError
        If `runs` cannot be compared, or no data set has runs of all methods at all depths.

    References
    ----------
    Yang B.-B., Shen S.-Q., Gao W. (2019). Weighted oblique decision trees. Proceedings of the AAAI
    Conference on Artificial Intelligence 33, 5621-5627. Figures 2 and 3.
    """
    check_axes(ax)
    _check_columns(runs, "dataset", "method", metric, depth)
    # A method with a limit counts as a method of its own, so that what all of them have is found.
    names, limits = runs.method.astype(str), pd.to_numeric(runs[depth], errors="coerce")
    limited = (names + f", {depth} " + limits.map(str)).where(runs.method.notna())
    fits = done_runs(runs.assign(method=limited), metric, depth)
    datasets, left_out = complete_datasets(fits)
    cells = fits.drop_duplicates("method").set_index("method")
    cells["name"] = names.groupby(limited).first()
    n_cells = cells.name.nunique() * cells[depth].nunique()
    if not datasets or len(cells) < n_cells:
        raise ValueError(f"runs has no data set with {metric} of all methods at each {depth}.")
    fits = fits[fits.dataset.isin(datasets)]
    means = mean_scores(fits, metric).mean()
    variances = fits.groupby(["method", "dataset"])[metric].var().fillna(0.0)
    cells["mean"] = means
    cells["spread"] = np.sqrt(variances.groupby("method").sum()) / len(datasets)

    ax = axes_or_new(ax, (6.5, 4.5))
    for i, (name, line) in enumerate(cells.groupby("name", sort=False)):
        line = line.sort_values(depth)
        style = point_style(i)
        color, marker = style["color"], style["marker"]
        low, high = line["mean"] - line.spread, line["mean"] + line.spread
        ax.fill_between(line[depth], low, high, color=color, alpha=0.13, linewidth=0.0)
        ax.plot(
            line[depth], line["mean"], color=color, marker=marker, ms=5.5, lw=1.8, label=str(name)
        )
    n = len(datasets) + len(left_out)
    of = datasets[0] if n == 1 else f"mean of {len(datasets)} of {n} data sets"
    ax.set_ylabel(f"{metric} ({of})", parse_math=False)
    ax.set_xlabel("maximal depth" if depth == "depth" else depth.replace("_", " "))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    _finish(ax, n_columns=min(4, cells.name.nunique()))
    return ax


def _check_columns(runs: pd.DataFrame, *columns: str) -> None:
    if not isinstance(runs, pd.DataFrame):
        raise TypeError(f"runs is a {type(runs).__name__}: allowed is a DataFrame.")
    for name in columns:
        if name not in runs:
            raise ValueError(f"runs has no column {name!r}; it has {', '.join(map(str, runs))}.")


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
    legend = ax.get_legend()
    for text in legend.get_texts() if legend else ():
        text.set_parse_math(False)

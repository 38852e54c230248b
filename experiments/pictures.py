"""Pictures of the studies: size penalty, depth, complexity, times."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from evotree.experiments.comparison import mean_scores
from evotree.plotting.style import (
    INK,
    PALETTE,
    axes_or_new,
    draw_grid,
    legend_below,
    point_style,
    use_log_scale,
)
from experiments.tables import named


def plot_size_penalty(runs: pd.DataFrame, optimal_size: int) -> Axes:
    """Draw quality and size of trees against the size penalty: means and standard deviations."""
    groups = runs.groupby("size_penalty")
    _, axes = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
    label = f"optimal size, {optimal_size}"
    axes[1].axhline(optimal_size, color=INK, linestyle="--", linewidth=1.0, label=label)
    for i, (ax, column) in enumerate(zip(axes, ("accuracy", "nodes"), strict=True)):
        means, spreads = groups[column].mean(), groups[column].std().fillna(0.0)
        look = {"color": PALETTE[3 * i], "capsize": 3.0, "label": "mean ± std"}
        ax.errorbar(means.index, means, yerr=spreads, fmt="o-", **look)
        ax.set(xscale="log", xlabel="size penalty", ylabel=column)
        _finish(ax, 2)
    return axes[0]


def plot_accuracy_against_depth(
    groups: Mapping[str, pd.DataFrame], metric: str, methods: Sequence[str]
) -> Axes:
    """Draw the mean accuracies of methods against the maximal depth, a panel for each data set.

    A band of one standard deviation over folds goes with each line.
    """
    n_rows = -(-len(groups) // 2)
    size = (11, 4.2 * n_rows)
    _, axes = plt.subplots(n_rows, 2, figsize=size, squeeze=False, layout="constrained")
    styles = {method: point_style(i) for i, method in enumerate(methods)}
    for ax, (title, runs) in zip(axes.ravel(), groups.items(), strict=False):
        for name in named(methods, runs["method"]):
            of_depth = runs[runs["method"] == name].groupby("max_depth")[metric]
            mean, spread = of_depth.mean(), of_depth.std().fillna(0.0)
            style = {key: styles[name][key] for key in ("color", "marker")}
            band = {"color": style["color"], "alpha": 0.13, "linewidth": 0.0}
            ax.fill_between(mean.index, mean - spread, mean + spread, **band)
            ax.plot(mean.index, mean, **style, ms=5.5, lw=1.8, label=name)
        label = metric.replace("_", " ")
        ax.set(title=title, ylabel=label, xlabel="maximal depth")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        _finish(ax, 4)
    for ax in axes.ravel()[len(groups) :]:
        ax.remove()
    return axes[0, 0]


def plot_accuracy_at_budgets(x: pd.DataFrame, y: pd.DataFrame) -> Axes:
    """Draw accuracies against complexities, a line for each row, the last column in its place."""
    ax = axes_or_new(None, (7.0, 4.8))
    for i, method in enumerate(x.index):
        order = x.loc[method].argsort()
        style = point_style(i) | {"ls": "-", "ms": 5.0, "label": method}
        ax.plot(x.loc[method].iloc[order], y.loc[method].iloc[order], **style)
    use_log_scale(ax, x.stack())
    ax.set(xlabel="mean complexity", ylabel="mean accuracy")
    _finish(ax, min(5, len(x)))
    return ax


def plot_times(runs: pd.DataFrame) -> Axes:
    """Draw the mean seconds of a fit by data set and method, the fastest data set at the top."""
    times = mean_scores(runs, "seconds")
    times = times.loc[times.median(axis=1).sort_values(kind="stable").index]
    ax = axes_or_new(None, (6.5, 1.6 + 0.24 * len(times)))
    rows = np.arange(len(times))
    least, most = times.min(axis=1), times.max(axis=1)
    ax.hlines(rows, least, most, color=INK, lw=0.6, alpha=0.4, zorder=1)
    for i, method in enumerate(times):
        ax.plot(times[method], rows, ms=7.0, label=method, **point_style(i))
    use_log_scale(ax, times.stack())
    ax.set_yticks(rows, times.index)
    ax.set_ylim(len(times) - 0.4, -0.6)
    ax.set_xlabel("seconds a fit")
    _finish(ax, min(4, times.shape[1]))
    return ax


def _finish(ax: Axes, n_columns: int) -> None:
    """Give the axes their grid and legend."""
    draw_grid(ax)
    legend_below(ax, n_columns)

"""Pictures of the papers' figures: sampling, size penalty, depth and complexity."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator

from evotree.experiments.comparison import use_log_scale
from evotree.operators.splitters.cross_entropy import SamplingStep
from evotree.plotting.style import INK, PALETTE, axes_or_new, legend_below, point_style

MAX_TICKS = 10
# of the steps drawn: no preference, one, and nearly closed
CONCENTRATIONS = (
    0.0,
    2.0,
    20.0,
)


def plot_sampling(trace: Sequence[SamplingStep]) -> Axes:
    """Draw the directions of some steps of a search by cross-entropy, seen from the last mean."""
    kappas = np.array([step.kappa for step in trace])
    firsts = [np.argmax(kappas >= min(kappa, kappas.max())) for kappa in CONCENTRATIONS]
    steps = np.unique(firsts).tolist()
    figure = plt.figure(figsize=(3.4 * len(steps), 3.9), layout="constrained")
    scores = np.concatenate([trace[k].scores for k in steps])
    norm = Normalize(*np.quantile(scores[np.isfinite(scores)], [0.0, 1.0]))
    x, y, z = trace[-1].mu
    for column, k in enumerate(steps, 1):
        step = trace[k]
        parts = np.isfinite(trace[k].scores)
        ax: Any = figure.add_subplot(1, len(steps), column, projection="3d")
        look: dict[str, Any] = {"c": step.scores[parts], "norm": norm, "s": 16}
        points = ax.scatter(*step.directions[parts].T, label="candidate", **look)
        ax.scatter(
            *step.directions[~parts].T,
            marker="x",
            color="#BBBBBB",
            label="parts no rows",
        )
        ax.scatter(
            *step.directions[step.is_elite].T, s=34, fc="none", ec=INK, label="elite"
        )
        if step.kappa > 0.0:
            ax.plot(
                *step.mu[:, np.newaxis],
                "*",
                color=PALETTE[3],
                ms=12,
                label="mean direction",
            )
        drawn = f"κ = {step.kappa:.1f}" if step.kappa > 0.0 else "uniform"
        ax.set(
            title=f"iteration {k}, {drawn}",
            xlabel="x0",
            ylabel="x1",
            zlabel="intercept",
        )
        ax.set(
            xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1), xticks=[0], yticks=[0], zticks=[0]
        )
        ax.set_box_aspect((1, 1, 1))
        ax.view_init(*np.degrees([np.arcsin(z), np.arctan2(y, x)]))
    figure.colorbar(
        points, ax=figure.axes, label="score (the lower the better)", shrink=0.6
    )
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return ax


def plot_size_penalty(runs: pd.DataFrame, optimal_size: int) -> Axes:
    """Draw quality and size of trees against the size penalty: means and standard deviations."""
    groups = runs.groupby("size_penalty")[["accuracy", "nodes"]]
    means = groups.mean()
    spreads = groups.std().fillna(0.0)
    ax = axes_or_new(None, (7.0, 4.5))
    right = ax.twinx()
    bars: dict[str, Any] = {
        "capsize": 3.0,
        "markersize": 5.0,
        "linewidth": 1.8,
        "elinewidth": 1.0,
    }
    for side, column, form, color, where in (
        (ax, "accuracy", "o-", PALETTE[0], ""),
        (right, "nodes", "s-", PALETTE[3], " (right)"),
    ):
        side.set_ylabel(column, color=color)
        look = {
            "fmt": form,
            "color": color,
            "label": f"{column}{where}, mean ± std",
            **bars,
        }
        side.errorbar(means.index, means[column], yerr=spreads[column], **look)
    label = f"optimal size, {optimal_size} (right)"
    right.axhline(optimal_size, color=INK, linestyle="--", linewidth=1.0, label=label)
    lowest = (means - spreads).min()
    highest = (means + spreads).max()
    _use_half(right.yaxis, 0.0, max(highest["nodes"], optimal_size), is_upper=False)
    _use_half(ax.yaxis, lowest["accuracy"], highest["accuracy"], is_upper=True)
    ax.set(xscale="log", xlabel="size penalty")
    ticks = means.index.to_numpy()[:: -(-len(means) // MAX_TICKS)]
    ax.set_xticks(ticks, [f"{value:g}" for value in ticks])
    ax.set_xticks([], minor=True)
    _finish(ax, 3, [right])
    return ax


def plot_accuracy_against_depth(groups: Mapping[str, pd.DataFrame]) -> Axes:
    """Draw the mean accuracies of methods against the maximal depth, a panel for each data set.

    A band of one standard deviation over folds goes with each line.
    """
    n_rows = -(-len(groups) // 2)
    size = (11, 4.8 * n_rows)
    _, axes = plt.subplots(n_rows, 2, figsize=size, squeeze=False, layout="constrained")
    for ax, (title, runs) in zip(axes.ravel(), groups.items(), strict=False):
        names = runs["method"].unique()
        for i, name in enumerate(names):
            of_depth = runs[runs["method"] == name].groupby("max_depth")["accuracy"]
            mean = of_depth.mean()
            spread = of_depth.std().fillna(0.0)
            style = {key: point_style(i)[key] for key in ("color", "marker")}
            band = {"color": style["color"], "alpha": 0.13, "linewidth": 0.0}
            ax.fill_between(mean.index, mean - spread, mean + spread, **band)
            ax.plot(mean.index, mean, **style, ms=5.5, lw=1.8, label=str(name))
        ax.set(title=title, ylabel="accuracy", xlabel="maximal depth")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        _finish(ax, min(4, len(names)))
    for ax in axes.ravel()[len(groups) :]:
        ax.remove()
    return axes[0, 0]


def plot_tao_path(path: pd.DataFrame, by_depth: pd.DataFrame) -> Axes:
    """Draw the trees of a path against C, and errors against parameters by depth.

    `path` is the table of `evotree.tao_path`; `by_depth` has the columns ``node``, ``depth``,
    ``parameters``, ``train_error`` and ``test_error``.
    """
    _, axes = plt.subplots(2, 3, figsize=(13, 7.4), layout="constrained")
    lines = {"train": PALETTE[5], "test": PALETTE[0]}
    look: dict[str, Any] = {"marker": "o", "ms": 4, "lw": 1.6}
    for part, color in lines.items():
        error = 100.0 * (1.0 - path[f"{part}_score"])
        axes[0, 0].plot(path["C"], error, color=color, label=part, **look)
    for ax, y, unit, title in (
        (axes[0, 1], "weight_share", 100.0, "weights that are not 0, %"),
        (axes[0, 2], "leaves", 1.0, "leaves"),
        (axes[1, 0], "path_mean", 1.0, "splits on the path of a row, mean and range"),
        (axes[1, 1], "cost", 1.0, "multiplications to predict a row, mean"),
    ):
        ax.plot(path["C"], unit * path[y], color=PALETTE[2], **look)
        ax.set_title(title)
    band = path["path_min"], path["path_max"]
    axes[1, 0].fill_between(path["C"], *band, color=PALETTE[2], alpha=0.13, lw=0.0)
    for ax in axes.ravel()[:5]:
        ax.set(xscale="log", xlabel="C")
    for i, (node, trees) in enumerate(by_depth.groupby("node")):
        for part, style in (("train", "--"), ("test", "-")):
            axes[1, 2].plot(
                trees["parameters"],
                100.0 * trees[f"{part}_error"],
                style,
                color=PALETTE[i],
                label=f"{node}, {part}",
                **look,
            )
    axes[0, 0].set_title("error, %")
    axes[1, 2].set(title="error, %, by depth", xlabel="parameters")
    use_log_scale(axes[1, 2], by_depth["parameters"])
    for ax in axes.ravel():
        ax.set_ylim(bottom=0.0)
        ax.grid(alpha=0.25, linewidth=0.6)
    for ax in (axes[0, 0], axes[1, 2]):
        ax.legend(frameon=False)
    return axes[0, 0]


def plot_accuracy_at_budgets(x: pd.DataFrame, y: pd.DataFrame, xlabel: str) -> Axes:
    """Draw accuracies against complexities, a line a row, the last column being its own choice."""
    ax = axes_or_new(None, (7.0, 4.8))
    for i, method in enumerate(x.index):
        style = point_style(i)
        xs = x.loc[method].to_numpy()
        ys = y.loc[method].to_numpy()
        ax.plot(xs[:-1], ys[:-1], ms=5, label=method, **style | {"ls": "-"})
        ax.plot(xs[-2:], ys[-2:], lw=0.9, color=style["color"], ls=":")
        ax.plot(xs[-1], ys[-1], ms=9, **style)
    use_log_scale(ax, pd.Series(x.to_numpy().ravel()))
    ax.set_xlabel(xlabel)
    ax.set_ylabel("mean accuracy")
    _finish(ax, min(5, len(x)))
    return ax


def _use_half(axis: Axis, low: float, high: float, *, is_upper: bool) -> None:
    """Set the limits so that an interval fills one half, and number that half alone."""
    length = high - low or 0.1 * abs(high) or 1.0
    first, last = (-1.1, 0.1) if is_upper else (0.0, 1.1)
    locator = MaxNLocator(5, integer=not is_upper, steps=[1, 2, 5, 10])
    ticks = np.array(locator.tick_values(low, low + length))
    axis.set_ticks(ticks[(ticks >= low - 0.1 * length) & (ticks <= low + 1.1 * length)])
    axis.axes.set_ylim(low + first * length, low + (1.0 + last) * length)


def _finish(ax: Axes, n_columns: int, others: list[Axes] | None = None) -> None:
    """Give the axes their grid and legend."""
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    legend_below(ax, n_columns, others or [])

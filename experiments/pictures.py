"""Pictures of the studies: sampling, size penalty, depth, complexity, and searches over time."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from evotree.experiments.pictures import use_log_scale
from evotree.operators.splitters.base import Split
from evotree.operators.splitters.cross_entropy import SamplingStep
from evotree.plotting.style import (
    INK,
    PALETTE,
    axes_or_new,
    class_colors,
    draw_grid,
    label_lines,
    legend_below,
    point_style,
)

MAX_TICKS = 10
POINT_SIZE = 6.0
PLACES = (
    (7.0, 0.0, "left"),
    (-7.0, 0.0, "right"),
    (0.0, 10.0, "center"),
    (0.0, -10.0, "center"),
    (5.0, 9.0, "left"),
    (5.0, -9.0, "left"),
    (-5.0, 9.0, "right"),
    (-5.0, -9.0, "right"),
)
"""Where a name may be beside its point, in points, the best place first."""


def plot_search_on_sphere(
    X: np.ndarray,
    y: np.ndarray,
    split: Split,
    trace: Sequence[SamplingStep],
    score: Callable[[np.ndarray], np.ndarray],
) -> Axes:
    """Draw a search by cross-entropy over two features: its rows, the sphere, and its levels.

    The sphere of the directions is seen from the best one; `score` returns scores of directions.
    """
    drawn = np.concatenate([step.directions for step in trace])
    scores = np.concatenate([step.scores for step in trace])
    towards = drawn[scores.argmin()]
    up = np.eye(3)[2] - towards[2] * towards
    up /= np.linalg.norm(up)
    view = np.array([np.cross(up, towards), up, towards])
    figure, axes = plt.subplots(2, 3, figsize=(10.0, 6.8), layout="constrained")
    places = axes.ravel()
    for k, color in enumerate(class_colors(int(y.max()) + 1)):
        places[0].plot(*X[y == k].T, "o", color=color, ms=3.5, alpha=0.8)
    foot = split.weights * split.threshold / (split.weights @ split.weights)
    limits = places[0].axis()
    places[0].axline(foot, foot + [-split.weights[1], split.weights[0]], color=INK)
    places[0].set(xlim=limits[:2], ylim=limits[2:], title="rows and the best split")
    at = np.linspace(-1.0, 1.0, 201)
    grid = np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)
    depth = 1.0 - (grid**2).sum(axis=1)
    seen = np.column_stack([grid, np.sqrt(np.maximum(depth, 0.0))]) @ view
    shown = np.where(depth >= 0.0, score(seen), np.nan)
    shown = np.where(np.isinf(shown), np.nan, shown).reshape(len(at), len(at))
    steps = np.unique(np.linspace(0, len(trace) - 1, 3).astype(int)).tolist()
    for ax, k in zip(places[1:5], [None, *steps], strict=False):
        look: dict[str, Any] = {"extent": (-1, 1, -1, 1), "origin": "lower"}
        colors = ax.imshow(shown, alpha=1.0 if k is None else 0.35, **look)
        ax.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        ax.set_axis_off()
        ax.set_title("scores of all directions" if k is None else _drawn(k, trace[k]))
        if k is not None:
            _draw_directions(ax, trace[k], view)
    figure.colorbar(colors, ax=places[1], label="score", shrink=0.8)
    handles, labels = places[len(steps) + 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    levels = [np.max(step.scores[step.is_elite], initial=-np.inf) for step in trace]
    lowest = np.minimum.accumulate([step.scores.min() for step in trace])
    places[5].plot(levels, "o-", color=PALETTE[0], label="level of the elite")
    places[5].plot(lowest, "s--", color=PALETTE[3], label="best so far")
    places[5].set(xlabel="iteration", ylabel="score", title="levels")
    places[5].xaxis.set_major_locator(MaxNLocator(integer=True))
    places[5].legend(frameon=False)
    for ax in places[len(steps) + 2 : 5]:
        ax.remove()
    return axes[0, 0]


def _drawn(k: int, step: SamplingStep) -> str:
    """Return from which distribution the directions of an iteration were drawn."""
    return f"iteration {k}, {f'κ = {step.kappa:.1f}' if step.kappa else 'uniform'}"


def _draw_directions(ax: Axes, step: SamplingStep, view: np.ndarray) -> None:
    """Draw the directions of an iteration on the sphere, those of its far side faint."""
    x, y, z = view @ step.directions.T
    looks: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
        "candidate": (z >= 0.0, {"color": INK, "s": 9}),
        "candidate, far side": (z < 0.0, {"color": "#999999", "s": 5}),
        "elite": (step.is_elite, {"facecolor": "none", "edgecolor": PALETTE[3]}),
    }
    for label, (some, look) in looks.items():
        ax.scatter(x[some], y[some], label=label, **look)
    if step.kappa > 0.0:
        mean = view @ step.mu
        ax.plot(*mean[:2], "*", color=PALETTE[1], ms=13, mec=INK, label="mean")


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


def plot_accuracy_against_depth(
    groups: Mapping[str, pd.DataFrame], metric: str, methods: Sequence[str]
) -> Axes:
    """Draw the mean accuracies of methods against the maximal depth, a panel for each data set.

    A band of one standard deviation over folds goes with each line.
    """
    n_rows = -(-len(groups) // 2)
    size = (11, 4.2 * n_rows)
    _, axes = plt.subplots(n_rows, 2, figsize=size, squeeze=False, layout="constrained")
    for ax, (title, runs) in zip(axes.ravel(), groups.items(), strict=False):
        present = set(runs["method"])
        for i, name in enumerate(methods):
            if name not in present:
                continue
            of_depth = runs[runs["method"] == name].groupby("max_depth")[metric]
            mean = of_depth.mean()
            spread = of_depth.std().fillna(0.0)
            style = {key: point_style(i)[key] for key in ("color", "marker")}
            band = {"color": style["color"], "alpha": 0.13, "linewidth": 0.0}
            ax.fill_between(mean.index, mean - spread, mean + spread, **band)
            ax.plot(mean.index, mean, **style, ms=5.5, lw=1.8, label=str(name))
        label = metric.replace("_", " ")
        ax.set(title=title, ylabel=label, xlabel="maximal depth")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        _finish(ax, min(4, len(present)))
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


def plot_gaps(panels: Mapping[str, pd.DataFrame], bold: Sequence[str]) -> Axes:
    """Draw gaps against seconds, a panel for each table of seconds by variant, bold ones black."""
    size = (5.4 * len(panels), 4.6)
    _, axes = plt.subplots(1, len(panels), figsize=size, layout="constrained")
    for ax, (title, gaps) in zip(np.ravel(axes), panels.items(), strict=True):
        for i, name in enumerate(gaps):
            color, style = PALETTE[i % 6], ("-", "--", ":")[i // 6 % 3]
            look: dict[str, Any] = {"color": color, "ls": style, "lw": 1.4}
            if name in bold:
                look = {"color": INK, "lw": 2.4}
            ax.plot(gaps.index, gaps[name].replace(np.inf, np.nan), label=name, **look)
        # What is far from its end is out of the picture.
        highest = 2.0 * gaps.iloc[-1].max() if gaps.size else 1.0
        ax.set(title=title, xlabel="seconds", xlim=(0.0, gaps.index.max()))
        ax.set_ylim(0.0, highest or 1.0)
        draw_grid(ax)
    first = np.ravel(axes)[0]
    first.set_ylabel("points below the best fitness seen")
    label_lines(*np.ravel(axes))
    return first


def plot_ranks(ranks: pd.DataFrame, front: pd.DataFrame) -> Axes:
    """Draw methods by name at their ranks ``r2`` and ``size``, by ``kind``, and a line of some.

    A name stands beside its point where it covers the fewest points, names and parts of the line.
    """
    ax = axes_or_new(None, (8.0, 6.0))
    line = front.sort_values("r2")[["r2", "size"]]
    ax.plot(*line.to_numpy().T, color=INK, lw=0.9, ls="--", label="front")
    for i, (kind, some) in enumerate(ranks.groupby("kind")):
        ax.plot(some["r2"], some["size"], ms=7.0, label=kind, **point_style(i))
    ax.set(
        xlabel="mean rank by R², 1 the best", ylabel="mean rank by size, 1 the smallest"
    )
    ax.margins(0.15, 0.06)
    _finish(ax, 4)
    # The layout settles where the points are.
    ax.figure.figure.draw_without_rendering()
    steps = [np.linspace(*ends, 50) for ends in pairwise(ax.transData.transform(line))]
    places = [ax.transData.transform(ranks[["r2", "size"]]), *steps]
    taken = [Bbox([at - POINT_SIZE, at + POINT_SIZE]) for at in np.concatenate(places)]
    look: dict[str, Any] = {
        "textcoords": "offset points",
        "va": "center",
        "fontsize": "small",
    }
    for row in ranks.itertuples():
        tried = [
            ax.annotate(str(row.Index), (row.r2, row.size), (x, y), ha=side, **look)
            for x, y, side in PLACES
        ]
        best = min(
            tried, key=lambda text: text.get_window_extent().count_overlaps(taken)
        )
        taken.append(best.get_window_extent())
        for other in set(tried) - {best}:
            other.remove()
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

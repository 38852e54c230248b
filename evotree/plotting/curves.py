"""What runs recorded: learning curves, and quality against complexity."""

from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import MaxNLocator

from evotree.dataset import Dataset
from evotree.engine.evolution import ORIGIN, ParetoFront, to_frame
from evotree.front import FittedFront, TreeChoice, held_out_quality
from evotree.plotting.style import (
    INK,
    PALETTE,
    axes_or_new,
    draw_grid,
    legend_below,
    tint,
    use_log_scale,
)
from evotree.words import check_kind, counted

Position: TypeAlias = Literal["gen", "seconds", "evaluations"]

POSITION_LABELS = {
    "gen": "generation",
    "seconds": "seconds",
    "evaluations": "evaluations",
}
LINE_STYLES = ("-", "--", "-.", ":")
OF_TREES = {
    "quality": "quality",
    "size": "n_nodes",
    "terms": "n_terms",
    "complexity": "complexity",
}
"""Chapters that all trees have, and what trees call them."""
COUNTS = ("size", "terms", "complexity")
"""Chapters that count something."""


def plot_learning_curve(
    history: Any,
    *,
    x: Position = "gen",
    curves: Sequence[str] = ("quality", "fitness", "complexity"),
    ax: Axes | None = None,
) -> Axes:
    """Draw one run: the best individual, and the median and the quartiles of the population.

    The best is a line, the median is dashed, in a band from the first quartile to the third. A
    history without quartiles, such as that of islands, has the mean in the place of the median.
    A star is the tree that a fitted estimator has: where first trees, or trees of logistic models,
    were better on rows held out, it is none of those that are drawn.

    Parameters
    ----------
    history : Logbook, fitted classifier with ``history_``, Run or table of `to_frame`
        The run.
    x : {"gen", "seconds", "evaluations"}, default="gen"
        What runs along the axis; evaluations are the cumulated ``nevals``.
    curves : sequence of str, default=("quality", "fitness", "complexity")
        Chapters of the logbook. Beside others, ``"size"``, ``"terms"`` and ``"complexity"`` have a
        panel of their own below.
    ax : matplotlib Axes, optional
        Where to draw, one run alone; new ones by default. Two panels share its place.
    """
    records = records_of(history, "history")
    positions = axis_positions(records, x)
    curves = (curves,) if isinstance(curves, str) else curves
    for curve in curves:
        _column(records, f"{curve}_best", f"curves={curves!r}")

    ax = axes_or_new(ax, (7.0, 5.0))
    counts = [curve for curve in curves if curve in COUNTS]
    others = [curve for curve in curves if curve not in COUNTS]
    panels = {ax: others or counts}
    if others and counts:
        panels[_panel_below(ax)] = counts
    returned = getattr(history, "tree_", None)
    colors = cycle(PALETTE)
    for panel, shown in panels.items():
        for curve, color in zip(shown, colors, strict=False):
            panel.plot(
                positions,
                records[f"{curve}_best"],
                color=color,
                lw=1.8,
                label=f"{curve}, best",
            )
            middle = "median" if f"{curve}_median" in records else "mean"
            if f"{curve}_{middle}" in records:
                panel.plot(
                    positions,
                    records[f"{curve}_{middle}"],
                    "--",
                    color=color,
                    lw=1.0,
                    label=f"{curve}, {middle}",
                )
            if {f"{curve}_q1", f"{curve}_q3"} <= {*records}:
                panel.fill_between(
                    positions,
                    records[f"{curve}_q1"],
                    records[f"{curve}_q3"],
                    color=color,
                    alpha=0.15,
                    lw=0,
                )
            fact = OF_TREES.get(curve)
            if fact is not None and hasattr(returned, fact):
                panel.plot(
                    positions[-1:],
                    getattr(returned, fact),
                    "*",
                    color=color,
                    ms=11,
                    mec="black",
                    label=f"{curve}, returned tree",
                    clip_on=False,
                )
        panel.set(ylabel=", ".join(shown), xlabel="")
        set_grid(panel, x)
    panel.set_xlabel(POSITION_LABELS[x])
    # All that is drawn is named below the lower panel.
    legend_below(panel, 3, [other for other in panels if other is not panel])
    return ax


def _panel_below(ax: Axes) -> Axes:
    """Return new axes in the lower part of the place of some axes."""
    place: Any = ax.get_subplotspec()
    figure: Any = ax.figure
    if place is None:
        box = ax.get_position()
        place = GridSpec(
            1, 1, figure, left=box.x0, bottom=box.y0, right=box.x1, top=box.y1
        )[0]
    upper, lower = place.subgridspec(2, 1, height_ratios=(5, 3), hspace=0.08)
    ax.set_subplotspec(upper)
    ax.tick_params(labelbottom=False)
    return figure.add_subplot(lower, sharex=ax)


def plot_learning_curves(
    histories: Mapping[str, Sequence[Any]],
    *,
    x: Position = "gen",
    chapter: str = "quality",
    ax: Axes | None = None,
) -> Axes:
    """Draw the best individuals of groups of runs: their median and a band of the quartiles.

    A run that ended early keeps its last value to the end of its group.

    Parameters
    ----------
    histories : mapping from str to sequence of histories
        The runs of each group, as `plot_learning_curve` takes them.
    x : {"gen", "seconds", "evaluations"}, default="gen"
        What runs along the axis; a curve begins where all its runs have a record.
    chapter : str, default="quality"
        Chapter of the logbook.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.
    """
    groups = {
        name: _aligned(name, group, x, f"{chapter}_best")
        for name, group in histories.items()
    }

    ax = axes_or_new(ax, (7.0, 4.5))
    for i, (name, values) in enumerate(groups.items(), len(ax.get_lines())):
        color = PALETTE[i % len(PALETTE)]
        ax.plot(
            values.median(axis=1),
            LINE_STYLES[i // len(PALETTE) % len(LINE_STYLES)],
            color=color,
            lw=1.8,
            label=f"{name} (n = {values.shape[1]})",
        )
        edges = values.quantile((0.25, 0.75), axis=1)
        ax.fill_between(values.index, *edges.to_numpy(), color=color, alpha=0.2, lw=0)
    ax.set(
        xlabel=POSITION_LABELS[x],
        ylabel=f"{chapter}, best (median and quartiles)",
    )
    set_grid(ax, x)
    legend_below(ax, min(4, len(groups)))
    return ax


def plot_lineage(history: Any, *, x: Position = "gen", ax: Axes | None = None) -> Axes:
    """Draw the shares of a population that descend from each kind of first individual.

    A seed that takes the population over is an area that fills the picture. The parameters are
    those of `plot_learning_curve`.
    """
    records = records_of(history, "history")
    positions = axis_positions(records, x)
    columns = [name for name in map(str, records) if name.startswith(f"{ORIGIN}_")]
    if not columns:
        raise ValueError(
            f"history has no chapter {ORIGIN!r}; it has {', '.join(map(str, records))}."
        )
    # What survives lies at the bottom, where areas are easiest to read.
    columns.sort(key=lambda name: -records[name].iloc[-1])
    ax = axes_or_new(ax, (7.0, 4.0))
    ax.stackplot(
        positions,
        records[columns].T,
        labels=[name.removeprefix(f"{ORIGIN}_") for name in columns],
        colors=list(islice(cycle(PALETTE), len(columns))),
        alpha=0.75,
        lw=0.0,
    )
    ax.set(xlabel=POSITION_LABELS[x], ylabel="share of the population", ylim=(0.0, 1.0))
    set_grid(ax, x)
    legend_below(ax, min(5, len(columns)))
    return ax


def records_of(history: Any, name: str) -> pd.DataFrame:
    """Return the records of a run as a table, whatever carries them."""
    for attribute in ("history_", "logbook"):
        history = getattr(history, attribute, history)
    records = to_frame(history) if hasattr(history, "chapters") else history
    check_kind(
        name,
        history,
        isinstance(records, pd.DataFrame),
        "are a logbook, a fitted estimator with history_, a Run, and a table of to_frame.",
    )
    if records.empty:
        raise ValueError(f"{name} has no records.")
    return records


def _column(records: pd.DataFrame, column: str, given: str) -> np.ndarray:
    if column not in records:
        raise ValueError(
            f"{given}: the history has no {column!r}; it has "
            f"{', '.join(map(str, records))}."
        )
    return records[column].to_numpy(dtype=np.float64)


def axis_positions(records: pd.DataFrame, x: str) -> np.ndarray:
    """Return where on the axis the records of a run stand."""
    column = _column(records, "nevals" if x == "evaluations" else x, f"x={x!r}")
    return np.cumsum(column) if x == "evaluations" else column


def _aligned(name: str, group: Any, x: str, column: str) -> pd.DataFrame:
    """Return the values of the runs of a group, by the positions of the records of all."""
    runs = []
    for i, history in enumerate(group):
        where = f"histories[{name!r}][{i}]"
        records = records_of(history, where)
        run = pd.Series(_column(records, column, where), axis_positions(records, x))
        runs.append(run[~run.index.duplicated(keep="last")])
    return pd.concat(runs, axis=1).sort_index().ffill().dropna()


def set_grid(ax: Axes, x: str) -> None:
    """Give axes of runs their grid and ticks."""
    ax.margins(x=0.01)
    draw_grid(ax)
    if x != "seconds":
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def plot_pareto(
    front_or_estimator: Any,
    *,
    held_out: Dataset | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the best quality for each complexity, on training rows and on held-out rows.

    Quality is what trees were evolved for: the accuracy or R² by default, of costs the mean cost a
    row. The complexity of a tree is the number of its leaves and terms. A step goes on to the
    right: no better tree of at most that complexity was met. The band beside the best quality on
    the held-out rows is one standard error wide. The ``tree_`` of an estimator has a ring.

    Where the fit has judged trees of several sizes on rows that it held out itself, triangles are
    what these lost, on an axis at the right unless both are of costs. A bar is one standard error
    of the difference to the chosen tree (`evotree.front.TreeChoice.judged`).

    Parameters
    ----------
    front_or_estimator : ParetoFront, or what carries one as ``pareto_front_`` or ``pareto_front``
        The trees.
    held_out : Dataset, optional
        Rows that the trees were not made on, in the same units.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.
    """
    front = front_or_estimator
    for attribute in ("pareto_front_", "pareto_front"):
        front = getattr(front, attribute, front)
    check_kind(
        "front_or_estimator",
        front,
        isinstance(front, ParetoFront | FittedFront),
        "are a ParetoFront, a fitted estimator with pareto_front_, and a Run.",
    )
    if len(front) == 0:
        raise ValueError("front_or_estimator has a front without members.")
    complexity = np.array([member.complexity for member in front])
    models = getattr(front, "models", None)
    measure, told = "quality", np.asarray
    if models:
        measure, told = models[0].measure, models[0].told
        objective = getattr(front_or_estimator, "objective_", None)
        if held_out is not None and held_out.objective is None:
            held_out = held_out.evolved_for(objective)
    curves = [
        (
            "training",
            told(np.array([member.quality for member in front])),
            PALETTE[0],
            "o",
        )
    ]

    ax = axes_or_new(ax, (6.5, 4.2))
    if held_out is not None:
        quality, standard_error = held_out_quality(front, held_out)
        curves.append(("held out", told(quality), PALETTE[3], "s"))
        best = int(quality.argmax())
        ax.axhspan(
            *sorted(told(quality[best] - np.array([standard_error[best], 0.0]))),
            color=tint(PALETTE[3]),
            alpha=0.5,
            lw=0,
            zorder=0,
            label="one standard error of the best",
        )
    for label, values, color, marker in curves:
        ax.plot(
            complexity,
            values,
            ds="steps-post",
            label=label,
            color=color,
            marker=marker,
            ms=4.5,
            lw=1.6,
        )
    tree = getattr(front_or_estimator, "tree_", None)
    # A tree may have been pruned or refined after its selection.
    if tree is not None and tree.complexity in complexity:
        chosen = int(np.searchsorted(complexity, tree.complexity))
        leaves = counted(tree.n_leaves, "leaf", "leaves")
        label = f"selected: {leaves}, {counted(tree.n_terms, 'term')}"
        qualities = [values[chosen] for _, values, _, _ in curves]
        _draw_rings(ax, [tree.complexity] * len(curves), qualities, label)
    ax.set(xlabel="complexity (leaves and terms)", ylabel=measure)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    heights = np.array([values for _, values, *_ in curves])
    others = heights[:, 1:] if len(front) > 2 else heights
    span = np.ptp(others)
    if others.min() - heights.min() > 3.0 * span:  # else the others lie in one line
        ax.set_ylim(others.min() - 0.25 * span, others.max() + 0.1 * span)
    draw_grid(ax)
    legend_below(ax, 2, _draw_judged(front, ax))
    return ax


def _draw_judged(front: ParetoFront | FittedFront, ax: Axes) -> list[Axes]:
    """Draw what trees of some sizes lost on the folds of the fit; return new axes for it."""
    choice = getattr(front, "choice", None)
    if choice is None:
        return []
    judged = front.to_frame().dropna(subset=["held_out_loss"])
    if len(judged) < 2:  # the chosen one alone
        return []
    of_costs = front.models[0].is_of_costs
    panel = ax if of_costs else ax.twinx()
    label = f"held-out {choice.loss_name}"
    panel.errorbar(
        judged["complexity"],
        judged["held_out_loss"],
        yerr=judged["held_out_loss_se"],
        fmt="^:",
        ms=5.5,
        lw=1.2,
        color=PALETTE[1],
        label=f"{label}, folds of the fit{'' if of_costs else ' (right)'}",
    )
    if of_costs:
        return []
    panel.set_ylabel(label)
    return [panel]


def _draw_rings(
    ax: Axes, at: Sequence[float], values: Sequence[float], label: str
) -> None:
    """Draw rings around points."""
    ax.scatter(at, values, s=110, fc="none", ec=INK, lw=1.4, zorder=4, label=label)


_DECADE = 10.0
_KIND_LABELS = {
    "tree": "first trees",
    "evolved": "evolved trees",
    "logistic": "logistic models as trees",
    "score": "scores",
    "linear": "models in leaves",
    "size": "best trees of a size",
}


def plot_choice(choice_or_estimator: Any, *, ax: Axes | None = None) -> Axes:
    """Draw what candidates lost on rows held out against their complexity.

    The complexity is the mean of leaves and terms over folds, on a logarithmic scale where they
    differ tenfold. A bar is one
    standard error of the difference to the chosen candidate, which has a ring. The half of the
    candidates that lose most is left out.

    Parameters
    ----------
    choice_or_estimator : TreeChoice, or what carries one as ``choice_``
        The candidates, as `evotree.front.TreeChoice` has them.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.
    """
    choice = getattr(choice_or_estimator, "choice_", choice_or_estimator)
    check_kind(
        "choice_or_estimator",
        choice,
        isinstance(choice, TreeChoice),
        "are a TreeChoice, and estimators whose fit compared candidates.",
    )
    table = (
        choice.to_frame()
        .sort_values("chosen", ascending=False, kind="stable")
        .drop_duplicates(["kind", "complexity", "loss"])
    )
    chosen = table[table["chosen"]].iloc[0]
    worst = max(table["loss"].median(), chosen["loss"])
    ax = axes_or_new(ax, (6.5, 4.2))
    for color, (kind, label) in zip(PALETTE, _KIND_LABELS.items(), strict=False):
        some = table[(table["kind"] == kind) & (table["loss"] <= worst)]
        if len(some):
            ax.errorbar(
                some["complexity"],
                some["loss"],
                yerr=some["standard_error"],
                fmt="o",
                ms=4.5,
                lw=1.0,
                color=color,
                label=label,
            )
    _draw_rings(ax, [chosen["complexity"]], [chosen["loss"]], f"chosen: {choice.size}")
    shown = table["complexity"][table["loss"] <= worst]
    if shown.max() > _DECADE * shown.min():  # else a logarithmic axis has one label
        use_log_scale(ax, shown)
    ax.set(
        xlabel="complexity (leaves and terms)", ylabel=f"held-out {choice.loss_name}"
    )
    draw_grid(ax)
    legend_below(ax, n_columns=2)
    return ax

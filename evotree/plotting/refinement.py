"""What the refinements of a run were worth: fitness gained against time spent."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from evotree.engine.history import REFINEMENT
from evotree.plotting.curves import records_of
from evotree.plotting.style import PALETTE, axes_or_new, legend_below

Cost: TypeAlias = Literal["seconds", "tried"]

COST_LABELS = {"seconds": "seconds spent on refinement", "tried": "individuals refined"}
FIELDS = ("tried", "improved", "gain", "seconds")
OUTLIER = 20.0  # times the median seconds of a generation


def plot_refinement(history: Any, *, x: Cost = "seconds", ax: Axes | None = None) -> Axes:
    """Draw the fitness that each kind of refinement has gained against what it has cost.

    The slope of a curve is its yield: fitness a second. One that becomes flat has nothing left to
    improve. The legend names the share of the individuals tried that became fitter. Where some
    generation took an operator 20 times as long as the median one, the axis of the seconds is
    logarithmic beyond 10 median generations, so that one slow operator does not hide the others.

    Parameters
    ----------
    history : Logbook, fitted estimator with ``history_``, Run or table of `to_frame`
        The run, with a chapter ``"refinement"`` whose fields are, for each operator o, ``o_tried``,
        ``o_improved``, ``o_gain`` (the sum) and ``o_seconds``.
    x : {"seconds", "tried"}, default="seconds"
        What runs along the axis.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    TypeError, ValueError
        If `history` holds no records, or none of refinements, or there is no such `x`.
    """
    if x not in COST_LABELS:
        raise ValueError(f"x={x!r}: allowed are {', '.join(map(repr, COST_LABELS))}.")
    totals = cumulated(records_of(history, "history"))
    ax = axes_or_new(ax, (6.5, 4.2))
    n_drawn = len(ax.get_lines()) // 2
    for i, (name, table) in enumerate(totals.items(), n_drawn):
        tried, improved, gain, seconds = table.iloc[-1]
        share = f"{100.0 * improved / tried:.0f} % of {tried:.0f}" if tried else "none tried"
        label = f"{name}: {share} improved, {seconds:.2g} s"
        color = PALETTE[i % len(PALETTE)]
        ax.plot(table[x], table["gain"], color=color, linewidth=1.8, label=label)
        ax.plot([table[x].iloc[-1]], [gain], "o", color=color, markersize=5.0, clip_on=False)
    ax.set(xlabel=COST_LABELS[x], ylabel="fitness gained, cumulated")
    steps = np.concatenate([np.diff(table["seconds"]) for table in totals.values()])
    steps = steps[steps > 0.0]
    if x == "seconds" and steps.size and steps.max() > OUTLIER * np.median(steps):
        ax.set_xscale("symlog", linthresh=10.0 * np.median(steps), linscale=2.0)
        ax.set_xlabel(f"{COST_LABELS[x]} (logarithmic scale)")
        ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlim(left=0.0)
    ax.set_ylim(bottom=0.0)
    if x == "tried":
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(alpha=0.25, linewidth=0.6)
    legend_below(ax, n_columns=min(2, len(totals)))
    return ax


def cumulated(records: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return what each kind of refinement has done up to every generation, from nothing."""
    prefix = f"{REFINEMENT}_"
    columns = [str(column) for column in records]
    names = [
        column.removeprefix(prefix).removesuffix("_tried")
        for column in columns
        if column.startswith(prefix) and column.endswith("_tried")
    ]
    if not names:
        raise ValueError(f"history has no chapter {REFINEMENT!r}; it has {', '.join(columns)}.")
    totals = {}
    for name in names:
        fields = {
            field: np.append(0.0, records[f"{prefix}{name}_{field}"].fillna(0.0).cumsum())
            for field in FIELDS
        }
        totals[name] = pd.DataFrame(fields)
    return dict(sorted(totals.items(), key=lambda item: -item[1]["gain"].iloc[-1]))

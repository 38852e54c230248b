"""Which seeds a population descends from, generation by generation."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from evotree.engine.history import ORIGIN
from evotree.plotting.curves import POSITION_LABELS, Position, finish, positions_of, records_of
from evotree.plotting.style import PALETTE, axes_or_new


def plot_lineage(history: Any, *, x: Position = "gen", ax: Axes | None = None) -> Axes:
    """Draw the shares of a population that descend from each kind of first individual.

    A seed that takes the population over is an area that fills the picture.

    Parameters
    ----------
    history : Logbook, fitted estimator with ``history_``, Run or table of `to_frame`
        The run.
    x : {"gen", "seconds", "evaluations"}, default="gen"
        What runs along the axis; evaluations are the cumulated ``nevals``.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    TypeError, ValueError
        If `history` holds no records, or none of origins.
    """
    records = records_of(history, "history")
    positions = positions_of(records, x)
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
        [records[name] for name in columns],
        labels=[name.removeprefix(f"{ORIGIN}_") for name in columns],
        colors=[PALETTE[i % len(PALETTE)] for i in range(len(columns))],
        alpha=0.75,
        linewidth=0.0,
    )
    ax.set(xlabel=POSITION_LABELS[x], ylabel="share of the population", ylim=(0.0, 1.0))
    finish(ax, x, n_columns=min(5, len(columns)))
    return ax

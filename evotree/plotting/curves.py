"""Learning curves: the records of one run, or of groups of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from evotree.engine.history import to_frame
from evotree.plotting.style import PALETTE, axes_or_new, legend_below

Position: TypeAlias = Literal["gen", "seconds", "evaluations"]

POSITION_LABELS = {"gen": "generation", "seconds": "seconds", "evaluations": "evaluations"}
LINE_STYLES = ("-", "--", "-.", ":")
SIZES = {"size": "size (nodes)", "terms": "terms", "complexity": "complexity"}
"""Chapters that count something, and what their axis is called."""
# Shares of the height that sizes and the other curves have, so that none covers another.
SIZE_BELOW, OTHERS_ABOVE = 0.30, 0.36


def plot_learning_curve(
    history: Any,
    *,
    x: Position = "gen",
    curves: Sequence[str] = ("fitness", "quality", "size"),
    ax: Axes | None = None,
    label: str | None = None,
) -> Axes:
    """Draw one run: the best individual and the population's mean.

    The first of the curves, and sizes, have a band of one standard deviation about the mean. It is
    cut where no value can be: at 0, for shares at 1, for the fitness at the best.

    Parameters
    ----------
    history : Logbook, fitted classifier with ``history_``, Evolution or table of `to_frame`
        The run.
    x : {"gen", "seconds", "evaluations"}, default="gen"
        What runs along the axis; evaluations are the cumulated ``nevals``.
    curves : sequence of str, default=("fitness", "quality", "size")
        Chapters of the logbook. Beside others, ``"size"``, ``"terms"`` and ``"complexity"`` are
        drawn below them, with an axis of their own on the right.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default. A second run on the same axes has other colours.
    label : str, optional
        Name of the run in the legend.

    Returns
    -------
    matplotlib Axes
        The left axes.

    Raises
    ------
    TypeError, ValueError
        If `history` holds no records, or lacks what `x` or `curves` names.
    """
    records = records_of(history, "history")
    positions = positions_of(records, x)
    curves = (curves,) if isinstance(curves, str) else tuple(curves)
    if not curves:
        raise ValueError("curves is empty: name at least one chapter of the history.")
    best = {curve: _column(records, f"{curve}_best", f"curves={curves!r}") for curve in curves}

    ax = axes_or_new(ax, (7.0, 4.5))
    others = [curve for curve in curves if curve not in SIZES]
    sizes = ", ".join(SIZES[curve] for curve in curves if curve in SIZES)
    right = _size_axes(ax, sizes) if others and sizes else ax
    n_drawn = len({*ax.get_lines(), *right.get_lines()}) // 2
    for i, curve in enumerate(curves):
        side = right if curve in SIZES else ax
        color = PALETTE[(n_drawn + i) % len(PALETTE)]
        name = f"{label}: {curve}" if label else curve
        name += " (right)" if side is not ax else ""
        side.plot(positions, best[curve], color=color, linewidth=1.8, label=f"{name}, best")
        if f"{curve}_mean" not in records:
            continue
        mean = records[f"{curve}_mean"].to_numpy(dtype=np.float64)
        has_band = f"{curve}_std" in records and (side is not ax or curve == curves[0])
        meaning = "mean ± std" if has_band else "mean"
        side.plot(positions, mean, "--", color=color, linewidth=0.9, label=f"{name}, {meaning}")
        if has_band:
            std = records[f"{curve}_std"].to_numpy(dtype=np.float64)
            low, high = _band(curve, best[curve], mean, std)
            side.fill_between(positions, low, high, color=color, alpha=0.12, lw=0)
    ax.set(xlabel=POSITION_LABELS[x], ylabel=", ".join(others) or sizes)
    if right is not ax:
        _stack(ax, right)
    finish(ax, x, n_columns=len(curves), others=[right] if right is not ax else [])
    return ax


def _band(
    curve: str, best: np.ndarray, mean: np.ndarray, std: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of one standard deviation about the mean that values can reach."""
    low, high = mean - std, mean + std
    values = np.concatenate([best, mean])
    if values.min() >= 0.0:
        low = np.maximum(low, 0.0)
        high = np.minimum(high, 1.0) if curve not in SIZES and values.max() <= 1.0 else high
    if curve == "fitness":
        high = np.minimum(high, np.maximum(best, mean))
    return low, high


def _stack(ax: Axes, right: Axes) -> None:
    """Put what two axes with one frame show above each other, each with ticks of its own part."""
    parts = ((ax, OTHERS_ABOVE, 1.0, False), (right, 0.0, SIZE_BELOW, True))
    for side, bottom, top, is_size in parts:
        low, high = (0.0 if is_size else side.dataLim.y0), side.dataLim.y1
        margin = 0.05 * (high - low) or 0.5
        high, low = high + margin, low - (0.0 if is_size else margin)
        height = (high - low) / (top - bottom)
        start = low - bottom * height
        ticks = np.asarray(MaxNLocator(4 if is_size else 6, integer=is_size).tick_values(low, high))
        side.set_yticks(ticks[(ticks >= low) & (ticks <= high)])
        side.set_ylim(start, start + height)
        side.yaxis.label.set_y((bottom + top) / 2)


def plot_learning_curves(
    histories: Mapping[str, Sequence[Any]],
    *,
    x: Position = "gen",
    chapter: str = "quality",
    field: str = "best",
    ax: Axes | None = None,
    quantiles: tuple[float, float] = (0.25, 0.75),
) -> Axes:
    """Draw groups of runs: for each group the median and a band between two quantiles.

    A run that ended early keeps its last value to the end of its group.

    Parameters
    ----------
    histories : mapping from str to sequence of histories
        The runs of each group, as `plot_learning_curve` takes them.
    x : {"gen", "seconds", "evaluations"}, default="gen"
        What runs along the axis; a curve begins where all its runs have a record.
    chapter : str, default="quality"
        Chapter of the logbook.
    field : str, default="best"
        Field of that chapter.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.
    quantiles : tuple of two floats in [0, 1], default=(0.25, 0.75)
        Limits of the band.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    TypeError, ValueError
        If `histories` has no groups or an empty one, if a run lacks what `x`, `chapter` and
        `field` name, or if the quantiles are not ascending within [0, 1].
    """
    low, high = quantiles
    if not 0.0 <= low <= high <= 1.0:
        raise ValueError(f"quantiles={quantiles!r}: allowed are two ascending shares in [0, 1].")
    if not isinstance(histories, Mapping):
        raise TypeError(
            f"histories is a {type(histories).__name__}: allowed is a mapping from names to runs."
        )
    if not histories:
        raise ValueError("histories is empty: give at least one group of runs.")
    column = f"{chapter}_{field}"
    groups = {name: _aligned(name, group, x, column) for name, group in histories.items()}

    ax = axes_or_new(ax, (7.0, 4.5))
    for i, (name, (positions, values)) in enumerate(groups.items(), len(ax.get_lines())):
        color = PALETTE[i % len(PALETTE)]
        style = LINE_STYLES[i // len(PALETTE) % len(LINE_STYLES)]
        label = f"{name} (n = {len(values)})"
        ax.plot(positions, np.median(values, axis=0), style, color=color, lw=1.8, label=label)
        lower, upper = np.quantile(values, (low, high), axis=0)
        ax.fill_between(positions, lower, upper, color=color, alpha=0.2, lw=0)
    band = f"median, {100 * low:g} to {100 * high:g} % band"
    ax.set(xlabel=POSITION_LABELS[x], ylabel=f"{chapter}, {field} ({band})")
    finish(ax, x, n_columns=min(4, len(groups)))
    return ax


def records_of(history: Any, name: str) -> pd.DataFrame:
    """Return the records of a run as a table, whatever carries them."""
    for attribute in ("history_", "logbook"):
        history = getattr(history, attribute, history)
    records = to_frame(history) if hasattr(history, "chapters") else history
    if not isinstance(records, pd.DataFrame):
        raise TypeError(
            f"{name} is a {type(history).__name__}: allowed are a logbook, a fitted classifier "
            "with history_, an Evolution, and a table made by to_frame."
        )
    if records.empty:
        raise ValueError(f"{name} has no records.")
    return records


def _column(records: pd.DataFrame, column: str, given: str) -> np.ndarray:
    if column not in records:
        raise ValueError(
            f"{given}: the history has no {column!r}; it has {', '.join(map(str, records))}."
        )
    return records[column].to_numpy(dtype=np.float64)


def positions_of(records: pd.DataFrame, x: str) -> np.ndarray:
    """Return where on the axis the records of a run stand."""
    if x not in POSITION_LABELS:
        raise ValueError(f"x={x!r}: allowed are {', '.join(POSITION_LABELS)}.")
    column = _column(records, "nevals" if x == "evaluations" else x, f"x={x!r}")
    return np.cumsum(column) if x == "evaluations" else column


def _aligned(name: str, group: Any, x: str, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of all records of a group, and each run's value there."""
    if not isinstance(group, Sequence) or hasattr(group, "chapters"):
        raise TypeError(
            f"histories[{name!r}] is a {type(group).__name__}: allowed is a sequence of runs."
        )
    if not group:
        raise ValueError(f"histories[{name!r}] is empty: give at least one run.")
    tables = [records_of(history, f"histories[{name!r}][{i}]") for i, history in enumerate(group)]
    positions = [positions_of(table, x) for table in tables]
    values = [_column(table, column, f"histories[{name!r}]") for table in tables]
    grid = np.unique(np.concatenate(positions))
    grid = grid[grid >= max(position[0] for position in positions)]
    runs = zip(positions, values, strict=True)
    return grid, np.stack([value[np.searchsorted(at, grid, "right") - 1] for at, value in runs])


def _size_axes(ax: Axes, text: str) -> Axes:
    """Return the right axes for sizes: those of an earlier run, or new ones."""
    for other in ax.get_shared_x_axes().get_siblings(ax):
        if other.get_label() == "size" and other.get_position().bounds == ax.get_position().bounds:
            return other
    twin = ax.twinx()
    twin.set(label="size", ylabel=text)
    return twin


def finish(ax: Axes, x: str, n_columns: int, others: Sequence[Axes] = ()) -> None:
    """Give axes of runs their grid, ticks and legend."""
    ax.margins(x=0.01)
    ax.grid(alpha=0.25, linewidth=0.6)
    if x != "seconds":
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_below(ax, n_columns, others)

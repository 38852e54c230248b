"""Pictures of learning curves, a small one for each data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from evotree.plotting import plot_learning_curves

_MOST_COLUMNS = 4
_SIZE = (3.4, 3.6)  # of the panels of a data set, in inches
_CHAPTERS = {"quality": ("quality, best tree", 0.02), "complexity": ("complexity, best tree", 2.0)}
"""Chapters of the histories, how their axes are called, and the least range that these show."""


def plot_curves_of_datasets(
    curves: Mapping[tuple[Any, ...], pd.DataFrame], datasets: Sequence[str], methods: Sequence[str]
) -> Figure | None:
    """Draw quality and complexity by generation, for each data set: medians and quartiles of fits.

    A run that ended early keeps its last values.

    Parameters
    ----------
    curves : mapping of tuple to DataFrame
        Learning curves of fits, by data set, method, fold and seed, as
        `evotree.experiments.store.read_curves` returns them.
    datasets : sequence of str
        Those that are drawn, in this order, if they have curves.
    methods : sequence of str
        All methods of the experiment: a method has the same colour wherever it is drawn. Those
        without curves of quality or complexity are left out.

    Returns
    -------
    matplotlib Figure or None
        Two panels for each data set; None where there is no curve.
    """
    groups: dict[str, dict[str, list[pd.DataFrame]]] = {dataset: {} for dataset in datasets}
    for (dataset, method, *_), curve in curves.items():
        has_chapter = any(f"{chapter}_best" in curve for chapter in _CHAPTERS)
        is_known = dataset in groups and method in methods
        if is_known and "gen" in curve and len(curve) and has_chapter:
            groups[dataset].setdefault(method, []).append(curve)
    groups = {dataset: histories for dataset, histories in groups.items() if histories}
    if not groups:
        return None
    n_columns = min(_MOST_COLUMNS, len(groups))
    n_rows = -(-len(groups) // n_columns)
    size = (max(_SIZE[0] * n_columns, 5.0), _SIZE[1] * n_rows + 0.6)
    figure = plt.figure(figsize=size, layout="constrained")
    places = figure.add_gridspec(n_rows, n_columns)
    handles: dict[str, Any] = {}
    for i, (dataset, histories) in enumerate(groups.items()):
        place = places[divmod(i, n_columns)].subgridspec(2, 1, hspace=0.06)
        upper = figure.add_subplot(place[0])
        lower = figure.add_subplot(place[1], sharex=upper)
        upper.tick_params(labelbottom=False)
        upper.set_title(dataset, fontsize="medium", parse_math=False)
        for ax, chapter in ((upper, "quality"), (lower, "complexity")):
            handles |= _draw_chapter(ax, histories, methods, chapter)
            label, least = _CHAPTERS[chapter]
            _widen(ax, least)
            ax.set_ylabel(label if i % n_columns == 0 else "", fontsize="small")
        upper.set_xlabel("")
        lower.set_xlabel("generation", fontsize="small")
    legend = figure.legend(
        [handles[name] for name in methods if name in handles],
        [name for name in methods if name in handles],
        loc="outside lower center",
        ncols=min(4, len(handles)),
        frameon=False,
        fontsize="small",
        title="median and quartiles over folds and seeds",
        title_fontsize="small",
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _draw_chapter(
    ax: Axes,
    histories: Mapping[str, Sequence[pd.DataFrame]],
    methods: Sequence[str],
    chapter: str,
) -> dict[str, Any]:
    """Draw one chapter of a data set's histories; return the lines by method."""
    lines = {}
    for method in methods:
        group = [one for one in histories.get(method, []) if f"{chapter}_best" in one]
        if not group:
            ax.plot([], [])  # keeps the colours of those that follow
            continue
        plot_learning_curves({method: group}, chapter=chapter, ax=ax)
        if legend := ax.get_legend():
            legend.remove()
        lines[method] = ax.get_lines()[-1]
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=chapter == "complexity"))
    ax.tick_params(labelsize="small")
    return lines


def _widen(ax: Axes, least: float) -> None:
    """Show a range of at least so much: the steps of a flat curve are no more than they are."""
    low, high = ax.get_ylim()
    if high - low < least or ax.dataLim.height == 0.0:
        middle = 0.5 * (low + high)
        ax.set_ylim(middle - 0.5 * least, middle + 0.5 * least)

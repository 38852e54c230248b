"""Why one row is predicted as it is."""

from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evotree.inspection.comparison import one_row
from evotree.paths import Explanation
from evotree.plotting.style import (
    INK,
    TERM_COLORS,
    axes_or_new,
    legend_below,
    short_name,
)
from evotree.words import check_kind, check_whole, short_number

BAR = 0.7
LINE_HEIGHT = 0.24  # thickness of a bar, in lines; height of a line, in inches
WIDTH = 7.0
GREY = "#888888"
HEADING_CHARACTERS = 100


# A term, drawn from one sum to the next one, and what it adds in words.
Bar: TypeAlias = tuple[str, float, float, str]


def plot_explanation(
    explanation: Any, row: Any = 0, *, max_terms: int = 6, ax: Axes | None = None
) -> Axes:
    """Draw the path of one row, from the root down to its leaf.

    Each split has its answer, and by how much the row is beyond its threshold, in the unit of the
    printed sum. A bar for each of its terms has what the value of the row adds to the sum, beside
    the mean of the training rows at the node, where the first bar begins; the last one ends where
    the row stands, at a diamond. Red bars speak for the answer, blue ones against it; the line is
    the threshold. Of a question of 0 or 1 the answer is all there is. A linear model of the leaf is
    drawn likewise below, in units of the target: red bars raise the prediction. Of classes it gives
    the score of the one that is predicted, of two its log-odds: red bars speak for it.

    Parameters
    ----------
    explanation : Explanation or fitted estimator
        What ``explain`` returns, or an estimator that has it.
    row : int or array-like of shape (n_columns,) or (1, n_columns), default=0
        The position of the row in an explanation; for an estimator the row itself.
    max_terms : int, at least 1, default=6
        Number of terms shown for each node, the most influential ones; the others share a bar.
    ax : matplotlib Axes, optional
        Where to draw; new ones of a fitting height by default.
    """
    check_whole("max_terms", max_terms, 1)
    if not isinstance(explanation, Explanation):
        check_kind(
            "explanation",
            explanation,
            hasattr(explanation, "explain"),
            "are what explain returns, and fitted estimators.",
        )
        explanation, row = explanation.explain(one_row("row", row)), 0
    if row not in range(len(explanation.rows)):
        raise ValueError(
            f"row={row!r}: allowed are positions from 0 to {len(explanation.rows) - 1}."
        )
    steps = _steps(explanation, int(row), max_terms)
    line = 1.0 / sum(1 + len(bars) for _, bars in steps)
    ax = axes_or_new(ax, (WIDTH, LINE_HEIGHT / line + 1.3))
    ax.set_axis_off()
    predicted = explanation.rows.iloc[int(row)].prediction
    ax.set_title(f"{_said(predicted)}, because", loc="left")
    top, splits = 1.0, None
    for heading, bars in steps:
        ax.text(
            0.0,
            top - line / 2,
            heading,
            transform=ax.transAxes,
            va="center",
            fontsize="small",
            fontweight="bold",
            color=INK,
            parse_math=False,
        )
        top -= line * (1 + len(bars))
        if not bars:
            continue
        is_leaf = heading == steps[-1][0]
        place = (0.0, top, 1.0, line * len(bars))
        panel = ax.inset_axes(place, sharex=None if is_leaf else splits)
        _draw_bars(panel, bars)
        if is_leaf:
            panel.set_xlabel(
                "what the linear model of the leaf gives", fontsize="small"
            )
        else:
            splits = panel
            panel.axvline(0.0, color=INK, linewidth=1.2, zorder=2)
            panel.xaxis.set_visible(False)
            panel.spines["bottom"].set_visible(False)
    if ax.child_axes:
        labels = ("speaks for it", "against it")
        if steps[-1][1] and _is_number(predicted):
            labels = ("for it, or raises it", "against it, or lowers it")
        for is_above, label in zip((True, False), labels, strict=True):
            ax.plot([], [], "s", color=TERM_COLORS[is_above], label=label)
        ax.plot([], [], "|", color=GREY, markersize=11.0, mew=2.0, label="mean row")
        ax.plot([], [], "D", color=INK, markersize=5.0, label="this row")
        legend_below(ax, n_columns=4)
    return ax


def _steps(
    explanation: Explanation, row: int, max_terms: int
) -> list[tuple[str, list[Bar]]]:
    """Return headings and bars of the nodes of the path of a row, the leaf last."""
    terms = explanation.terms[explanation.terms.row == row]
    of_row = explanation.rows.iloc[row]
    steps = []
    for _, part in terms[terms.side != "leaf"].groupby("step"):
        first = part.iloc[0]
        # Of a question of 0 or 1 the answer is all there is.
        is_sum = any(sign in first.split for sign in "<>")
        by = (
            f", by {_signed_number(abs(first.total * first.unit), 3)}" if is_sum else ""
        )
        split = first.split.replace("<=", "≤").replace(">=", "≥").replace(" -", " −")
        heading = f"[{first.node}]  {first.side}{by}: {split}"
        if len(heading) > HEADING_CHARACTERS:
            heading = f"{heading[: HEADING_CHARACTERS - 1]}…"
        steps.append((heading, _bars(part, max_terms) if is_sum else []))
    model = terms[terms.side == "leaf"]
    predicted = of_row.prediction
    heading = f"[{of_row.leaf}]  predicts {_said(predicted)}"
    if _is_number(predicted) and len(model):
        line = model.total.iloc[0]
        if not np.isclose(line, predicted):
            heading += f", its bound; the line gives {_signed_number(line)}"
    return [*steps, (heading, _bars(model, max_terms) if len(model) else [])]


def _is_number(predicted: Any) -> bool:
    return isinstance(predicted, float | np.floating)


def _said(predicted: Any) -> str:
    """Return what is predicted in words."""
    return _signed_number(predicted) if _is_number(predicted) else str(predicted)


def _bars(part: pd.DataFrame, max_terms: int) -> list[Bar]:
    """Return the bars of a node, the one of all terms that are not shown last."""
    first = part.iloc[0]
    # To the right is what speaks for the answer.
    sign = -1.0 if first.side == "yes" else 1.0
    added = part.contribution.to_numpy()
    if len(part) > max_terms:
        added = np.append(added[:max_terms], added[max_terms:].sum())
    sums = sign * (first.centre + np.append(0.0, added.cumsum()))
    labels = [
        f"{short_name(term.feature)} = {_signed_number(term.value)}"
        for term in part[:max_terms].itertuples()
    ]
    labels += [f"(+{len(part) - max_terms} more)"] * (len(part) > max_terms)
    texts = [_signed_number(one, 3, "+") for one in added * first.unit]
    return list(zip(labels, sums[:-1], sums[1:], texts, strict=True))


def _draw_bars(panel: Axes, bars: list[Bar]) -> None:
    """Draw the bars of a node, where the mean of its rows stands, and where the row does."""
    labels, begins, stops, texts = zip(*bars, strict=True)
    places = range(len(bars))
    lengths = np.subtract(stops, begins)
    colors = [TERM_COLORS[length > 0.0] for length in lengths.tolist()]
    panel.barh(places, lengths, BAR, begins, color=colors, zorder=3)
    panel.vlines(begins[1:], places[:-1], places[1:], GREY, lw=0.6)
    for place, begin, stop, text in zip(places, begins, stops, texts, strict=True):
        panel.annotate(
            text,
            (max(begin, stop), place),
            textcoords="offset points",
            xytext=(6.0, 0.0),
            va="center",
            fontsize="x-small",
            color=INK,
            zorder=5,
        )
    panel.plot(begins[0], 0, "|", color=GREY, markersize=13.0, mew=2.0, zorder=4)
    panel.plot(stops[-1], places[-1], "D", color=INK, markersize=5.0, zorder=4)
    panel.set_yticks(places, labels, fontsize="small", parse_math=False)
    panel.tick_params(axis="y", length=0)
    panel.set_ylim(len(bars) - 0.5, -0.5)
    panel.spines[["left", "right", "top"]].set_visible(False)
    panel.use_sticky_edges = False  # the first bar may begin at the far end
    panel.margins(x=0.06)


def _signed_number(value: float, digits: int = 4, plus: str = "") -> str:
    """Write a number in a few digits, with the sign that belongs beside letters."""
    text = short_number(value, digits).replace("-", "−")
    return f"{plus}{text}" if value > 0.0 else text

"""What each column adds to a split, or to the model of a leaf: one small panel a column."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evotree.fitted import Fitted, fitted_of
from evotree.plotting.style import (
    INK,
    PALETTE,
    axes_or_new,
    draw_grid,
    legend_below,
    short_name,
)
from evotree.schema import MISSING, Column, NumericColumn
from evotree.tables.columns import encode_in_order
from evotree.words import check_whole

_ACROSS = 3  # panels side by side
_PANEL = (2.4, 1.9)  # inches
_LINE_POINTS = 201


def plot_shapes(
    estimator: Any,
    X: Any = None,
    *,
    node: int | None = None,
    max_columns: int = 9,
    ax: Axes | None = None,
) -> Axes:
    """Draw what each column adds to a split, or to the linear model of a leaf.

    A column has one line, the sum of its terms, such as ``age``, ``age above 52`` and ``log(age)``,
    over the range of the training rows; that of categories has a point for each level. 0 is what
    the mean of the training rows at the node adds. Of a split the answer is no where the sum of
    all columns is high. In a leaf each of several outputs, or of the scores of classes, has a line;
    of two classes it is that of the log-odds.

    Parameters
    ----------
    estimator : fitted estimator of one tree
        The estimator.
    X : array-like of shape (n_samples, n_columns), optional
        Rows, such as those of the fit, whose numbers are ticks below the lines.
    node : int, optional
        The split or leaf, as ``apply`` counts; by default the first whose columns bend,
        else the first that has terms.
    max_columns : int, at least 1, default=9
        How many columns to show, at most, those first that move the sum most.
    ax : matplotlib Axes, optional
        Where to draw the panels, ``ax.child_axes``; new ones of a fitting size by default.

    Examples
    --------
    >>> from evotree.plotting import plot_shapes
    >>> plot_shapes(model, X)  # doctest: +SKIP
    """
    check_whole("max_columns", max_columns, 1)
    fitted = fitted_of(estimator, parameter="estimator")
    if fitted.training is None:
        raise ValueError(
            "estimator has no summary of training rows: allowed are fitted estimators of one tree."
        )
    fitted = fitted.scores or fitted
    has_feature = np.any([one.factors for one in fitted.each], axis=0)
    used = np.flatnonzero(has_feature.any(axis=1))
    bent = np.flatnonzero(has_feature[:, list(fitted.schema.bends)].any(axis=1))
    if node is None and used.size:
        node = int((bent if bent.size else used)[0])
    if node is None or isinstance(node, bool) or node not in used:
        raise ValueError(
            f"node={node!r}: allowed are nodes of tree_ with terms, "
            f"{', '.join(map(str, used)) or 'of which there are none'}."
        )
    shown = column_lines(fitted, node)[:max_columns]
    across = min(_ACROSS, len(shown))
    down = -(-len(shown) // across)
    ax = axes_or_new(ax, (_PANEL[0] * across + 0.8, _PANEL[1] * down + 0.6))
    ax.set_axis_off()
    ax.set_title(f"what columns add to [{node}]", size=9)
    table = None if X is None else estimator._cells(X)
    first: Axes | None = None
    for at, (c, cells, values) in enumerate(shown):
        left, top = (at % across) / across, 1.0 - (at // across) / down
        place = (left + 0.08 / across, top - 0.72 / down, 0.88 / across, 0.68 / down)
        panel = ax.inset_axes(place, sharey=first)
        first = first or panel
        column = fitted.schema[c]
        rows = None if table is None else table.iloc[:, c]
        _draw_panel(panel, column, cells, values, rows)
        panel.set_xlabel(short_name(column.name), size="small", parse_math=False)
        panel.tick_params(labelsize="x-small", labelleft=at % across == 0)
    assert first is not None
    if len(fitted.each) > 1 and not fitted.is_split(node):
        lines = first.get_lines()[1:]  # after that at 0
        for line, target in zip(lines, fitted.targets, strict=False):
            line.set_label(short_name(target))
        legend_below(ax, n_columns=across, others=[first])
    return ax


def column_lines(
    fitted: Fitted, node: int, n_points: int = _LINE_POINTS
) -> list[tuple[int, list[Any], np.ndarray]]:
    """Return the columns that a node uses, their cells, and what they add to each output.

    A split adds the same to all outputs: its columns have one line. Those columns come first that
    move the sum most.
    """
    column_of, training = fitted.schema.column_of, fitted.training
    assert training is not None
    outputs = fitted.each[:1] if fitted.is_split(node) else fitted.each
    factors = np.column_stack([one.factors[node] for one in outputs])
    found: list[tuple[int, list[Any], np.ndarray]] = []
    for c in np.unique(column_of[factors.any(axis=1)]).tolist():
        column, of = fitted.schema[c], np.flatnonzero(column_of == c)
        if isinstance(column, NumericColumn):
            ends = training.lowest[of[0]], training.highest[of[0]]
            knots = [one.knot for one in column.bends if ends[0] < one.knot < ends[1]]
            cells = np.unique([*np.linspace(*ends, n_points), *knots]).tolist()
        else:
            cells = list(column.known)
        table = pd.DataFrame({column.name: pd.Series(cells, dtype=object)})
        features = encode_in_order([column], table)
        found.append((c, cells, (features - training.means[node, of]) @ factors[of]))
    return sorted(found, key=lambda line: -np.ptp(line[2], axis=0).max())


def _draw_panel(
    panel: Axes, column: Column, cells: list[Any], values: np.ndarray, rows: Any
) -> None:
    """Draw the lines of a column, or the points of its levels, and the numbers of rows."""
    draw_grid(panel)
    panel.axhline(0.0, color=INK, linewidth=0.6)
    is_number = isinstance(column, NumericColumn)
    places = cells if is_number else np.arange(len(cells))
    for color, line in zip(np.resize(PALETTE, values.shape[1]), values.T, strict=True):
        panel.plot(places, line, "-" if is_number else "o", color=color)
    if not is_number:
        labels = [MISSING if level is None else short_name(level) for level in cells]
        panel.set_xticks(places, labels, rotation=30, parse_math=False)
    elif rows is not None:
        numbers = rows.dropna().to_numpy(dtype=np.float64)
        panel.plot(
            numbers,
            np.zeros(len(numbers)),
            "|",
            color=INK,
            alpha=0.3,
            markersize=5.0,
            transform=panel.get_xaxis_transform(),
        )

"""Pictures of trees: boxes and lines, and decision regions over two features.

The layout of boxes is made in points at a font size of 10, from the measures of the texts; axes are
then given limits, and texts a font size, that make both fit.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_hex
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch
from matplotlib.textpath import text_to_path
from sklearn.utils import check_array, check_consistent_length

from evotree.fitted import Fitted, fitted_of, tree_of
from evotree.plotting.style import (
    INK,
    MARKERS,
    PALETTE,
    TERM_COLORS,
    axes_or_new,
    class_colors,
    legend_below,
    short_name,
    tint,
)
from evotree.tables.frames import by_row, read_labels
from evotree.texts import Wording, missing_lines, note_lines, score_lines
from evotree.tree import ObliqueTree, node_depths, sizes_of_kept
from evotree.words import check_whole, counted, fold

FONT = 10.0
LINE_HEIGHT = 13.0
PADDING = 9.0
GAP = 12.0
ROW_GAP = 34.0
NOTE = 0.8  # size of the font of a node's number and rows, to that of its text
BAR_WIDTH = 54.0
SURVIVAL_HEIGHT = 30.0
# A bar shows the class shares of a leaf, or a term.
BAR_HEIGHT = 6.0
MOST_SHARES = 3
MAX_LEAVES, UNFOLDED_LEAVES = 1000, 24
# A small tree in large axes is drawn no larger.
LARGEST_SCALE = 1.2
LONGEST_FIGURE_SIDE = 60.0 * 72.0  # in points
TITLE = 0.35  # inches left above a new picture
VALUE_COLORS = LinearSegmentedColormap.from_list("values", ["#D9EAF4", PALETTE[0]])


class Box(NamedTuple):
    """A node's box: its measures in points at a font size of `FONT`."""

    centre: float
    top: float
    width: float
    height: float
    below: float  # height of the bar below the text


def plot_tree(
    tree_or_classifier: Any,
    *,
    ax: Axes | None = None,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    max_terms: int = 6,
    max_depth: int | None = None,
    decimals: int | None = None,
) -> Axes:
    """Draw a tree: splits in boxes, leaves in the colours of their classes.

    A split is the inequality of `evotree.export.export_text`, its most influential term first and
    with a weight of 1. Each node has the number that ``apply`` and ``decision_path`` give, and its
    training rows; each leaf has its class, what a row costs there where trees were evolved for
    costs, and a bar of its class shares, in the order of its text; in regression it has the mean of
    its rows. What stands for missing cells is written below the tree. A leaf with
    a linear model has its sum and bounds, as `export_text` writes them, and a bar for each term, in
    the same order: its influence, the absolute coefficient times the spread of the feature, to the
    right where it raises the prediction, in red, and to the left where it lowers it, in blue. Bars
    of different leaves are on one scale. A leaf of times to an event has the curve of its training
    rows by the estimate of Kaplan and Meier, from 1 down to 0, all up to the same last time.

    Of a tree of more than 24 leaves the lower part is folded: so high up that no more than 24 boxes
    end a branch. Dashed boxes stand for subtrees, with the numbers of their leaves and terms, and
    what their training rows are; a line below says so. `max_depth` draws more, or less.

    Parameters
    ----------
    tree_or_classifier : ObliqueTree or fitted estimator with ``tree_``
        The tree.
    ax : matplotlib Axes, optional
        Where to draw, in a font that lets the tree fit; new ones of a fitting size by default.
    feature_names, class_names : sequence of str, optional
        By default those that the estimator knows, else ``x0``, ``x1``, ... and 0, 1, ...
    max_terms : int, at least 1, default=6
        Number of terms shown for each split, and for the model of a leaf, the most influential
        ones.
    max_depth : int, at least 0, or None, default=None
        Depth below which the tree is folded, if up to 1000 ends are left. By default the tree is
        folded where it has more than 24 leaves.
    decimals : int, at least 0, or None, default=None
        As for `evotree.export.export_text`; means of leaves have three by default.
    """
    check_whole("max_terms", max_terms, 1)
    fitted = fitted_of(
        tree_or_classifier, feature_names, class_names, parameter="tree_or_classifier"
    )
    tree = fitted.tree
    is_value = fitted.classes is None
    shown, drawn = _folded(tree, max_depth)
    notes = [fitted.note(k) for k in shown]
    words = Wording(fitted, decimals, max_terms, short_name, " ", is_printed=True)
    is_folded = drawn.is_leaf & ~tree.is_leaf[shown]
    texts = [
        "\n".join(_folded_lines(words, k)) if is_cut else _text(words, k)
        for k, is_cut in zip(shown, is_folded, strict=True)
    ]
    curves = fitted.curves or {}
    has_models = is_value and not fitted.targets and not curves
    terms = [
        fitted.model(k).terms[:max_terms] if has_models and not is_cut else ()
        for k, is_cut in zip(shown, is_folded, strict=True)
    ]
    n_bars = np.array([len(some) for some in terms]) if is_value else drawn.is_leaf
    bars = BAR_HEIGHT * n_bars
    bars[np.isin(shown, list(curves))] = SURVIVAL_HEIGHT
    last = max((curve.x[-1] for curve in curves.values()), default=0.0)
    boxes = _layout(drawn, notes, texts, bars)
    left, right, bottom = _ends(boxes)
    width = max(24, int((right - left) / (0.48 * NOTE * FONT)))
    last_lines = [
        part
        for line in (
            "dashed: folded subtrees, which max_depth=... draws" * any(is_folded),
            *score_lines(words),
            *missing_lines(fitted, width),
            *(line.removeprefix("# ") for line in note_lines(fitted, width)),
        )
        for part in fold(line.split(" "), width)
        if part
    ]
    below = LINE_HEIGHT * (len(last_lines) + 1) if last_lines else 0.0
    font = FONT if drawn.n_leaves <= 8 else 0.8 * FONT
    ax, font = _prepared_axes(ax, boxes, below, font)
    colors = class_colors(tree.values.shape[1])
    edges = _value_colors(tree) if is_value else [colors[c] for c in fitted.winners]
    influences = [
        fitted.influence(k).max() for k, some in zip(shown, terms, strict=True) if some
    ]
    largest = max(influences, default=0.0) or 1.0
    for i, (k, box) in enumerate(zip(shown, boxes, strict=True)):
        if drawn.subtree_size[i] > 1:
            _draw_box(ax, box, notes[i], texts[i], font, INK, "#F5F5F5")
            _draw_edge(ax, box, boxes[drawn.left(i)], "yes", font)
            _draw_edge(ax, box, boxes[drawn.right(i)], "no", font)
            continue
        style = "--" if is_folded[i] else "-"
        _draw_box(ax, box, notes[i], texts[i], font, edges[k], tint(edges[k]), style)
        if box.below:
            _draw_bars(_panel_in(ax, box), fitted, k, terms[i], largest, last)
    if last_lines:
        ax.text(
            left,
            bottom - below,
            "\n".join(last_lines),
            fontsize=0.95 * NOTE * font,  # hinting widens small fonts
            va="bottom",
            color=INK,
            parse_math=False,
        )
    return ax


def _folded(tree: ObliqueTree, max_depth: int | None) -> tuple[list[int], ObliqueTree]:
    """Return the nodes that are drawn, and the tree of them, in which only sizes are right."""
    depths = node_depths(tree.subtree_size)
    # How many ends there are where a tree is folded below each depth.
    n_ends = np.cumsum(np.bincount(depths[tree.is_leaf]))
    n_ends[:-1] += np.bincount(depths[~tree.is_leaf])
    if max_depth is None:
        most = UNFOLDED_LEAVES
        deepest = int(np.flatnonzero(n_ends <= max(most, n_ends.min()))[-1])
    else:
        check_whole("max_depth", max_depth, 0)
        deepest = min(max_depth, tree.depth)
        if (n := n_ends[deepest]) > MAX_LEAVES:
            raise ValueError(
                f"max_depth={max_depth}: a picture shows up to {MAX_LEAVES} ends of branches, and "
                f"these are {n}."
            )
    is_shown = depths <= deepest
    sizes = sizes_of_kept(is_shown, tree.subtree_size)
    return np.flatnonzero(is_shown).tolist(), tree.replaced(subtree_size=sizes)


def _folded_lines(words: Wording, k: int) -> Iterator[str]:
    """Write what stands in the place of a subtree."""
    fitted = words.fitted
    below = slice(k, k + int(fitted.tree.subtree_size[k]))
    n_leaves = int(fitted.tree.is_leaf[below].sum())
    n_terms = int(np.count_nonzero(fitted.tree.weights[below]))
    yield f"{n_leaves} leaves, {counted(n_terms, 'term')}"
    if fitted.classes is not None and fitted.scores is None:
        yield from itertools.chain.from_iterable(words.shares(k, MOST_SHARES))


def _draw_box(
    ax: Axes,
    box: Box,
    note: str,
    text: str,
    font: float,
    edge: str,
    face: Any,
    line: str = "-",
) -> None:
    """Draw a box, with a note at its top left and a text at its bottom, above a bar's place."""
    left, bottom = box.centre - box.width / 2, box.top - box.height
    ax.add_patch(
        FancyBboxPatch(
            (left, bottom),
            box.width,
            box.height,
            "round,pad=0,rounding_size=4",
            fc=face,
            ec=edge,
            lw=1.0,
            ls=line,
            zorder=2,
        )
    )
    ax.text(
        left + PADDING,
        box.top - PADDING / 2 - NOTE * LINE_HEIGHT / 2,
        note,
        fontsize=NOTE * font,
        color="#666666",
        va="center",
        parse_math=False,
        zorder=4,
    )
    ax.text(
        box.centre,
        bottom + box.below + PADDING / 2 + LINE_HEIGHT * (text.count("\n") + 1) / 2,
        text,
        fontsize=font,
        linespacing=1.25,
        color=INK,
        ha="center",
        va="center",
        parse_math=False,
        zorder=4,
    )


def _panel_in(ax: Axes, box: Box) -> Axes:
    """Return axes at the bottom of a box, as wide in all boxes."""
    left, bottom = box.centre - BAR_WIDTH / 2, box.top - box.height + PADDING / 2
    place = (left, bottom, BAR_WIDTH, box.below - 2.0)
    panel = ax.inset_axes(place, transform=ax.transData, zorder=3)
    panel.set_axis_off()
    return panel


def _draw_bars(
    panel: Axes,
    fitted: Fitted,
    k: int,
    terms: Sequence[tuple[float, int]],
    largest: float,
    last: float,
) -> None:
    """Draw class shares, or the curve of a leaf of times, or terms of a leaf's model.

    Curves are drawn up to the same last time. Terms are on the scale of the largest influence,
    those below 0 to the left.
    """
    curve = (fitted.curves or {}).get(k)
    if curve is not None:
        panel.step(curve.x, curve.y, where="post", color=INK, linewidth=1.2)
        panel.axhline(0.0, color=INK, linewidth=0.5)
        panel.set(xlim=(0.0, last), ylim=(0.0, 1.0))
    elif fitted.classes is None:
        influence = fitted.influence(k)
        signed = [np.copysign(influence[j], weight) for weight, j in terms]
        lengths = np.nan_to_num(np.array(signed) / largest)
        colors = [TERM_COLORS[length > 0.0] for length in lengths.tolist()]
        panel.barh(np.arange(len(terms)), lengths, color=colors)
        panel.set(xlim=(-1.0, 1.0), ylim=(len(terms) - 0.5, -0.5))
    else:
        shown = [c for c in fitted.class_order(k) if fitted.row_shares[k, c] > 0.0]
        shares = fitted.row_shares[k, shown]
        colors = [class_colors(len(fitted.classes))[c] for c in shown]
        panel.barh(
            np.zeros(len(shown)), shares, 1.0, shares.cumsum() - shares, color=colors
        )
        panel.set(xlim=(0.0, shares.sum() or 1.0), ylim=(-0.5, 0.5))


def _value_colors(tree: ObliqueTree) -> list[str]:
    """Return a colour for the value of each node, the paler the lower; one for several outputs."""
    if tree.values.shape[1] > 1:
        return [INK] * len(tree)
    values = tree.values[:, 0]
    low, high = values[tree.is_leaf].min(), values[tree.is_leaf].max()
    # The only value there is is the highest.
    shares = Normalize(low - (low == high), high, clip=True)(values)
    return [to_hex(tuple(color)) for color in VALUE_COLORS(shares)]


def _draw_edge(ax: Axes, parent: Box, child: Box, answer: str, font: float) -> None:
    x, y = (parent.centre, child.centre), (parent.top - parent.height, child.top)
    ax.plot(x, y, color=INK, linewidth=0.9, zorder=1)
    ax.text(
        sum(x) / 2,
        sum(y) / 2,
        answer,
        fontsize=0.9 * font,
        ha="center",
        va="center",
        color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        zorder=3,
    )


def _text(words: Wording, k: int) -> str:
    """Write a node, one term a line."""
    if not words.fitted.is_split(k):
        return "\n".join(words.leaf_lines(k, MOST_SHARES))
    split = words.fitted.split(k)
    shares = "\n".join(words.influences(k))
    below = [f"({shares})"] if shares else []
    return "\n".join([*words.split_lines(split), *below])


def _layout(
    tree: ObliqueTree, notes: list[str], texts: list[str], bars: np.ndarray
) -> list[Box]:
    """Place a box for each node, in points at a font size of `FONT`, with room for its bars."""
    # Leaves are evenly spaced in their order, parents are centred over their children. Boxes of one
    # depth share their top, and the internal ones their height, so that edges cross no box.
    width, height = np.array([_text_size(text) for text in texts]).T
    width = (
        np.maximum(width, [NOTE * _text_size(note)[0] for note in notes]) + 2 * PADDING
    )
    height += NOTE * LINE_HEIGHT + PADDING
    below = np.where(bars > 0.0, bars + 2.0, 0.0)
    width[below > 0.0] = np.maximum(width[below > 0.0], BAR_WIDTH + 2 * PADDING)
    height += below
    depths = node_depths(tree.subtree_size)
    leaf = tree.is_leaf
    centre, top = np.zeros((2, tree.n_nodes))
    centre[leaf] = np.arange(tree.n_leaves)
    for k in np.flatnonzero(~leaf)[::-1]:
        centre[k] = (centre[tree.left(k)] + centre[tree.right(k)]) / 2
    unit = 0.0
    row_top = 0.0
    for depth in range(tree.depth + 1):
        row = np.flatnonzero(depths == depth)
        inner = row[~leaf[row]]
        middles = (width[row[:-1]] + width[row[1:]]) / 2
        unit = max(unit, ((middles + GAP) / np.diff(centre[row])).max(initial=0.0))
        height[inner] = height[inner].max(initial=0.0)
        top[row] = row_top
        row_top -= height[row].max() + ROW_GAP
    return [
        Box(*box) for box in zip(unit * centre, top, width, height, below, strict=True)
    ]


def _text_size(text: str) -> tuple[float, float]:
    lines = text.split("\n")
    size = text_to_path.get_text_width_height_descent
    width = max(
        size(line, FontProperties(size=FONT), ismath=False)[0] for line in lines
    )
    return width, LINE_HEIGHT * len(lines)


def _ends(boxes: Sequence[Box]) -> tuple[float, float, float]:
    """Return how far boxes reach to the left, to the right and to the bottom."""
    return (
        min(box.centre - box.width / 2 for box in boxes),
        max(box.centre + box.width / 2 for box in boxes),
        min(box.top - box.height for box in boxes),
    )


def _prepared_axes(
    ax: Axes | None, boxes: Sequence[Box], below: float, font: float
) -> tuple[Axes, float]:
    """Return axes with limits around the boxes, and room below, and the size of the font."""
    # In given axes the font is as large as lets the boxes fit, with a limit.
    left, right, bottom = _ends(boxes)
    left, right, bottom = left - PADDING, right + PADDING, bottom - below - PADDING
    width, height = right - left, PADDING - bottom
    if ax is None:
        scale = min(font / FONT, LONGEST_FIGURE_SIDE / max(width, height))
        inches = max(scale * width / 72, 3.0), max(scale * height / 72, 1.2) + TITLE
        figure, ax = plt.subplots(figsize=inches)
        figure.subplots_adjust(0.0, 0.0, 1.0, 1.0 - TITLE / inches[1])
    else:
        ax = axes_or_new(ax, (1.0, 1.0))
        scale = LARGEST_SCALE
    points = np.array([ax.bbox.width, ax.bbox.height]) * 72 / ax.figure.dpi
    scale = min(scale, points[0] / width, points[1] / height)
    x, y = (left + right) / 2, (PADDING + bottom) / 2
    half = points / scale / 2
    ax.set(
        xlim=(x - half[0], x + half[0]), ylim=(y - half[1], y + half[1]), aspect="equal"
    )
    ax.set_axis_off()
    return ax, scale * FONT


# ---- decision regions ----------------------------------------------------------------------------

_CELLS = 300  # along each axis


def plot_decision_regions(
    tree_or_classifier: Any,
    X: Any,
    y: Any,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the regions of a tree over two features, with points and hyperplanes.

    A hyperplane, or the curve of a split of columns that bend, is drawn within the region of its
    own node only; the thicker, the nearer its node is to the root.

    Parameters
    ----------
    tree_or_classifier : ObliqueTree or fitted classifier with ``tree_`` and ``classes_``
        The tree, over the features as they are in `X`, or as the classifier encodes them.
    X : array-like of shape (n_samples, 2)
        Points, finite; they also set the limits. A classifier encodes them. Axes have its names of
        the features, those of a tree alone the names of columns of `X`, or ``x0`` and ``x1``.
    y : array-like of shape (n_samples,)
        Labels; for a tree alone positions of its classes.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.
    """
    tree_of(tree_or_classifier, "tree_or_classifier", TypeError)
    fitted = fitted_of(tree_or_classifier)
    if len(fitted.schema.read_by_code) != 2:
        raise ValueError(
            f"the tree has n_features={fitted.tree.n_features}: regions are drawn for 2 only; "
            "plot_tree draws any tree."
        )
    points = points_of(tree_or_classifier, X, y)
    ax = axes_or_new(ax, (6.0, 5.6))
    return draw_regions(ax, points, points.fitted.tree, [0, 1], n_cells=_CELLS)


class Points(NamedTuple):
    """Rows of a picture, as exported code reads them, with the codes of their classes."""

    fitted: Fitted
    cells: np.ndarray
    codes: np.ndarray
    labels: np.ndarray
    names: list[str]


def points_of(source: Any, X: Any, y: Any) -> Points:
    """Check points, which a classifier encodes, and their labels."""
    tree = tree_of(source, "tree_or_classifier", TypeError)
    fitted = fitted_of(source)
    schema = fitted.schema
    cells = check_array(
        getattr(source, "encode", np.asarray)(X), dtype=np.float64, input_name="X"
    )
    given = np.asarray(read_labels(by_row(y, X, "y")))
    check_consistent_length(cells, given)
    if cells.shape[1] != len(schema.read_by_code):
        raise ValueError(
            f"X has shape {cells.shape}: the tree has n_features={tree.n_features}."
        )
    labels = np.asarray(getattr(source, "classes_", range(tree.values.shape[1])))
    unknown = np.setdiff1d(given, labels)
    if unknown.size:
        raise ValueError(
            f"y has labels {unknown.tolist()}: allowed are {labels.tolist()}."
        )
    known = getattr(source, "feature_names_", getattr(X, "columns", fitted.features))
    names = [str(known[j]) for j in schema.read_by_code]
    return Points(fitted, cells, np.searchsorted(labels, given), labels, names)


def draw_regions(
    ax: Axes, points: Points, tree: ObliqueTree, shown: Sequence[int], n_cells: int
) -> Axes:
    """Draw regions over two features, where all others have their medians, and hyperplanes."""
    schema, colors = points.fitted.schema, class_colors(len(points.labels))
    low, high = points.cells[:, shown].min(axis=0), points.cells[:, shown].max(axis=0)
    margin = np.where(high > low, 0.04 * (high - low), 0.5)
    low, high = low - margin, high + margin
    centres = low + (np.arange(n_cells)[:, np.newaxis] + 0.5) / n_cells * (high - low)
    grid = np.tile(np.median(points.cells, axis=0), (n_cells**2, 1))
    grid[:, shown] = np.stack(np.meshgrid(*centres.T), axis=-1).reshape(-1, 2)
    rows = schema.with_bends(grid)
    predicted = tree.predict_label(rows)
    extent = (low[0], high[0], low[1], high[1])
    ax.imshow(
        np.array([tint(color) for color in colors])[predicted].reshape(
            n_cells, n_cells, 3
        ),
        extent=extent,
        origin="lower",
        aspect="auto",
        zorder=0,
    )
    area = float(np.clip(20000.0 / len(points.cells), 14.0, 36.0))
    for code, label in enumerate(points.labels):
        some = points.cells[points.codes == code][:, shown]
        ax.scatter(
            some[:, 0],
            some[:, 1],
            label=str(label),
            marker=MARKERS[code % len(MARKERS)],
            color=colors[code],
            s=area,
            edgecolors=INK,
            linewidths=0.35,
            zorder=2,
        )
    reached = tree.decision_path(rows)
    depths = node_depths(tree.subtree_size)
    for k in np.flatnonzero(tree.weights.any(axis=1)).tolist():
        away = rows @ tree.weights[k] - tree.thresholds[k]
        is_elsewhere = reached[:, [k]].toarray()[:, 0] == 0
        ax.contour(
            *centres.T,
            np.ma.array(away, mask=is_elsewhere).reshape(n_cells, n_cells),
            levels=[0.0],
            colors=INK,
            linewidths=max(2.6 - 0.5 * depths[k], 0.8),
            linestyles="-",
            zorder=3,
        )
    first, second = (points.names[j] for j in shown)
    ax.set(xlim=extent[:2], ylim=extent[2:], xlabel=first, ylabel=second)
    legend_below(ax, n_columns=min(8, len(points.labels)))
    return ax

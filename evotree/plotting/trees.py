"""A tree as boxes and lines.

The layout is made in points at a font size of 10, from the measures of the texts; axes are then
given limits, and texts a font size, that make both fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.font_manager import FontProperties
from matplotlib.image import AxesImage
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.textpath import text_to_path

from evotree.plotting.style import INK, check_axes, class_colors, names_or_known, tint, tree_of
from evotree.tree import ObliqueTree, node_depths

FONT, LINE_HEIGHT, PADDING, GAP, ROW_GAP = 10.0, 13.0, 9.0, 12.0, 40.0
NAME_LENGTH = 28
LARGEST_SCALE = 1.2  # of a small tree in large axes
LONGEST_SIDE = 60.0 * 72.0  # of a new figure, in points
TITLE = 0.35  # inches left above a new picture
IMAGE_SIDE = 64.0  # of an image of weights, the longer one, in points
# Blue below 0, red above; an odd number of shades, so that 0 is white.
IMAGE_COLORS = LinearSegmentedColormap.from_list(
    "weights", ["#053061", "#4393C3", "#FFFFFF", "#D6604D", "#67001F"], N=257
)


class Box(NamedTuple):
    """A node's box: its measures in points at a font size of `FONT`."""

    centre: float
    top: float
    width: float
    height: float


def plot_tree(
    tree_or_classifier: Any,
    *,
    ax: Axes | None = None,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    max_terms: int = 3,
    decimals: int = 2,
    image_shape: tuple[int, int] | None = None,
) -> Axes:
    """Draw a tree: hyperplanes in boxes, leaves in the colours of their classes.

    A hyperplane is scaled so that its largest weight is 1 or -1, which changes no decision.

    Where rows are images, hyperplanes are too: a red pixel takes a row to the right, a blue one to
    the left, a white one has no weight.

    Parameters
    ----------
    tree_or_classifier : ObliqueTree or fitted classifier with ``tree_`` and ``classes_``
        The tree.
    ax : matplotlib Axes, optional
        Where to draw, in a font that lets the tree fit; new ones of a fitting size by default.
    feature_names, class_names : sequence of str, optional
        By default those that the classifier knows, else ``x0``, ``x1``, ... and 0, 1, ...
    max_terms : int, at least 1, default=3
        Number of weights shown for each hyperplane, the largest ones.
    decimals : int, at least 0, default=2
        Digits after the point.
    image_shape : tuple of two int, optional
        Height and width of the images that the rows are, line by line. The weights of each
        hyperplane are then drawn as an image, not written, above the threshold.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    TypeError, ValueError
        If there is no tree, or a parameter does not fit it.
    """
    tree = tree_of(tree_or_classifier)
    for name, value, least in (("max_terms", max_terms, 1), ("decimals", decimals, 0)):
        if value < least:
            raise ValueError(f"{name}={value!r}: allowed are whole numbers from {least}.")
    image = _image_size(image_shape, tree.n_features)
    known = getattr(tree_or_classifier, "feature_names_in_", None)
    features = names_or_known("feature_names", feature_names, known, tree.n_features, prefix="x")
    labels = getattr(tree_or_classifier, "classes_", None)
    classes = names_or_known("class_names", class_names, labels, tree.values.shape[1])
    majority = tree.values.argmax(axis=1)
    texts = [
        f"{classes[majority[k]]}\n{tree.values[k].max():.{decimals}f}"
        if tree.subtree_size[k] == 1
        else _hyperplane_text(
            tree.weights[k],
            tree.thresholds[k],
            features,
            max_terms if image is None else 0,
            decimals,
        )
        for k in range(tree.n_nodes)
    ]
    boxes = _layout(tree, texts, image)
    check_axes(ax)
    ax, font = _prepared(ax, boxes, FONT if tree.n_leaves <= 8 else 0.8 * FONT)
    colors = class_colors(len(classes))
    for k, text in enumerate(texts):
        edge = INK if tree.subtree_size[k] > 1 else colors[majority[k]]
        face = "#F5F5F5" if tree.subtree_size[k] > 1 else tint(edge)
        above = image if tree.subtree_size[k] > 1 else None
        _draw_box(ax, boxes[k], text, font, edge, face, 0.0 if above is None else above[1])
        if above is not None and image_shape is not None:
            _draw_image(ax, boxes[k], tree.weights[k].reshape(image_shape), above)
        if tree.subtree_size[k] > 1:
            _draw_edge(ax, boxes[k], boxes[tree.left(k)], "yes", font)
            _draw_edge(ax, boxes[k], boxes[tree.right(k)], "no", font)
    return ax


def _draw_box(
    ax: Axes, box: Box, text: str, font: float, edge: str, face: Any, above: float = 0.0
) -> None:
    """Draw a box, and its text below some height that is left free."""
    corner = (box.centre - box.width / 2, box.top - box.height)
    style = "round,pad=0,rounding_size=4"
    ax.add_patch(
        FancyBboxPatch(corner, box.width, box.height, style, fc=face, ec=edge, lw=1.0, zorder=2)
    )
    middle = (box.centre, box.top - (box.height + above) / 2)
    ax.text(
        *middle,
        text,
        ha="center",
        va="center",
        fontsize=font,
        linespacing=1.25,
        color=INK,
        parse_math=False,
        zorder=4,
    )


def _image_size(image_shape: tuple[int, int] | None, n_features: int) -> tuple[float, float] | None:
    """Return the width and height of images in points, None where there are none."""
    if image_shape is None:
        return None
    shape = tuple(image_shape)
    if len(shape) != 2 or min(shape) < 1 or shape[0] * shape[1] != n_features:
        raise ValueError(
            f"image_shape={image_shape!r}: allowed are a height and a width whose product is "
            f"{n_features}, the number of features."
        )
    side = IMAGE_SIDE / max(shape)
    return side * shape[1], side * shape[0]


def _draw_image(ax: Axes, box: Box, weights: np.ndarray, size: tuple[float, float]) -> None:
    """Draw weights as an image at the top of a box."""
    largest = np.abs(weights).max() or 1.0
    left, top = box.centre - size[0] / 2, box.top - PADDING / 2
    # Unlike imshow, this leaves the limits and the aspect of the axes alone.
    picture = AxesImage(
        ax,
        cmap=IMAGE_COLORS,
        extent=(left, left + size[0], top - size[1], top),
        origin="upper",
        interpolation="nearest",
        zorder=3,
    )
    picture.set_data(weights)
    picture.set_clim(-largest, largest)
    ax.add_image(picture)
    picture.set_clip_path(ax.patch)
    ax.add_patch(
        Rectangle((left, top - size[1]), *size, fill=False, ec="#AAAAAA", lw=0.6, zorder=3.5)
    )


def _draw_edge(ax: Axes, parent: Box, child: Box, answer: str, font: float) -> None:
    x, y = (parent.centre, child.centre), (parent.top - parent.height, child.top)
    ax.plot(x, y, color=INK, linewidth=0.9, zorder=1)
    background = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    ax.text(
        (x[0] + x[1]) / 2,
        (y[0] + y[1]) / 2,
        answer,
        ha="center",
        va="center",
        fontsize=0.9 * font,
        color=INK,
        bbox=background,
        zorder=3,
    )


def _hyperplane_text(
    weights: np.ndarray, threshold: float, features: Sequence[str], max_terms: int, decimals: int
) -> str:
    """Write a hyperplane, one term a line, the largest weights first."""
    largest = np.abs(weights).max() or 1.0
    order = np.argsort(-np.abs(weights), kind="stable")[: np.count_nonzero(weights)]
    lines: list[str] = []
    for j in order[:max_terms]:
        name = features[j]
        if len(name) > NAME_LENGTH:
            name = f"{name[: NAME_LENGTH - 9]}…{name[-8:]}"
        sign = "− " if weights[j] < 0.0 else "+ " if lines else ""
        size = _number(abs(weights[j]) / largest, decimals)
        lines.append(f"{sign}{name}" if j == order[0] else f"{sign}{size} {name}")
    if len(order) > max_terms > 0:
        lines.append(f"… (+{len(order) - max_terms} more)")
    if max_terms == 0:
        return f"≤ {_number(threshold / largest, decimals)}"
    return "\n".join([*(lines or ["0"]), f"≤ {_number(threshold / largest, decimals)}"])


def _number(value: float, decimals: int) -> str:
    """Write a number with so many decimals, or with one digit if they all are 0."""
    text = f"{value + 0.0:.{decimals}f}"  # + 0.0 takes the sign off a zero
    if float(text) == 0.0 and value != 0.0:
        text = f"{value:.1g}"
    return text.replace("-", "−")


def _layout(
    tree: ObliqueTree, texts: Sequence[str], image: tuple[float, float] | None = None
) -> list[Box]:
    """Place a box for each node, in points at a font size of `FONT`.

    Leaves are evenly spaced in their order, parents are centred over their children. Boxes of one
    depth share their top, and the internal ones their height, so that edges cross no box.
    """
    width, height = np.array([_text_size(text) for text in texts]).T + [[2 * PADDING], [PADDING]]
    depths, leaf = node_depths(tree.subtree_size), tree.is_leaf
    if image is not None:
        width[~leaf] = np.maximum(width[~leaf], image[0] + PADDING)
        height[~leaf] += image[1]
    centre, top = np.zeros((2, tree.n_nodes))
    centre[leaf] = np.arange(tree.n_leaves)
    for k in np.flatnonzero(~leaf)[::-1]:
        centre[k] = (centre[tree.left(k)] + centre[tree.right(k)]) / 2
    unit, row_top = 0.0, 0.0
    for depth in range(tree.depth + 1):
        row = np.flatnonzero(depths == depth)
        inner, a, b = row[~leaf[row]], row[:-1], row[1:]
        needed = ((width[a] + width[b]) / 2 + GAP) / (centre[b] - centre[a])
        unit = max(unit, needed.max(initial=0.0))
        height[inner] = height[inner].max(initial=0.0)
        top[row] = row_top
        row_top -= height[row].max() + ROW_GAP
    return [Box(*box) for box in zip(unit * centre, top, width, height, strict=True)]


def _text_size(text: str) -> tuple[float, float]:
    font, lines = FontProperties(size=FONT), text.split("\n")
    size = text_to_path.get_text_width_height_descent
    return max(size(line, font, ismath=False)[0] for line in lines), LINE_HEIGHT * len(lines)


def _prepared(ax: Axes | None, boxes: Sequence[Box], font: float) -> tuple[Axes, float]:
    """Return axes with limits around the boxes, new ones if need be, and the size of the font.

    In given axes the font is as large as lets the boxes fit, with a limit.
    """
    left = min(box.centre - box.width / 2 for box in boxes) - PADDING
    right = max(box.centre + box.width / 2 for box in boxes) + PADDING
    bottom = min(box.top - box.height for box in boxes) - PADDING
    width, height = right - left, PADDING - bottom
    if ax is None:
        scale = min(font / FONT, LONGEST_SIDE / max(width, height))
        inches = max(scale * width / 72, 3.0), max(scale * height / 72, 1.2) + TITLE
        figure, ax = plt.subplots(figsize=inches)
        figure.subplots_adjust(0.0, 0.0, 1.0, 1.0 - TITLE / inches[1])
    else:
        scale = LARGEST_SCALE
    points = np.array([ax.bbox.width, ax.bbox.height]) * 72 / ax.figure.dpi
    scale = min(scale, points[0] / width, points[1] / height)
    x, y = (left + right) / 2, (PADDING + bottom) / 2
    half = points / scale / 2
    ax.set(xlim=(x - half[0], x + half[0]), ylim=(y - half[1], y + half[1]), aspect="equal")
    ax.set_axis_off()
    return ax, scale * FONT

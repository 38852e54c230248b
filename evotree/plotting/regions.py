"""Decision regions of a tree over two features, and its hyperplanes within them.

A node's region is a convex polygon: the picture's rectangle, cut by the hyperplanes above the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from evotree.plotting.style import (
    INK,
    axes_or_new,
    class_colors,
    legend_below,
    names_or_known,
    tint,
    tree_of,
)
from evotree.tree import ObliqueTree, node_depths

MARKERS = "os^DvPX*"


def plot_decision_regions(
    tree_or_classifier: Any,
    X: Any,
    y: Any,
    *,
    ax: Axes | None = None,
    resolution: int = 300,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    hyperplanes: bool = True,
) -> Axes:
    """Draw the regions of a tree over two features, with points and hyperplanes.

    A hyperplane is drawn within the region of its own node only; the thicker, the nearer its node
    is to the root.

    Parameters
    ----------
    tree_or_classifier : ObliqueTree or fitted classifier with ``tree_`` and ``classes_``
        The tree, over the features as they are in `X`, or as the classifier encodes them.
    X : array-like of shape (n_samples, 2)
        Points, finite; they also set the limits. A classifier encodes them.
    y : array-like of shape (n_samples,)
        Labels. Those of a tree alone are sorted to its classes if there are as many, and are else
        positions of its classes.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.
    resolution : int, at least 2, default=300
        Number of coloured cells along each axis.
    feature_names, class_names : sequence of str, optional
        By default those that the classifier or `X` knows, else ``x0``, ``x1``, and the labels.
    hyperplanes : bool, default=True
        Whether to draw the hyperplanes, as one LineCollection.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    TypeError, ValueError
        If there is no tree, if its features are not two, or if the shapes do not fit.
    """
    tree = tree_of(tree_or_classifier)
    if tree.n_features != 2:
        raise ValueError(
            f"tree_or_classifier has n_features={tree.n_features}: regions are drawn for 2 only."
        )
    if resolution < 2:
        raise ValueError(f"resolution={resolution!r}: allowed are whole numbers from 2.")
    points, codes, labels = check_points(tree_or_classifier, tree, X, y)
    known = getattr(tree_or_classifier, "feature_names_", getattr(X, "columns", None))
    features = names_or_known("feature_names", feature_names, known, 2, prefix="x")
    classes = names_or_known("class_names", class_names, labels, len(labels))
    colors = class_colors(len(labels))

    low, high = points.min(axis=0), points.max(axis=0)
    margin = np.where(high > low, 0.04 * (high - low), 0.5)
    low, high = low - margin, high + margin
    centres = (np.arange(resolution)[:, np.newaxis] + 0.5) / resolution * (high - low) + low
    grid = np.stack(np.meshgrid(*centres.T), axis=-1).reshape(-1, 2)
    majority = tree.predict_value(grid).argmax(axis=1).reshape(resolution, resolution)
    tints = np.array([tint(color) for color in colors])

    ax = axes_or_new(ax, (6.0, 5.6))
    extent = (low[0], high[0], low[1], high[1])
    ax.imshow(tints[majority], extent=extent, origin="lower", aspect="auto", zorder=0)
    area = float(np.clip(20000.0 / len(points), 14.0, 36.0))
    for code, name in enumerate(classes):
        rows = points[codes == code]
        ax.scatter(
            rows[:, 0],
            rows[:, 1],
            s=area,
            marker=MARKERS[code % len(MARKERS)],
            color=colors[code],
            edgecolors=INK,
            linewidths=0.35,
            label=name,
            zorder=2,
        )
    if hyperplanes:
        segments = _segments(tree, low, high)
        widths = np.maximum(2.6 - 0.5 * node_depths(tree.subtree_size)[list(segments)], 0.8)
        lines = LineCollection(list(segments.values()), colors=INK, linewidths=widths, zorder=3)
        ax.add_collection(lines, autolim=False)
    ax.set(xlim=extent[:2], ylim=extent[2:], xlabel=features[0], ylabel=features[1])
    legend_below(ax, n_columns=min(8, len(classes)))
    return ax


def check_points(
    source: Any, tree: ObliqueTree, X: Any, y: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the points as a tree reads them, their class codes and the labels of all classes."""
    encode = getattr(source, "encode", np.asarray)
    points, given = np.asarray(encode(X), dtype=np.float64), np.asarray(y)
    if points.ndim != 2 or points.shape[1] != tree.n_features or points.shape[0] == 0:
        raise ValueError(f"X has shape {points.shape}: allowed is (n_samples, {tree.n_features}).")
    if not np.isfinite(points).all():
        raise ValueError("X has values that are NaN or infinite.")
    if given.shape != points.shape[:1]:
        raise ValueError(f"y has shape {given.shape}: one label for each of {len(points)} rows.")
    n_classes = tree.values.shape[1]
    seen = np.unique(given)
    default = seen if len(seen) == n_classes else np.arange(n_classes)
    labels = np.asarray(getattr(source, "classes_", default))
    unknown = seen[~np.isin(seen, labels)]
    if unknown.size:
        raise ValueError(f"y has labels {unknown.tolist()}: allowed are {labels.tolist()}.")
    return points, np.searchsorted(labels, given), labels


def _segments(tree: ObliqueTree, low: np.ndarray, high: np.ndarray) -> dict[int, np.ndarray]:
    """Return the part of each hyperplane that lies in the region of its node, within a box."""
    x, y = np.array([low[0], high[0]]), np.array([low[1], high[1]])
    regions = {0: np.column_stack((x[[0, 1, 1, 0]], y[[0, 0, 1, 1]]))}
    segments = {}
    for k in np.flatnonzero(tree.subtree_size > 1).tolist():
        left, right, ends = _cut(regions[k], tree.weights[k], tree.thresholds[k])
        regions[tree.left(k)], regions[tree.right(k)] = left, right
        # A line along an edge of the region, or through a corner, divides nothing.
        if len(left) and len(right):
            segments[k] = ends
    return segments


def _cut(
    polygon: np.ndarray, weights: np.ndarray, threshold: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut a convex polygon by a line; return its two sides and the corners common to both."""
    side = polygon @ weights - threshold
    sign = np.sign(side)
    parts: tuple[list[np.ndarray], ...] = ([], [], [])
    for i, corner in enumerate(polygon):
        before = i - 1
        if sign[before] * sign[i] < 0:
            share = side[before] / (side[before] - side[i])
            crossing = polygon[before] + share * (corner - polygon[before])
            for part in parts:
                part.append(crossing)
        for part, belongs in zip(parts, (sign[i] <= 0, sign[i] >= 0, sign[i] == 0), strict=True):
            if belongs:
                part.append(corner)
    left, right, ends = (np.reshape(part, (-1, 2)) for part in parts)
    return _with_area(left), _with_area(right), ends


def _with_area(polygon: np.ndarray) -> np.ndarray:
    """Return a polygon, without corners if it is but an edge or a corner."""
    return polygon if len(polygon) > 2 else polygon[:0]

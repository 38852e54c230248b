"""Decision regions of a tree over two features, and its hyperplanes within them.

A node's region is convex: the picture's rectangle, cut by the hyperplanes above the node.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from evotree.description.named import tree_of
from evotree.plotting import style
from evotree.plotting.style import (
    INK,
    axes_or_new,
    class_colors,
    legend_below,
    names_or_known,
)
from evotree.tree import ObliqueTree, node_depths

MARKERS = "os^DvPX*"
EPSILON = 1e-9


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
    """
    tree = tree_of(tree_or_classifier, "tree_or_classifier", TypeError)
    if tree.n_features != 2:
        raise ValueError(
            f"the tree has n_features={tree.n_features}: regions are drawn for 2 only."
        )
    if resolution < 2:
        raise ValueError(
            f"resolution={resolution!r}: allowed are whole numbers from 2."
        )
    points, codes, labels = check_points(tree_or_classifier, tree, X, y)
    features = names_or_known(
        "feature_names",
        feature_names,
        getattr(tree_or_classifier, "feature_names_", getattr(X, "columns", None)),
        2,
        prefix="x",
    )
    classes = names_or_known("class_names", class_names, labels, len(labels))
    colors = class_colors(len(labels))

    low, high = points.min(axis=0), points.max(axis=0)
    margin = np.where(high > low, 0.04 * (high - low), 0.5)
    low, high = low - margin, high + margin
    centres = (np.arange(resolution)[:, np.newaxis] + 0.5) / resolution * (
        high - low
    ) + low
    grid = np.stack(np.meshgrid(*centres.T), axis=-1).reshape(-1, 2)
    majority = tree.predict_label(grid).reshape(resolution, resolution)
    tints = np.array([style.tint(color) for color in colors])

    ax = axes_or_new(ax, (6.0, 5.6))
    extent = (low[0], high[0], low[1], high[1])
    ax.imshow(tints[majority], extent=extent, origin="lower", aspect="auto", zorder=0)
    area = float(np.clip(20000.0 / len(points), 14.0, 36.0))
    for code, name in enumerate(classes):
        ax.scatter(
            points[codes == code, 0],
            points[codes == code, 1],
            label=name,
            marker=MARKERS[code % len(MARKERS)],
            color=colors[code],
            s=area,
            edgecolors=INK,
            linewidths=0.35,
            zorder=2,
        )
    if hyperplanes:
        segments = _segments(tree, low, high)
        widths = np.maximum(
            2.6 - 0.5 * node_depths(tree.subtree_size)[list(segments)], 0.8
        )
        ax.add_collection(
            LineCollection(
                list(segments.values()), colors=INK, linewidths=widths, zorder=3
            ),
            autolim=False,
        )
    ax.set(xlim=extent[:2], ylim=extent[2:], xlabel=features[0], ylabel=features[1])
    legend_below(ax, n_columns=min(8, len(classes)))
    return ax


def check_points(
    source: Any, tree: ObliqueTree, X: Any, y: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the points as a tree reads them, their class codes and the labels of all classes."""
    points = np.asarray(getattr(source, "encode", np.asarray)(X), dtype=np.float64)
    given = np.asarray(y)
    if points.ndim != 2 or points.shape[1] != tree.n_features or points.shape[0] == 0:
        raise ValueError(
            f"X has shape {points.shape}: allowed is (n_samples, {tree.n_features})."
        )
    if not np.isfinite(points).all():
        raise ValueError("X has values that are NaN or infinite.")
    if given.shape != points.shape[:1]:
        raise ValueError(
            f"y has shape {given.shape}: one label for each of {len(points)} rows."
        )
    n_classes = tree.values.shape[1]
    seen = np.unique(given)
    default = seen if len(seen) == n_classes else np.arange(n_classes)
    labels = np.asarray(getattr(source, "classes_", default))
    unknown = seen[~np.isin(seen, labels)]
    if unknown.size:
        raise ValueError(
            f"y has labels {unknown.tolist()}: allowed are {labels.tolist()}."
        )
    return points, np.searchsorted(labels, given), labels


def _segments(
    tree: ObliqueTree, low: np.ndarray, high: np.ndarray
) -> dict[int, np.ndarray]:
    """Return the part of each hyperplane that lies in the region of its node, within a box."""
    box = np.vstack((np.eye(2), -np.eye(2)))
    regions = {0: (box, np.concatenate((high, -low)))}
    segments = {}
    for k in np.flatnonzero(tree.subtree_size > 1).tolist():
        weights, threshold = tree.weights[k], tree.thresholds[k]
        normals, bounds = regions[k]
        for child, sign in ((tree.left(k), 1.0), (tree.right(k), -1.0)):
            halves = np.vstack((normals, sign * weights))
            regions[child] = halves, np.append(bounds, sign * threshold)
        if not weights.any():
            continue
        # The points of the line are foot + t along; each half-plane bounds t on one side.
        foot = threshold * weights / (weights @ weights)
        along = np.array([-weights[1], weights[0]]) / np.linalg.norm(weights)
        speed = normals @ along
        room = bounds - normals @ foot
        norms = np.linalg.norm(normals, axis=1)
        crosses = np.abs(speed) > EPSILON * norms
        ends = room[crosses] / speed[crosses]
        first = ends[speed[crosses] < 0.0].max()
        last = ends[speed[crosses] > 0.0].min()
        # A line along an edge of the region, or through a corner, divides nothing.
        reach = np.abs(high - low).max()
        is_inside = (room[~crosses] > EPSILON * reach * norms[~crosses]).all()
        if is_inside and last - first > EPSILON * reach:
            segments[k] = foot + np.outer((first, last), along)
    return segments

"""Decision regions of a tree over two features, its hyperplanes within them, and the film of a run.

A node's region is convex: the picture's rectangle, cut by the hyperplanes above the node.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle

from evotree.description.named import tree_of
from evotree.inspection.importances import importances
from evotree.plotting import style
from evotree.plotting.curves import plot_learning_curve, positions_of, records_of
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


_HELD = 5  # pictures that the last one stands for


def plot_evolution(
    classifier: Any,
    X: Any,
    y: Any,
    *,
    curves: Sequence[str] = ("quality", "complexity"),
    max_frames: int = 30,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
) -> FuncAnimation:
    """Make a film of a run: regions of the best tree beside the learning curve until then.

    There is a picture for each tree that became the best. Of more than two features, the two are
    shown that have the most influence in the last tree
    (`evotree.inspection.importances.importances`), and the regions are those where all others have
    their medians.

    Parameters
    ----------
    classifier : fitted classifier
        Its `callbacks` held `evotree.keep_best_trees`.
    X : array-like of shape (n_samples, n_features)
        Points; they also set the limits. The classifier encodes them.
    y : array-like of shape (n_samples,)
        Their labels.
    curves : sequence of str, default=("quality", "complexity")
        What `plot_learning_curve` shows.
    max_frames : int, at least 2, default=30
        Greatest number of pictures. Of more trees, some are left out, but not the last.
    feature_names, class_names : sequence of str, optional
        By default those that the classifier knows.

    Returns
    -------
    matplotlib.animation.FuncAnimation
        The film: ``save("film.gif", writer="pillow")`` writes it, ``to_jshtml()`` shows it in a
        notebook.

    Examples
    --------
    >>> from evotree import EvoTreeClassifier, keep_best_trees
    >>> model = EvoTreeClassifier(init=None, callbacks=[keep_best_trees])  # doctest: +SKIP
    >>> plot_evolution(model.fit(X, y), X, y).save("film.gif", writer="pillow")  # doctest: +SKIP
    """
    tree = tree_of(classifier, "tree_or_classifier", TypeError)
    trees = getattr(classifier, "best_trees_", {})
    if not trees:
        raise ValueError(
            "classifier has kept no trees of its generations: fit it with "
            "callbacks=[evotree.keep_best_trees]."
        )
    if not hasattr(classifier, "classes_"):
        raise TypeError(
            f"classifier is a {type(classifier).__name__}: regions are of classes."
        )
    if tree.n_features < 2:
        raise ValueError(
            f"classifier has n_features={tree.n_features}: allowed are 2 or more."
        )
    if max_frames < 2:
        raise ValueError(
            f"max_frames={max_frames!r}: allowed are whole numbers from 2."
        )
    points, codes, labels = check_points(classifier, tree, X, y)
    features = names_or_known(
        "feature_names",
        feature_names,
        getattr(classifier, "feature_names_", None),
        tree.n_features,
        prefix="x",
    )
    classes = names_or_known("class_names", class_names, labels, len(labels))
    records = records_of(classifier, "classifier")
    shown = np.sort(np.argsort(-importances(tree, "influence"), kind="stable")[:2])
    middle = np.median(points, axis=0)

    figure = plt.figure(figsize=(10.0, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(5, 6))

    def draw(gen: int) -> list[Axes]:
        best = trees[max(first for first in trees if first <= gen)]
        left.clear()
        plot_decision_regions(
            slice_of(best, shown, middle),
            points[:, shown],
            codes,
            ax=left,
            resolution=150,
            feature_names=[features[j] for j in shown],
            class_names=classes,
        )
        accuracy = 1.0 - float(best.label_losses(points, codes).mean())
        left.set_title(
            f"generation {gen}: {best.n_leaves} leaves, accuracy {accuracy:.3f}"
        )
        _hide_after(panels, gen)
        return [left, *panels]

    frames = _frames(list(trees), int(positions_of(records, "gen")[-1]), max_frames)
    panels: list[Axes] = []
    draw(frames[-1])  # the layout of all
    plot_learning_curve(records, curves=curves, ax=right)
    panels += [ax for ax in figure.axes if ax is not left]
    figure.draw_without_rendering()
    # It is the same for all, and takes longer than a picture.
    figure.set_layout_engine("none")
    return FuncAnimation(
        figure, draw, frames=[*frames, *frames[-1:] * _HELD], interval=250
    )


def _hide_after(panels: Sequence[Axes], gen: int) -> None:
    """Hide what curves show of later generations."""
    for panel in panels:
        begin = panel.get_xlim()[0]
        place = panel.get_xaxis_transform()
        seen = Rectangle((begin, 0.0), gen - begin, 1.0, transform=place)
        for artist in (*panel.get_lines(), *panel.collections):
            artist.set_clip_path(seen)


def slice_of(tree: ObliqueTree, shown: np.ndarray, row: np.ndarray) -> ObliqueTree:
    """Return what a tree is over some features, where the others have the values of a row."""
    others = np.setdiff1d(np.arange(tree.n_features), shown)
    models = tree.models
    if models is not None:
        models = models.with_each(
            [
                one._replace(
                    intercepts=one.intercepts
                    + one.coefficients[:, others] @ row[others],
                    coefficients=one.coefficients[:, shown],
                )
                for one in models.each
            ]
        )
    return tree.replaced(
        weights=tree.weights[:, shown],
        thresholds=tree.thresholds - tree.weights[:, others] @ row[others],
        spread=None if tree.spread is None else tree.spread[shown],
        models=models,
    )


def _frames(generations: list[int], end: int, max_frames: int) -> list[int]:
    """Return the generations that have a picture, evenly chosen, the last generation at the end."""
    before = [gen for gen in generations if gen < end]
    n_shown = min(len(before), max_frames - 1)
    chosen = np.linspace(0, len(before) - 1, n_shown).round().astype(int)
    return [*(before[k] for k in chosen), end]

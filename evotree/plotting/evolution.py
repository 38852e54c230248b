"""The film of a run: the decision regions of the best tree, and how well it did until then."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from evotree.description.named import tree_of
from evotree.inspection.importances import importances
from evotree.plotting.curves import plot_learning_curve, positions_of, records_of
from evotree.plotting.regions import check_points, plot_decision_regions
from evotree.plotting.style import names_or_known
from evotree.tree import ObliqueTree

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

"""The film of a run: regions of the best tree beside the learning curve until then."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from evotree.importances import importances
from evotree.plotting.curves import axis_positions, plot_learning_curve, records_of
from evotree.plotting.trees import draw_regions, points_of

_MAX_FRAMES = 30
_HELD = 5  # pictures that the last one stands for
_CELLS = 150  # along each axis


def plot_evolution(classifier: Any, X: Any, y: Any) -> FuncAnimation:
    """Make a film of a run: regions of the best tree beside the learning curve until then.

    There is a picture for each tree that became the best, or for up to 30 of them, the last one
    among them. Of more than two features, the two are shown that have the most influence in the
    last tree (`evotree.importances.importances`), where all others have their medians.

    Parameters
    ----------
    classifier : fitted classifier
        Its `callbacks` held `evotree.keep_best_trees`.
    X : array-like of shape (n_samples, n_features)
        Points; they also set the limits. The classifier encodes them.
    y : array-like of shape (n_samples,)
        Their labels.

    Returns
    -------
    matplotlib.animation.FuncAnimation
        The film: ``save("film.gif", writer="pillow")`` writes it, ``to_jshtml()`` shows it in a
        notebook.

    Examples
    --------
    >>> from evotree import EvoTreeClassifier, keep_best_trees
    >>> from evotree.experiments.problems import make_loans
    >>> X, y = make_loans(200, random_state=0)
    >>> model = EvoTreeClassifier(
    ...     size_penalty=0.01, term_penalty=0.001, max_generations=5, callbacks=[keep_best_trees]
    ... )
    >>> film = plot_evolution(model.fit(X, y), X, y)
    >>> page = film.to_jshtml()  # film.save("film.gif", writer="pillow") writes a file
    """
    trees = getattr(classifier, "best_trees_", {})
    if not trees or not hasattr(classifier, "classes_"):
        raise ValueError(
            "classifier has kept no trees of classes: fit one with "
            "callbacks=[evotree.keep_best_trees]."
        )
    points = points_of(classifier, X, y)
    if points.cells.shape[1] < 2:
        raise ValueError("classifier has n_features=1: allowed are 2 or more.")
    records = records_of(classifier, "classifier")
    frames = _frames(list(trees), int(axis_positions(records, "gen")[-1]))
    influence = importances(trees[max(trees)])
    influence = influence[points.fitted.schema.read_by_code]
    shown = sorted(np.argsort(-influence, kind="stable")[:2].tolist())
    figure, (left, right) = plt.subplots(
        1, 2, width_ratios=(5, 6), figsize=(10.0, 4.4), layout="constrained"
    )
    rows = points.fitted.schema.with_bends(points.cells)
    panels: list[Axes] = []

    def draw(gen: int) -> list[Axes]:
        best = trees[max(first for first in trees if first <= gen)]
        left.clear()
        draw_regions(left, points, best, shown, n_cells=_CELLS)
        accuracy = 1.0 - float(best.label_losses(rows, points.codes).mean())
        left.set_title(
            f"generation {gen}: {best.n_leaves} leaves, accuracy {accuracy:.3f}"
        )
        _show_until(panels, gen)
        return [left, *panels]

    draw(frames[-1])  # the layout of all
    plot_learning_curve(records, curves=("quality", "complexity"), ax=right)
    panels += [ax for ax in figure.axes if ax is not left]
    for panel in panels:
        panel.axvline(0.0, color="black", linewidth=1.5)  # the generation shown
    figure.draw_without_rendering()
    # It is the same for all, and takes longer than a picture.
    figure.set_layout_engine("none")
    held = [*frames, *frames[-1:] * _HELD]
    return FuncAnimation(figure, draw, frames=held, interval=250)


def _show_until(panels: Sequence[Axes], gen: int) -> None:
    """Move the line of a panel to a generation, and hide what curves show of later ones."""
    for panel in panels:
        begin = panel.get_xlim()[0]
        *curves, mark = panel.get_lines()
        mark.set_xdata([gen, gen])
        seen = Rectangle(
            (begin, 0.0), gen - begin, 1.0, transform=panel.get_xaxis_transform()
        )
        for artist in (*curves, *panel.collections):
            artist.set_clip_path(seen)


def _frames(generations: list[int], end: int) -> list[int]:
    """Return the generations that have a picture, evenly chosen, the last generation at the end."""
    before = np.array([gen for gen in generations if gen < end], dtype=int)
    n_shown = min(len(before), _MAX_FRAMES - 1)
    chosen = np.linspace(0, len(before) - 1, n_shown).round().astype(int)
    return [*before[chosen].tolist(), end]

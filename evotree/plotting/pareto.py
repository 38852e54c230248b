"""The picture of quality against complexity: what each leaf and term more is worth."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from evotree.dataset import Dataset
from evotree.engine.evolution import ParetoFront
from evotree.inspection.front import FittedFront, held_out_quality, select
from evotree.plotting.style import (
    INK,
    PALETTE,
    axes_or_new,
    draw_grid,
    legend_below,
    tint,
)
from evotree.tree import ObliqueTree, RegressionIndividual


def plot_pareto(
    front_or_estimator: Any,
    *,
    held_out: Dataset | None = None,
    selected: str | ObliqueTree | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the best quality for each complexity, on training rows and on held-out rows.

    The complexity of a tree is the number of its leaves and terms. A step goes on to the right: no
    better tree of at most that complexity was met. The band below the best quality on the held-out
    rows is one standard error wide.

    Parameters
    ----------
    front_or_estimator : ParetoFront, or what carries one as ``pareto_front_`` or ``pareto_front``
        The trees.
    held_out : Dataset, optional
        Rows that the trees were not made on, in the same units.
    selected : str or ObliqueTree, optional
        The tree to be marked: a rule of `evotree.inspection.front.select` that looks at the rows
        held out or at a bound, or a tree, of whose complexity the member is marked; by default
        the ``tree_`` of an estimator.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.
    """
    front = front_or_estimator
    for attribute in ("pareto_front_", "pareto_front"):
        front = getattr(front, attribute, front)
    if not isinstance(front, ParetoFront | FittedFront):
        kind = type(front).__name__
        raise TypeError(
            f"front_or_estimator is a {kind}: allowed are a ParetoFront, a fitted "
            "estimator with pareto_front_, and a Run."
        )
    if len(front) == 0:
        raise ValueError("front_or_estimator has a front without members.")
    complexity = np.array([member.complexity for member in front])
    curves = [
        ("training", np.array([member.quality for member in front]), PALETTE[0], "o")
    ]
    chosen, name = _chosen(front, front_or_estimator, selected, held_out)

    ax = axes_or_new(ax, (6.5, 4.2))
    if held_out is not None:
        quality, standard_error = held_out_quality(front, held_out)
        curves.append(("held out", quality, PALETTE[3], "s"))
    for label, values, color, marker in curves:
        ax.plot(
            complexity,
            values,
            ds="steps-post",
            label=label,
            color=color,
            marker=marker,
            ms=4.5,
            lw=1.6,
        )
    if held_out is not None:
        best = int(quality.argmax())
        ax.axhspan(
            quality[best] - standard_error[best],
            quality[best],
            color=tint(PALETTE[3]),
            alpha=0.5,
            lw=0,
            zorder=0,
            label="one standard error of the best",
        )
    if chosen is not None:
        tree = front[chosen]
        leaves = f"{tree.n_leaves} {'leaf' if tree.n_leaves == 1 else 'leaves'}"
        terms = f"{tree.n_terms} {'term' if tree.n_terms == 1 else 'terms'}"
        ax.scatter(
            [complexity[chosen]] * len(curves),
            [values[chosen] for _, values, _, _ in curves],
            s=110,
            fc="none",
            ec=INK,
            lw=1.4,
            zorder=4,
            label=f"{name}: {leaves}, {terms}",
        )
    is_regression = getattr(
        front, "is_regression", isinstance(front[0], RegressionIndividual)
    )
    ax.set(
        xlabel="complexity (leaves and terms)",
        ylabel="R²" if is_regression else "accuracy",
    )
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    _leave_out_the_stump(
        ax, int(complexity[0]), np.array([values for _, values, *_ in curves])
    )
    draw_grid(ax)
    legend_below(ax, n_columns=2)
    return ax


def _leave_out_the_stump(ax: Axes, complexity: int, curves: np.ndarray) -> None:
    """Cut the smallest tree off where it is so bad that the others could not be told apart."""
    if curves.shape[1] < 3:
        return
    worst = curves[:, 0].min()
    others = curves[:, 1:]
    span = others.max() - others.min()
    if others.min() - worst <= 3.0 * span:
        return
    ax.set_ylim(others.min() - 0.25 * span, others.max() + 0.1 * span)
    ax.text(
        complexity,
        others.min() - 0.2 * span,
        # Turned upright, the arrow points down.
        "← " + ", ".join(f"{value:.3g}" for value in curves[:, 0]),
        rotation=90,
        ha="center",
        va="bottom",
        fontsize="small",
        color=INK,
    )


def _chosen(
    front: ParetoFront | FittedFront,
    source: Any,
    selected: Any,
    held_out: Dataset | None,
) -> tuple[int | None, str]:
    """Return the position of the member to be marked, None without one, and what to call it."""
    tree = getattr(source, "tree_", None) if selected is None else selected
    name = "selected"
    if isinstance(tree, str):
        name = tree
        tree = select(front, tree, held_out=held_out)
    if tree is None:
        return None, name
    if not isinstance(tree, ObliqueTree):
        raise TypeError(
            f"selected is a {type(tree).__name__}: allowed are a rule and a tree."
        )
    complexities = [member.complexity for member in front]
    if tree.complexity in complexities:
        return complexities.index(tree.complexity), name
    if selected is None:  # a tree that was pruned or refined after its selection
        return None, name
    held = ", ".join(map(str, complexities))
    raise ValueError(
        f"selected is a tree of complexity {tree.complexity}: the front has trees of "
        f"{held}."
    )

"""Pictures of runs and of trees, drawn with matplotlib alone.

In: the records of runs (logbooks, or what carries one), trees, fitted estimators. Out: the Axes
that were drawn on, those given or new ones; of a film, matplotlib's animation. Nothing is shown or
saved; what was given is only read.
What cannot be drawn is a TypeError or a ValueError that names the parameter, and leaves no figure.
"""

from evotree.plotting.curves import (
    plot_choice,
    plot_learning_curve,
    plot_learning_curves,
    plot_lineage,
    plot_pareto,
)
from evotree.plotting.explanation import plot_explanation
from evotree.plotting.film import plot_evolution
from evotree.plotting.shapes import plot_shapes
from evotree.plotting.style import class_colors
from evotree.plotting.survival import plot_survival
from evotree.plotting.trees import plot_decision_regions, plot_tree

__all__ = [
    "class_colors",
    "plot_choice",
    "plot_decision_regions",
    "plot_evolution",
    "plot_explanation",
    "plot_learning_curve",
    "plot_learning_curves",
    "plot_lineage",
    "plot_pareto",
    "plot_shapes",
    "plot_survival",
    "plot_tree",
]

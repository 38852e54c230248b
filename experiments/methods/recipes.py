"""How the trees of the study of TAO are made: optimized, cut to fewer leaves, optimized again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin

from evotree.estimators import ObliqueTreeClassifier
from evotree.estimators.tao import TAOClassifier
from evotree.operators.initialization.resampling import blur
from evotree.operators.pruning.held_out import critical_alphas
from evotree.operators.pruning.penalized import kept_nodes, node_risk, prune_marked, weakest_links
from evotree.rng import make_streams

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual

STAGE_SWEEPS, MAX_SWEEPS = 4, 14
STAGE = ("l2", 0.02)
"""Penalty and C of the stages."""


@dataclass(frozen=True)
class Recipe:
    """How a tree is made: settings of `TAOClassifier`, and what is done around it.

    It is optimized with each of the falling `Cs` in turn, as along a path. Before, it is cut to so
    many `leaves`, weakest links first, stage by stage. Each training row has so many `copies` with
    `noise` of so many standard deviations, which share its weight.
    """

    Cs: tuple[float, ...]
    init: Any = "axis"
    depth: int = 14
    loss: str = "svm"
    penalty: str = "l2"
    scaling: str = "standard"
    leaves: tuple[int, ...] = ()
    copies: int = 0
    noise: float = 0.0


def start_tree(X: np.ndarray, y: np.ndarray, seed: int, recipe: Recipe) -> ClassifierMixin:
    """Grow the initial tree of a recipe, without optimizing it."""
    tree = ObliqueTreeClassifier(
        recipe.init,
        criterion="entropy",
        max_depth=recipe.depth,
        min_samples_split=5,
        scaling=recipe.scaling,
        random_state=seed,
    )
    return tree.fit(X, y)


def fit_recipe(X: np.ndarray, y: np.ndarray, seed: int, recipe: Recipe) -> ClassifierMixin:
    """Make the tree of a recipe."""
    model = TAOClassifier(
        recipe.init, depth=recipe.depth, loss=recipe.loss, scaling=recipe.scaling, random_state=seed
    )
    dataset = model._make_dataset(X, y, None, recipe.scaling)
    if recipe.copies:
        stream = make_streams(seed, 0, 1)[0]
        dataset = blur(dataset, recipe.noise, recipe.copies, stream)
    individual = model._first(dataset)

    def optimize(penalty: str, C: float, max_iter: int, monotone: bool = False) -> None:
        model.set_params(penalty=penalty, C=C, max_iter=max_iter)
        model.n_iter_ = model._optimize(individual, dataset, monotone)

    # As along a path, where C is another the first sweep takes the new tests at any rate.
    for k, n_leaves in enumerate(recipe.leaves):
        optimize(*STAGE, STAGE_SWEEPS, monotone=k > 0)
        if individual.n_leaves > n_leaves:
            cut_to(individual, dataset, n_leaves)
    if recipe.leaves:
        optimize(*STAGE, MAX_SWEEPS, monotone=True)
    for C in recipe.Cs:
        optimize(recipe.penalty, C, MAX_SWEEPS)
    model.tree_ = dataset.to_raw(individual.to_tree())
    return model


def cut_to(individual: Individual, dataset: Dataset, n_leaves: int) -> None:
    """Cut an individual to at most so many leaves, weakest links first."""
    size = individual.subtree_size
    collapse_at = weakest_links(node_risk(individual.counts, dataset.n_classes), size)
    for alpha in critical_alphas(collapse_at, size):
        marks = collapse_at <= alpha
        if kept_nodes(size, marks)[0].size < 2 * n_leaves:
            prune_marked(individual, dataset, marks)
            return

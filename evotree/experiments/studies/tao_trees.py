"""How the trees of the study of TAO are made: optimized, cut to fewer leaves, optimized again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from evotree.estimators import ObliqueTreeClassifier
from evotree.estimators.tao import TAOClassifier
from evotree.operators.initialization.resampling import blur
from evotree.operators.pruning.held_out import critical_alphas
from evotree.operators.pruning.penalized import (
    kept_nodes,
    node_risk,
    prune_marked,
    weakest_links,
)
from evotree.rng import make_streams

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual

STAGE_SWEEPS, MAX_SWEEPS = 4, 14


@dataclass(frozen=True)
class Recipe:
    """How a tree is made: settings of `TAOClassifier`, and what is done around it.

    Attributes
    ----------
    Cs : tuple of float
        Falling values of C; a tree is optimized with each in turn, as along a path.
    init : str or Splitter
        Grows the initial tree.
    depth : int
        To this depth.
    loss, penalty, scaling : str
        As for `TAOClassifier`.
    leaves : tuple of int
        Before, the tree is optimized and cut to so many leaves, weakest links first, stage by
        stage.
    stage_penalty : str
        Penalty of the stages.
    stage_C : float
        Their C.
    copies : int
        Each training row has so many copies with noise, which share its weight.
    noise : float
        The noise's standard deviation, in units of the features' own.
    """

    Cs: tuple[float, ...]
    init: Any = "axis"
    depth: int = 14
    loss: str = "svm"
    penalty: str = "l2"
    scaling: str = "standard"
    leaves: tuple[int, ...] = ()
    stage_penalty: str = "l2"
    stage_C: float = 0.02
    copies: int = 0
    noise: float = 0.0


def start_tree(recipe: Recipe, X: np.ndarray, y: np.ndarray, seed: int) -> ClassifierMixin:
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


def fit_recipe(recipe: Recipe, X: np.ndarray, y: np.ndarray, seed: int) -> ClassifierMixin:
    """Make the tree of a recipe.

    Parameters
    ----------
    recipe : Recipe
        How.
    X : ndarray of shape (n_samples, n_features)
        Training rows.
    y : ndarray of shape (n_samples,)
        Their labels.
    seed : int
        Seed.

    Returns
    -------
    TAOClassifier
        Fitted.
    """
    model = TAOClassifier(
        recipe.init,
        depth=recipe.depth,
        loss=recipe.loss,
        scaling=recipe.scaling,
        random_state=seed,
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
        optimize(recipe.stage_penalty, recipe.stage_C, STAGE_SWEEPS, monotone=k > 0)
        if individual.n_leaves > n_leaves:
            cut_to(individual, dataset, n_leaves)
    if recipe.leaves:
        optimize(recipe.stage_penalty, recipe.stage_C, MAX_SWEEPS, monotone=True)
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


class RecipeClassifier(ClassifierMixin, BaseEstimator):
    """The tree of a recipe as an estimator.

    Parameters
    ----------
    recipe : Recipe
        How the tree is made.
    is_start : bool, default=False
        Whether the initial tree is all.
    random_state : int, default=0
        Seed.
    """

    def __init__(self, recipe: Recipe, is_start: bool = False, random_state: int = 0) -> None:
        self.recipe = recipe
        self.is_start = is_start
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> RecipeClassifier:
        """Make the tree."""
        make = start_tree if self.is_start else fit_recipe
        self.model_ = make(self.recipe, X, y, self.random_state)
        self.classes_, self.tree_ = self.model_.classes_, self.model_.tree_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the classes of rows."""
        return self.model_.predict(X)

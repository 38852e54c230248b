"""Trees of a forest: small sparse trees that differ, since each has rows of its own.

Each tree is fitted to a bag of rows (Breiman 1996), with a penalty and a regularization that are
drawn. It is the best tree on a path of falling widths, as the first trees of an evolution are. Some
trees of classes are axis-parallel ones, grown on half of the features (Ho 1998): they err on other
rows than those with oblique splits. Where the first trees say out of bag that it is better so, most
trees are axis-parallel, on half to all of the features.

References
----------
Breiman L. (1996). Bagging predictors. Machine Learning 24(2), 123-140.
Ho T. K. (1998). The random subspace method for constructing decision forests. IEEE Transactions on
Pattern Analysis and Machine Intelligence 20(8), 832-844.
McNemar Q. (1947). Note on the sampling error of the difference between correlated proportions or
percentages. Psychometrika 12(2), 153-157.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import accuracy_score, r2_score

from evotree.dataset import Dataset, empty_rows
from evotree.fitness.base import PenalizedAccuracy
from evotree.log import logger
from evotree.operators.initialization.growth import GrowthLimits, grow
from evotree.operators.initialization.population import sparsity_path
from evotree.operators.pruning import prune
from evotree.operators.splitters.base import Axis
from evotree.rng import as_generator, make_streams
from evotree.schema import Schema
from evotree.tree import ObliqueTree

log = logger(__name__)

SIZE_MULTIPLES = (0.01, 0.1)
"""Bounds of the penalty for a node, in units of log(n) / n for n rows with classes."""

TARGET_MULTIPLES = (0.001, 0.01)
"""The same for rows with targets."""

TERM_SHARE = 0.1
"""Penalty for a term of a finished tree, in units of the penalty for a node."""

COSTS = (0.1, 100.0)
"""Bounds of the cost of a row's loss in the linear classifiers of a path."""

AXIS_SHARE = 0.2
"""Share of the trees of classes that are axis-parallel; of the others where these do better."""

N_PILOTS = 10
"""How many trees say whether they do; smaller forests are not worth as many again."""

SIGNIFICANT, LESS = 2.0, 0.75
"""Standard errors by which they have to be better, and the share of the errors that may be left."""

AXIS_FEATURES = 0.5
"""Share of the features that these may use; the least share where most trees are axis-parallel."""

_AXIS_LEAF = 5  # rows of their leaves, at least


class Member(NamedTuple):
    """A tree of a forest."""

    tree: ObliqueTree  # over raw features; its values are of the rows of its bag
    # (n_rows,): whether each given row is in the bag, in the order of `Dataset.distinct_of`.
    is_taken: np.ndarray


@dataclass(frozen=True)
class Grower:
    """What the trees of a forest have in common."""

    n_drawn: int  # how many rows are drawn, or groups of rows
    max_width: int | None  # greatest number of terms of a split
    max_depth: int | None  # depth to which trees are grown
    # The share of the trees that have no linear models in their leaves where others do.
    means_share: float = 0.0
    is_mostly_axis: bool = False  # whether most trees of classes are axis-parallel

    def __call__(self, dataset: Dataset, stream: np.ndarray) -> Member:
        """Return the tree of a stream."""
        rng = as_generator(stream)
        drawn = rng.choice(dataset.n_groups, self.n_drawn, replace=False)
        is_taken = np.isin(dataset.group_of, drawn)
        taken = np.flatnonzero(is_taken)
        bag = dataset.subsample(taken)
        if rng.uniform() < self.means_share:
            bag = bag.evolved_for(None)
        axis_share = 1.0 - AXIS_SHARE if self.is_mostly_axis else AXIS_SHARE
        is_axis = bag.n_classes > 0 and rng.uniform() < axis_share
        share = AXIS_FEATURES if is_axis else 1.0
        if is_axis and self.is_mostly_axis:
            share = rng.uniform(AXIS_FEATURES, 1.0)
        features = draw_features(bag, share, rng)
        rows = restrict(bag, features)
        unit = math.log(len(taken) + 1.0) / len(taken)
        multiples = SIZE_MULTIPLES if bag.n_classes else TARGET_MULTIPLES
        penalty = unit * math.exp(rng.uniform(*np.log(multiples)))
        if is_axis:
            # Grown as far as the rows allow.
            criterion = ("gini", "entropy")[rng.integers(2)]
            limits = GrowthLimits(max_depth=self.max_depth, min_samples_leaf=_AXIS_LEAF)
            grown = grow(rows, Axis(), criterion, limits, stream=stream).to_tree()
        else:
            grown = self._path_tree(rows, penalty, stream)
        weights = np.zeros((len(grown), dataset.X.shape[1]))
        weights[:, features] = grown.weights
        tree = bag.to_raw(
            ObliqueTree(weights, grown.thresholds, grown.subtree_size, grown.values)
        )
        if bag.bound_objective is not None:
            tree = bag.bound_objective.finish(tree, bag)
        log.debug("tree of a forest: %r of %d rows", tree, len(taken))
        return Member(tree, is_taken)

    def _path_tree(
        self, rows: Dataset, penalty: float, stream: np.ndarray
    ) -> ObliqueTree:
        """Return the fittest tree of a path of falling widths."""
        trees = sparsity_path(
            rows,
            penalty,
            stream,
            term_penalty=penalty,
            C=COSTS,
            max_features=self.max_width,
            max_depth=self.max_depth,
        )
        term_penalty = TERM_SHARE * penalty
        for tree in trees:
            prune(tree, rows, penalty, term_penalty)
        return max(trees, key=PenalizedAccuracy(penalty, term_penalty)).to_tree()


def grow_forest(
    grower: Grower, dataset: Dataset, n_trees: int, seed: int, n_jobs: int | None
) -> list[Member]:
    """Return the trees of a forest, made side by side."""
    side_by_side = Parallel(n_jobs=n_jobs, prefer="threads")

    def grown(grower: Grower, streams: Sequence[np.ndarray]) -> list[Member]:
        return side_by_side(delayed(grower)(dataset, stream) for stream in streams)

    streams = make_streams(seed, 0, n_trees)
    choosing = rows_of_choice(dataset, n_trees, seed)
    if not choosing.any():
        return grown(grower, streams)
    pilots, later = streams[:N_PILOTS], streams[N_PILOTS:]
    axis_grower = replace(grower, is_mostly_axis=True)
    axis = grown(axis_grower, [stream.copy() for stream in pilots])
    members = grown(grower, pilots)
    if votes_better(axis, members, dataset, choosing):
        return axis + grown(axis_grower, later)
    return members + grown(grower, later)


def rows_of_choice(dataset: Dataset, n_trees: int, seed: int) -> np.ndarray:
    """Return which given rows choose the kind of the trees: half or none; others are for scores.

    Groups choose whole.
    """
    if not dataset.n_classes or n_trees < N_PILOTS:
        return np.zeros(dataset.n_rows, dtype=bool)
    order = as_generator(make_streams(seed, 1, 1)[0]).permutation(dataset.n_groups)
    return (order < dataset.n_groups // 2)[dataset.group_of]


def votes_better(
    candidates: Sequence[Member],
    members: Sequence[Member],
    dataset: Dataset,
    is_counted: np.ndarray,
) -> bool:
    """Return whether the vote of some trees errs less than that of others, out of bag.

    ``is_counted (n_rows,)`` is a mask of the given rows that are looked at.
    """
    # Votes of the two or three trees that lack a row favour trees that are good alone, so that a
    # significant difference is not enough.
    rows = dataset.unmerged()
    is_wrong = []
    for trees in (candidates, members):
        votes, is_known = votes_out_of_bag(trees, rows)
        is_known &= is_counted
        is_wrong.append(is_known & (votes.argmax(axis=1) != rows.y))
    fewer = rows.sample_weight * (is_wrong[1].astype(np.float64) - is_wrong[0])
    errors = [rows.sample_weight[wrong].sum() for wrong in is_wrong]
    fewer = np.bincount(dataset.group_of, fewer)
    is_significant = fewer.sum() > SIGNIFICANT * np.linalg.norm(fewer)
    return bool(is_significant and errors[0] <= LESS * errors[1])


def votes_out_of_bag(
    members: Sequence[Member], rows: Dataset
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of what trees whose bags lack a row predict for it, and which rows have any.

    The rows are those given, none of them merged; where all bags have one, the mean is 0.
    """
    n_outputs = members[0].tree.values.shape[1]
    sums: np.ndarray = np.zeros((rows.n_distinct, n_outputs))
    n_voters: np.ndarray = np.zeros((rows.n_distinct, 1))
    for tree, is_taken in members:
        is_out = ~is_taken[:, np.newaxis]
        sums += np.where(is_out, tree.predict_value(rows.raw), 0.0)
        n_voters += is_out
    return sums / np.maximum(n_voters, 1.0), n_voters[:, 0] > 0.0


def score_out_of_bag(
    members: Sequence[Member], dataset: Dataset, is_asked: np.ndarray
) -> float:
    """Return the accuracy, or R², out of bag, without the rows that were asked before if it can."""
    rows = dataset.unmerged()
    votes, is_known = votes_out_of_bag(members, rows)
    unseen = is_known & ~is_asked
    counted = unseen if rows.sample_weight[unseen].any() else is_known
    found, truth = votes.argmax(axis=1), rows.y
    if not dataset.n_classes:
        found, truth = votes[:, 0], rows.raw_targets
    score = accuracy_score if dataset.n_classes else r2_score
    weight = rows.sample_weight[counted]
    return float(score(truth[counted], found[counted], sample_weight=weight))


def draw_features(
    dataset: Dataset, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Return the features of a share of the columns of a table, of one at least."""
    column_of = dataset.column_of
    n_columns = int(column_of[-1]) + 1
    drawn = rng.choice(n_columns, max(1, round(share * n_columns)), replace=False)
    return np.flatnonzero(np.isin(column_of, drawn))


def restrict(dataset: Dataset, features: np.ndarray) -> Dataset:
    """Return a data set of some of the features; rows that were distinct may be equal then."""
    X = empty_rows(dataset.n_distinct, len(features))
    np.take(dataset.X, features, axis=1, out=X)
    return replace(
        dataset,
        X=X,
        given=dataset.raw[:, features],
        mean=dataset.mean[features],
        scale=dataset.scale[features],
        spread=dataset.spread[features],
        schema=Schema.of_features(dataset.feature_names[j] for j in features),
    )

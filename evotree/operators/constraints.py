"""Constraints that every tree of a search keeps: on its shape, and on the features of its splits.

DEAP's ``gp.staticLimit`` puts a parent in the place of an offspring that breaks a limit. Here such
an offspring is repaired: most of it may be worth keeping.

Monotonic trees are so by construction, for all rows: `tests/reference/signs.py` looks for rows that
break an order by linear programs.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from evotree.configuration import check_monotonic_signs
from evotree.dataset import Dataset
from evotree.fitness.base import PenalizedAccuracy
from evotree.fitness.leaves import CONFLICT, isotonic_values, node_orders
from evotree.fitness.node import Node
from evotree.operators.pruning import (
    critical_alphas,
    prune_marked,
    prune_tree,
    risk_of_leaves,
    sequence_sums,
    weakest_links,
)
from evotree.operators.refinement import (
    SPARSE_ROWS,
    Hyperplane,
    refit_nodes,
    solve,
)
from evotree.operators.splitters.linear import Sparse, fit_on, start_at
from evotree.operators.structure.splice import make_individual, subtree_sizes
from evotree.operators.variation import centre_splits
from evotree.rng import make_streams
from evotree.schema import Bend, CategoricalColumn, Schema, columns_asked
from evotree.tables.frames import by_label
from evotree.tree import Individual, ObliqueTree, node_depths, sizes_of_kept


class Constraint(Protocol):
    """Something that every tree of a search keeps; a single leaf, or what is held, keeps any."""

    # The operators look for splits of at most `max_width` terms, so that few trees need repairs;
    # None says that a split may have any number.

    @property
    def max_width(self) -> int | None:
        """Most terms of a split."""

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether a tree over the rows of a data set keeps the constraint."""

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Change an individual in place so that it keeps the constraint; draws nothing."""


def keeps_all(
    individual: Individual, dataset: Dataset, constraints: Sequence[Constraint]
) -> bool:
    """Return whether a tree keeps all constraints."""
    return all(constraint.keeps(individual, dataset) for constraint in constraints)


def repair(
    individual: Individual, dataset: Dataset, constraints: Sequence[Constraint]
) -> Individual:
    """Let a tree keep all constraints; it is changed in place."""
    for _ in range(8):  # a repair may undo what another one did
        broken = [c for c in constraints if not c.keeps(individual, dataset)]
        if not broken:
            return individual
        for constraint in broken:
            constraint.repair(individual, dataset)
    if not keeps_all(individual, dataset, constraints):
        prune_marked(individual, dataset, np.arange(len(individual)) == 0)
        for constraint in constraints:
            if not constraint.keeps(individual, dataset):
                # Puts what is held on top of the leaf.
                constraint.repair(individual, dataset)
    return individual


def repair_and_centre(
    individual: Individual, dataset: Dataset, constraints: Sequence[Constraint]
) -> Individual:
    """Let a tree keep all constraints, with splits in the middle of their margins."""
    repair(individual, dataset, constraints)
    centre_splits(individual, dataset)
    return repair(individual, dataset, constraints)  # what is held stays where it is


def repaired(
    *args: Any,
    operator: Callable[..., Any],
    repair: Callable[[Individual], Individual],
    **kwargs: Any,
) -> Any:
    """Return what an operator makes, repaired: an individual, or several."""
    made = operator(*args, **kwargs)
    for individual in (made,) if isinstance(made, Individual) else made:
        repair(individual)
    return made


def widest(individual: Individual) -> int:
    """Return the greatest number of terms of a split; 0 for a single leaf."""
    widths = np.count_nonzero(individual.weights[~individual.is_leaf], axis=1)
    return int(widths.max(initial=0))


def influences(individual: Individual, dataset: Dataset) -> np.ndarray:
    """Return |weight| times the spread of the feature, of shape (n_nodes, n_features)."""
    return np.abs(individual.weights) * dataset.spread


def ranks(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value of a row, 0 for the highest, the first of equals."""
    return np.argsort(-values, axis=1, kind="stable").argsort(axis=1)


def narrow(individual: Individual, dataset: Dataset, kept: np.ndarray) -> None:
    """Take terms from splits, and fit what is left of these to the reduced problems of their nodes.

    `kept` is a mask of the terms that stay, of shape (n_nodes, n_features), or (n_features,) for
    all nodes. The splits are taken from the bottom up, as in a sweep of tree alternating
    optimization.
    """
    is_lost = (individual.weights != 0.0) & ~kept
    weights = np.where(kept, individual.weights, 0.0)
    stream = make_streams(0, 0, 1)[0]
    refit_nodes(
        individual,
        dataset,
        np.flatnonzero(is_lost.any(axis=1) & weights.any(axis=1))[::-1].tolist(),
        fit=partial(solve, splitter=Sparse(widths="same")),
        stream=stream,
        max_rows=SPARSE_ROWS,
        splits=(weights, individual.thresholds),
    )


# ---- features of splits --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SplitFeatures:
    """Splits use some of the features alone; a `Constraint`."""

    # Operators see rows in which the others are 0 (`evotree.dataset.Dataset.split_X`), so that few
    # trees need repairs: those from elsewhere, and those whose operators draw weights at random. A
    # split that uses other features loses these, and what is left is fitted again; without any left
    # it is taken out.

    is_allowed: np.ndarray

    @property
    def max_width(self) -> int:
        """No split has more terms than there are features for it."""
        return max(1, int(self.is_allowed.sum()))

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether no split of a tree uses another feature."""
        return not individual.weights[:, ~self.is_allowed].any()

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Take all other features from the splits of a tree."""
        narrow(individual, dataset, self.is_allowed)


def with_split_features(dataset: Dataset, split_features: Any) -> Dataset:
    """Return a data set whose splits may use some of the columns alone."""
    if split_features is None:
        return dataset
    columns = columns_asked(split_features, dataset.column_names, "split_features")
    if not columns:
        raise ValueError(
            "split_features=[]: allowed are None, and at least one column."
        )
    return replace(dataset, is_split_on=np.isin(dataset.column_of, list(columns)))


# ---- the shape of trees --------------------------------------------------------------------------


@dataclass(frozen=True)
class ShapeLimits:
    """Bounds on the shape of a tree; a `Constraint`."""

    # A tree that breaks one is repaired by what it can best do without: the bounds on depth, leaves
    # and terms by pruning, the last two by the weakest links, as good as the best pruning in fits;
    # the one on the rows of leaves by taking out the split above a leaf with too few, so that its
    # rows go where the other child sends them.

    max_depth: int | None = None  # splits between the root and a leaf
    max_leaves: int | None = None
    max_terms: int | None = None
    # Of the training rows, whatever their weights; a share, as trees are also found on some rows.
    min_leaf_share: float = 0.0
    max_split_terms: int | None = None  # which operators of a user's own need not keep

    @property
    def max_width(self) -> int | None:
        """No split has more terms than all of them may have together."""
        widths = [n for n in (self.max_terms, self.max_split_terms) if n is not None]
        return max(1, min(widths)) if widths else None

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether a tree keeps all bounds."""
        return (
            (self.max_leaves is None or individual.n_leaves <= self.max_leaves)
            and (self.max_terms is None or individual.n_terms <= self.max_terms)
            and (self.max_depth is None or individual.depth <= self.max_depth)
            and widest(individual) <= (self.max_split_terms or math.inf)
            and not self._small_leaves(individual, dataset).any()
        )

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Make a tree keep all bounds."""
        width = self.max_width
        if width is not None and widest(individual) > width:
            narrow(individual, dataset, ranks(influences(individual, dataset)) < width)
        while (small := self._small_leaves(individual, dataset)).any():
            stays = nodes_without(individual, small)
            individual.replace_by(
                make_individual(
                    dataset,
                    individual.weights[stays],
                    individual.thresholds[stays],
                    sizes_of_kept(stays, individual.subtree_size),
                    individual.answers[stays],
                )
            )
        if self.max_depth is not None:
            is_deepest = node_depths(individual.subtree_size) == self.max_depth
            prune_marked(individual, dataset, is_deepest & ~individual.is_leaf)
        if self.max_leaves is not None and individual.n_leaves > self.max_leaves:
            self._prune(individual, dataset, ~individual.is_leaf, self.max_leaves - 1)
        if self.max_terms is not None and individual.n_terms > self.max_terms:
            widths = np.count_nonzero(individual.weights, axis=1)
            self._prune(individual, dataset, widths, self.max_terms)

    def _prune(
        self,
        individual: Individual,
        dataset: Dataset,
        split_cost: np.ndarray,
        budget: int,
    ) -> None:
        """Cut the weakest links of a tree until its splits cost no more than a budget."""
        size = individual.subtree_size
        risk, _ = risk_of_leaves(individual, dataset.n_classes)
        collapse_at = weakest_links(risk, size, split_cost)
        alphas = critical_alphas(collapse_at, size)
        before = np.append(0.0, np.cumsum(split_cost))
        below = before[np.arange(len(size)) + size] - before[:-1]  # costs of subtrees
        saved = sequence_sums(below, collapse_at, size, alphas)
        first = int(np.argmax(below[0] - saved <= budget))
        prune_marked(individual, dataset, collapse_at <= alphas[first])

    def _small_leaves(self, individual: Individual, dataset: Dataset) -> np.ndarray:
        """Return a mask of the leaves that have too few rows; a single leaf may have any number."""
        if self.min_leaf_share == 0.0 or len(individual) == 1:
            return np.zeros(len(individual), dtype=bool)
        before = np.append(0, np.cumsum(dataset.multiplicity[individual.order]))
        n_rows = before[individual.end] - before[individual.start]
        least = math.ceil(self.min_leaf_share * n_rows[0] - 1e-9)  # but for rounding
        return individual.is_leaf & (n_rows < least)


def nodes_without(tree: ObliqueTree, leaves: np.ndarray) -> np.ndarray:
    """Return a mask of the nodes that stay where leaves and the splits above them are taken out."""
    # A leaf stays, for now, where others of the leaves stand below the other child of its parent:
    # it may be that these get rows enough.
    size, kept = tree.subtree_size, np.ones(len(tree), dtype=bool)
    for parent in np.flatnonzero(size > 1).tolist():
        left, right = tree.left(parent), tree.right(parent)
        for leaf, other in ((left, right), (right, left)):
            below = leaves[other : other + size[other]]
            if leaves[leaf] and (not below.any() or size[other] == 1):
                kept[parent] = kept[leaf] = False
                break
    return kept


# ---- columns that share a split ------------------------------------------------------------------

WORDS = {"no_interactions": 1, "pairwise": 2}
"""Words for: any columns may share a split, but no more than so many."""


@dataclass(frozen=True, eq=False)
class Interactions:
    """Bounds on which columns share a split; a `Constraint`."""

    # A split that breaks them keeps the terms of those columns that have the most influence
    # together, |weight| times the spread of the feature, of all that may share one; these are
    # fitted again.

    # (n_features,): the column that each feature was made of, rising, each of 0, 1, ...
    column_of: np.ndarray
    # Masks (n_sets, n_columns) of the columns that may share a split; None for any.
    groups: np.ndarray | None = None
    max_columns: int | None = None  # that share a split

    @cached_property
    def max_width(self) -> int:
        """The number of features of the columns that make the most."""
        n_features = np.bincount(self.column_of)
        if self.groups is None:
            return int(np.sort(n_features)[::-1][: self.max_columns].sum())
        return int((self.groups @ n_features).max())

    def _by_column(self, merge: np.ufunc, of_features: np.ndarray) -> np.ndarray:
        """Return what the features of each column have together."""
        first = np.flatnonzero(np.diff(self.column_of, prepend=-1))
        return merge.reduceat(of_features, first, axis=1)

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether all splits of a tree keep the bounds."""
        return not self._breaks(individual).any()

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Make all splits of a tree keep the bounds."""
        by_column = self._by_column(np.add, influences(individual, dataset))
        if self.groups is None:
            allowed = ranks(by_column) < self.max_columns
        else:
            allowed = self.groups[(by_column @ self.groups.T).argmax(axis=1)]
        allowed[~self._breaks(individual)] = True
        narrow(individual, dataset, allowed[:, self.column_of])

    def _breaks(self, individual: Individual) -> np.ndarray:
        """Return a mask of the splits that break the bounds."""
        used = self._by_column(np.logical_or, individual.weights != 0.0)
        if self.groups is None:
            return used.sum(axis=1) > self.max_columns
        return (used.astype(np.int64) @ ~self.groups.T).min(axis=1) > 0


def as_interactions(interaction_cst: Any, dataset: Dataset) -> Interactions | None:
    """Return the constraint that a parameter describes."""
    if interaction_cst is None:
        return None
    columns, column_of = np.unique(dataset.column_of, return_inverse=True)
    if isinstance(interaction_cst, str) and interaction_cst in WORDS:
        bounds = Interactions(column_of, max_columns=WORDS[interaction_cst])
    else:
        masks = _masks(interaction_cst, dataset.column_names)
        bounds = Interactions(column_of, masks[:, columns])
    return None if bounds.max_width >= len(column_of) else bounds


def _masks(interaction_cst: Any, names: Sequence[str]) -> np.ndarray:
    """Return the sets of columns as masks, that of the columns of no set last, if there are any."""
    try:
        sets = [None if isinstance(s, str) else tuple(s) for s in interaction_cst]
    except TypeError:
        sets = [None]
    if isinstance(interaction_cst, str) or None in sets:
        raise ValueError(
            f"interaction_cst={interaction_cst!r}: allowed are None, 'pairwise', "
            "'no_interactions', and sequences of sets of columns."
        )
    masks = [
        np.isin(np.arange(len(names)), list(columns_asked(s, names, "interaction_cst")))
        for s in sets
    ]
    rest = ~np.any(masks, axis=0) if masks else np.ones(len(names), dtype=bool)
    return np.array([*masks, rest] if rest.any() else masks)


# ---- splits of a start that stay, bit for bit ----------------------------------------------------

_FITNESS = PenalizedAccuracy()  # chooses between two repairs


@dataclass(frozen=True, eq=False)
class Held:
    """The top of every tree is that of a start; a `Constraint`."""

    # The held splits form a tree, whose leaves are the places of other subtrees. A tree that lacks
    # it gets it on top: below are its own subtrees on the same paths, or, as for trees that were
    # found without it, the whole tree in each place; the fitter one stays. A split that parts no
    # rows of a data set is in none of its trees.

    raw: ObliqueTree
    scaled: ObliqueTree  # in the units of the search

    max_width = None

    @classmethod
    def of(cls, start: ObliqueTree, hold: Any, dataset: Dataset) -> "Held":
        """Return the constraint that holds some splits of a start over raw features."""
        asked = list(hold)
        inner = np.flatnonzero(~start.is_leaf).tolist()
        kept = {0}
        above = {child: k for k in inner for child in (start.left(k), start.right(k))}
        for k in asked:
            if isinstance(k, bool) or k not in inner:
                raise ValueError(
                    f"hold names {k!r}: allowed are the splits of start, {inner}."
                )
            if k and above[k] not in asked:
                raise ValueError(
                    f"hold={hold!r} lacks {above[k]}, which is above {k}: allowed are splits with "
                    "all above them."
                )
            kept |= {start.left(k), start.right(k)}
        nodes = sorted(kept)
        sizes = subtree_sizes([k in asked for k in nodes])
        weights = np.where((sizes > 1)[:, None], start.weights[nodes], 0.0)
        thresholds = np.where(sizes > 1, start.thresholds[nodes], 0.0)
        raw = ObliqueTree(weights, thresholds, sizes, np.zeros((len(nodes), 1)))
        held = cls(raw, raw if _is_raw(dataset) else dataset.from_raw(raw))
        if len(make_individual(dataset, *held.scaled.splits)) < len(raw):
            raise ValueError(
                f"hold={hold!r}: a split has all its rows on one side; allowed are splits with "
                "training rows on both sides."
            )
        return held

    def places_in(self, tree: ObliqueTree) -> list[int]:
        """Return the held splits of a tree."""
        paths = self._paths(tree)
        return sorted(paths[h] for h in np.flatnonzero(~self.raw.is_leaf).tolist())

    def restored(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a finished tree, over raw features, whose held splits are those of the start."""
        weights = tree.weights.copy()
        thresholds = tree.thresholds.copy()
        held = ~self.raw.is_leaf
        places = self.places_in(tree)
        weights[places] = self.raw.weights[held]
        thresholds[places] = self.raw.thresholds[held]
        return tree.replaced(weights=weights, thresholds=thresholds)

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether a tree has all held splits that part rows of the data set."""
        held = self._on(dataset)
        tree = individual
        pending = [(0, 0)]
        while pending:
            h, k = pending.pop()
            if held.subtree_size[h] == 1:
                continue
            if (
                tree.subtree_size[k] > 1
                and tree.thresholds[k] == held.thresholds[h]
                and np.array_equal(tree.weights[k], held.weights[h])
            ):
                pending.append((held.left(h), tree.left(k)))
                pending.append((held.right(h), tree.right(k)))
                continue
            rows = dataset.X[tree.order[tree.start[k] : tree.end[k]]]
            is_left = rows @ held.weights[h] <= held.thresholds[h]
            if is_left.any() and not is_left.all():
                return False
            # The split parts no rows here: what is held on their side has to be in its place.
            pending.append((held.left(h) if is_left.all() else held.right(h), k))
        return True

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Put the held splits on top of a tree."""
        whole = dict.fromkeys(np.flatnonzero(self.raw.is_leaf).tolist(), 0)
        on_paths = self._below(individual, dataset, self._paths(individual))
        in_whole = self._below(individual, dataset, whole)
        individual.replace_by(max(on_paths, in_whole, key=_FITNESS))

    def _paths(self, tree: ObliqueTree) -> dict[int, int]:
        """Return the nodes of a tree on the paths of the top's nodes, as far as there are any."""
        top = self.raw
        paths = {0: 0}
        for h in np.flatnonzero(~top.is_leaf).tolist():
            if h in paths and tree.subtree_size[k := paths[h]] > 1:
                paths |= {top.left(h): tree.left(k), top.right(h): tree.right(k)}
        return paths

    def _below(
        self, tree: Individual, dataset: Dataset, places: Mapping[int, int]
    ) -> Individual:
        """Return a tree with the held splits on top, and subtrees of another one in places."""
        held = self._on(dataset)
        leaf = int(np.flatnonzero(tree.is_leaf)[0])  # where there is nothing to put
        parts = []
        for h in range(len(held)):
            if held.subtree_size[h] > 1:
                parts.append([array[h : h + 1] for array in held.splits])
            else:
                k = places.get(h, leaf)
                parts.append(
                    [array[k : k + tree.subtree_size[k]] for array in tree.splits]
                )
        weights, thresholds, sizes = map(np.concatenate, zip(*parts, strict=True))
        return make_individual(
            dataset, weights, thresholds, subtree_sizes((sizes > 1).tolist())
        )

    def _on(self, dataset: Dataset) -> ObliqueTree:
        """Return the top in the units of a data set."""
        return self.raw if _is_raw(dataset) else self.scaled


def _is_raw(dataset: Dataset) -> bool:
    return not dataset.mean.any() and bool((dataset.scale == 1.0).all())


# ---- monotonic trees -----------------------------------------------------------------------------


def check_monotonic_cst(
    monotonic_cst: Any, schema: Schema, n_classes: int = 0
) -> "MonotonicConstraint | None":
    """Check what users ask for, and return the constraint on the features that trees read."""
    if monotonic_cst is None:
        return None
    if not isinstance(monotonic_cst, Mapping) and np.ndim(monotonic_cst) != 1:
        raise ValueError(
            f"monotonic_cst={monotonic_cst!r}: allowed are None, a number for each column, and a "
            "dict of numbers by columns' names."
        )
    if isinstance(monotonic_cst, Mapping):
        monotonic_cst = dict(monotonic_cst)  # no other mapping is one for scikit-learn
    monotonic_cst = by_label(monotonic_cst, schema.names, "monotonic_cst")
    table = SimpleNamespace(
        n_features_in_=len(schema),
        feature_names_in_=np.array(schema.names, dtype=object),
    )
    signs = check_monotonic_signs(table, monotonic_cst)
    for column, sign in zip(schema, signs, strict=True):
        if sign and isinstance(column, CategoricalColumn):
            raise ValueError(
                f"monotonic_cst={sign} for {column.name!r}, a column of categories: allowed is 0; "
                "a column of numbers, such as 0 and 1, may rise or fall."
            )
    if n_classes > 2 and signs.any():
        raise ValueError(
            f"monotonic_cst={monotonic_cst!r}: allowed is None, or 0 for every column, where there "
            f"are {n_classes} classes; of two classes, the share of the second is constrained."
        )
    if n_classes == 1 or not signs.any():
        return None
    # What says that a number is missing has no sign. A bend rises with its column, or falls: so
    # a column that is raised takes each of its features the way that its own sign allows, and the
    # proof for single features is one for the column.
    of_features = [
        int(sign) * (level.sign if isinstance(level, Bend) else level is None)
        for column, sign in zip(schema, signs, strict=True)
        for level in column.feature_levels
    ]
    return MonotonicConstraint(tuple(of_features), n_classes)


@dataclass(frozen=True)
class MonotonicConstraint:
    """The prediction may not fall, or not rise, with some features."""

    # For two classes the prediction is the share of the second, and the label. Trees keep the
    # constraint by the orders of their splits (`evotree.fitness.leaves`): no split has terms that
    # pull its sides in both directions, and the leaves have the best labels, shares or means among
    # those in order. So a tree keeps the constraint for all rows, and for all rows of single
    # precision too.

    # Of the features: 1 if predictions may not fall with it, -1 if they may not rise, or 0.
    signs: tuple[int, ...]
    n_classes: int = 0

    max_width = None

    @cached_property
    def array(self) -> np.ndarray:
        """The signs as an array."""
        return np.array(self.signs, dtype=np.int64)

    def orders(self, tree: Any) -> np.ndarray:
        """Return the orders that the sides of splits have to keep (`node_orders`)."""
        # Where an individual has a conflict, it is that of the means of its sides, as after repair:
        # so trees within an operator are worth what becomes of them.
        orders = node_orders(tree.weights, self.array)
        conflicts = np.flatnonzero(orders == CONFLICT)
        if conflicts.size and hasattr(tree, "counts"):
            means, _ = _means(tree)
            left = conflicts + 1
            rises = means[left + tree.subtree_size[left]] >= means[left]
            orders[conflicts] = np.where(rises, 1, -1)
        return orders

    # ---- splits ----------------------------------------------------------------------------------

    def _conflicts(self, individual: Individual) -> np.ndarray:
        """Return the splits that pull their sides in both directions."""
        return np.flatnonzero(node_orders(individual.weights, self.array) == CONFLICT)

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether no split pulls its sides in both directions."""
        return self._conflicts(individual).size == 0

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Take out the terms of splits that pull against the others."""
        # Where a split has such terms, those go whose sign is not that of the difference between
        # the means of its two sides. A linear classifier of the reduced problem gives the others
        # new weights, and the threshold that costs least.
        conflicts = self._conflicts(individual)
        weights = individual.weights.copy()
        thresholds = individual.thresholds.copy()
        orders = self.orders(individual)
        for k in conflicts.tolist():
            dropped = np.sign(weights[k]) * self.array == -orders[k]
            rows = individual.order[individual.start[k] : individual.end[k]]
            thresholds[k] -= weights[k, dropped] @ dataset.X[rows].mean(axis=0)[dropped]
            weights[k, dropped] = 0.0
        refit_nodes(
            individual,
            dataset,
            conflicts[::-1].tolist(),  # those below come first
            fit=self._refit,
            stream=np.zeros(1, dtype=np.uint64),  # of many rows, the same ones always
            max_rows=SPARSE_ROWS,
            splits=(weights, thresholds),
        )

    def _refit(
        self, node: Node, present: Hyperplane, stream: np.ndarray
    ) -> Hyperplane | None:
        """Return the cheapest split on the features of another whose terms keep their pulls."""
        # Features whose weights would change the direction of their pull leave one fit after the
        # other. None where none is left, or all rows belong to one side.
        if (node.y == node.y[0]).all():
            return None
        weights, threshold = present
        pulls = np.sign(weights) * np.abs(self.array)
        theta = start_at(node.X, weights, threshold)
        support = np.flatnonzero(weights)
        while support.size:
            if not fit_on(node, theta, support, 1.0):
                return None
            turned = theta[:-1] * pulls < 0.0
            if not turned.any():
                return theta[:-1], -float(theta[-1])
            theta[:-1][turned] = 0.0
            support = support[~turned[support]]
        return None

    # ---- leaves ----------------------------------------------------------------------------------

    def values(self, tree: Any, prior: float = 0.0) -> np.ndarray:
        """Return the best values in order: shares of the second class, or targets.

        Of targets, each node may have rows of the weight `prior` more, whose mean is 0.
        """
        means, weight = _means(tree)
        if prior:
            means *= weight / (weight + prior)
        return isotonic_values(
            self.orders(tree), tree.subtree_size, means, weight + prior
        )

    def _values_of(
        self, tree: ObliqueTree, values: np.ndarray, prior: float = 0.0
    ) -> np.ndarray:
        """Return the values in order that are nearest to those of a finished tree."""
        return isotonic_values(
            self.orders(tree),
            tree.subtree_size,
            np.ascontiguousarray(values[:, -1]),
            np.asarray(tree.weighted_n_node_samples) + prior,
        )

    def in_order(self, tree: ObliqueTree, shares: np.ndarray) -> np.ndarray:
        """Return class probabilities of leaves with which soft sides keep the constraint."""
        # The mean of two functions that rise with a feature, the greater of which has a weight that
        # rises, rises too; so orders of the leaves are enough for soft sides as well.
        share = self._values_of(tree, shares)
        return np.where(
            tree.is_leaf[:, np.newaxis], np.column_stack([1.0 - share, share]), 0.0
        )

    # ---- finished trees --------------------------------------------------------------------------

    def finish(self, tree: ObliqueTree, prior: float = 0.0) -> ObliqueTree:
        """Return a tree whose values keep the constraint."""
        values = self._values_of(tree, tree.values, prior)[:, np.newaxis]
        marks = _of_equal_leaves(tree, values)
        if tree.values.shape[1] == 2:  # shares of two classes
            values = np.column_stack([1.0 - values, values])
        return prune_tree(tree.predicting(values), marks)

    def finish_lines(
        self,
        tree: ObliqueTree,
        fill: Callable[[ObliqueTree], ObliqueTree],
        sharing: Callable[[ObliqueTree], np.ndarray],
    ) -> ObliqueTree:
        """Return a tree whose lines keep the constraint."""
        # Splits whose sides now predict the same are left out, and the others get their lines
        # again; it ends, since the tree gets smaller each time.
        while True:
            finished = fill(tree)
            lines = np.column_stack([sharing(finished), finished.models.intercepts])
            marks = _of_equal_leaves(finished, lines)
            if not marks[~finished.is_leaf].any():
                return finished
            tree = prune_tree(finished, marks).with_models(None)


def _means(tree: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean target, or the share of the second class, of each node, and its weight."""
    counts = tree.counts
    weight = counts.sum(axis=1) if counts.shape[1] == 2 else counts[:, 0].copy()
    return counts[:, 1] / weight, weight


def _of_equal_leaves(tree: ObliqueTree, predicted: np.ndarray) -> np.ndarray:
    """Mark the leaves, and the subtrees whose leaves all predict the same."""
    predicted, marks = predicted.copy(), tree.is_leaf.copy()
    for k in np.flatnonzero(~tree.is_leaf)[::-1].tolist():
        left, right = tree.left(k), tree.right(k)
        marks[k] = (
            marks[left] & marks[right] & (predicted[left] == predicted[right]).all()
        )
        predicted[k] = predicted[left]
    return marks


CONSTRAINTS = {
    kind.__name__: kind
    for kind in (SplitFeatures, ShapeLimits, Interactions, Held, MonotonicConstraint)
}
"""What every tree of a search may have to keep."""

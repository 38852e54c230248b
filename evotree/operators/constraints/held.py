"""Splits of a start that stay, bit for bit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.fitness.criteria import Criterion
from evotree.fitness.node import Node
from evotree.fitness.penalties import PenalizedAccuracy
from evotree.individual import Individual
from evotree.operators.splitters.linear import Linear
from evotree.operators.structure.splice import make_individual, subtree_sizes
from evotree.rng import make_streams
from evotree.tables.columns import columns_asked
from evotree.tree import ObliqueTree

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
        asked: dict[Any, Any] = (
            dict(hold) if isinstance(hold, Mapping) else dict.fromkeys(hold)
        )
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
        for h in np.flatnonzero(sizes > 1).tolist():
            if asked[nodes[h]] is not None:
                weights[h], thresholds[h] = _fitted(raw, h, asked[nodes[h]], dataset)
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
            is_there = (
                tree.subtree_size[k] > 1
                and tree.thresholds[k] == held.thresholds[h]
                and np.array_equal(tree.weights[k], held.weights[h])
            )
            if is_there:
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
        both = (
            self._below(individual, dataset, at)
            for at in (self._paths(individual), whole)
        )
        individual.replace_by(max(both, key=_FITNESS))

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


def _fitted(
    tree: ObliqueTree, k: int, columns: Any, dataset: Dataset
) -> tuple[np.ndarray, float]:
    """Return a split on some columns of the rows that reach a node, in raw units."""
    chosen = columns_asked(columns, dataset.column_names, f"hold[{k}]")
    mask = np.isin(dataset.column_of, list(chosen))
    leaves = tree.apply(dataset.raw)
    rows = np.flatnonzero((leaves >= k) & (leaves < k + tree.subtree_size[k]))
    criterion = Criterion.ENTROPY if dataset.n_classes else Criterion.SQUARED_ERROR
    node = Node.of(
        np.where(mask, dataset.X[rows], 0.0),
        dataset.y[rows],
        dataset.sample_weight[rows],
        dataset.n_classes,
        int(criterion),
        1,
    )
    split = Linear(fallback=True)(node, make_streams(0, 0, 1)[0])
    if split is None:
        raise ValueError(
            f"hold[{k}]={columns!r}: no split on these columns parts the rows there."
        )
    weights = np.where(mask, split.weights, 0.0) / dataset.scale
    return weights, float(split.threshold + weights @ dataset.mean)

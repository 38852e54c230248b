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
from evotree.operators.structure.sides import subtree_sizes
from evotree.operators.structure.splice import make_individual
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
        inner, kept = np.flatnonzero(~start.is_leaf).tolist(), {0}
        above = {child: k for k in inner for child in (start.left(k), start.right(k))}
        for k in asked:
            if isinstance(k, bool) or k not in inner:
                raise ValueError(
                    f"hold names {k!r}: allowed are the splits of start, {inner}."
                )
            if k and above[k] not in asked:
                lacks = f"lacks {above[k]}, which is above {k}"
                raise ValueError(
                    f"hold={hold!r} {lacks}: allowed are splits with all above them."
                )
            kept |= {start.left(k), start.right(k)}
        nodes = sorted(kept)
        sizes = subtree_sizes([k in asked for k in nodes])
        weights, thresholds = (
            start.weights[nodes].copy(),
            start.thresholds[nodes].copy(),
        )
        weights[sizes == 1], thresholds[sizes == 1] = 0.0, 0.0
        raw = ObliqueTree(weights, thresholds, sizes, np.zeros((len(nodes), 1)))
        for h in np.flatnonzero(sizes > 1).tolist():
            if asked[nodes[h]] is not None:
                weights[h], thresholds[h] = _fitted(raw, h, asked[nodes[h]], dataset)
        held = cls(raw, raw if _is_raw(dataset) else dataset.from_raw(raw))
        if len(make_individual(dataset, *held.scaled.splits)) < len(raw):
            allowed = "allowed are splits with training rows on both sides"
            raise ValueError(
                f"hold={hold!r}: a split has all its rows on one side; {allowed}."
            )
        return held

    def places_in(self, tree: ObliqueTree) -> list[int]:
        """Return the held splits of a tree."""
        paths = self._paths(tree)
        return sorted(paths[h] for h in np.flatnonzero(~self.raw.is_leaf).tolist())

    def restored(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a finished tree, over raw features, whose held splits are those of the start."""
        weights, thresholds, held = (
            tree.weights.copy(),
            tree.thresholds.copy(),
            ~self.raw.is_leaf,
        )
        places = self.places_in(tree)
        weights[places], thresholds[places] = (
            self.raw.weights[held],
            self.raw.thresholds[held],
        )
        return tree.replaced(weights=weights, thresholds=thresholds)

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether a tree has all held splits that part rows of the data set."""
        held, tree, pending = self._on(dataset), individual, [(0, 0)]
        while pending:
            h, k = pending.pop()
            if held.subtree_size[h] == 1:
                continue
            test, known = (
                (one.weights[at], one.thresholds[at])
                for one, at in ((tree, k), (held, h))
            )
            if tree.subtree_size[k] > 1 and all(map(np.array_equal, test, known)):
                pending += [
                    (held.left(h), tree.left(k)),
                    (held.right(h), tree.right(k)),
                ]
                continue
            rows = dataset.X[tree.order[tree.start[k] : tree.end[k]]]
            is_left = rows @ held.weights[h] <= held.thresholds[h]
            if is_left.any() and not is_left.all():
                return False
            pending.append((held.left(h) if is_left.all() else held.right(h), k))
        return True

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Put the held splits on top of a tree."""
        whole = dict.fromkeys(np.flatnonzero(self.raw.is_leaf).tolist(), 0)
        both = (
            self._below(individual, dataset, at)
            for at in (self._paths(individual), whole)
        )
        individual.become(max(both, key=_FITNESS))

    def _paths(self, tree: ObliqueTree) -> dict[int, int]:
        """Return the nodes of a tree on the paths of the top's nodes, as far as there are any."""
        paths, top = {0: 0}, self.raw
        for h in np.flatnonzero(~top.is_leaf).tolist():
            if h in paths and tree.subtree_size[k := paths[h]] > 1:
                paths |= {top.left(h): tree.left(k), top.right(h): tree.right(k)}
        return paths

    def _below(
        self, tree: Individual, dataset: Dataset, places: Mapping[int, int]
    ) -> Individual:
        """Return a tree with the held splits on top, and subtrees of another one in places."""
        parts, held, leaf = [], self._on(dataset), int(np.flatnonzero(tree.is_leaf)[0])
        for h in range(len(held)):
            one: Any = held if held.subtree_size[h] > 1 else tree
            k = h if one is held else places.get(h, leaf)
            inside = slice(k, k + (1 if one is held else tree.subtree_size[k]))
            parts.append([array[inside] for array in one.splits])
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
    mask, leaves = np.isin(dataset.column_of, list(chosen)), tree.apply(dataset.raw)
    rows = np.flatnonzero((leaves >= k) & (leaves < k + tree.subtree_size[k]))
    known = (
        np.where(mask, dataset.X[rows], 0.0),
        dataset.y[rows],
        dataset.sample_weight[rows],
    )
    criterion = Criterion.ENTROPY if dataset.n_classes else Criterion.SQUARED_ERROR
    node = Node.of(*known, dataset.n_classes, int(criterion), 1)
    split = Linear(fallback=True)(node, make_streams(0, 0, 1)[0])
    if split is None:
        raise ValueError(
            f"hold[{k}]={columns!r}: no split on these columns parts the rows there."
        )
    weights = np.where(mask, split.weights, 0.0) / dataset.scale
    return weights, float(split.threshold + weights @ dataset.mean)

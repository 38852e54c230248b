"""Rows that no machine holds: partitions of Dask, which answer with sums over the leaves of trees.

A search sees a sample of the rows. The trees that it finds are then counted by all rows: some
kilobytes of trees go out, each partition routes its rows through them, and the statistics of the
leaves come back, added up in an order that is fixed by the numbers of the partitions. So neither
the number of workers nor what runs where changes a bit; and where weights are whole numbers, the
sums of class weights are exact, however the rows are parted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from evotree.engine.finish import Result, scores_of
from evotree.engine.pareto import FittedFront, FrontTree, undominated
from evotree.engine.progress import Progress
from evotree.fitness.penalties import PenalizedAccuracy
from evotree.operators.constraints.limits import nodes_without
from evotree.operators.structure.sides import Splits
from evotree.tree import CountedTree, ObliqueTree, sizes_of_kept

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.fitness.objectives import Objective

_FOLDED = 8  # partial results that are added up at once


class Rows(NamedTuple):
    """The encoded rows of one partition; `y` has class codes, or targets in a data set's units."""

    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray


# ---- what runs on the workers --------------------------------------------------------------------


def leaf_sums(trees: Sequence[Splits], n_classes: int, rows: Rows) -> np.ndarray:
    """Return the statistics of the leaves of some trees, then their numbers of rows by class."""
    weight, y, width = rows.sample_weight, rows.y, n_classes or 1
    codes = y if n_classes else np.zeros(len(y), dtype=np.int64)
    columns = [weight] if n_classes else [weight, weight * y, weight * y**2]
    columns.append(np.ones(len(y)))
    tables = []
    for tree in trees:
        n_nodes = len(tree.subtree_size)
        leaves = ObliqueTree(*tree, np.empty((0, 0))).apply(rows.X).astype(np.int64)
        sums = [
            np.bincount(leaves * width + codes, column, n_nodes * width).reshape(n_nodes, width)
            for column in columns
        ]
        tables.append(np.hstack(sums))
    return np.concatenate(tables)


def _read_and_count(
    trees: Sequence[Sequence[np.ndarray]],
    n_classes: int,
    read: Callable[..., Rows],
    part: Sequence[Any],
) -> np.ndarray:
    """Read a partition and count its rows; one task, so that no rows wait."""
    return leaf_sums([Splits(*tree) for tree in trees], n_classes, read(*part))


def _sum(parts: Sequence[np.ndarray]) -> np.ndarray:
    return reduce(np.add, parts)


# ---- what stays here -----------------------------------------------------------------------------


def task(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes tasks of a function, whose keys say what they do."""
    from dask import delayed

    make = delayed(function, pure=False)

    def named(*args: Any) -> Any:
        return make(*args, dask_key_name=f"evotree-{name}-{uuid4().hex}")

    return named


@contextmanager
def passing(progress: Progress, about: str, name: str) -> Iterator[None]:
    """Show a pass over the partitions while it is computed.

    Schedulers of this process tell of each partition that is done; a cluster has a dashboard.
    """
    from dask.callbacks import Callback
    from dask.utils import key_split

    def is_step(key: Any) -> bool:
        return bool(key_split(key) == f"evotree-{name}")

    def begin(tasks: Mapping[Any, Any]) -> None:
        progress.expect(sum(map(is_step, tasks)))

    def end(key: Any, *_: Any) -> None:
        if is_step(key):
            progress.step()

    with progress.phase(about, unit="partition", stays=False), Callback(begin, posttask=end):
        yield


def fold(parts: Sequence[Any], join: Callable[[Sequence[Any]], Any], name: str) -> Any:
    """Join the results of partitions, neighbours first, in groups whose order never changes."""
    add = task(name, join)
    while len(parts) > 1:
        groups = [list(parts[at : at + _FOLDED]) for at in range(0, len(parts), _FOLDED)]
        parts = [add(group) for group in groups]
    return parts[0]


class Counted(NamedTuple):
    """A finished tree by all rows: the statistics of its nodes, and what it is worth."""

    tree: ObliqueTree
    counts: np.ndarray
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Shards:
    """All rows of a data set of which a sample is held here."""

    parts: Sequence[tuple[Any, ...]]  # what `read` takes for each partition
    read: Callable[..., Rows]  # returns the `Rows` of a partition
    sample: Dataset  # a sample of the rows; its classes, its units
    # what trees are worth, by sums over all rows; None for the accuracy, or the squared error
    objective: Objective | None
    target_mean: float  # mean target of all rows, which `read` takes away from targets
    class_factors: np.ndarray | None  # what the weights of classes are multiplied by
    least_rows: int  # least number of rows, whatever their weights, of a leaf
    progress: Progress  # shows the passes over the partitions

    def sums(self, trees: Sequence[ObliqueTree]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the statistics of the nodes of trees over all rows, and the numbers of rows."""
        # One task that all partitions depend on: it is sent to each worker once.
        splits = [(tree.weights, tree.thresholds, tree.subtree_size) for tree in trees]
        sent = task("send-trees", list)(splits)
        count = task("count-leaves", _read_and_count)
        n_classes = self.sample.n_classes
        answers = [count(sent, n_classes, self.read, list(part)) for part in self.parts]
        added = fold(answers, _sum, "add-counts")
        with passing(self.progress, "counting leaves", "count-leaves"):
            sums = added.compute()
        ends = np.cumsum([len(tree) for tree in trees])[:-1]
        factors = 1.0 if self.class_factors is None else self.class_factors
        factors = factors / self.sample.weight_unit
        tables = [
            _of_all_nodes(leaves, tree.subtree_size)
            for leaves, tree in zip(np.split(sums, ends), trees, strict=True)
        ]
        k = n_classes or 1
        return [(factors * sums[:, :-k], sums[:, -k:].astype(np.int64)) for sums in tables]

    def count(self, trees: Sequence[ObliqueTree]) -> list[Counted]:
        """Return trees with the values of all rows, without leaves of too few.

        Rows of a leaf that is taken out go where the other side of its split sends them, so all
        rows are asked again.
        """
        pending, counted = dict(enumerate(trees)), {}
        while pending:
            smaller = {}
            asked = zip(pending.items(), self.sums([*pending.values()]), strict=True)
            for (number, tree), (counts, n_rows) in asked:
                few = tree.is_leaf & (n_rows.sum(axis=1) < max(1, self.least_rows))
                if few.any() and len(tree) > 1:
                    smaller[number] = _without(tree, few)
                else:
                    counted[number] = self._finish(tree, counts, n_rows)
            pending = smaller
        return [counted[number] for number in range(len(trees))]

    def _finish(self, tree: ObliqueTree, counts: np.ndarray, n_rows: np.ndarray) -> Counted:
        """Return a tree with the values and the scores that all rows say."""
        weights = counts.sum(axis=1) if self.sample.n_classes else counts[:, 0].copy()
        values = counts / weights[:, np.newaxis]
        if not self.sample.n_classes:
            values = self.target_mean + self.sample.target_scale * values[:, 1:2]
        row_counts = n_rows if self.sample.is_weighted else None
        arrays = {"weighted_n_node_samples": weights, "row_counts": row_counts}
        finished = tree.predicting(values).replaced(**arrays)
        if self.objective is not None:
            finished = self.objective.finish(finished, self.sample)
            counts = counts[_left_over(tree.subtree_size, finished.subtree_size)]
        routed = CountedTree(finished.weights, finished.subtree_size, counts)
        return Counted(finished, counts, scores_of(routed, self.sample, self.objective))

    def deviations(self, counted: Counted) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights and the squared errors of nodes, whose values need not be means."""
        (weights, sums, squares), scale = counted.counts.T, self.sample.target_scale
        values = (counted.tree.values[:, 0] - self.target_mean) / scale
        least = np.maximum(0.0, squares - sums**2 / weights)
        return weights, scale**2 * (least + weights * (values - sums / weights) ** 2)


def refit(result: Result, shards: Shards) -> tuple[Result, list[Counted]]:
    """Return what a search on a sample found, by all rows; also the front with its statistics.

    The values and qualities of all trees, the front and the choice among its members follow from
    one pass over the partitions.
    """
    front, n_front, n_hall = list(result.front), len(result.front), len(result.hall_of_fame)
    counted = shards.count([*front, *result.hall_of_fame, *result.best_trees.values()])
    of_front = zip(front, counted[:n_front], strict=True)
    members = {id(tree := _member(before, one)): (tree, one) for before, one in of_front}
    trees: list[Any] = undominated(tree for tree, _ in members.values())
    others = [one.tree for one in counted[n_front:]]
    fitness: Any = PenalizedAccuracy(*result.choice.penalties)
    refitted = replace(
        result,
        tree=max(trees, key=fitness),
        front=FittedFront(trees, result.front.is_regression),
        hall_of_fame=others[:n_hall],
        best_trees=dict(zip(result.best_trees, others[n_hall:], strict=True)),
    )
    return refitted, [members[id(tree)][1] for tree in trees]


def _member(before: FrontTree, counted: Counted) -> FrontTree:
    tree, scores = counted.tree, counted.scores
    own = (*scores, float(tree.complexity)) if before.scores else ()
    return FrontTree.of(tree, scores[0], before.origin, own)


def _of_all_nodes(sums: np.ndarray, subtree_size: np.ndarray) -> np.ndarray:
    """Add up the statistics of leaves over the nodes above them."""
    counts = sums.copy()
    for k in np.flatnonzero(subtree_size > 1)[::-1].tolist():
        counts[k] = counts[k + 1] + counts[k + 1 + subtree_size[k + 1]]
    return counts


def _without(tree: ObliqueTree, leaves: np.ndarray) -> ObliqueTree:
    """Return a tree without some leaves and the splits above them; its values are to be counted."""
    kept = nodes_without(tree, leaves)
    arrays = tree.weights[kept], tree.thresholds[kept], sizes_of_kept(kept, tree.subtree_size)
    return ObliqueTree(*arrays, tree.values[kept], tree.spread)


def _left_over(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return the nodes that a pruning has kept, by the sizes of subtrees before and after it."""
    kept, k = [], 0
    for size in after.tolist():
        kept.append(k)
        k += int(before[k]) if size == 1 else 1
    return np.array(kept)

"""Rows that no machine holds: partitions of Dask, which answer with sums over the leaves of trees.

The engine breeds on a sample of the rows. What trees are worth is asked of all rows: some kilobytes
of trees go out, each partition routes its rows through them, and the statistics of the leaves come
back, added up in an order that is fixed by the numbers of the partitions. So neither the number of
workers nor what runs where changes a bit; and where weights are whole numbers, the sums of class
weights are exact, however the rows are parted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np

from evotree.dataset import Dataset
from evotree.engine.progress import Progress
from evotree.engine.sampling import stage_end
from evotree.individual import explained_variance, leaf_accuracy
from evotree.operators.structure.sides import Splits
from evotree.tree import CountedTree, ObliqueTree, nodes_reached

if TYPE_CHECKING:
    from evotree.fitness.objectives import Objective
    from evotree.individual import Individual

_Part = TypeVar("_Part")

_FOLDED = 8  # partial results that are added up at once


class Rows(NamedTuple):
    """The encoded rows of one partition.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        Raw rows, finite.
    y : ndarray of shape (n_rows,)
        Class codes, or targets in the units of a data set.
    sample_weight : ndarray of shape (n_rows,)
        Weights, at least 0.
    """

    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray


# ---- what runs on the workers --------------------------------------------------------------------


def leaf_sums(trees: Sequence[Splits], rows: Rows, n_classes: int) -> np.ndarray:
    """Return the statistics of the leaves of some trees."""
    weight = rows.sample_weight
    if n_classes:
        columns = [(rows.y, weight, n_classes)]
    else:
        moments = (weight, weight * rows.y, weight * rows.y**2)
        columns = [(np.zeros(len(rows.y), dtype=np.int64), one, 1) for one in moments]
    found = []
    for tree in trees:
        n_nodes, no_values = len(tree.subtree_size), np.empty((0, 0))
        leaves = ObliqueTree(*tree, no_values).apply(rows.X).astype(np.int64)
        sums = [
            np.bincount(leaves * k + codes, one, n_nodes * k).reshape(n_nodes, k)
            for codes, one, k in columns
        ]
        found.append(np.hstack(sums))
    return np.concatenate(found)


def _answer(
    ask: Callable[..., _Part], read: Callable[..., Rows], part: Sequence[Any], *asked: Any
) -> _Part:
    """Read a partition and ask something of its rows; one task, so that no rows wait."""
    return ask(*asked, read(*part))


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


class Shards:
    """All rows of a data set of which a sample is held here.

    Parameters
    ----------
    parts : sequence of tuple of dask.delayed.Delayed
        What `read` takes for each partition.
    read : callable
        Returns the `Rows` of a partition. It is sent to the workers.
    n_rows : int
        Number of all rows.
    sample : Dataset
        A sample of the rows; its classes, its units.
    target_mean : float, default=0.0
        Mean target of all rows, which `read` takes away from targets.
    class_factors : ndarray of shape (n_classes,), optional
        What the weights of classes are multiplied by.
    objective : Objective, optional
        What trees are worth, by sums over all rows; None for the accuracy, or the squared error.
    seed : int in [0, 2**63), default=0
        Of the run; the sample was drawn by it.
    checksum : str, default=""
        By which all rows are known again; only runs that are continued need it.
    progress : Progress, optional
        Shows the passes over the partitions; by default nothing does.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Any, ...]],
        read: Callable[..., Rows],
        n_rows: int,
        sample: Dataset,
        target_mean: float = 0.0,
        class_factors: np.ndarray | None = None,
        objective: Objective | None = None,
        seed: int = 0,
        checksum: str = "",
        progress: Progress | None = None,
    ) -> None:
        self.parts, self.read, self.n_rows, self.objective = parts, read, n_rows, objective
        self.sample, self.target_mean, self.class_factors = sample, target_mean, class_factors
        self.seed, self.checksum = seed, checksum
        self.progress = Progress(0) if progress is None else progress

    def count(self, trees: Sequence[Splits]) -> list[np.ndarray]:
        """Return the statistics of the nodes of trees over all rows."""
        factors = 1.0 if self.class_factors is None else self.class_factors
        factors = factors / self.sample.weight_unit
        return [factors * one for one in self._ask(_leaf_sums_of, trees, self.sample.n_classes)]

    def count_rows(self, trees: Sequence[Splits]) -> list[np.ndarray]:
        """Return how many rows with weight the nodes of trees have, by class if there are any."""
        return self._ask(_leaf_rows_of, trees, self.sample.n_classes)

    def _ask(
        self, ask: Callable[..., np.ndarray], trees: Sequence[Splits], *told: Any
    ) -> list[np.ndarray]:
        """Return what partitions say of the leaves of trees, added up for all nodes."""
        # One task that all partitions depend on: it is sent to each worker once.
        sent = task("send-trees", list)([tuple(tree) for tree in trees])
        asked = task("read-trees", _as_splits)(sent), *told
        count = task("count-leaves", _answer)
        answers = [count(ask, self.read, list(part), *asked) for part in self.parts]
        added = fold(answers, _sum, "add-counts")
        with passing(self.progress, "counting leaves", "count-leaves"):
            sums = added.compute()
        at = np.cumsum([len(tree.subtree_size) for tree in trees])[:-1]
        return [
            _of_all_nodes(one, tree.subtree_size)
            for one, tree in zip(np.split(sums, at), trees, strict=True)
        ]

    def quality(self, tree: CountedTree) -> float:
        """Return the accuracy of a tree, its R², or what the objective says, by such counts.

        Nodes that no row reaches do not count.
        """
        samples = tree.counts.sum(axis=1) if self.sample.n_classes else tree.counts[:, 0]
        kept, sizes = nodes_reached(samples, tree.subtree_size)
        tree = CountedTree(tree.weights[kept], sizes, tree.counts[kept])
        if self.objective is not None:
            return self.objective.quality(tree)
        measure = leaf_accuracy if self.sample.n_classes else explained_variance
        return float(measure(tree.counts, tree.subtree_size))


def _as_splits(trees: Iterable[Sequence[np.ndarray]]) -> list[Splits]:
    return [Splits(*tree) for tree in trees]


def _leaf_sums_of(trees: Sequence[Splits], n_classes: int, rows: Rows) -> np.ndarray:
    return leaf_sums(trees, rows, n_classes)


def _leaf_rows_of(trees: Sequence[Splits], n_classes: int, rows: Rows) -> np.ndarray:
    codes = rows.y if n_classes else np.zeros(len(rows.y), dtype=np.int64)
    return leaf_sums(trees, Rows(rows.X, codes, np.ones(len(codes))), n_classes or 1)


def _of_all_nodes(sums: np.ndarray, subtree_size: np.ndarray) -> np.ndarray:
    """Add up the statistics of leaves over the nodes above them."""
    counts = sums.copy()
    for k in np.flatnonzero(subtree_size > 1)[::-1].tolist():
        counts[k] = counts[k + 1] + counts[k + 1 + subtree_size[k + 1]]
    return counts


class MeasuredSample:
    """The sample that a run breeds on, first judged by its own rows, then by all.

    Parameters
    ----------
    dataset : Dataset
        The sample.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return 2

    def generations(self, at: int, n_generations: int) -> int:
        """Return when a run of so many generations goes on to be judged by all rows, and ends."""
        return stage_end(at, len(self), n_generations)

    def __getitem__(self, at: int) -> Dataset:
        """Return the rows that the run breeds on."""
        return self._dataset


class Measure:
    """Gives individuals the quality that all rows say; each tree is asked for once.

    Parameters
    ----------
    shards : Shards
        All rows.
    """

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._known: dict[bytes, float] = {}
        self._one_pass = Lock()  # islands may ask in several threads

    def __call__(self, individuals: Sequence[Individual]) -> None:
        """Set the qualities of individuals; their fitness is deleted."""
        with self._one_pass:
            self._measure(individuals)

    def _measure(self, individuals: Sequence[Individual]) -> None:
        keys = [_key(one) for one in individuals]
        unknown = {
            key: one for key, one in zip(keys, individuals, strict=True) if key not in self._known
        }
        if unknown:
            trees = [self._in_raw_units(one) for one in unknown.values()]
            for key, tree, counts in zip(unknown, trees, self._shards.count(trees), strict=True):
                counted = CountedTree(tree.weights, tree.subtree_size, counts)
                self._known[key] = self._shards.quality(counted)
        for key, one in zip(keys, individuals, strict=True):
            one.measured(self._known[key])

    def _in_raw_units(self, individual: Individual) -> Splits:
        """Return the hyperplanes over raw rows, but for rounding."""
        sample = self._shards.sample
        weights = individual.weights / sample.scale
        thresholds = individual.thresholds + weights @ sample.mean
        return Splits(weights, thresholds, individual.subtree_size)


def _key(individual: Individual) -> bytes:
    """Return what tells trees apart."""
    arrays = individual.weights, individual.thresholds, individual.subtree_size
    return blake2b(b"".join(one.tobytes() for one in arrays), digest_size=16).digest()

"""The same evolution in plain Python and NumPy, to tell what the engine's design is worth.

The loop, the records and the rates of all operators are evotree's own; plain are the individual,
which `copy.deepcopy` clones, and the operators: a changed tree is evaluated whole. The evaluation
is the fastest found in NumPy, all tests in one matrix product and one Boolean mask for each node
(half the time of lists of row numbers). Margins are not centred, which spares it some work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from deap import base

from evotree.dataset import Dataset
from evotree.fitness.base import linear_scaling
from evotree.rng import make_streams
from evotree.tree import FitnessMax, ObliqueTree

_PAIR_TRIALS = 32


class PlainIndividual:
    """A tree in prefix order with its fitness; `leaves` holds the leaf of each row, once known."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, weights: np.ndarray, thresholds: np.ndarray, subtree_size: np.ndarray
    ) -> None:
        self.weights = weights
        self.thresholds = thresholds
        self.subtree_size = subtree_size
        self.leaves: np.ndarray | None = None
        self.quality = 0.0
        self.fitness = FitnessMax()
        self.stream: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.subtree_size)

    @property
    def n_terms(self) -> int:
        return int(np.count_nonzero(self.weights))

    @property
    def complexity(self) -> int:
        return (len(self) + 1) // 2 + self.n_terms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlainIndividual) and np.array_equal(
            self.weights, other.weights
        )


def route(individual: PlainIndividual, X: np.ndarray) -> np.ndarray:
    """Return the leaf that each row reaches."""
    size = individual.subtree_size
    internal = np.flatnonzero(size > 1)
    goes_left = (
        individual.weights[internal] @ X.T <= individual.thresholds[internal, None]
    )
    leaves = np.empty(len(X), dtype=np.int32)
    masks = {0: np.ones(len(X), dtype=bool)}
    tests = iter(goes_left)
    for k in range(len(size)):
        mask = masks.pop(k)
        if size[k] == 1:
            leaves[mask] = k
        else:
            test = next(tests)
            masks[k + 1] = mask & test
            masks[k + 1 + size[k + 1]] = mask & ~test
    return leaves


def evaluate(
    individual: PlainIndividual, dataset: Dataset, size_penalty: float
) -> tuple[float]:
    """Route all rows, drop the parts that none reaches, and return the penalized accuracy."""
    leaves = route(individual, dataset.X)
    size, n_nodes = individual.subtree_size, len(individual)
    cells = np.bincount(
        leaves * dataset.n_classes + dataset.y,
        weights=dataset.sample_weight,
        minlength=n_nodes * dataset.n_classes,
    )
    counts = cells.reshape(n_nodes, dataset.n_classes)
    individual.quality = counts.max(axis=1).sum() / counts.sum()
    before = np.concatenate([[0.0], np.cumsum(counts.sum(axis=1))])
    k = np.arange(n_nodes)
    reached = before[k + size] > before[k]
    kept = reached.copy()
    internal = np.flatnonzero(size > 1)
    kept[internal] = reached[internal + 1] & reached[internal + 1 + size[internal + 1]]
    position = np.concatenate([[0], np.cumsum(kept)])
    if not kept.all():
        individual.subtree_size = (position[k + size] - position[k])[kept]
        individual.weights = individual.weights[kept]
        individual.thresholds = individual.thresholds[kept]
        leaves = position[leaves].astype(np.int32)
    individual.leaves = leaves
    return (individual.quality - size_penalty * len(individual),)


def splice(
    individual: PlainIndividual,
    k: int,
    parts: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Put another subtree in the place of the one at node `k`."""
    weights, thresholds, subtree_size = parts
    size = individual.subtree_size
    after = k + size[k]
    sizes_before = size[:k].copy()
    sizes_before[np.arange(k) + size[:k] > k] += len(subtree_size) - size[k]
    individual.weights = np.concatenate(
        [individual.weights[:k], weights, individual.weights[after:]]
    )
    individual.thresholds = np.concatenate(
        [individual.thresholds[:k], thresholds, individual.thresholds[after:]]
    )
    individual.subtree_size = np.concatenate([sizes_before, subtree_size, size[after:]])


def subtree(
    individual: PlainIndividual, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of the subtree at node `k`."""
    part = slice(k, k + individual.subtree_size[k])
    return (
        individual.weights[part],
        individual.thresholds[part],
        individual.subtree_size[part],
    )


def split_leaf(
    individual: PlainIndividual,
    k: int,
    rows: np.ndarray,
    dataset: Dataset,
    rng: np.random.Generator,
) -> None:
    """Make leaf `k` a test at right angles to a random mixed dipole, with two leaves."""
    i = rows[int(rng.random() * len(rows))]
    others = rows[dataset.y[rows] != dataset.y[i]]
    if len(others) == 0:
        return
    j = others[int(rng.random() * len(others))]
    weights, thresholds = np.zeros((3, dataset.X.shape[1])), np.zeros(3)
    weights[0] = dataset.X[i] - dataset.X[j]
    weights[0] /= np.sqrt(weights[0] @ weights[0])
    share = rng.random()
    thresholds[0] = weights[0] @ (share * dataset.X[i] + (1.0 - share) * dataset.X[j])
    splice(individual, k, (weights, thresholds, np.array([3, 1, 1])))


def dipolar_change(
    individual: PlainIndividual,
    k: int,
    rows: np.ndarray,
    dataset: Dataset,
    rng: np.random.Generator,
) -> bool:
    """Move one weight of node `k` so that a random dipole is treated better."""
    i, j = rows[(rng.random((2, _PAIR_TRIALS)) * len(rows)).astype(np.intp)]
    s_i = dataset.X[i] @ individual.weights[k] - individual.thresholds[k]
    s_j = dataset.X[j] @ individual.weights[k] - individual.thresholds[k]
    wrong = (dataset.y[i] != dataset.y[j]) != ((s_i <= 0.0) != (s_j <= 0.0))
    t = int(wrong.argmax())
    m = int(rng.random() * dataset.X.shape[1])
    x_i, x_j = dataset.X[i[t], m], dataset.X[j[t], m]
    if not wrong[t] or x_i == 0.0 or x_j == 0.0:
        return False
    first, second = -s_i[t] / x_i, -s_j[t] / x_j
    if (first < 0.0) != (second < 0.0):
        shift = (first if abs(first) < abs(second) else second) * (1.0 + rng.random())
    else:
        shift = first + (second - first) * rng.random()
    individual.weights[k, m] += shift
    return True


def gaussian_change(
    individual: PlainIndividual, k: int, dataset: Dataset, rng: np.random.Generator
) -> None:
    """Add noise to one weight of node `k` or to its threshold."""
    d = dataset.X.shape[1]
    spread = individual.weights[k] * dataset.spread
    noise = rng.normal() * np.sqrt(spread @ spread) * 10.0 ** (-2.0 * rng.random())
    m = int(rng.random() * (d + 1))
    if m == d:
        individual.thresholds[k] += noise
    else:
        individual.weights[k, m] += noise / (np.sqrt(d) * dataset.spread[m])


def mutate(
    individual: PlainIndividual,
    dataset: Dataset,
    rng: np.random.Generator,
    probability: float,
    dipolar_probability: float,
    min_rows: int,
) -> tuple[PlainIndividual]:
    """Mutate each node with a probability, the last first, so that positions stay what they are."""
    marked = np.flatnonzero(rng.random(len(individual)) < probability)
    if len(marked) == 0:
        return (individual,)
    leaves = (
        route(individual, dataset.X) if individual.leaves is None else individual.leaves
    )
    original = individual.subtree_size
    for k in marked[::-1]:
        # Subtrees further on may have changed, but the rows that reach node k have not.
        size = original[k]
        role = rng.random()
        if size == 1 or role >= 0.5:
            rows = np.flatnonzero((leaves >= k) & (leaves < k + size))
        if size == 1:
            if len(rows) >= min_rows:
                split_leaf(individual, k, rows, dataset, rng)
        elif role < 0.25:
            splice(
                individual,
                k,
                (np.zeros((1, dataset.X.shape[1])), np.zeros(1), np.ones(1, int)),
            )
        elif role < 0.5:
            child = k + 1 if role < 0.375 else k + 1 + individual.subtree_size[k + 1]
            splice(individual, k, subtree(individual, child))
        elif rng.random() >= dipolar_probability or not (
            len(rows) and dipolar_change(individual, k, rows, dataset, rng)
        ):
            gaussian_change(individual, k, dataset, rng)
    individual.leaves = None
    del individual.fitness.values
    return (individual,)


def mate(
    first: PlainIndividual,
    second: PlainIndividual,
    rng: np.random.Generator,
    test_probability: float,
) -> tuple[PlainIndividual, PlainIndividual]:
    """Exchange the tails of two tests, or two subtrees."""
    a, b = int(rng.random() * len(first)), int(rng.random() * len(second))
    has_tests = first.subtree_size[a] > 1 and second.subtree_size[b] > 1
    if has_tests and rng.random() < test_probability:
        cut = 1 + int(rng.random() * first.weights.shape[1])
        tail = first.weights[a, cut:].copy()
        first.weights[a, cut:] = second.weights[b, cut:]
        second.weights[b, cut:] = tail
        threshold = first.thresholds[a]
        first.thresholds[a] = second.thresholds[b]
        second.thresholds[b] = threshold
    else:
        part = subtree(first, a)
        splice(first, a, subtree(second, b))
        splice(second, b, part)
    for individual in (first, second):
        individual.leaves = None
        del individual.fitness.values
    return first, second


def select(
    individuals: Sequence[PlainIndividual],
    k: int,
    rng: np.random.Generator,
    pressure: float,
) -> list[PlainIndividual]:
    """Draw parents in proportion to their linearly scaled fitness."""
    fitness = np.array([individual.fitness.wvalues[0] for individual in individuals])
    share = linear_scaling(fitness, pressure)
    drawn = rng.choice(len(individuals), size=k, p=share / share.sum())
    return [individuals[i] for i in drawn]


def make_plain_toolbox(
    dataset: Dataset, size_penalty: float, seed: int = 0
) -> base.Toolbox:
    """Return the toolbox of the plain evolution, with the rates of `evotree.make_toolbox`."""
    rng = np.random.default_rng(seed)
    toolbox = base.Toolbox()  # its `clone` is `copy.deepcopy`, its `map` is `map`
    toolbox.register("streams", make_streams, seed)
    toolbox.register("select", select, rng=rng, pressure=2.0)
    toolbox.register("mate", mate, rng=rng, test_probability=0.5)
    toolbox.register(
        "mutate",
        mutate,
        dataset=dataset,
        rng=rng,
        probability=0.1,
        dipolar_probability=0.5,
        min_rows=5,
    )
    toolbox.register("evaluate", evaluate, dataset=dataset, size_penalty=size_penalty)
    return toolbox


def plain_copies(
    trees: Iterable[ObliqueTree], toolbox: base.Toolbox
) -> list[PlainIndividual]:
    """Return evaluated plain individuals that are the same trees."""
    copies = []
    for tree in trees:
        copy = PlainIndividual(
            tree.weights.copy(),
            tree.thresholds.copy(),
            tree.subtree_size.astype(np.int64),
        )
        copy.fitness.values = toolbox.evaluate(copy)
        copies.append(copy)
    return copies

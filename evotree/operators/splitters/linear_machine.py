"""Linear machines: the splits of LMDT (Utgoff and Brodley 1991; Brodley and Utgoff 1995).

A linear machine has one linear function for each class; a row belongs to the class whose function
is the highest. It is trained by corrections of misclassified rows that get smaller while training
cools down, and loses features as long as it stays as accurate.

A machine of two classes is one hyperplane. One of more is as many binary splits as it takes: each
asks which of two functions is higher, until all rows of a node have one winner.

The constants of the cooling, the first four of `_COOLING`, are those of the authors as they are
remembered: accuracy hardly depends on them (``docs/algorithms.md``). The rest are ours.
"""

import math
from dataclasses import dataclass
from itertools import combinations
from numbers import Real
from typing import Annotated, NamedTuple

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree.configuration import Configuration, Interval
from evotree.fitness.node import Node, score_hyperplane
from evotree.operators.splitters.base import Axis, Split, needs_classes
from evotree.rng import as_generator

# Beta at first and where training ends, the factor and the step by which it falls, from memory of
# Brodley and Utgoff (1995); and the most passes over the rows, ours.
_COOLING = (2.0, 1e-3, 0.999, 0.0005, 1_000)


@inner_kernel
def add_multiple(function, row, step):
    """Add a multiple of a row to a function; return by how much its magnitude has risen."""
    before = after = 0.0
    for f in range(row.shape[0]):
        before += function[f] * function[f]
        function[f] += step * row[f]
        after += function[f] * function[f]
    return math.sqrt(after) - math.sqrt(before)


@kernel
def train_machine(
    rows, y, sample_weight, order, functions, hot, cold, factor, step, most_passes
):
    """Train a linear machine by thermal corrections (Brodley and Utgoff 1995).

    ``rows (n, p)`` have a 1 in the last column; ``functions (n_classes, p)`` are overwritten. Beta
    falls from `hot` to `cold`, each time to `factor` of it less `step`.
    """
    # A row of class i that the machine takes for class j, at the distance
    # k = (w_j - w_i) . x / (2 x . x) from being right, moves both by c = beta**2 / (beta + k) of
    # itself. Rows with k of beta or more, which are far off, move nothing. Beta falls when the
    # magnitude of the machine falls after it rose.
    n_classes, p = functions.shape
    beta, rose = hot, False
    values = np.empty(n_classes)
    for _ in range(most_passes):
        n_corrected = 0
        for i in order:
            right, other, length = y[i], -1, 0.0  # the class, and the highest one else
            for f in range(p):
                length += rows[i, f] * rows[i, f]
            for c in range(n_classes):
                values[c] = 0.0
                for f in range(p):
                    values[c] += functions[c, f] * rows[i, f]
                if c != right and (other < 0 or values[c] > values[other]):
                    other = c
            k = (values[other] - values[right]) / (2.0 * length)
            if not 0.0 <= k < beta:
                continue
            n_corrected += 1
            correction = sample_weight[i] * beta * beta / (beta + k)
            change = add_multiple(functions[right], rows[i], correction)
            change += add_multiple(functions[other], rows[i], -correction)
            if change < 0.0 and rose:
                beta = factor * beta - step
            rose = change > 0.0
            if beta < cold:
                return
        if n_corrected == 0:
            return


class Machine(NamedTuple):
    """A linear machine over the features of a node: one function for each class."""

    weights: np.ndarray  # (n_classes, d): normal vectors
    # (n_classes,): minus infinity for a class that no row of the node has.
    intercepts: np.ndarray

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the value of each function for each row."""
        return np.matmul(X, self.weights.T) + self.intercepts


@dataclass(frozen=True, repr=False)
class LinearMachine(Configuration):
    """A linear machine, thermally trained, of few features (Brodley and Utgoff 1995).

    At a node whose rows have two classes the split is the machine. At one of more classes it is the
    comparison of two of its functions that tells most of the winners apart, and the nodes below go
    on with the same machine until all their rows have one winner; then another machine is trained.
    Where a machine has one winner for all rows, the best split on one feature takes its place.
    """

    # Features are eliminated, that of the least dispersion of weights first, until the machine has
    # lost more than this share of the rows against the most accurate one. The most accurate machine
    # is taken, of equals the one with the fewest features.
    tolerance: Annotated[float, Interval(Real, 0.0, 1.0, closed="both")] = 0.01

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Train a machine and find its first comparison (see `Splitter`)."""
        needs_classes(node, "LinearMachine")
        machine = fit_machine(node, self.tolerance, stream)
        if np.unique(machine.values(node.X).argmax(axis=1)).size == 1:
            return Axis()(node, stream)
        return Comparisons(machine, self)(node, stream)


@dataclass(frozen=True)
class Comparisons:
    """The binary splits that are a linear machine; for rows of one winner, the trainer's."""

    machine: Machine
    trainer: LinearMachine

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Compare the two functions that tell most about which class wins (see `Splitter`)."""
        values = self.machine.values(node.X)
        winners, codes = np.unique(values.argmax(axis=1), return_inverse=True)
        if winners.size == 1:
            return self.trainer(node, stream)
        best, chosen = np.inf, (0, 0)
        for first, second in combinations(winners.tolist(), 2):
            left = values[:, first] <= values[:, second]
            entropy = sum(
                _entropy(codes[side], node.sample_weight[side])
                for side in (left, ~left)
            )
            if entropy < best - 1e-9:
                best, chosen = entropy, (first, second)
        weights, intercepts = (array[list(chosen)] for array in self.machine)
        normal, threshold = (
            weights[0] - weights[1],
            float(intercepts[1] - intercepts[0]),
        )
        score = score_hyperplane(node, normal, threshold)
        if (
            score == np.inf
        ):  # where values are huge, sums in another order have one winner
            return None
        return Split(
            normal, threshold, score, self if winners.size > 2 else self.trainer
        )


def _entropy(codes: np.ndarray, weight: np.ndarray) -> float:
    """Return the entropy of codes times their weight."""
    counts = np.bincount(codes, weight)
    counts = counts[counts > 0.0]
    return float(-(counts * np.log2(counts / counts.sum())).sum())


def fit_machine(node: Node, tolerance: float, stream: np.ndarray) -> Machine:
    """Train a machine on the rows of a node, and eliminate features."""
    varies = node.X.max(axis=0) > node.X.min(axis=0)
    mean, scale = node.X.mean(axis=0), np.where(varies, node.X.std(axis=0), 1.0)
    rows = np.ones((len(node.y), len(mean) + 1))
    rows[:, :-1] = np.where(varies, (node.X - mean) / scale, 0.0)
    weight = node.sample_weight / node.sample_weight.mean()
    functions = np.zeros((node.n_classes, rows.shape[1]))
    functions[np.setdiff1d(np.arange(node.n_classes), node.y), -1] = -np.inf
    best, least_wrong = functions, np.inf
    generator = as_generator(stream)
    kept = np.flatnonzero(varies)
    while kept.size:
        order = generator.permutation(len(rows))
        train_machine(rows, node.y, weight, order, functions, *_COOLING)
        wrong = weight[(rows @ functions.T).argmax(axis=1) != node.y].sum()
        if wrong > least_wrong + tolerance * weight.sum():
            break
        if wrong <= least_wrong:
            best, least_wrong = functions.copy(), wrong
        weakest = kept[functions[np.unique(node.y)][:, kept].var(axis=0).argmin()]
        functions[:, weakest] = 0.0
        rows[:, weakest] = 0.0
        kept = kept[kept != weakest]
    weights = best[:, :-1] / scale
    return Machine(weights, best[:, -1] - weights @ mean)

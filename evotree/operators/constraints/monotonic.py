"""Monotonic constraints: trees that predict no less where a feature is raised, or no more.

That a tree keeps them is proved: for all rows, not only for those of a sample.

A tree is non-decreasing in a feature unless there are two leaves A and B, A predicting more, and a
row of A that falls into B when the feature is raised. The rows of a leaf are a polyhedron, so one
linear program for each such pair of leaves tells. What the solver says is not believed: a row is
shown to the tree itself, and that there is none is proved in exact arithmetic, by the solver's
multipliers (Motzkin 1936, a theorem of the alternative for strict inequalities).

Where leaves have bounded lines, A and B may be the same leaf, and there are four programs: a line
within its bounds is above a number t if it, or its lower bound, is above t, and so is its upper
one. The proof is about lines in exact arithmetic. Rounding may break it only where the coefficients
of two leaves differ: sums of the same products in the same order keep the order of the intercepts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from evotree.configuration import check_monotonic_signs
from evotree.dataset import Dataset
from evotree.fitness.node import Node
from evotree.fitness.orders import CONFLICT, isotonic_values, node_orders
from evotree.operators.pruning.rules import prune_tree
from evotree.operators.splitters.linear_fit import start_at
from evotree.operators.splitters.sparse import fit_on
from evotree.operators.structure.reduced import SPARSE_ROWS, Hyperplane, refit_nodes
from evotree.operators.structure.splice import make_individual
from evotree.tables.columns import CategoricalColumn, Column
from evotree.tree import Individual, ObliqueTree

_C = 1.0  # of the classifier that it is fitted by
_NO_MULTIPLIER = 1e-9  # of the greatest: what the solver leaves of a zero


# ---- the proof -----------------------------------------------------------------------------------


class Violation(NamedTuple):
    """Two leaves that break a constraint: a row of one falls, or rises, into the other.

    The row is None where none was found, but that there is none was not proved.
    """

    leaf: int  # it predicts too much, or too little where the prediction may not rise
    raised_leaf: int  # which a row of `leaf` reaches when the feature is raised
    feature: int
    row: np.ndarray | None  # it reaches `leaf`
    raised_row: np.ndarray | None  # the same one, raised, which reaches `raised_leaf`


class _System(NamedTuple):
    """Inequalities ``A z <= b`` of z = (x, step), or (x, step, t) to part lines by a number t."""

    A: np.ndarray
    b: np.ndarray
    is_strict: np.ndarray


def violations(tree: ObliqueTree, signs: np.ndarray) -> list[Violation]:
    """Return all pairs of leaves that break, or may break, monotonic constraints.

    Parameters
    ----------
    tree : ObliqueTree
        Predicts by the last column of its values: the share of the second of two classes, or the
        target; or by the linear models of its leaves.
    signs : ndarray of shape (n_features,), int
        1 for features that the prediction may not fall with, -1 for those that it may not rise
        with, 0 for others.

    Returns
    -------
    list of Violation
        An empty list is the proof that the tree keeps the constraints for all rows.

    Examples
    --------
    >>> tree = ObliqueTree(
    ...     weights=np.array([[1.0, -0.5], [0.0, 0.0], [0.0, 0.0]]),
    ...     thresholds=np.array([2.0, 0.0, 0.0]),
    ...     subtree_size=np.array([3, 1, 1], dtype=np.int32),
    ...     values=np.array([[1.5], [1.0], [2.0]]),
    ... )
    >>> violations(tree, np.array([1, -1]))
    []
    >>> [(one.leaf, one.raised_leaf, one.feature) for one in violations(tree, np.array([0, 1]))]
    [(2, 1, 1)]
    """
    broken = []
    for leaf, raised_leaf, feature in _suspects(tree, signs):
        is_proved = True
        for system in _systems(tree, leaf, raised_leaf, feature, signs[feature]):
            z, support = _solve(system, _units(tree, feature))
            rows = _witness(tree, z, leaf, raised_leaf, feature, signs[feature])
            if rows is not None:
                broken.append(Violation(leaf, raised_leaf, feature, *rows))
                break
            is_proved = is_proved and _is_infeasible(system, support)
        else:
            if not is_proved:
                broken.append(Violation(leaf, raised_leaf, feature, None, None))
    return broken


def _suspects(tree: ObliqueTree, signs: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Yield the pairs of leaves that may be in the wrong order, on the two sides of some split."""
    # Raising a feature takes rows from one side to the other only, by the sign of its weight. A
    # leaf whose line has the wrong slope is a pair with itself.
    for k in np.flatnonzero(~tree.is_leaf).tolist():
        sides = _leaves(tree, tree.left(k)), _leaves(tree, tree.right(k))
        for j in np.flatnonzero(tree.weights[k] * signs).tolist():
            before, after = sides if tree.weights[k, j] > 0.0 else sides[::-1]
            if signs[j] > 0:
                may_fall = ~_in_order(tree, before, after, j, signs[j])
            else:
                may_fall = ~_in_order(tree, after, before, j, signs[j]).T
            for a, b in np.argwhere(may_fall).tolist():
                yield int(before[a]), int(after[b]), j
    if tree.models is not None:
        for k, j in np.argwhere(tree.models.coefficients * signs < 0.0).tolist():
            yield k, k, j


def _in_order(
    tree: ObliqueTree, low: np.ndarray, high: np.ndarray, feature: int, sign: int
) -> np.ndarray:
    """Return for pairs of leaves whether they are in order, whatever the rows are."""
    if tree.models is None:
        values = tree.values[:, -1]
        return np.less_equal.outer(values[low], values[high])
    below, above = tree.models.take(low), tree.models.take(high)
    is_shifted = (below.coefficients[:, np.newaxis] == above.coefficients).all(axis=2)
    is_shifted &= above.coefficients[:, feature] * sign >= 0.0
    for name in ("intercepts", "lowest", "highest"):
        is_shifted &= np.less_equal.outer(getattr(below, name), getattr(above, name))
    return is_shifted | np.less_equal.outer(below.highest, above.lowest)


def _leaves(tree: ObliqueTree, k: int) -> np.ndarray:
    """Return the leaves of the subtree at node `k`."""
    return k + np.flatnonzero(tree.subtree_size[k : k + tree.subtree_size[k]] == 1)


def _systems(
    tree: ObliqueTree, leaf: int, raised_leaf: int, feature: int, sign: int
) -> Iterator[_System]:
    """Yield what holds of rows that show a pair of leaves to break a constraint: one of these."""
    joining = _joining_rows(tree, leaf, raised_leaf, feature)
    if tree.models is None:
        yield joining
        return
    models = tree.models
    low, high = (leaf, raised_leaf)[:: int(sign)]

    def line(k: int, is_raised: bool) -> np.ndarray:
        slopes = models.coefficients[k]
        return np.append(slopes, slopes[feature] if is_raised else 0.0)

    low_line = line(low, sign < 0)
    high_line = line(high, sign > 0)
    nothing = np.zeros_like(low_line)
    # The lower leaf is above t, and the higher one is not.
    for above, above_bound in (
        (-low_line, models.intercepts[low]),
        (nothing, models.lowest[low]),
    ):
        for under, under_bound in (
            (high_line, models.intercepts[high]),
            (nothing, models.highest[high]),
        ):
            of_rows = np.vstack([joining.A, above, nothing, under, nothing])
            of_t = np.append(np.zeros(len(joining.b)), [1.0, 1.0, -1.0, -1.0])
            bounds = [
                above_bound,
                models.highest[low],
                -under_bound,
                -models.lowest[high],
            ]
            yield _System(
                np.column_stack([of_rows, of_t]),
                np.append(joining.b, bounds),
                np.append(joining.is_strict, [True, True, False, False]),
            )


def _joining_rows(
    tree: ObliqueTree, leaf: int, raised_leaf: int, feature: int
) -> _System:
    """Return what holds of (x, step) where x reaches one leaf, and raised by the step the other."""
    A, b, is_strict = [np.zeros(tree.n_features + 1)], [0.0], [True]
    A[0][-1] = -1.0  # the step is above 0

    def add(k: int, goes_left: bool, is_raised: bool) -> None:
        normal, bound = tree.weights[k], float(tree.thresholds[k])
        if not normal.any() and (bound >= 0.0) == goes_left:
            return  # all rows go this way
        normal = np.append(normal, normal[feature] if is_raised else 0.0)
        A.append(normal if goes_left else -normal)
        b.append(bound if goes_left else -bound)
        is_strict.append(not goes_left)

    k = 0
    # Of a split above both, one inequality implies the other.
    while tree.subtree_size[k] > 1:
        sides = [at < tree.right(k) for at in (leaf, raised_leaf)]
        if sides[0] != sides[1]:
            break
        add(k, sides[0], is_raised=sides[0] == (tree.weights[k, feature] > 0.0))
        k = tree.left(k) if sides[0] else tree.right(k)
    for at, is_raised in ((leaf, False), (raised_leaf, True)):
        below = k
        while tree.subtree_size[below] > 1:
            goes_left = at < tree.right(below)
            add(below, goes_left, is_raised)
            below = tree.left(below) if goes_left else tree.right(below)
    return _System(np.array(A), np.array(b), np.array(is_strict))


def _units(tree: ObliqueTree, feature: int) -> np.ndarray:
    """Return units of z in which hyperplanes are about as far apart in all directions."""
    spread = np.ones(tree.n_features) if tree.spread is None else tree.spread
    units = np.where(spread > 0.0, spread, 1.0)
    units = np.append(units, units[feature])
    if tree.models is None:
        return units
    return np.append(units, tree.models.highest.max() - tree.models.lowest.min() or 1.0)


def _solve(system: _System, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Look for a point with the most room to all hyperplanes, up to 1 unit.

    Returned are the point, and the inequalities whose multipliers are not 0, by which it may be
    proved that there is none.
    """
    used = np.flatnonzero(system.A.any(axis=0))
    A = system.A[:, used] * units[used]
    norms = np.linalg.norm(A, axis=1)
    norms[norms == 0.0] = 1.0
    A_room = np.column_stack([A / norms[:, np.newaxis], np.ones(len(A))])
    solution = linprog(
        np.append(np.zeros(used.size), -1.0),
        A_room,
        system.b / norms,
        bounds=[(None, None)] * used.size + [(None, 1.0)],
        method="highs-ds",
    )
    z = np.zeros(system.A.shape[1])
    if solution.x is None:
        return z, np.arange(len(A))
    z[used] = solution.x[:-1] * units[used]
    multipliers = -solution.ineqlin.marginals
    support = np.flatnonzero(
        multipliers > _NO_MULTIPLIER * multipliers.max(initial=0.0)
    )
    return z, support


def _witness(
    tree: ObliqueTree,
    z: np.ndarray,
    leaf: int,
    raised_leaf: int,
    feature: int,
    sign: int,
) -> np.ndarray | None:
    """Return a row and the raised one if the tree itself takes them to the leaves, and falls."""
    x, step = z[: tree.n_features], z[tree.n_features]
    rows = np.array([x, x])
    rows[1, feature] += step
    is_real = step > 0.0 and tree.apply(rows).tolist() == [leaf, raised_leaf]
    is_real = is_real and sign * np.diff(tree.predict_value(rows)[:, -1])[0] < 0.0
    return rows if is_real else None


def _is_infeasible(system: _System, support: np.ndarray) -> bool:
    """Return whether multipliers of some inequalities prove that no point keeps all of them."""
    # The inequalities, multiplied by numbers of at least 0 and added, have to say ``0 <= b`` for
    # some b below 0, or ``0 < 0``. The multipliers are found and checked as fractions.
    used = np.flatnonzero(system.A[support].any(axis=0))
    equations = [list(map(Fraction, column)) for column in system.A[support][:, used].T]
    multipliers = _only_solution(equations, support.size)
    if multipliers is None or min(multipliers) < 0:
        return False
    total = sum(
        y * Fraction(b) for y, b in zip(multipliers, system.b[support], strict=True)
    )
    is_strict = any(
        y > 0 and system.is_strict[i] for y, i in zip(multipliers, support, strict=True)
    )
    return total < 0 or (total == 0 and is_strict)


def _only_solution(equations: list[list[Fraction]], n: int) -> list[Fraction] | None:
    """Return the only direction that solves homogeneous equations of `n` unknowns, or None."""
    rows = equations
    solved: dict[
        int, list[Fraction]
    ] = {}  # equations, by the unknown that each is solved for
    for at in range(n):
        pivot = next((row for row in rows if row[at]), None)
        if pivot is None:
            continue
        scaled = [value / pivot[at] for value in pivot]
        rows = [_without(row, at, scaled) for row in rows if row is not pivot]
        solved = {k: _without(row, at, scaled) for k, row in solved.items()}
        solved[at] = scaled
    free = set(range(n)) - solved.keys()
    if len(free) != 1:
        return None
    (last,) = free
    return [-solved[at][last] if at in solved else Fraction(1) for at in range(n)]


def _without(row: list[Fraction], at: int, scaled: list[Fraction]) -> list[Fraction]:
    """Return an equation less the multiple of another one that takes an unknown out of it."""
    return [a - row[at] * b for a, b in zip(row, scaled, strict=True)]


# ---- the constraint ------------------------------------------------------------------------------


def check_monotonic_cst(
    monotonic_cst: Any, estimator: Any, columns: Sequence[Column], n_classes: int = 0
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
    signs = check_monotonic_signs(estimator, monotonic_cst)
    for column, sign in zip(columns, signs, strict=True):
        if sign and isinstance(column, CategoricalColumn):
            raise ValueError(
                f"monotonic_cst={sign} for {column.name!r}, a column of categories."
            )
    if n_classes > 2 and signs.any():
        raise ValueError(
            f"monotonic_cst={monotonic_cst!r}: allowed is None, or 0 for every column, where there "
            f"are {n_classes} classes; of two classes, the share of the second is constrained."
        )
    if n_classes == 1 or not signs.any():
        return None
    # What says that a number is missing comes after the number, and has no sign.
    of_features = [
        int(sign) if at == 0 else 0
        for column, sign in zip(columns, signs, strict=True)
        for at in range(len(column.feature_levels))
    ]
    return MonotonicConstraint(tuple(of_features), n_classes)


@dataclass(frozen=True)
class MonotonicConstraint:
    """The prediction may not fall, or not rise, with some features."""

    # For two classes the prediction is the share of the second, and the label. Trees keep the
    # constraint by the orders of their splits (`evotree.fitness.orders`): no split has terms that
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
            mean = dataset.X[rows].mean(axis=0)
            thresholds[k] -= weights[k, dropped] @ mean[dropped]
            weights[k, dropped] = 0.0
        refit_nodes(
            individual,
            dataset,
            conflicts[::-1],  # those below come first
            weights,
            thresholds,
            fit=self._refit,
            stream=np.zeros(1, dtype=np.uint64),  # of many rows, the same ones always
            max_rows=SPARSE_ROWS,
        )
        individual.replace_by(
            make_individual(dataset, weights, thresholds, individual.subtree_size)
        )

    def _refit(self, node: Node, present: Hyperplane) -> Hyperplane | None:
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
            if not fit_on(node, theta, support, _C):
                return None
            turned = theta[:-1] * pulls < 0.0
            if not turned.any():
                return theta[:-1], -float(theta[-1])
            theta[:-1][turned] = 0.0
            support = support[~turned[support]]
        return None

    # ---- leaves ----------------------------------------------------------------------------------

    def values(self, tree: Any) -> np.ndarray:
        """Return the best values in order: shares of the second class, or targets."""
        means, weight = _means(tree)
        return isotonic_values(self.orders(tree), tree.subtree_size, means, weight)

    def _values_of(self, tree: ObliqueTree, values: np.ndarray) -> np.ndarray:
        """Return the values in order that are nearest to those of a finished tree."""
        return isotonic_values(
            self.orders(tree),
            tree.subtree_size,
            np.ascontiguousarray(values[:, -1]),
            tree.weighted_n_node_samples,
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

    def finish(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a tree whose values keep the constraint, which is proved."""
        values = self._values_of(tree, tree.values)[:, np.newaxis]
        marks = _of_equal_leaves(tree, values)
        if tree.values.shape[1] == 2:  # shares of two classes
            values = np.column_stack([1.0 - values, values])
        return self._proved(prune_tree(tree.predicting(values), marks))

    def finish_lines(
        self,
        tree: ObliqueTree,
        fill: Callable[[ObliqueTree], ObliqueTree],
        sharing: Callable[[ObliqueTree], np.ndarray],
    ) -> ObliqueTree:
        """Return a tree whose lines keep the constraint, which is proved."""
        # Splits whose sides now predict the same are left out, and the others get their lines
        # again; it ends, since the tree gets smaller each time.
        while True:
            finished = fill(tree)
            lines = np.column_stack([sharing(finished), finished.models.intercepts])
            marks = _of_equal_leaves(finished, lines)
            if not marks[~finished.is_leaf].any():
                return self._proved(finished)
            tree = prune_tree(finished, marks).with_models(None)

    def _proved(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a tree that is proved to keep the constraint; any other is an error."""
        broken = self.violations(tree)
        if broken:
            raise RuntimeError(f"monotonic_cst is not proved to hold: {broken[0]}.")
        return tree

    def violations(self, tree: ObliqueTree) -> list[Violation]:
        """Return the pairs of leaves that break the constraint (`violations`); none is a proof."""
        return violations(tree, self.array)


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

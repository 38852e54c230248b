"""The proof, for all rows, that a tree is monotonic: a linear program for each pair of leaves.

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

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from evotree.tree import ObliqueTree

# The solver leaves this share of the greatest multiplier where there is none.
_NO_MULTIPLIER = 1e-9


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
    for here, other, is_raised in (
        (leaf, raised_leaf, False),
        (raised_leaf, leaf, True),
    ):
        k, is_above_both = 0, True
        while tree.subtree_size[k] > 1:
            right, normal, bound = tree.right(k), tree.weights[k], tree.thresholds[k]
            goes_left, rises = here < right, normal[feature] > 0.0
            is_above_both &= goes_left == (other < right)
            # Of a split above both, one inequality implies the other.
            is_implied = is_above_both and is_raised != (goes_left == rises)
            keeps_all = not normal.any() and (bound >= 0.0) == goes_left
            if not is_implied and not keeps_all:
                sign = 1.0 if goes_left else -1.0
                A.append(sign * np.append(normal, normal[feature] * is_raised))
                b.append(sign * float(bound))
                is_strict.append(not goes_left)
            k = tree.left(k) if goes_left else right
    return _System(np.array(A), np.array(b), np.array(is_strict))


def _units(tree: ObliqueTree, feature: int) -> np.ndarray:
    """Return units of z in which hyperplanes are about as far apart in all directions."""
    units = np.where(tree.known_spread > 0.0, tree.known_spread, 1.0)
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
    solution = linprog(
        np.append(np.zeros(used.size), -1.0),
        np.column_stack([A / norms[:, np.newaxis], np.ones(len(A))]),
        system.b / norms,
        bounds=[(None, None)] * used.size + [(None, 1.0)],
        method="highs-ds",
    )
    z = np.zeros(system.A.shape[1])
    if solution.x is None:
        return z, np.arange(len(A))
    z[used] = solution.x[:-1] * units[used]
    multipliers = -solution.ineqlin.marginals
    return z, np.flatnonzero(
        multipliers > _NO_MULTIPLIER * multipliers.max(initial=0.0)
    )


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
    # Equations, by the unknown that each is solved for
    solved: dict[int, list[Fraction]] = {}
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

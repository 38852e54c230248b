"""The smallest step into a polytope: by linear, mixed-integer and least-distance programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp, nnls

_WHOLE = 1e-6  # what is nearer to a whole number is one
_SOLVED = (0, 2)  # what milp calls an optimum, and the proof that there is none
_SLACK = 1e-9  # of sums
_MOST_SETS, _MOST_PROGRAMS = 5_000, 100  # more take longer than one mixed-integer program
_MOST_ROUNDS, _MOST_NODES = 200, 10_000  # of programs, and of the tree of one
_EXACT = {"mip_rel_gap": 0.0, "node_limit": _MOST_NODES}
_TOO_LONG = (
    "the nearest point takes too many programs to be found: fix columns (fixed), narrow bounds, "
    "leave out integers, or take another norm."
)
_LEAST_RESIDUAL = 1e-9  # below it, no step of fewer than a billion units is long enough


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps y with ``A @ y <= b`` and ``lower <= y <= upper``, some of whose parts are whole.

    Attributes
    ----------
    A : ndarray of shape (n_constraints, n_parts)
        Rows of a length near 1.
    b : ndarray of shape (n_constraints,)
        Their bounds.
    lower, upper : ndarray of shape (n_parts,)
        Bounds of the parts, perhaps infinite.
    prices : ndarray of shape (n_parts,)
        What a part of length 1 costs, above 0.
    is_whole : ndarray of shape (n_parts,), bool
        Which parts are whole numbers.
    column : ndarray of shape (n_parts,), int
        The group that each part belongs to: 0, 1, ...
    column_prices : ndarray of shape (n_groups,)
        What it costs that some part of a group is not 0, above 0.
    """

    A: np.ndarray
    b: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    prices: np.ndarray
    is_whole: np.ndarray
    column: np.ndarray
    column_prices: np.ndarray

    @property
    def can_be(self) -> bool:
        """Whether no bound or single constraint forbids all steps."""
        least = np.where(self.A > 0.0, self.lower, self.upper)
        products = np.multiply(self.A, least, out=np.zeros_like(self.A), where=self.A != 0.0)
        return bool(
            (self.lower <= self.upper).all() and (products.sum(axis=1) <= self.b + _SLACK).all()
        )


def shortest_l1(steps: Steps) -> np.ndarray | None:
    """Return the step with the smallest sum of prices times lengths, by a program."""
    # A step is the difference of two parts that are not negative.
    rows = np.hstack([steps.A, -steps.A])
    whole = np.tile(steps.is_whole, 2)
    found = _solve(np.tile(steps.prices, 2), whole, *_two_sided(steps), rows, steps.b)
    return None if found is None else _difference(found, steps)


def shortest_l2(steps: Steps) -> np.ndarray | None:
    """Return the step with the smallest sum of squares of prices times lengths.

    Without whole parts it is a least-distance program, which is solved exactly by non-negative
    least squares. With some, mixed-integer programs in which lines bound the squares from below
    choose these parts; the least-distance program of the others adds lines that touch at its
    solution, until a choice comes again. Steps of 0 and 1 are their own squares.
    """
    if not steps.is_whole.any():
        return _least_distance(steps)
    n, is_whole, (low, high) = len(steps.prices), steps.is_whole, _two_sided(steps)
    is_curved, squared = ~is_whole | (np.maximum(high[:n], high[n:]) > 1.0), steps.prices**2
    of_curved = np.eye(n)[is_curved]
    none = np.zeros(len(of_curved))
    cost = np.concatenate([np.tile(np.where(is_curved, 0.0, squared), 2), squared[is_curved]])
    whole = np.append(np.tile(is_whole, 2), none)
    low, high = np.append(low, none), np.append(high, none + np.inf)
    rows = np.hstack([steps.A, -steps.A, np.zeros((len(steps.A), len(none)))])
    limits, best, least, seen = steps.b, None, np.inf, set()
    for _ in range(_MOST_ROUNDS):
        found = _solve(cost, whole, low, high, rows, limits)
        if found is None or cost @ found >= least - _SLACK:
            return best
        chosen = _difference(found, steps)
        lower, upper = (np.where(is_whole, chosen, end) for end in (steps.lower, steps.upper))
        step = _least_distance(replace(steps, lower=lower, upper=upper))
        step = chosen if step is None else step  # which is allowed but for rounding
        if (length := float(squared @ np.square(step))) < least:
            best, least = step, length
        if (key := chosen[is_whole].tobytes()) in seen:
            return best
        seen.add(key)
        for point, side in product((step, chosen), (-1.0, 1.0)):
            # A line that meets the squares of a whole part at its next whole number, too.
            other = point + side * is_whole
            lines = of_curved * (point + other)
            rows = np.vstack([rows, np.hstack([lines, -lines, -np.eye(len(none))])])
            limits = np.append(limits, of_curved @ (point * other))
    raise ValueError(_TOO_LONG)


def fewest(steps: Steps, below: float = np.inf) -> np.ndarray | None:
    """Return the step that changes the cheapest columns; of several, the one with the smallest sum.

    Where columns cost the same, sets of few of them are gone through: most cannot keep some
    constraint, or the sum of two, and the others leave small programs. What needs many columns, or
    has columns of several prices, is a mixed-integer program.
    """
    prices = steps.column_prices
    if prices.size == 0 or (prices != prices[0]).any():
        return _fewest_by_program(steps, below)
    told = _with_sums(steps)
    for n_changed in range(len(prices) + 1):
        if n_changed * prices[0] >= below:
            return None
        sets = _sets_of_columns(told, n_changed)
        if sets is None:
            return _fewest_by_program(steps, below)
        found = _shortest_of_sets(steps, told, sets)
        if found is not None:
            return found
    return None


def _sets_of_columns(steps: Steps, size: int) -> np.ndarray | None:
    """Return sets of so many columns, those that may be enough, or None if there are too many.

    Each has all columns that must change, and gains enough for each constraint by itself.
    """
    n_columns = len(steps.column_prices)
    must = np.unique(steps.column[(steps.lower > 0.0) | (steps.upper < 0.0)])
    others = np.setdiff1d(np.arange(n_columns), must)
    n_others = size - len(must)
    if n_others < 0:
        return np.empty((0, size), dtype=np.int64)
    if math.comb(len(others), n_others) > _MOST_SETS:
        return None
    chosen = np.array(list(combinations(others.tolist(), n_others)), dtype=np.int64)
    sets = np.hstack([np.tile(must, (len(chosen), 1)), chosen])
    gains = _gains_of_columns(steps, np.ones(len(steps.b), dtype=bool))
    enough = gains[:, sets].sum(axis=2) >= -steps.b[:, np.newaxis] - _SLACK
    sets = sets[enough.all(axis=0)]
    return sets if len(sets) <= _MOST_PROGRAMS else None


def _shortest_of_sets(steps: Steps, told: Steps, sets: np.ndarray) -> np.ndarray | None:
    """Return the step with the smallest sum that changes the columns of one of some sets.

    What more is told of the steps bounds their lengths.
    """
    best, least = None, np.inf
    kept = [np.isin(steps.column, one) for one in sets]
    bounds = [least_length(_only(told, parts), "l1") for parts in kept]
    for at in np.argsort(bounds, kind="stable").tolist():
        if bounds[at] >= least:
            break
        step = _shortest_of_parts(steps, kept[at])
        if step is not None and (length := length_of(step, steps, "l1")) < least:
            best, least = step, length
    return best


def _with_sums(steps: Steps) -> Steps:
    """Return the steps with the sums of any two constraints beside them.

    These follow, but tell more of what a few columns can do.
    """
    i, j = np.triu_indices(len(steps.b), 1)
    A = np.vstack([steps.A, steps.A[i] + steps.A[j]])
    return replace(steps, A=A, b=np.append(steps.b, steps.b[i] + steps.b[j]))


def _shortest_of_parts(steps: Steps, parts: np.ndarray) -> np.ndarray | None:
    """Return the step with the smallest sum that changes some parts alone."""
    found = shortest_l1(_only(steps, parts))
    if found is None:
        return None
    step = np.zeros(len(steps.prices))
    step[parts] = found
    return step


def _only(steps: Steps, parts: np.ndarray) -> Steps:
    """Return the steps in some parts, where the others are 0."""
    names = ("lower", "upper", "prices", "is_whole", "column")
    some = {name: getattr(steps, name)[parts] for name in names}
    return replace(steps, A=steps.A[:, parts], **some)


def _fewest_by_program(steps: Steps, below: float) -> np.ndarray | None:
    """Return what `fewest` does, by a mixed-integer program."""
    n, n_columns = len(steps.prices), len(steps.column_prices)
    low, high = _two_sided(steps)
    is_of = (steps.column[:, np.newaxis] == np.arange(n_columns)).astype(np.float64)
    # A part is 0 where its column is not changed.
    linked = np.hstack([np.eye(2 * n), -high[:, np.newaxis] * np.vstack([is_of, is_of])])
    A = np.hstack([steps.A, -steps.A, np.zeros((len(steps.A), n_columns))])
    chosen = np.append(np.zeros(2 * n), steps.column_prices)
    price = np.append(np.tile(steps.prices, 2), np.zeros(n_columns))
    rows, limits = np.vstack([A, linked]), np.append(steps.b, np.zeros(2 * n))
    low, high = np.append(low, np.zeros(n_columns)), np.append(high, np.ones(n_columns))
    whole = np.append(np.tile(steps.is_whole, 2), np.ones(n_columns))
    found = _solve(chosen, whole, low, high, rows, limits)
    if found is not None:
        least = float(chosen @ np.round(found))
        if least >= below:
            return None
        rows, limits = np.vstack([rows, chosen]), np.append(limits, least + _WHOLE)
        found = _solve(price, whole, low, high, rows, limits)
    if found is None:
        return None
    # Parts of columns that are not changed are 0 to within a tolerance: now to the last digit.
    return _shortest_of_parts(steps, np.round(found[2 * n :]).astype(bool)[steps.column])


SHORTEST: dict[str, Callable[[Steps], np.ndarray | None]] = {
    "l1": shortest_l1,
    "l2": shortest_l2,
    "count": fewest,
}
"""What finds the shortest step, by the name of the norm."""


def length_of(step: np.ndarray, steps: Steps, norm: str) -> float:
    """Return how long a step is."""
    if norm == "count":
        return float(steps.column_prices[np.unique(steps.column[step != 0.0])].sum())
    return float(np.linalg.norm(steps.prices * step, ord=1 if norm == "l1" else 2))


def least_length(steps: Steps, norm: str) -> float:
    """Return a length that no allowed step is below, by each constraint alone."""
    if not steps.can_be:
        return np.inf
    broken = steps.b < 0.0
    if not broken.any():
        return 0.0
    if norm == "count" and np.isfinite([steps.lower, steps.upper]).all():
        return _fewest_by_single(steps, broken)
    if norm == "count":
        return float(steps.column_prices.min())
    gains = np.abs(steps.A[broken]) / steps.prices
    most = gains.max(axis=1) if norm == "l1" else np.linalg.norm(gains, axis=1)
    return float((-steps.b[broken] / most).max())


def _fewest_by_single(steps: Steps, broken: np.ndarray) -> float:
    """Return what the columns cost that must change to keep any one of some constraints."""
    gains = _gains_of_columns(steps, broken)
    prices, least = steps.column_prices, float(steps.column_prices.min())
    for gain, needed in zip(gains, -steps.b[broken] - _SLACK, strict=True):
        order = np.argsort(-gain / prices, kind="stable")
        sums = np.cumsum(gain[order])
        n_whole = min(int(np.searchsorted(sums, needed)), len(order) - 1)
        if (prices == prices[0]).all():
            least = max(least, float(prices[0]) * (n_whole + 1))
        else:  # of the last column a share
            lacking = needed - (sums[n_whole] - gain[order[n_whole]])
            share = min(max(lacking / max(gain[order[n_whole]], _SLACK), 0.0), 1.0)
            least = max(
                least, float(prices[order[:n_whole]].sum() + share * prices[order[n_whole]])
            )
    return least


def _gains_of_columns(steps: Steps, rows: np.ndarray) -> np.ndarray:
    """Return by how much each column can lower the sums of some constraints, at most."""
    ends = np.stack([steps.A[rows] * steps.lower, steps.A[rows] * steps.upper])
    of_parts = np.maximum(-ends.min(axis=0), 0.0)
    gains = np.zeros((len(of_parts), len(steps.column_prices)))
    np.add.at(gains.T, steps.column, of_parts.T)
    return gains


def _two_sided(steps: Steps) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of the upward and the downward parts of a step."""
    low = np.append(np.maximum(steps.lower, 0.0), np.maximum(-steps.upper, 0.0))
    high = np.append(np.maximum(steps.upper, 0.0), np.maximum(-steps.lower, 0.0))
    return low, high


def _solve(
    objective: np.ndarray,
    is_whole: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    A: np.ndarray,
    b: np.ndarray,
) -> np.ndarray | None:
    """Minimize a sum, some parts of which are whole, subject to ``A @ x <= b``; None if no x is."""
    if (low > high).any():
        return None
    # Programs whose parts are all pinned make HiGHS fail.
    is_free = low < high
    x = np.where(is_free, 0.0, low)
    limits = b - A @ x
    if not is_free.any():
        return x if (limits >= -_SLACK).all() else None
    whole, price, rows = is_whole[is_free], objective[is_free], A[:, is_free]

    def solved(low: np.ndarray, high: np.ndarray, whole: Any = None) -> Any:
        bounds = Bounds(low, high)
        constraints = LinearConstraint(rows, -np.inf, limits) if len(b) else ()
        return milp(
            price, integrality=whole, bounds=bounds, constraints=constraints, options=_EXACT
        )

    found = solved(low[is_free], high[is_free], whole)
    if (found.mip_node_count or 0) >= _MOST_NODES and found.status not in _SOLVED:
        raise ValueError(_TOO_LONG)
    best = found.x
    if found.status not in _SOLVED:  # HiGHS gives up on some programs with narrow margins
        best = _branch(
            lambda low, high: solved(low, high).x,
            lambda x: float(price @ x),
            whole,
            low[is_free],
            high[is_free],
        )
    if best is None:
        return None
    x[is_free] = best
    return x


def _branch(
    relaxed: Callable[[np.ndarray, np.ndarray], np.ndarray | None],
    cost: Callable[[np.ndarray], float],
    is_whole: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray | None:
    """Return the cheapest point within bounds whose parts are whole where they are to be.

    Branch and bound, the nearer side first; `relaxed` finds the cheapest point whatever is whole.
    """
    best, least = None, np.inf
    waiting = [(low, high)]
    for _ in range(_MOST_NODES):
        if not waiting:
            return best
        low, high = waiting.pop()
        point = relaxed(low, high)
        if point is None or cost(point) >= least:
            continue
        away = np.where(is_whole, np.abs(point - np.round(point)), 0.0)
        if away.max(initial=0.0) <= _WHOLE:
            best, least = point, cost(point)
            continue
        j = int(away.argmax())
        below, above = high.copy(), low.copy()
        below[j], above[j] = np.floor(point[j]), np.ceil(point[j])
        sides = [(low, below), (above, high)]
        waiting += sides if point[j] - below[j] > 0.5 else sides[::-1]
    raise ValueError(_TOO_LONG)


def _difference(parts: np.ndarray, steps: Steps) -> np.ndarray:
    """Return the step that two parts are the difference of, whole where it is to be."""
    n = len(steps.prices)
    step = parts[:n] - parts[n : 2 * n]
    return np.where(steps.is_whole, np.round(step), step)


def _least_distance(steps: Steps) -> np.ndarray | None:
    """Return the shortest step where none of its parts has to be whole."""
    if (steps.lower > steps.upper).any():
        return None
    # Pinned parts are two opposite constraints each, which least squares cannot tell apart.
    is_free = steps.lower < steps.upper
    step = np.where(is_free, 0.0, steps.lower)
    limits = steps.b - steps.A @ step
    A, prices = steps.A[:, is_free], steps.prices[is_free]
    found = _by_multipliers(A, limits, steps.lower[is_free], steps.upper[is_free], prices)
    if found is None:
        return None
    step[is_free] = found
    is_near = steps.is_whole & (np.abs(step - np.round(step)) <= _WHOLE)
    return np.where(is_near, np.round(step), step)


def _by_multipliers(
    A: np.ndarray, b: np.ndarray, lower: np.ndarray, upper: np.ndarray, prices: np.ndarray
) -> np.ndarray | None:
    """Solve a least-distance program by non-negative least squares, its multipliers."""
    units = np.diag(1.0 / prices)
    rows = np.vstack([-A / prices, units, -units])
    limits = np.concatenate([-b, lower, -upper])
    is_bound = np.isfinite(limits)
    rows, limits = rows[is_bound], limits[is_bound]
    if (limits <= _SLACK).all():
        return np.zeros(len(prices))
    target = np.append(np.zeros(len(prices)), 1.0)
    system = np.vstack([rows.T, limits])
    multipliers, residual = nnls(system, target)
    if residual < _LEAST_RESIDUAL:
        return None
    away = system @ multipliers - target
    step: np.ndarray = -away[:-1] / away[-1] / prices
    return step

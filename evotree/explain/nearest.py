"""The smallest step into a polytope: by linear, mixed-integer and least-distance programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp, nnls

_WHOLE = 1e-6  # what is nearer to a whole number is one
_SOLVED = (0, 2)  # what milp calls an optimum, and the proof that there is none
_EXACT = {"mip_rel_gap": 0.0}
_SLACK = 1e-9  # of sums
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
    """Return the step with the smallest sum of prices times lengths, by a (mixed-integer) program.

    Parameters
    ----------
    steps : Steps
        The steps that are allowed.

    Returns
    -------
    ndarray of shape (n_parts,) or None
        None if no step is allowed.
    """
    # A step is the difference of two parts that are not negative.
    rows = np.hstack([steps.A, -steps.A])
    whole = np.tile(steps.is_whole, 2)
    found = _solve(np.tile(steps.prices, 2), whole, *_two_sided(steps), rows, steps.b)
    return None if found is None else _difference(found, steps)


def shortest_l2(steps: Steps) -> np.ndarray | None:
    """Return the step with the smallest sum of squares of prices times lengths.

    Without whole parts it is a least-distance program, which is solved exactly by non-negative
    least squares. Whole parts are branched on.

    Parameters
    ----------
    steps : Steps
        The steps that are allowed.

    Returns
    -------
    ndarray of shape (n_parts,) or None
        None if no step is allowed.

    References
    ----------
    Lawson C. L., Hanson R. J. (1974). Solving least squares problems, chapter 23.
    """

    def relaxed(low: np.ndarray, high: np.ndarray) -> np.ndarray | None:
        return _least_distance(replace(steps, lower=low, upper=high))

    def length(step: np.ndarray) -> float:
        return float(np.sum(np.square(steps.prices * step)))

    return _branch(relaxed, length, steps.is_whole, steps.lower, steps.upper)


def fewest(steps: Steps) -> np.ndarray | None:
    """Return the step that changes the cheapest columns; of several, the one with the smallest sum.

    Parameters
    ----------
    steps : Steps
        The steps that are allowed; they have finite bounds.

    Returns
    -------
    ndarray of shape (n_parts,) or None
        None if no step is allowed.
    """
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
    for objective in (chosen, price):
        found = _solve(objective, whole, low, high, rows, limits)
        if found is None:
            return None
        least = float(chosen @ np.round(found))
        rows, limits = np.vstack([rows, chosen]), np.append(limits, least + _WHOLE)
    # Parts of columns that are not changed are 0 to within a tolerance: now to the last digit.
    stays = ~np.round(found[2 * n :]).astype(bool)[steps.column]
    pinned = replace(
        steps,
        lower=np.where(stays, 0.0, steps.lower),
        upper=np.where(stays, 0.0, steps.upper),
    )
    return shortest_l1(pinned)


SHORTEST: dict[str, Callable[[Steps], np.ndarray | None]] = {
    "l1": shortest_l1,
    "l2": shortest_l2,
    "count": fewest,
}
"""What finds the shortest step, by the name of the norm."""


def length_of(step: np.ndarray, steps: Steps, norm: str) -> float:
    """Return how long a step is.

    Parameters
    ----------
    step : ndarray of shape (n_parts,)
        The step.
    steps : Steps
        What has the prices.
    norm : {"l1", "l2", "count"}
        How lengths are measured.

    Returns
    -------
    float
        The length, at least 0.
    """
    if norm == "count":
        return float(steps.column_prices[np.unique(steps.column[step != 0.0])].sum())
    return float(np.linalg.norm(steps.prices * step, ord=1 if norm == "l1" else 2))


def least_length(steps: Steps, norm: str) -> float:
    """Return a length that no allowed step is below, by each constraint alone.

    Parameters
    ----------
    steps : Steps
        The steps that are allowed.
    norm : {"l1", "l2", "count"}
        How lengths are measured.

    Returns
    -------
    float
        Infinite if some constraint cannot be kept.
    """
    if not steps.can_be:
        return np.inf
    broken = steps.b < 0.0
    if not broken.any():
        return 0.0
    if norm == "count":
        return float(steps.column_prices.min())
    gains = np.abs(steps.A[broken]) / steps.prices
    most = gains.max(axis=1) if norm == "l1" else np.linalg.norm(gains, axis=1)
    return float((-steps.b[broken] / most).max())


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
    while waiting:
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
    return best


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

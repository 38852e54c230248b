"""The smallest step into a polytope: by linear, mixed-integer and least-distance programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp, nnls

_WHOLE = 1e-6  # what is nearer to a whole number is one
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
    found = milp(
        np.tile(steps.prices, 2),
        integrality=np.tile(steps.is_whole, 2),
        bounds=Bounds(*_two_sided(steps)),
        constraints=_constraints(np.hstack([steps.A, -steps.A]), steps.b),
        options={"mip_rel_gap": 0.0},
    )
    return None if found.x is None else _difference(found.x, steps)


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
    best, best_length = None, np.inf
    waiting = [steps]
    while waiting:
        one = waiting.pop()
        step = _least_distance(one)
        if step is None or (length := float(np.sum((steps.prices * step) ** 2))) >= best_length:
            continue
        away = np.where(steps.is_whole, np.abs(step - np.round(step)), 0.0)
        j = int(away.argmax()) if away.size else 0
        if away.max(initial=0.0) <= _WHOLE:
            best, best_length = step, length
            continue
        below, above = one.upper.copy(), one.lower.copy()
        below[j], above[j] = np.floor(step[j]), np.ceil(step[j])
        sides = [replace(one, upper=below), replace(one, lower=above)]
        waiting += sides if step[j] - below[j] > 0.5 else sides[::-1]  # the nearer side first
    return best


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
    bounds = Bounds(np.append(low, np.zeros(n_columns)), np.append(high, np.ones(n_columns)))
    whole = np.append(np.tile(steps.is_whole, 2), np.ones(n_columns))
    for objective in (chosen, price):
        found = milp(
            objective,
            integrality=whole,
            bounds=bounds,
            constraints=_constraints(rows, limits),
            options={"mip_rel_gap": 0.0},
        )
        if found.x is None:
            return None
        least = float(chosen @ np.round(found.x))
        rows, limits = np.vstack([rows, chosen]), np.append(limits, least + _WHOLE)
    # Parts of columns that are not changed are 0 to within a tolerance: now to the last digit.
    stays = ~np.round(found.x[2 * n :]).astype(bool)[steps.column]
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


def _constraints(A: np.ndarray, b: np.ndarray) -> LinearConstraint | tuple[()]:
    return LinearConstraint(A, -np.inf, b) if len(b) else ()


def _difference(parts: np.ndarray, steps: Steps) -> np.ndarray:
    """Return the step that two parts are the difference of, whole where it is to be."""
    n = len(steps.prices)
    step = parts[:n] - parts[n : 2 * n]
    return np.where(steps.is_whole, np.round(step), step)


def _least_distance(steps: Steps) -> np.ndarray | None:
    """Return the shortest step where none of its parts has to be whole."""
    if (steps.lower > steps.upper).any():
        return None
    units = np.diag(1.0 / steps.prices)
    rows = np.vstack([-steps.A / steps.prices, units, -units])
    limits = np.concatenate([-steps.b, steps.lower, -steps.upper])
    is_bound = np.isfinite(limits)
    rows, limits = rows[is_bound], limits[is_bound]
    if (limits <= 0.0).all():
        return np.zeros(len(steps.prices))
    target = np.append(np.zeros(len(steps.prices)), 1.0)
    system = np.vstack([rows.T, limits])
    multipliers, residual = nnls(system, target)
    if residual < _LEAST_RESIDUAL:
        return None
    away = system @ multipliers - target
    step: np.ndarray = -away[:-1] / away[-1] / steps.prices
    return np.where(
        steps.is_whole & (np.abs(step - np.round(step)) <= _WHOLE), np.round(step), step
    )

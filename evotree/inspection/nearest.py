"""The smallest step into a polytope: one mixed-integer program."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

_WHOLE = 1e-6  # what is nearer to a whole number is one
_SLACK = 1e-9  # of sums
_MAX_ROUNDS = 200  # of programs
_LIMITS = {
    "mip_rel_gap": 0.0,
    "node_limit": 10_000,
    "time_limit": 60.0,
}  # of one program
_SOLVED = (0, 2)  # what milp calls an optimum, and the proof that there is none
_TOO_LONG = (
    "the nearest point takes too many programs to be found: fix columns (fixed), narrow bounds, "
    "leave out integers, or take another norm."
)


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps y with ``A @ y <= b`` and ``lower <= y <= upper``, some of whose parts are whole."""

    A: np.ndarray  # of shape (n_constraints, n_parts), rows of a length near 1
    b: np.ndarray
    lower: np.ndarray  # of shape (n_parts,), perhaps infinite
    upper: np.ndarray
    prices: np.ndarray  # what a part of length 1 costs, above 0
    is_whole: np.ndarray
    column: np.ndarray  # the group that each part belongs to: 0, 1, ...
    column_prices: (
        np.ndarray
    )  # what it costs that some part of a group is not 0, above 0


def shortest_l1(steps: Steps) -> np.ndarray | None:
    """Return the step with the smallest sum of prices times lengths."""
    solution = _Program(steps).solve(np.tile(steps.prices, 2))
    if solution is None:
        return None
    up, down = solution.reshape(2, -1)
    return np.where(steps.is_whole, np.round(up - down), up - down)


def fewest(steps: Steps, below: float = np.inf) -> np.ndarray | None:
    """Return the shortest step that changes the cheapest columns, of a cost below `below`."""
    n_columns, prices = len(steps.column_prices), np.tile(steps.prices, 2)
    is_of = np.tile(steps.column, 2)[:, np.newaxis] == np.arange(n_columns)
    program = _Program(steps, np.ones(n_columns), are_whole=True)
    # A part is 0 where its column is not changed.
    program.add(
        np.hstack(
            [np.eye(len(prices)), -program.high[: len(prices), np.newaxis] * is_of]
        ),
        0,
    )
    cost = np.append(0.0 * prices, steps.column_prices)
    slack = 1e-4 * float(steps.column_prices.min(initial=np.inf))
    for _ in range(_MAX_ROUNDS):
        cheapest = program.solve(cost, cost, below)
        if cheapest is None or (least := float(cost @ np.round(cheapest))) >= below:
            return None
        nearest = program.solve(
            np.append(prices, np.zeros(n_columns)), cost, least + slack
        )
        solution = cheapest if nearest is None else nearest
        is_changed = np.round(solution[len(prices) :]).astype(bool)
        # Parts of other columns are 0 to within a tolerance: now to the last digit.
        is_free = is_changed[steps.column]
        lower, upper = (
            np.where(is_free, end, 0.0) for end in (steps.lower, steps.upper)
        )
        step = shortest_l1(replace(steps, lower=lower, upper=upper))
        if step is not None:
            return step
        program.add(-np.append(0.0 * prices, ~is_changed)[np.newaxis], -1.0)
    raise ValueError(_TOO_LONG)


NORMS = ("l1", "count")
"""What may be small: the sum of the changes, or the number of columns that change."""


def length_of(step: np.ndarray, steps: Steps, norm: str) -> float:
    """Return how long a step is."""
    if norm == "count":
        return float(steps.column_prices[np.unique(steps.column[step != 0.0])].sum())
    return float(np.abs(steps.prices * step).sum())


def least_length(steps: Steps, norm: str) -> float:
    """Return a length that no allowed step is below, by each bound and constraint alone."""
    A, least = steps.A, np.where(steps.A > 0.0, steps.lower, steps.upper)
    sums = np.multiply(A, least, out=np.zeros_like(A), where=A != 0.0).sum(axis=1)
    if (steps.lower > steps.upper).any() or (sums > steps.b + _SLACK).any():
        return np.inf
    broken = steps.b < 0.0
    if not broken.any():
        return 0.0
    A, needed = steps.A[broken], -steps.b[broken]
    if norm == "count":
        return max(
            _cheapest_columns(steps, row, gain)
            for row, gain in zip(A, needed, strict=True)
        )
    return float((needed / (np.abs(A) / steps.prices).max(axis=1)).max())


def _cheapest_columns(steps: Steps, row: np.ndarray, needed: float) -> float:
    """Return what columns cost at least, the last in part, that lower a sum by what is needed."""
    prices = steps.column_prices
    ends = np.stack([steps.lower, steps.upper])
    ends = np.multiply(ends, row, out=np.zeros_like(ends), where=row != 0.0)
    gains = np.bincount(steps.column, np.maximum(-ends.min(axis=0), 0.0), len(prices))
    order = np.argsort(-gains / prices, kind="stable")
    if not np.isfinite(gains).all():
        return float(prices.min())
    sums = np.append(0.0, np.cumsum(gains[order]))
    costs = np.append(0.0, np.cumsum(prices[order]))
    least = float(np.interp(needed - _SLACK, sums, costs))
    is_equal = (prices == prices[0]).all()
    return float(prices[0] * np.ceil(least / prices[0] - _WHOLE)) if is_equal else least


class _Program:
    """Steps as differences of parts that are not negative, and further variables beside them."""

    def __init__(
        self, steps: Steps, high: np.ndarray | tuple = (), are_whole: bool = False
    ) -> None:
        down = np.maximum(-steps.upper, 0.0), np.maximum(-steps.lower, 0.0)
        self.low = np.concatenate(
            [np.maximum(steps.lower, 0.0), down[0], np.zeros(len(high))]
        )
        self.high = np.concatenate([np.maximum(steps.upper, 0.0), down[1], high])
        self.whole = np.append(
            np.tile(steps.is_whole, 2), np.full(len(high), are_whole)
        )
        # HiGHS misses optima where bounds of whole variables are not whole.
        self.low = np.where(self.whole, np.ceil(self.low - _WHOLE), self.low)
        self.high = np.where(self.whole, np.floor(self.high + _WHOLE), self.high)
        self.A = np.hstack([steps.A, -steps.A, np.zeros((len(steps.A), len(high)))])
        self.b = steps.b

    def add(self, rows: np.ndarray, limits: np.ndarray | float) -> None:
        """Add rows that do not exceed their limits."""
        self.A = np.vstack([self.A, rows])
        self.b = np.append(self.b, np.broadcast_to(limits, len(rows)))

    def solve(
        self, cost: np.ndarray, row: np.ndarray | None = None, limit: float = np.inf
    ) -> np.ndarray | None:
        """Return the cheapest variables that keep all rows and perhaps one more, or None."""
        if (self.low > self.high).any():
            return None
        A, b = self.A, self.b
        if row is not None and np.isfinite(limit):
            A, b = np.vstack([A, row]), np.append(b, limit)
        # Programs whose parts are all pinned make HiGHS fail.
        is_free = self.low < self.high
        solution = np.where(is_free, 0.0, self.low)
        limits = b - A @ solution
        if not is_free.any():
            return solution if (limits >= -_SLACK).all() else None
        limited = {
            "integrality": self.whole[is_free],
            "bounds": Bounds(self.low[is_free], self.high[is_free]),
            "constraints": LinearConstraint(A[:, is_free], -np.inf, limits)
            if len(b)
            else (),
        }
        for presolve in (
            True,
            False,
        ):  # which fails on some programs with narrow margins
            options = _LIMITS | {"presolve": presolve}
            result = milp(cost[is_free], options=options, **limited)
            if result.status == 1:
                break
            if result.status in _SOLVED:
                if result.x is None:
                    return None
                solution[is_free] = result.x
                return solution
        raise ValueError(_TOO_LONG)

"""What a counterfactual may change, how far and at what cost, as users say it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from evotree.tables.columns import CategoricalColumn, Column

__all__ = ["Limits"]


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of changes, by columns.

    Attributes
    ----------
    costs : ndarray of shape (n_columns,), float64
        Factors of the distances, above 0.
    lower, upper : ndarray of shape (n_columns,), float64
        Bounds of numbers, perhaps infinite.
    whole : ndarray of shape (n_columns,), bool
        Which columns hold whole numbers.
    fixed : ndarray of shape (n_columns,), bool
        Which columns stay as they are.
    plausible : bool
        Whether numbers stay within the range of the training rows.
    """

    costs: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    whole: np.ndarray
    fixed: np.ndarray
    plausible: bool

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        costs: Any = None,
        bounds: Any = None,
        integers: Any = None,
        fixed: Any = None,
        plausible: bool = True,
    ) -> Limits:
        """Return the limits that users give."""
        n = len(columns)
        limits = cls(
            np.ones(n),
            np.full(n, -np.inf),
            np.full(n, np.inf),
            np.zeros(n, dtype=bool),
            np.zeros(n, dtype=bool),
            bool(plausible),
        )
        if costs is not None and not isinstance(costs, Mapping):
            if np.shape(costs) != (n,):
                raise ValueError(
                    f"costs has the shape {np.shape(costs)}: allowed are ({n},), one number for "
                    "each column, and mappings."
                )
            costs = dict(enumerate(costs))
        if not isinstance(bounds, Mapping | None):
            raise ValueError(f"bounds={bounds!r}: allowed are mappings of columns to pairs.")
        for key, cost in (costs or {}).items():
            if not isinstance(cost, Real) or not 0.0 < float(cost) < math.inf:
                raise ValueError(f"costs[{key!r}]={cost!r}: allowed are finite numbers above 0.")
            limits.costs[_position("costs", key, columns)] = cost
        for key, pair in (bounds or {}).items():
            at = _position("bounds", key, columns, of_numbers=True)
            limits.lower[at], limits.upper[at] = _interval(key, pair)
        for key in _listed("integers", integers):
            limits.whole[_position("integers", key, columns, of_numbers=True)] = True
        for key in _listed("fixed", fixed):
            limits.fixed[_position("fixed", key, columns)] = True
        return limits

    def relaxed(self, names: Sequence[str]) -> Iterator[tuple[str, Limits]]:
        """Yield the limits without one of them each, and how that one is called."""
        if self.plausible:
            yield "plausible=True", replace(self, plausible=False)
        is_bounded = np.isfinite(self.lower) | np.isfinite(self.upper)
        for at in np.flatnonzero(is_bounded).tolist():
            lower, upper = self.lower.copy(), self.upper.copy()
            lower[at], upper[at] = -np.inf, np.inf
            yield f"bounds of {names[at]!r}", replace(self, lower=lower, upper=upper)
        for at in np.flatnonzero(self.whole).tolist():
            yield f"integers {names[at]!r}", replace(self, whole=_without(self.whole, at))
        for at in np.flatnonzero(self.fixed).tolist():
            yield f"fixed {names[at]!r}", replace(self, fixed=_without(self.fixed, at))


def _without(mask: np.ndarray, at: int) -> np.ndarray:
    changed = mask.copy()
    changed[at] = False
    return changed


def _listed(parameter: str, given: Any) -> Iterable[Any]:
    """Return columns that are given as one name or several."""
    if given is None or isinstance(given, str | Integral):
        return () if given is None else (given,)
    if not isinstance(given, Iterable):
        raise ValueError(f"{parameter}={given!r}: allowed are names and positions of columns.")
    return given


def _interval(key: Any, pair: Any) -> tuple[float, float]:
    """Return a lower and an upper bound."""
    try:
        low, high = pair
        ends = -math.inf if low is None else float(low), math.inf if high is None else float(high)
    except (TypeError, ValueError):
        ends = math.inf, -math.inf
    if not ends[0] <= ends[1]:
        raise ValueError(f"bounds[{key!r}]={pair!r}: allowed are pairs (low, high), low <= high.")
    return ends


def _position(parameter: str, key: Any, columns: Sequence[Column], of_numbers: bool = False) -> int:
    """Return the position of a column that is given by its name or position."""
    names = [column.name for column in columns]
    is_position = isinstance(key, Integral) and not isinstance(key, bool)
    if is_position and int(key) in range(len(names)):
        at = int(key)
    elif isinstance(key, str) and key in names:
        at = names.index(key)
    else:
        raise ValueError(
            f"{parameter} names {key!r}: allowed are positions from 0 to {len(names) - 1} and the "
            f"columns {names}."
        )
    if of_numbers and isinstance(columns[at], CategoricalColumn):
        raise ValueError(f"{parameter} names {key!r}: allowed are columns of numbers.")
    return at

"""What a counterfactual may change, how far and at what cost, as users say it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from evotree.tables.columns import CategoricalColumn, Column, columns_asked


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of changes, each an array with an entry for each column."""

    costs: np.ndarray  # factors of the distances, above 0
    lower: np.ndarray  # of numbers, perhaps infinite
    upper: np.ndarray
    whole: np.ndarray  # which columns hold whole numbers
    fixed: np.ndarray  # which columns stay as they are
    plausible: bool  # whether numbers stay within the range of the training rows

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
        lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
        factors, whole, stays = np.ones(n), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
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
            factors[_position("costs", key, columns)] = cost
        for key, pair in (bounds or {}).items():
            c = _position("bounds", key, columns, of_numbers=True)
            lower[c], upper[c] = _interval(key, pair)
        for key in _listed("integers", integers):
            whole[_position("integers", key, columns, of_numbers=True)] = True
        for key in _listed("fixed", fixed):
            stays[_position("fixed", key, columns)] = True
        return cls(factors, lower, upper, whole, stays, bool(plausible))

    def relaxed(self, names: Sequence[str]) -> Iterator[tuple[str, Limits]]:
        """Yield the limits without one of them each, and how that one is called."""
        if self.plausible:
            yield "plausible=True", replace(self, plausible=False)
        for parameter, free in (
            ("bounds of", {"lower": -np.inf, "upper": np.inf}),
            ("integers", {"whole": False}),
            ("fixed", {"fixed": False}),
        ):
            for c, name in enumerate(names):
                if any(getattr(self, field)[c] != value for field, value in free.items()):
                    is_free = np.arange(len(names)) == c
                    fields: dict[str, Any] = {
                        field: np.where(is_free, value, getattr(self, field))
                        for field, value in free.items()
                    }
                    yield f"{parameter} {name!r}", replace(self, **fields)


def _listed(parameter: str, names: Any) -> Iterable[Any]:
    """Return columns that users give as one name or several."""
    if names is None or isinstance(names, str | Integral):
        return () if names is None else (names,)
    if not isinstance(names, Iterable):
        raise ValueError(f"{parameter}={names!r}: allowed are names and positions of columns.")
    return names


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
    """Return the position of a column that users give by its name or position."""
    (c,) = columns_asked([key], [column.name for column in columns], parameter)
    if of_numbers and isinstance(columns[c], CategoricalColumn):
        raise ValueError(f"{parameter} names {key!r}: allowed are columns of numbers.")
    return c

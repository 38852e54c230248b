"""Times to an event: what users hand over, the hazard and survival of all rows, and concordance.

Times are right-censored: a row whose event was not seen was seen until its time. It may have been
seen from an entry time on (left truncation). In: structured arrays as of scikit-survival, frames,
arrays. Out: `Times`, step functions and numbers.

The full likelihood of proportional hazards in the leaves of a tree is that of Poisson counts
(LeBlanc and Crowley 1992): a row has one event or none at the exposure H0(t), the cumulative
hazard of all rows up to its time.

References
----------
Fenwick P. (1994). A new data structure for cumulative frequency tables. Software: Practice and
Experience 24, 327-336.
LeBlanc M., Crowley J. (1992). Relative risk trees for censored survival data. Biometrics 48,
411-425.
Harrell F. E., Califf R. M., Pryor D. B., Lee K. L., Rosati R. A. (1982). Evaluating the yield of
medical tests. Journal of the American Medical Association 247, 2543-2546.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_consistent_length

from evotree._jit import kernel
from evotree.dataset import EVENTS
from evotree.tables.frames import as_numbers, by_row, frame_of, unmasked

TIME, ENTRY = "time", "entry"
"""Extra columns, beside the events, of rows of a data set whose targets are times to an event."""

_NAMES = (EVENTS, TIME, ENTRY)

_ALLOWED = (
    "allowed are a structured array of event and time, as scikit-survival has it, and a frame or "
    "array of the columns event, time and, with left truncation, entry"
)
_ROUNDING = 1e-12  # share of all pairs that is none
# No exposure is below this share of the first step of the hazard.
_LEAST_SHARE = 1e-6


class Times(NamedTuple):
    """When rows were seen, and whether an event ended that; arrays of shape (n_rows,)."""

    event: np.ndarray  # bool
    time: np.ndarray  # float64, at least 0
    # The entry is float64, below `time`; minus infinity where all rows were seen from 0 on.
    entry: np.ndarray

    @classmethod
    def read(cls, y: Any, X: Any = None) -> Self:
        """Return the times that users hand over, checked; in the order of the labels of `X`."""
        columns = [as_numbers("y", by_row(one, X, "y")) for one in _columns_of(y)]
        if X is not None:
            check_consistent_length(X, columns[0])
        event, time, *more = columns
        entry = more[0] if more else np.full(len(time), -np.inf)
        if not np.isin(event, (0.0, 1.0)).all():
            wrong = event[~np.isin(event, (0.0, 1.0))][0]
            raise ValueError(
                f"y has the event {wrong:g}: allowed are False and True, or 0 and 1, in the first "
                "column, and times in the second one."
            )
        for name, numbers in zip(("time", "entry time"), columns[1:], strict=False):
            is_wrong = ~((numbers >= 0.0) & np.isfinite(numbers))
            if is_wrong.any():
                raise ValueError(
                    f"y has the {name} {numbers[is_wrong][0]:g} in row {is_wrong.argmax()}: "
                    "allowed are finite numbers from 0."
                )
        is_late = entry >= time
        if more and is_late.any():
            at = int(is_late.argmax())
            raise ValueError(
                f"y has the entry time {entry[at]:g} and the time {time[at]:g} in row {at}: "
                "allowed are entries before the time."
            )
        return cls(event == 1.0, time, entry)

    @property
    def columns(self) -> np.ndarray:
        """The columns as an array, (n_rows, 2), or 3 where some rows were entered late."""
        n_columns = 2 if np.isneginf(self.entry).all() else 3
        return np.column_stack(self)[:, :n_columns]

    def take(self, rows: np.ndarray) -> Self:
        """Return the times of some rows."""
        return type(self)(*(column[rows] for column in self))

    @classmethod
    def of(cls, extras: Mapping[str, np.ndarray]) -> Self:
        """Return the times that the extra columns of a data set have."""
        return cls(*(extras[name] for name in _NAMES))

    @property
    def extras(self) -> dict[str, np.ndarray]:
        """The columns by the names that they have in a data set."""
        return dict(zip(_NAMES, self, strict=True))


def _columns_of(y: Any) -> list[Any]:
    """Return the columns event, time and, if there are three, entry, of times to an event.

    Those that have these names are read by them, others in this order.
    """
    y = frame_of(y)
    names = getattr(y, "columns", getattr(getattr(y, "dtype", None), "names", None))
    if names is not None:
        places = {str(name).casefold(): at for at, name in enumerate(names)}
        known = _NAMES[: len(names)]
        if {*known} == {*places}:
            names = [names[places[one]] for one in known]
        elif any(places.get(one, at) != at for at, one in enumerate(_NAMES)):
            raise ValueError(f"y has the columns {[*names]}: {_ALLOWED}.")
        columns = [y[name] for name in names]
    elif isinstance(y, tuple):
        columns = list(y)
    else:
        columns = list(np.atleast_2d(unmasked(np.asanyarray(y))).T)
    if len(columns) not in (2, 3):
        raise ValueError(f"y has {len(columns)} columns: {_ALLOWED}.")
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"y has columns of several lengths: {_ALLOWED}.")
    return columns


@dataclass(repr=False, eq=False)
class StepFunction:
    """A function that is constant from each of its steps on, as scikit-survival's.

    Attributes
    ----------
    x, y : ndarray of shape (n_steps,)
        Rising places of the steps, and the values from there on.
    """

    x: np.ndarray
    y: np.ndarray

    def __call__(self, x: Any) -> Any:
        """Return the value at one place, or at several."""
        places = np.asarray(x, dtype=np.float64)
        if not (places >= self.x[0]).all():
            raise ValueError(
                f"x has {np.min(places):g}: allowed are numbers from {self.x[0]:g}."
            )
        values = self.y[np.searchsorted(self.x, places, side="right") - 1]
        return float(values) if values.ndim == 0 else values

    def __repr__(self) -> str:
        return f"StepFunction of {len(self.x)} steps from {self.x[0]:g} on"


def shares_of_events(times: Times, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct times, 0 first, and the share of the rows at risk with events then."""
    steps, at = np.unique(np.append(0.0, times.time), return_inverse=True)
    events = np.bincount(at[1:], weight * times.event, len(steps))
    ends = np.bincount(at[1:], weight, len(steps))
    # A row is at risk at the times after its entry, up to its own.
    entered = np.searchsorted(steps, times.entry, side="right")
    begins = np.bincount(entered, weight, len(steps) + 1)[: len(steps)]
    present = begins.cumsum() - np.append(0.0, ends.cumsum()[:-1])
    present = np.maximum(present, events)
    return steps, np.divide(events, present, np.zeros(len(steps)), where=events > 0.0)


def cumulative_hazard(times: Times, weight: np.ndarray) -> StepFunction:
    """Return the estimate of Nelson and Aalen."""
    steps, shares = shares_of_events(times, weight)
    return StepFunction(steps, shares.cumsum())


def survival(times: Times, weight: np.ndarray) -> StepFunction:
    """Return the estimate of Kaplan and Meier."""
    steps, shares = shares_of_events(times, weight)
    return StepFunction(steps, (1.0 - shares).cumprod())


def median_time(function: StepFunction) -> float:
    """Return the first time at which no more than a half survive; infinity where there is none."""
    below = np.flatnonzero(function.y <= 0.5 * (1.0 + 1e-12))
    return float(function.x[below[0]]) if below.size else np.inf


def exposures(times: Times, hazard: StepFunction) -> np.ndarray:
    """Return the cumulative hazard of all rows while each was seen, above 0."""
    # A row that was censored before the first event says nothing: it has next to no exposure, and
    # stays a row.
    at_entry = np.where(
        np.isneginf(times.entry), 0.0, hazard(np.maximum(times.entry, 0.0))
    )
    least = hazard.y[hazard.y > 0.0][0]
    return np.maximum(hazard(times.time) - at_entry, _LEAST_SHARE * least)


def exposures_of(
    extras: Mapping[str, np.ndarray], weight: np.ndarray
) -> Callable[[Mapping[str, np.ndarray]], np.ndarray] | None:
    """Return what makes exposures of times by the hazard of some rows; None without an event."""
    times = Times.of(extras)
    if not times.event.any():
        return None
    return partial(_exposures_at, hazard=cumulative_hazard(times, weight))


def _exposures_at(extras: Mapping[str, np.ndarray], hazard: StepFunction) -> np.ndarray:
    return exposures(Times.of(extras), hazard)


def concordance(
    times: Times, risk: np.ndarray, weight: np.ndarray | None = None
) -> float:
    """Return the share of comparable pairs whose first event is that of the higher risk (Harrell).

    A pair is comparable where one row has an event while the other is at risk. Equal risks count
    half.
    """
    weight = np.ones(len(risk)) if weight is None else weight
    rank = np.unique(risk, return_inverse=True)[1]
    # Whole numbers in the order of time: what is at risk when an event is, entered before, and has
    # not left. A row that is censored at the time of an event leaves after it.
    moments = np.unique(np.append(times.time, times.entry), return_inverse=True)[1]
    end, begin = 2 * moments.reshape(2, -1)
    changes = np.append(begin + 1, end + ~times.event)
    order = np.argsort(changes, kind="stable")
    events = np.flatnonzero(times.event)
    events = events[np.argsort(end[events], kind="stable")]
    n_changes = np.searchsorted(changes[order], end[events], side="right")
    at_risk = np.append(weight, -weight)[order]
    sums = _running_sums(n_changes, np.tile(rank, 2)[order], at_risk, rank[events])
    right, pairs = weight[events] @ sums
    if pairs <= _ROUNDING * weight.sum() ** 2:
        raise ValueError(
            "y has no pair of rows of which one has its event while the other is seen: allowed "
            "are times with at least one."
        )
    return float(right / pairs)


@kernel
def _running_sums(n_known, rank, weight, asked):
    """Return sums of the first weights, of shape (n_asked, 2), by a tree (Fenwick 1994).

    First of those whose rank is below the one that is asked about, and half of those of this rank;
    then of all. ``n_known`` rises.
    """
    n_ranks = rank.max() + 1
    tree, equal = np.zeros(n_ranks + 1), np.zeros(n_ranks)
    sums = np.zeros((len(asked), 2))
    k, total = 0, 0.0
    for q in range(len(asked)):
        while k < n_known[q]:
            equal[rank[k]] += weight[k]
            total += weight[k]
            node = rank[k] + 1
            while node <= n_ranks:
                tree[node] += weight[k]
                node += node & -node
            k += 1
        below, node = 0.5 * equal[asked[q]], asked[q]
        while node > 0:
            below += tree[node]
            node -= node & -node
        sums[q] = below, total
    return sums

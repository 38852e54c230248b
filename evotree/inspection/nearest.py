"""What would have to change for another prediction: the nearest point that the tree gives it.

The rows that reach a leaf form a polytope, so the nearest point of a leaf is the solution of one
convex program, and the nearest of all leaves is the counterfactual of Wachter et al. for the tree
itself: no sampling, no surrogate. A number that bends moves along lines, which whole variables
put in order (Padberg). Logarithms are drawn by lines that leave out no point of a leaf, so that
what the tree itself takes as it was meant is the nearest.

References
----------
Carreira-Perpiñán M. Á., Hada S. S. (2021). Counterfactual explanations for oblique decision trees:
exact, efficient algorithms. AAAI Conference on Artificial Intelligence.
Padberg M. (2000). Approximating separable nonlinear functions via mixed zero-one programs.
Operations Research Letters 27(1), 1-5.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_list_like
from scipy.optimize import Bounds, LinearConstraint, milp

from evotree.fitted import Fitted
from evotree.inspection.comparison import check_model, one_row
from evotree.schema import (
    LOG,
    MISSING,
    TRUTH,
    WHOLE,
    Bend,
    CategoricalColumn,
    Column,
    NumericColumn,
    Schema,
    columns_asked,
    text_of,
)
from evotree.tree import ObliqueTree
from evotree.words import check_whole, printable

MARGINS = (1e-5, 1e-4, 1e-3)
"""How far behind a hyperplane a point is placed, in spreads of the projection; tried in turn."""

_NOTHING = 1e-9  # a change of fewer spreads is none
_WHOLE = 1e-6  # what is nearer to a whole number is one

# A logarithm is drawn by lines that touch it at so many numbers and more, and then at the point
# that was found, too, until the tree takes that one as it was meant.
_N_TOUCHED = 5
_MAX_DRAWINGS = 20
_FARTHEST_SPREADS = 100.0  # that a column without bounds may change by, if it bends
_FREE = 1e-9  # the price of what follows from other parts

# ---- the smallest step into a polytope: one mixed-integer program -------------------------------

_SUM_SLACK = 1e-9
_PROGRAM_LIMITS = {"mip_rel_gap": 0.0, "node_limit": 10_000, "time_limit": 60.0}
_SOLVED, _LIMITED, _INFEASIBLE = 0, 1, 2  # what milp says of a program


@dataclass(frozen=True, eq=False)
class Steps:
    """Parts y of a step with ``A @ y <= b`` and ``low <= y <= high``, some of which are whole."""

    A: np.ndarray  # of shape (n_constraints, n_parts), rows of a length near 1
    b: np.ndarray
    low: np.ndarray  # of shape (n_parts,), 0 or above
    high: np.ndarray  # perhaps infinite
    prices: np.ndarray  # what a part of length 1 costs, above 0
    is_whole: np.ndarray


def shortest(steps: Steps) -> np.ndarray | None:
    """Return the parts with the smallest sum of prices times lengths, or None if there are none."""
    # Programs whose parts are all pinned make HiGHS fail: the last part is free.
    A = np.hstack([steps.A, np.zeros((len(steps.A), 1))])
    # Presolving fails on some programs with narrow margins.
    for presolve in (True, False):
        result = milp(
            np.append(steps.prices, 1.0),
            integrality=np.append(steps.is_whole, False),
            bounds=Bounds(np.append(steps.low, 0.0), np.append(steps.high, 1.0)),
            constraints=LinearConstraint(A, -np.inf, steps.b) if len(A) else (),
            options=_PROGRAM_LIMITS | {"presolve": presolve},
        )
        if result.status == _SOLVED:
            parts = result.x[:-1]
            return np.where(steps.is_whole, np.round(parts), parts)
        if result.status == _INFEASIBLE:
            return None
        if result.status == _LIMITED:
            break
    raise ValueError(
        "the nearest point takes too long to be found: fix columns (fixed), narrow bounds, or "
        "leave out integers."
    )


def least_length(steps: Steps) -> float:
    """Return a length that no allowed step is below, by each bound and constraint alone."""
    A, least = steps.A, np.where(steps.A > 0.0, steps.low, steps.high)
    sums = np.multiply(A, least, out=np.zeros_like(A), where=A != 0.0).sum(axis=1)
    if (sums > steps.b + _SUM_SLACK).any():
        return np.inf
    broken = steps.b < -_SUM_SLACK
    needed = -steps.b[broken] / (-A[broken] / steps.prices).max(axis=1, initial=0.0)
    return float(needed.max(initial=0.0))


# ---- what may change, and the leaves that are asked for ------------------------------------------


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """A point that a tree predicts as was asked for."""

    row: Any  # as ``predict`` takes it, a DataFrame or an array of shape (1, n_columns)
    # Cells before and after, by the columns that change.
    changes: dict[str, tuple[Any, Any]]
    distance: float
    leaf: int  # that it reaches

    def __repr__(self) -> str:
        changes = [
            f"{printable(name)}: {_shown_cell(before)} -> {_shown_cell(after)}"
            for name, (before, after) in self.changes.items()
        ]
        return (
            f"Counterfactual({'; '.join(changes) or 'no change'}; distance "
            f"{self.distance:.4g}, leaf {self.leaf})"
        )


def _shown_cell(value: Any) -> str:
    """Return a cell in a few digits."""
    return f"{value:.6g}" if isinstance(value, float) else printable(value)


class Goal(NamedTuple):
    """The leaves that can predict what is asked for, and its range where leaves have models."""

    leaves: np.ndarray
    low: float = -np.inf
    high: float = np.inf
    label: int | None = None  # the class, by position, whose score is to be the largest


class LeafPoint(NamedTuple):
    """A point of a leaf, in the features of the tree."""

    distance: float
    leaf: int
    point: np.ndarray


@dataclass(frozen=True, eq=False)
class PointLimits:
    """What a counterfactual may change, how far and at what cost, an entry for each column."""

    costs: np.ndarray  # factors of the distances, above 0
    lower: np.ndarray  # of numbers, perhaps infinite
    upper: np.ndarray
    whole: np.ndarray  # which columns hold whole numbers
    fixed: np.ndarray  # which columns stay as they are
    plausible: bool  # whether numbers stay within the range of the training rows

    @classmethod
    def of(
        cls,
        schema: Schema,
        *,
        costs: Any,
        bounds: Any,
        integers: Any,
        fixed: Any,
        plausible: bool,
    ) -> Self:
        """Return the limits that users give; whole numbers and truth values stay so."""
        n = len(schema)
        limits = cls(
            costs=np.ones(n),
            lower=np.full(n, -np.inf),
            upper=np.full(n, np.inf),
            whole=np.array([one.holds in (WHOLE, TRUTH) for one in schema]),
            fixed=np.zeros(n, dtype=bool),
            plausible=bool(plausible),
        )
        for name, given in (("costs", costs), ("bounds", bounds)):
            if not isinstance(given, Mapping | None):
                raise ValueError(
                    f"{name}={given!r}: allowed are mappings, by names or positions of columns."
                )
        for key, cost in (costs or {}).items():
            if not isinstance(cost, Real) or not 0.0 < float(cost) < math.inf:
                raise ValueError(
                    f"costs[{key!r}]={cost!r}: allowed are finite numbers above 0."
                )
            limits.costs[_positions("costs", key, schema)] = cost
        for key, pair in (bounds or {}).items():
            (c,) = _positions("bounds", key, schema, of_numbers=True)
            try:
                low, high = pair
                limits.lower[c] = -math.inf if low is None else low
                limits.upper[c] = math.inf if high is None else high
                is_pair = limits.lower[c] <= limits.upper[c]
            except (TypeError, ValueError):
                is_pair = False
            if not is_pair:
                raise ValueError(
                    f"bounds[{key!r}]={pair!r}: allowed are pairs (low, high), low <= high."
                )
        limits.whole[_positions("integers", integers, schema, of_numbers=True)] = True
        limits.fixed[_positions("fixed", fixed, schema)] = True
        return limits

    def relaxed(self, names: Sequence[str]) -> Iterator[tuple[str, Self]]:
        """Yield the limits without one of them each, and how that one is called."""
        if self.plausible:
            yield "plausible=True", replace(self, plausible=False)
        for parameter, free in (
            ("bounds of", {"lower": -np.inf, "upper": np.inf}),
            ("integers", {"whole": False}),
            ("fixed", {"fixed": False}),
        ):
            for c, name in enumerate(names):
                fields: dict[str, Any] = {
                    field: np.where(
                        np.arange(len(names)) == c, value, getattr(self, field)
                    )
                    for field, value in free.items()
                }
                if any(fields[field][c] != getattr(self, field)[c] for field in free):
                    yield f"{parameter} {name!r}", replace(self, **fields)


def _positions(
    parameter: str, names: Any, schema: Schema, of_numbers: bool = False
) -> list[int]:
    """Return the positions of columns that users give as one name or several."""
    if names is None:
        return []
    listed = names if is_list_like(names) else [names]
    found = sorted(columns_asked(listed, schema.names, parameter))
    for c in found:
        if of_numbers and isinstance(schema[c], CategoricalColumn):
            raise ValueError(
                f"{parameter} names {schema.names[c]!r}: allowed are columns of numbers."
            )
    return found


class Program(NamedTuple):
    """The steps that lead to a leaf."""

    steps: Steps
    of: list[int]  # the features that the first parts are of
    moves: np.ndarray  # how far these move by a length of 1


class Space:
    """The points that a row may become within the limits; an entry for each feature."""

    def __init__(
        self, fitted: Fitted, tree: ObliqueTree, x: np.ndarray, limits: PointLimits
    ) -> None:
        schema, of = fitted.schema, fitted.schema.column_of
        training: Any = fitted.training
        self.tree, self.schema, self.x = tree, schema, x
        self.spread = np.where(tree.known_spread > 0.0, tree.known_spread, 1.0)
        is_level = np.array([isinstance(schema[c], CategoricalColumn) for c in of])
        is_missing = np.array([level == MISSING for level in schema.levels])
        stays, self.is_whole = limits.fixed[of], limits.whole[of] | is_level
        self.is_whole[list(schema.bends)] = False
        for j in np.flatnonzero(self.is_whole & ~stays & (x != np.round(x))).tolist():
            raise ValueError(
                f"{schema.names[of[j]]!r} holds whole numbers, by its type or by integers: the row "
                f"has {x[j]:g} there."
            )
        lower, upper = limits.lower[of], limits.upper[of]
        if limits.plausible:
            lower = np.maximum(lower, np.minimum(training.lowest, x))
            upper = np.minimum(upper, np.maximum(training.highest, x))
        # No bound that is given, or left out, makes more of a level or a truth value.
        is_binary = is_level | [schema[c].holds == TRUTH for c in of]
        lower = np.where(is_binary, np.maximum(lower, 0.0), lower)
        upper = np.where(is_binary, np.minimum(upper, 1.0), upper)
        stays |= is_missing  # no cell becomes so
        lower = np.where(stays, np.maximum(lower, x), lower)
        upper = np.where(stays, np.minimum(upper, x), upper)
        reach = np.full(len(x), np.inf)
        self.bends: dict[int, dict[int, Bend]] = {j: {} for j in schema.read_by_code}
        for k, (j, bend) in schema.bends.items():
            self.bends[j][k] = bend
            lower[k], upper[k] = -np.inf, np.inf  # the bounds are those of the number
            reach[j] = _FARTHEST_SPREADS * self.spread[j]
        lower = np.where(np.isinf(lower), x - reach, lower)
        upper = np.where(np.isinf(upper), x + reach, upper)
        # HiGHS misses optima where bounds of whole variables are not whole.
        self.lower = np.where(self.is_whole, x + np.ceil(lower - x - _WHOLE), lower)
        self.upper = np.where(self.is_whole, x + np.floor(upper - x + _WHOLE), upper)
        self.prices = limits.costs[of] / self.spread
        self.level_rows: list[np.ndarray] = []  # each has a limit of its own
        self.level_limits: list[float] = []
        for c in np.unique(of[is_level]):
            known = ((of == c) & ~is_missing).astype(np.float64)
            # Of three levels and more each makes a feature: a row has one of them at most, and
            # keeps one if it has one.
            self.level_rows.append(known)
            self.level_limits.append(1.0 - known @ x)
            if known.sum() > 1.0 and known @ x == 1.0:
                self.level_rows.append(-known)
                self.level_limits.append(0.0)

    def program(
        self, leaf: int, goal: Goal, margin: float, through: Sequence[np.ndarray] = ()
    ) -> Program:
        """Return the steps that lead to a leaf, by a margin behind its hyperplanes.

        They have parts for each line by which a feature and its bends are drawn, and parts of 0
        and 1 that say which lines are full. Logarithms are exact at the numbers of some points.
        """
        A, b = self._constraints(leaf, goal, margin)
        cuts, slopes = [], []
        of: list[int] = []
        links: list[int] = []  # lines whose next one follows when they are full
        for j in self.bends:
            numbers, rises = self._lines(j, A, through)
            # Where they rise faster and faster, what is nearer to the row costs least anyway.
            if (np.diff(rises, axis=0) * self.spread[j] < -_NOTHING).any():
                links += range(len(of), len(of) + len(rises) - 1)
            cuts.append(np.column_stack([numbers[:-1], numbers[1:]]))
            slopes.append(rises)
            of += [j] * len(rises)
        n, m = len(of), len(links)
        before, parts = np.array(links, dtype=np.int64), np.arange(m)
        start, stop = np.vstack(cuts).T
        x, nearest = self.x[of], np.clip(self.x, self.lower, self.upper)[of]
        must = (start >= np.minimum(x, nearest)) & (stop <= np.maximum(x, nearest))
        is_whole = self.is_whole[of]
        is_linked = np.isin(np.arange(n), [before, before + 1])
        unit = np.where(is_linked, stop - start, self.spread[of])
        unit[is_whole] = 1.0
        sign, high = np.where(stop > x, 1.0, -1.0), (stop - start) / unit
        # Lines fill from their starts, as those below the row are. One has something only where
        # the part of 0 and 1 is 1, and this only where the line before it is full.
        fills, is_full = sign / high, (sign < 0.0).astype(float)
        chain = np.zeros((2, m, n + m))
        chain[0, parts, before + 1], chain[0, parts, n + parts] = fills[before + 1], -1
        chain[1, parts, before], chain[1, parts, n + parts] = -fills[before], 1.0
        leads = np.vstack(slopes).T * sign * unit
        steps = Steps(
            A=np.vstack([np.pad(leads, ((0, 0), (0, m))), *chain]),
            b=np.concatenate([b, -is_full[before + 1], is_full[before]]),
            low=np.append(np.where(must, high, 0.0), np.zeros(m)),
            high=np.append(high, np.ones(m)),
            prices=np.append(self.prices[of] * unit, np.full(m, _FREE)),
            is_whole=np.append(is_whole, np.ones(m, dtype=bool)),
        )
        return Program(steps, of, sign * unit)

    def _constraints(
        self, leaf: int, goal: Goal, margin: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what steps keep, as normals and limits, in spreads of the projection."""
        rows, limits = [*self.level_rows], [*self.level_limits]
        for normal, limit, is_closed, width in self._half_spaces(leaf, goal):
            norm = float(np.linalg.norm(normal * self.spread))
            if not 0.0 < norm < np.inf:
                norm = 1.0
            slack = (limit - normal @ self.x) / norm
            is_exact = is_closed and bool(self.is_whole[normal != 0.0].all())
            behind = 0.0 if is_exact else min(margin, 0.25 * width / norm)
            if margin == MARGINS[0] and slack >= 0.0:
                behind = min(behind, slack)  # what holds now may hold as narrowly
            rows.append(normal / norm)
            limits.append(slack - behind)
        return np.array(rows).reshape(len(rows), len(self.x)), np.array(limits)

    def _lines(
        self, j: int, A: np.ndarray, through: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of lines by which a feature and its bends are drawn, rising.

        And their slopes in each constraint. Logarithms are drawn by chords where they are to be
        small, and by tangents where they are to be large: no point that is allowed is left out.
        """
        x, low, high = self.x[j], self.lower[j], self.upper[j]
        least, most = min(x, low), max(x, high)
        bends = {k: bend for k, bend in self.bends[j].items() if A[:, k].any()}

        def with_cuts(cuts: Iterable[float], more: Iterable[float]) -> np.ndarray:
            added = np.array(list(more))
            if self.is_whole[j]:
                added = np.append(np.floor(added), np.ceil(added))
            return np.unique([*cuts, *np.clip(added, least, most)])

        cuts = with_cuts([x, low, high], [bend.knot for bend in bends.values()])
        if bends:
            cuts = with_cuts(cuts, [point[j] for point in through])
        logs = {k: bend for k, bend in bends.items() if bend.kind == LOG}
        for bend in logs.values():
            first = max(least, bend.knot)
            cuts = with_cuts(cuts, np.geomspace(first, max(most, first), _N_TOUCHED))
        touched = {
            k: np.append(bend.knot, cuts[cuts > bend.knot]) for k, bend in logs.items()
        }
        for at in touched.values():  # and tangents meet between
            met = at[1:] * at[:-1] * np.diff(np.log(at)) / np.diff(at)
            cuts = with_cuts(cuts, met)
        lengths = np.diff(cuts)
        slopes = np.tile(A[:, j], (len(lengths), 1))
        for k, bend in bends.items():
            below = above = bend.of(cuts)
            if k in touched:
                at = touched[k][:, np.newaxis]
                beyond = np.maximum(cuts, bend.knot) - at
                above = (np.log(at) + beyond / at).min(axis=0)
            slopes += np.outer(np.diff(below) / lengths, np.maximum(A[:, k], 0.0))
            slopes += np.outer(np.diff(above) / lengths, np.minimum(A[:, k], 0.0))
        return cuts, slopes

    def point(self, step: np.ndarray) -> np.ndarray:
        """Return where a step leads, the bends as they are there."""
        moved = np.clip(self.x + step, self.lower, self.upper)
        point = np.where(np.abs(step) < _NOTHING * self.spread, self.x, moved)
        return self.schema.with_bends(self.schema.without_bends(point[np.newaxis]))[0]

    def distance(self, point: np.ndarray) -> float:
        """Return how far a point is from the row."""
        lengths = self.prices * np.abs(point - self.x)
        return float(lengths[self.schema.read_by_code].sum())

    def _half_spaces(
        self, leaf: int, goal: Goal
    ) -> Iterator[tuple[np.ndarray, float, bool, float]]:
        """Yield what a point z of a leaf keeps, as normals and limits: ``normal @ z <= limit``."""
        # With each whether points on the hyperplane are meant whatever sums round to, and how far
        # the opposite half-space leaves room, if there is one.
        tree, models, nodes = self.tree, self.tree.models, np.arange(leaf)
        for k in nodes[nodes + tree.subtree_size[:leaf] > leaf].tolist():
            is_left = leaf < tree.right(k)
            sign = 1.0 if is_left else -1.0
            yield sign * tree.weights[k], sign * tree.thresholds[k], is_left, np.inf
        if models is None:
            return
        if goal.label is not None:
            own = models.each[goal.label]
            for label, other in enumerate(models.each):
                normal = other.coefficients[leaf] - own.coefficients[leaf]
                limit = float(own.intercepts[leaf] - other.intercepts[leaf])
                if label != goal.label:
                    yield normal, limit, label > goal.label, np.inf
            return
        normal, start = models.coefficients[leaf], models.intercepts[leaf]
        width = goal.high - goal.low
        if models.lowest[leaf] < goal.low:
            yield -normal, start - goal.low, False, width
        if models.highest[leaf] > goal.high:
            yield normal, goal.high - start, False, width


def nearest_points(
    space: Space, goals: Sequence[Goal], n_points: int = 1
) -> list[LeafPoint]:
    """Return the nearest points of the leaves that predict what is asked for, the nearest first."""
    if (space.lower > space.upper).any():
        return []
    candidates = []
    for goal in goals:
        for leaf in goal.leaves.tolist():
            least = least_length(space.program(leaf, goal, MARGINS[0]).steps)
            candidates.append((least, leaf, goal))
    points: list[LeafPoint] = []
    for least, leaf, goal in sorted(candidates, key=lambda one: one[:2]):
        farthest = points[-1].distance if len(points) == n_points else np.inf
        if least >= farthest:
            break
        nearest = _nearest_of_leaf(space, leaf, goal)
        if nearest is not None:
            points = sorted([*points, nearest], key=lambda one: one.distance)[:n_points]
    return points


def _nearest_of_leaf(space: Space, leaf: int, goal: Goal) -> LeafPoint | None:
    """Return the nearest point of a leaf that the tree itself takes there."""
    distance = None
    for margin in MARGINS:
        point = _solved(space, leaf, goal, margin)
        if point is None:
            break
        distance = space.distance(point)
        if _keeps(space.tree, point, leaf, goal):
            return LeafPoint(distance, leaf, point)
    if distance is not None:
        warnings.warn(
            f"leaf {leaf} is left out, since rounding takes its nearest point to another leaf: "
            f"other points may be farther than it is, {distance:.4g}.",
            RuntimeWarning,
            stacklevel=2,
        )
    return None


def _solved(space: Space, leaf: int, goal: Goal, margin: float) -> np.ndarray | None:
    """Return the nearest point of a leaf, drawing logarithms anew until they are right there."""
    through: list[np.ndarray] = []
    for _ in range(_MAX_DRAWINGS):
        steps, of, moves = space.program(leaf, goal, margin, through)
        found = shortest(steps)
        if found is None:
            return None
        moved = np.bincount(of, found[: len(of)] * moves, minlength=len(space.x))
        point = space.point(moved)
        is_again = through and np.array_equal(point, through[-1])
        if is_again or _keeps(space.tree, point, leaf, goal):
            break
        through.append(point)
    return point


def _keeps(tree: ObliqueTree, point: np.ndarray, leaf: int, goal: Goal) -> bool:
    """Return whether a point reaches its leaf and is predicted as asked for."""
    row = point[np.newaxis]
    if tree.apply(row)[0] != leaf:
        return False
    if goal.label is not None:
        return int(tree.predict_label(row)[0]) == goal.label
    if tree.models is None:
        return True
    return goal.low <= float(tree.models.scores(row, np.array([leaf]))[0]) <= goal.high


def explain_failure(
    space_of: Callable[[PointLimits], Space],
    limits: PointLimits,
    goals: Sequence[Goal],
    schema: Schema,
) -> str:
    """Return which single constraints forbid all points that are asked for."""
    enough = []
    for name, other in limits.relaxed(schema.names):
        try:
            found = nearest_points(space_of(other), goals)
        except ValueError:  # takes too long
            continue
        if found:
            enough.append(name)
    if enough:
        return f"there would be some without {', or without '.join(enough)}."
    return "no single constraint forbids them: several do together, or missing cells that stay so."


def cell(column: Column, features: np.ndarray) -> Any:
    """Return the cell of a table that makes some features."""
    if isinstance(column, NumericColumn):
        kind = {WHOLE: int, TRUTH: bool}.get(column.holds, float)
        # A whole column may have a median between two numbers, which a missing cell has.
        kind = kind if float(features[0]).is_integer() else float
        return None if column.indicator and features[-1] else kind(features[0])
    return next(compress(column.levels, features), column.other)


def goals_of_class(
    tree: ObliqueTree, x: np.ndarray, classes: np.ndarray, target: Any
) -> list[Goal]:
    """Return the leaves that predict a class, None for any but that of a row."""
    if target is not None and target not in classes.tolist():
        raise ValueError(f"target={target!r}: allowed are {classes.tolist()} and None.")
    is_wanted = (
        np.arange(len(classes)) != tree.predict_label(x[np.newaxis])[0]
        if target is None
        else classes == target
    )
    if tree.models is not None:
        leaves = np.flatnonzero(tree.is_leaf)
        return [
            Goal(leaves, label=label) for label in np.flatnonzero(is_wanted).tolist()
        ]
    leaves = np.flatnonzero(tree.is_leaf & is_wanted[tree.labels])
    if not leaves.size:
        raise ValueError(f"target={target!r}: no leaf of the tree predicts it.")
    return [Goal(leaves)]


def goals_of_interval(tree: ObliqueTree, target: Any) -> list[Goal]:
    """Return the leaves that can predict a number of an interval."""
    try:
        low, high = (float(end) for end in target)
    except (TypeError, ValueError):
        low, high = np.inf, -np.inf
    if not low <= high:
        raise ValueError(
            f"target={target!r}: allowed is an interval (low, high), low <= high."
        )
    least = most = tree.values[:, 0]
    if tree.models is not None:
        least, most = tree.models.lowest, tree.models.highest
        low, high = tree.models.as_scores(np.array([low, high])).tolist()
    leaves = np.flatnonzero(tree.is_leaf & (least <= high) & (most >= low))
    if not leaves.size:
        raise ValueError(
            f"target={target!r}: no leaf of the tree predicts it; they predict from "
            f"{least[tree.is_leaf].min():g} to {most[tree.is_leaf].max():g}."
        )
    return [Goal(leaves, low, high)]


# ---- the question -------------------------------------------------------------------------------


def counterfactuals(
    model: Any,
    x: Any,
    target: Any = None,
    *,
    costs: Any = None,
    bounds: Any = None,
    integers: Any = None,
    fixed: Any = None,
    plausible: bool = True,
    n_points: int = 1,
    output: int | str | None = None,
) -> list[Counterfactual]:
    """Return the nearest points that the tree predicts otherwise, the nearest first.

    That of a row which is predicted so already is itself. A `ValueError` says which constraint
    forbids any point, or that columns of whole numbers and categories are too many; a
    `RuntimeWarning` names leaves whose points cannot be told from those of another one.

    The distance of a feature is in units of its spread, times the cost of its column. The rows
    that reach a leaf form a polytope; its nearest point is found exactly, and placed
    behind the hyperplanes on its way by 1e-5 of the spread of the projection. What is missing
    in `x` stays missing, and no other cell becomes so; a row has one level of a category. Columns
    that bend, such as by ``age above 52``, move by 100 spreads at most where they have no bounds.

    Parameters
    ----------
    model : fitted estimator of one tree
        It stays as it is.
    x : array-like of shape (n_columns,) or (1, n_columns)
        The row.
    target : class label, tuple of two float or None, default=None
        The class that the point is to have, None for any but that of `x`; for regression the
        interval ``(low, high)`` that its prediction is to be in.
    costs : mapping, optional
        Factors above 0, by names or positions of columns.
    bounds : mapping, optional
        ``(low, high)`` by names or positions of columns of numbers; None is no bound.
    integers : sequence of str or int, optional
        Columns that hold whole numbers, besides those whose type says so.
    fixed : sequence of str or int, optional
        Columns that cannot change.
    plausible : bool, default=True
        Whether each number stays in the range that it has in the training rows.
    n_points : int, at least 1, default=1
        How many points to find at most, each in another leaf.
    output : int, str or None, default=None
        Which of several outputs `target` is of, by position or name; None for a tree of one.

    Returns
    -------
    list of Counterfactual
        With the row, as `predict` takes it, and its cells that changed.
    """
    check_model("model", model)
    check_whole("n_points", n_points, 1)
    row = one_row("x", x)
    point = model.encode(row, bends=True)[0].astype(np.float64)
    fitted, schema = model.fitted_, model.fitted_.schema
    limits = PointLimits.of(
        schema,
        costs=costs,
        bounds=bounds,
        integers=integers,
        fixed=fixed,
        plausible=plausible,
    )
    is_missing = np.asarray(pd.isna(pd.DataFrame(row))).ravel()
    tree = fitted.of_output(output).tree
    goals = (
        goals_of_class(tree, point, fitted.classes, target)
        if fitted.classes is not None
        else goals_of_interval(tree, target)
    )

    def space_of(limits: PointLimits) -> Space:
        limits = replace(limits, fixed=limits.fixed | is_missing)
        return Space(fitted, tree, point, limits)

    found = nearest_points(space_of(limits), goals, n_points)
    if not found:
        raise ValueError(
            f"target={target!r}: no point within the constraints; "
            f"{explain_failure(space_of, limits, goals, schema)}"
        )
    return [_decoded(schema, row, point, one) for one in found]


def _decoded(
    schema: Schema, row: Any, before: np.ndarray, found: LeafPoint
) -> Counterfactual:
    """Return a point as a row of a table, with the cells that changed."""
    changed = pd.DataFrame(row).copy()
    changes = {}
    for c, column in enumerate(schema):
        features = schema.column_of == c
        features[list(schema.bends)] = False
        if (before[features] == found.point[features]).all():
            continue
        after = cell(column, found.point[features])
        # Of a level that no training row had, the features know nothing.
        changes[column.name] = (
            cell(column, before[features])
            if isinstance(column, NumericColumn)
            else text_of(changed.iloc[0, c]),
            after,
        )
        kind: Any = type(after) if isinstance(after, int | float) else object
        if kind in (int, bool) and changed.dtypes.iloc[c].kind in "biu":
            kind = changed.dtypes.iloc[c]
        changed[changed.columns[c]] = pd.Series(
            [after], index=changed.index, dtype=kind
        )
    is_frame = isinstance(row, pd.DataFrame)
    return Counterfactual(
        changed if is_frame else changed.to_numpy(),
        changes,
        found.distance,
        found.leaf,
    )

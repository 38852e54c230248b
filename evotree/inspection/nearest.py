"""What would have to change for another prediction: the nearest point that the tree gives it.

The rows that reach a leaf form a polytope, so the nearest point of a leaf is the solution of one
convex program, and the nearest of all leaves is the counterfactual of Wachter et al. for the tree
itself: no sampling, no surrogate.

References
----------
Carreira-Perpiñán M. Á., Hada S. S. (2021). Counterfactual explanations for oblique decision trees:
exact, efficient algorithms. AAAI Conference on Artificial Intelligence.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from numbers import Integral, Real
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import pandas as pd
from scipy.optimize import Bounds, LinearConstraint, milp

from evotree.fitted import TrainingRows, uncorrelated_spreads
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
from evotree.tables.frames import by_label
from evotree.tree import ObliqueTree
from evotree.words import check_whole, printable

MARGINS = (1e-5, 1e-4, 1e-3)
"""How far behind a hyperplane a point is placed, in spreads of the projection; tried in turn."""

_NOTHING = 1e-9  # a change of fewer spreads is none

_FREE = 1e-9  # the price of what follows from other parts
# A logarithm is drawn by so many lines at first, over the range of its column; more are added at
# the point that was found, until the logarithm is off its line by so few spreads.
_LINES = 8
_MAX_REFINEMENTS = 10
_STRAIGHT_SPREADS = 1e-7
_FARTHEST = 1e4  # spreads that a column without bounds may change by, if it bends

# ---- the smallest step into a polytope: one mixed-integer program -------------------------------

_WHOLE = 1e-6  # what is nearer to a whole number is one
_SUM_SLACK = 1e-9
_PROGRAM_LIMITS = {"mip_rel_gap": 0.0, "node_limit": 10_000, "time_limit": 60.0}
_SOLVED = (0, 2)  # what milp calls an optimum, and the proof that there is none


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps y with ``A @ y <= b`` and ``lower <= y <= upper``, some of whose parts are whole."""

    A: np.ndarray  # of shape (n_constraints, n_parts), rows of a length near 1
    b: np.ndarray
    lower: np.ndarray  # of shape (n_parts,), perhaps infinite
    upper: np.ndarray
    prices: np.ndarray  # what a part of length 1 costs, above 0
    is_whole: np.ndarray


def shortest(steps: Steps) -> np.ndarray | None:
    """Return the step with the smallest sum of prices times lengths, or None if there is none."""
    # Parts upwards, and parts downwards.
    low = np.maximum([steps.lower, -steps.upper], 0.0).ravel()
    high = np.maximum([steps.upper, -steps.lower], 0.0).ravel()
    whole = np.tile(steps.is_whole, 2)
    # HiGHS misses optima where bounds of whole variables are not whole.
    low = np.where(whole, np.ceil(low - _WHOLE), low)
    high = np.where(whole, np.floor(high + _WHOLE), high)
    if (low > high).any():
        return None
    A = np.hstack([steps.A, -steps.A])
    # Programs whose parts are all pinned make HiGHS fail.
    is_free = low < high
    solution = np.where(is_free, 0.0, low)
    limits = steps.b - A @ solution
    if is_free.any():
        solved = _solve(
            np.tile(steps.prices, 2)[is_free],
            whole[is_free],
            Bounds(low[is_free], high[is_free]),
            LinearConstraint(A[:, is_free], -np.inf, limits) if len(limits) else (),
        )
        if solved is None:
            return None
        solution[is_free] = solved
    elif (limits < -_SUM_SLACK).any():
        return None
    up, down = solution.reshape(2, -1)
    return np.where(steps.is_whole, np.round(up - down), up - down)


def _solve(
    cost: np.ndarray, whole: np.ndarray, bounds: Bounds, constraints: Any
) -> np.ndarray | None:
    """Return the cheapest variables within bounds and constraints, or None."""
    # Presolving fails on some programs with narrow margins.
    for presolve in (True, False):
        result = milp(
            cost,
            integrality=whole,
            bounds=bounds,
            constraints=constraints,
            options=_PROGRAM_LIMITS | {"presolve": presolve},
        )
        if result.status == 1:
            break
        if result.status in _SOLVED:
            return result.x
    raise ValueError(
        "the nearest point takes too long to be found: fix columns (fixed), narrow bounds, or "
        "leave out integers."
    )


def least_length(steps: Steps) -> float:
    """Return a length that no allowed step is below, by each bound and constraint alone."""
    A, least = steps.A, np.where(steps.A > 0.0, steps.lower, steps.upper)
    sums = np.multiply(A, least, out=np.zeros_like(A), where=A != 0.0).sum(axis=1)
    if (steps.lower > steps.upper).any() or (sums > steps.b + _SUM_SLACK).any():
        return np.inf
    broken = steps.b < 0.0
    needed = -steps.b[broken] / (np.abs(A[broken]) / steps.prices).max(
        axis=1, initial=0.0
    )
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
    point: np.ndarray  # in the features of the tree

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


# A distance, its leaf, and the point there.
LeafPoint: TypeAlias = tuple[float, int, np.ndarray]


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
        is_number = np.array([isinstance(one, NumericColumn) for one in schema])
        limits = cls(
            costs=np.ones(n),
            lower=np.full(n, -np.inf),
            upper=np.full(n, np.inf),
            whole=is_number & [one.holds in (WHOLE, TRUTH) for one in schema],
            fixed=np.zeros(n, dtype=bool),
            plausible=bool(plausible),
        )
        costs = by_label(costs, schema.names, "costs")
        if costs is not None and not isinstance(costs, Mapping):
            if np.shape(costs) != (n,):
                raise ValueError(
                    f"costs has the shape {np.shape(costs)}: allowed are ({n},), one number for "
                    "each column, and mappings."
                )
            costs = dict(enumerate(costs))
        if not isinstance(bounds, Mapping | None):
            raise ValueError(
                f"bounds={bounds!r}: allowed are mappings of columns to pairs."
            )
        for key, cost in (costs or {}).items():
            if not isinstance(cost, Real) or not 0.0 < float(cost) < math.inf:
                raise ValueError(
                    f"costs[{key!r}]={cost!r}: allowed are finite numbers above 0."
                )
            limits.costs[_positions("costs", [key], schema)] = cost
        for key, pair in (bounds or {}).items():
            (c,) = _positions("bounds", [key], schema, of_numbers=True)
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
        whole = _positions("integers", integers, schema, of_numbers=True)
        limits.whole[whole] = True
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
    listed: Any = () if names is None else names
    if isinstance(names, str | Integral):
        listed = (names,)
    if not isinstance(listed, Iterable):
        raise ValueError(
            f"{parameter}={names!r}: allowed are names and positions of columns."
        )
    found = sorted(columns_asked(listed, schema.names, parameter))
    for c in found:
        if of_numbers and isinstance(schema[c], CategoricalColumn):
            raise ValueError(
                f"{parameter} names {schema.names[c]!r}: allowed are columns of numbers."
            )
    return found


class Space:
    """The points that a row may become within the limits; missing cells are fixed."""

    def __init__(
        self,
        tree: ObliqueTree,
        training: TrainingRows,
        schema: Schema,
        x: np.ndarray,
        limits: PointLimits,
    ) -> None:
        self.tree, self.schema, self.x, self.limits = tree, schema, x, limits
        self.column_of = schema.column_of
        self.spread = np.where(tree.known_spread > 0.0, tree.known_spread, 1.0)
        self.norms = uncorrelated_spreads(tree)
        of = self.column_of
        self.lower, self.upper = limits.lower[of], limits.upper[of]
        self.bends = schema.bends
        self.breaks: dict[int, list[float]] = {}  # further ends of lines, by the column
        self.is_bend = np.isin(np.arange(len(x)), list(self.bends))
        self.is_whole = limits.whole[of] & ~self.is_bend
        stays = limits.fixed[of]
        for j in np.flatnonzero(self.is_whole & ~stays & (x != np.round(x))).tolist():
            raise ValueError(
                f"{schema.names[of[j]]!r} holds whole numbers, by its type or by integers: the row "
                f"has {x[j]:g} there."
            )
        if limits.plausible:
            self.lower = np.maximum(self.lower, np.minimum(training.lowest, x))
            self.upper = np.minimum(self.upper, np.maximum(training.highest, x))
        is_level = np.array([isinstance(schema[c], CategoricalColumn) for c in of])
        self.is_whole |= is_level
        self.lower[is_level], self.upper[is_level] = 0.0, 1.0
        # No bound that is given, or left out, makes more of a truth value.
        is_truth = np.array([schema[c].holds == TRUTH for c in of])
        self.lower[is_truth] = np.maximum(self.lower[is_truth], 0.0)
        self.upper[is_truth] = np.minimum(self.upper[is_truth], 1.0)
        # No cell becomes missing, and one level excludes the others.
        is_missing = np.array([level == MISSING for level in schema.levels])
        self.lower[is_missing] = self.upper[is_missing] = x[is_missing]
        self.groups: list[tuple[np.ndarray, bool]] = []
        for c in np.unique(of[is_level]):
            known = np.flatnonzero((of == c) & ~is_missing)
            if len(known) > 1:
                # Of three levels and more each makes a feature: a row has one of them.
                self.groups.append((known, bool(x[known].sum() == 1.0)))
        self.lower = np.where(stays, np.maximum(self.lower, x), self.lower)
        self.upper = np.where(stays, np.minimum(self.upper, x), self.upper)
        for j, (base, bend) in self.bends.items():
            reach = _FARTHEST * self.spread[base]
            self.lower[base] = max(self.lower[base], x[base] - reach)
            self.upper[base] = min(self.upper[base], x[base] + reach)
            ends = bend.of(np.array([self.lower[base], self.upper[base]]))
            self.lower[j], self.upper[j] = np.sort(ends)
        # Whole numbers take steps of 1, others of a spread.
        self.unit = np.where(self.is_whole, 1.0, self.spread)
        self.prices = np.where(
            self.is_bend, _FREE, limits.costs[of] * self.unit / self.spread
        )

    def steps(
        self, leaf: int, goal: Goal, margin: float
    ) -> tuple[np.ndarray, Steps] | None:
        """Return the features that matter to a leaf, and the steps in them that lead there.

        Parts beyond those of the features say on which line of a column that bends a point is.
        """
        rows, limits = [], []
        for normal, limit, norm, is_closed, width in self._half_spaces(leaf, goal):
            if norm == 0.0:
                if limit < normal @ self.x:
                    return None
                continue
            slack = (limit - normal @ self.x) / norm
            is_exact = is_closed and bool(self.is_whole[normal != 0.0].all())
            behind = 0.0 if is_exact else min(margin, 0.25 * width / norm)
            if margin == MARGINS[0] and slack >= 0.0:
                behind = min(behind, slack)  # what holds now may hold as narrowly
            rows.append(normal * self.unit / norm)
            limits.append(slack - behind)
        A = np.array(rows).reshape(len(rows), len(self.x))
        must = (self.lower > self.x) | (self.upper < self.x)
        is_used = (A != 0.0).any(axis=0)
        matters = np.unique(self.column_of[is_used | must])
        is_needed = is_used | ~self.is_bend
        features = np.flatnonzero(np.isin(self.column_of, matters) & is_needed)
        for known, is_one in self.groups:
            if self.column_of[known[0]] in matters:
                sums = np.isin(np.arange(len(self.x)), known).astype(np.float64)
                present = float(self.x[known].sum())
                for sign in (1.0, -1.0) if is_one else (1.0,):
                    A = np.vstack([A, sign * sums])
                    limits.append(sign * (1.0 - present))
        steps = Steps(
            A=A[:, features],
            b=np.array(limits),
            lower=((self.lower - self.x) / self.unit)[features],
            upper=((self.upper - self.x) / self.unit)[features],
            prices=self.prices[features],
            is_whole=self.is_whole[features],
        )
        place = {j: at for at, j in enumerate(features.tolist())}
        for base in sorted({self.bends[j][0] for j in place if j in self.bends}):
            steps = self._on_lines(steps, base, place)
        return features, steps

    def _on_lines(self, steps: Steps, base: int, place: Mapping[int, int]) -> Steps:
        """Return steps by which the bends of a column follow its number, on one of some lines.

        Each line has a part that is 1 where the number is between its ends; then the bends are on
        the chords between these ends, of hinges the lines themselves.
        """
        of = [j for j in place if self.bends.get(j, (-1,))[0] == base]
        ends = self._ends(base, [self.bends[j][1] for j in of])
        x, low, high = self.x[base], ends[:-1], ends[1:]
        n, m = len(steps.prices), len(low)
        if m == 0:  # the number stays, and so do its bends
            return steps
        on = np.zeros(m)
        if low[0] <= x <= high[-1]:
            on[np.searchsorted(high, x)] = 1.0
        lines = slice(n, n + m)
        unit = self.unit[base]
        rows, limits = [np.zeros((4, n + m))], [[1.0 - on.sum(), on.sum() - 1.0]]
        rows[0][0, lines], rows[0][1, lines] = 1.0, -1.0
        rows[0][2, lines], rows[0][3, lines] = low / unit, -high / unit
        rows[0][2, place[base]], rows[0][3, place[base]] = -1.0, 1.0
        limits.append([(x - low @ on) / unit, (high @ on - x) / unit])
        for j in of:
            values = self.bends[j][1].of(ends)
            slopes = np.diff(values) / (high - low)
            # How far the bend is from each line at the ends of all of them, at most.
            away = values[:-1, np.newaxis] + slopes[:, np.newaxis] * (
                ends - low[:, np.newaxis]
            )
            room = np.abs(values - away).max(axis=1)
            here = self.x[j] - values[:-1] - slopes * (x - low)
            for sign in (1.0, -1.0):
                block = np.zeros((m, n + m))
                block[:, place[j]] = sign * self.unit[j]
                block[:, place[base]] = -sign * slopes * unit
                block[:, lines] = np.diag(room)
                rows.append(block / self.unit[j])
                limits.append((room * (1.0 - on) - sign * here) / self.unit[j])
        return Steps(
            A=np.vstack([np.pad(steps.A, ((0, 0), (0, m))), *rows]),
            b=np.concatenate([steps.b, *limits]),
            lower=np.append(steps.lower, -on),
            upper=np.append(steps.upper, 1.0 - on),
            prices=np.append(steps.prices, np.full(m, _FREE)),
            is_whole=np.append(steps.is_whole, np.ones(m, dtype=bool)),
        )

    def _ends(self, base: int, bends: Sequence[Bend]) -> np.ndarray:
        """Return the ends of the lines that bends of a column are drawn by, rising."""
        low, high = self.lower[base], self.upper[base]
        ends = [low, high, self.x[base], *(bend.knot for bend in bends)]
        for bend in bends:
            if bend.kind == LOG and high > bend.knot:
                drawn = np.geomspace(max(low, bend.knot), high, _LINES + 1)
                ends += [*drawn, *self.breaks.get(base, [])]
        return np.unique(np.clip(ends, low, high))

    def point(self, features: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return the point of a step, and whether logarithms were on their lines there.

        Where they were not, further steps have a line that ends there.
        """
        moves = step * self.unit[features]
        point = self.x.astype(np.float64)
        moved = np.clip(
            point[features] + moves, self.lower[features], self.upper[features]
        )
        point[features] = np.where(step == 0.0, point[features], moved)
        is_straight = True
        for j, (base, bend) in self.bends.items():
            exact = float(bend.of(point[base]))
            off = abs(exact - point[j]) if bend.kind == LOG and j in features else 0.0
            if off > _STRAIGHT_SPREADS * self.spread[j]:
                self.breaks.setdefault(base, []).append(float(point[base]))
                is_straight = False
            point[j] = exact
        return point, is_straight

    def _half_spaces(
        self, leaf: int, goal: Goal
    ) -> Iterator[tuple[np.ndarray, float, float, bool, float]]:
        """Yield what a point z of a leaf keeps, as normals and limits: ``normal @ z <= limit``."""
        # With each the spread of the projection, 0 for a normal vector of zeros, whether points on
        # the hyperplane are meant whatever sums round to, and how far the opposite half-space
        # leaves room, if there is one.
        tree, k = self.tree, 0
        while k < leaf:
            right = tree.right(k)
            is_left = leaf < right
            sign = 1.0 if is_left else -1.0
            yield (
                sign * tree.weights[k],
                sign * tree.thresholds[k],
                self.norms[k],
                is_left,
                np.inf,
            )
            k = k + 1 if is_left else right
        models = tree.models
        if models is None:
            return
        if goal.label is not None:
            own = models.each[goal.label]
            for label, other in enumerate(models.each):
                normal = other.coefficients[leaf] - own.coefficients[leaf]
                limit = float(own.intercepts[leaf] - other.intercepts[leaf])
                if label != goal.label:
                    norm = float(np.linalg.norm(normal * self.spread))
                    yield normal, limit, norm, label > goal.label, np.inf
            return
        normal, start = models.coefficients[leaf], models.intercepts[leaf]
        norm, width = float(np.linalg.norm(normal * self.spread)), goal.high - goal.low
        if models.lowest[leaf] < goal.low:
            yield -normal, start - goal.low, norm, False, width
        if models.highest[leaf] > goal.high:
            yield normal, goal.high - start, norm, False, width


def nearest_points(
    space: Space, goals: Sequence[Goal], n_points: int = 1
) -> list[LeafPoint]:
    """Return the nearest points of the leaves that predict what is asked for, the nearest first."""
    candidates = []
    for number, goal in enumerate(goals):
        for leaf in goal.leaves.tolist():
            program = space.steps(leaf, goal, MARGINS[0])
            least = np.inf if program is None else least_length(program[1])
            if np.isfinite(least):
                candidates.append((least, leaf, number))
    points: list[LeafPoint] = []
    for least, leaf, number in sorted(candidates):
        if len(points) == n_points and least >= points[-1][0]:
            break
        nearest = _nearest_of_leaf(space, leaf, goals[number])
        if nearest is not None:
            points = sorted([*points, nearest], key=lambda point: point[0])[:n_points]
    return points


def _nearest_of_leaf(space: Space, leaf: int, goal: Goal) -> LeafPoint | None:
    """Return the nearest point of a leaf that the tree itself takes there."""
    distance = None
    for margin in MARGINS:
        for _ in range(_MAX_REFINEMENTS):
            program = space.steps(leaf, goal, margin)
            if program is None:
                return None
            features, steps = program
            found = shortest(steps)
            if found is None:
                break
            step = found[: len(features)]
            moves = np.abs(step * space.unit[features])
            step = np.where(moves >= _NOTHING * space.spread[features], step, 0.0)
            point, is_straight = space.point(features, step)
            if is_straight:
                break
        if found is None:
            break
        prices = np.where(space.is_bend, 0.0, space.prices)[features]
        distance = float(np.abs(prices * step).sum())
        if _keeps(space.tree, point, leaf, goal):
            return distance, leaf, point
    if distance is not None:
        warnings.warn(
            f"leaf {leaf} is left out, since rounding takes its nearest point to another leaf: "
            f"other points may be farther than it is, {distance:.4g}.",
            RuntimeWarning,
            stacklevel=2,
        )
    return None


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
    if enough := [
        name
        for name, other in limits.relaxed(schema.names)
        if nearest_points(space_of(other), goals)
    ]:
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
    in `x` stays missing, and no other cell becomes so; a row has one level of a category.

    Parameters
    ----------
    model : fitted estimator of one tree
        It stays as it is.
    x : array-like of shape (n_columns,) or (1, n_columns)
        The row.
    target : class label, tuple of two float or None, default=None
        The class that the point is to have, None for any but that of `x`; for regression the
        interval ``(low, high)`` that its prediction is to be in.
    costs : mapping or sequence of float, optional
        Factors above 0, by names or positions of columns, or one for each column.
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
    fitted = model.fitted_
    training = fitted.training
    limits = PointLimits.of(
        fitted.schema,
        costs=costs,
        bounds=bounds,
        integers=integers,
        fixed=fixed,
        plausible=plausible,
    )
    tree = fitted.of_output(output).tree
    goals = (
        goals_of_class(tree, point, fitted.classes, target)
        if fitted.classes is not None
        else goals_of_interval(tree, target)
    )
    is_missing = np.asarray(pd.isna(pd.DataFrame(row))).ravel()

    def space_of(limits: PointLimits) -> Space:
        limits = replace(limits, fixed=limits.fixed | is_missing)
        return Space(tree, training, fitted.schema, point, limits)

    found = nearest_points(space_of(limits), goals, n_points)
    if not found:
        raise ValueError(
            f"target={target!r}: no point within the constraints; "
            f"{explain_failure(space_of, limits, goals, fitted.schema)}"
        )
    return [_decoded(fitted.schema, row, point, *one) for one in found]


def _decoded(
    schema: Schema,
    row: Any,
    before: np.ndarray,
    distance: float,
    leaf: int,
    point: np.ndarray,
) -> Counterfactual:
    """Return a point as a row of a table, with the cells that changed."""
    is_frame = isinstance(row, pd.DataFrame)
    changed = row.copy() if is_frame else pd.DataFrame(row)
    changes = {}
    for c, column in enumerate(schema):
        features = schema.column_of == c
        features[list(schema.bends)] = False
        if (before[features] == point[features]).all():
            continue
        after = cell(column, point[features])
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
    return Counterfactual(
        changed if is_frame else changed.to_numpy(), changes, distance, leaf, point
    )

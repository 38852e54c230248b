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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from numbers import Real
from typing import Any, NamedTuple

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
# A column without bounds may change by so many spreads, if it bends. One of whole numbers may by so
# many, or so many units where a spread is less: without an end HiGHS may not find that there is no
# point.
_FARTHEST_SPREADS = 100.0
_FARTHEST_WHOLE = 1e6
_FREE = 1e-9  # the price of what follows from other parts

_PROGRAM_LIMITS = {"mip_rel_gap": 0.0, "node_limit": 10_000, "time_limit": 60.0}
_SOLVED, _LIMITED, _INFEASIBLE = 0, 1, 2  # what milp says of a program


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


# ---- what is asked for, and what may change ------------------------------------------------------


class Goal(NamedTuple):
    """A leaf that can predict what is asked for, and what its model, if any, has to say."""

    leaf: int
    low: float = -np.inf
    high: float = np.inf
    label: int | None = None  # the class, by position, whose score is to be the largest


class LeafPoint(NamedTuple):
    """A point of a leaf, in the features of the tree."""

    distance: float
    leaf: int
    point: np.ndarray


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
    leaves = np.flatnonzero(tree.is_leaf).tolist()
    if tree.models is not None:
        labels = np.flatnonzero(is_wanted).tolist()
        return [Goal(leaf, label=label) for leaf in leaves for label in labels]
    goals = [Goal(leaf) for leaf in leaves if is_wanted[tree.labels[leaf]]]
    if not goals:
        raise ValueError(f"target={target!r}: no leaf of the tree predicts it.")
    return goals


def interval_of(name: str, given: Any) -> tuple[float, float]:
    """Return the ends of an interval that users give, in which None is no bound."""
    try:
        low, high = given
        low = -math.inf if low is None else float(low)
        high = math.inf if high is None else float(high)
    except (TypeError, ValueError):
        low, high = math.inf, -math.inf
    if not low <= high:
        raise ValueError(f"{name}={given!r}: allowed is (low, high), low <= high.")
    return low, high


def goals_of_interval(tree: ObliqueTree, target: Any) -> list[Goal]:
    """Return the leaves that can predict a number of an interval."""
    low, high = interval_of("target", target)
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
    return [Goal(leaf, low, high) for leaf in leaves.tolist()]


def limits_of(
    schema: Schema, costs: Any, bounds: Any, integers: Any, fixed: Any
) -> pd.DataFrame:
    """Return what users say of each column: a row with its cost, bounds, and what it keeps."""
    limits = pd.DataFrame(
        {
            "cost": 1.0,
            "lower": -np.inf,
            "upper": np.inf,
            "whole": [one.holds in (WHOLE, TRUTH) for one in schema],
            "fixed": False,
        }
    )
    for key, cost in dict(costs or {}).items():
        if not isinstance(cost, Real) or not 0.0 < float(cost) < math.inf:
            raise ValueError(
                f"costs[{key!r}]={cost!r}: allowed are finite numbers above 0."
            )
        limits.loc[_positions("costs", key, schema), "cost"] = float(cost)
    for key, pair in dict(bounds or {}).items():
        at = _positions("bounds", key, schema, of_numbers=True)
        limits.loc[at, ["lower", "upper"]] = interval_of(f"bounds[{key!r}]", pair)
    limits.loc[_positions("integers", integers, schema, of_numbers=True), "whole"] = (
        True
    )
    limits.loc[_positions("fixed", fixed, schema), "fixed"] = True
    return limits


def _positions(
    parameter: str, names: Any, schema: Schema, of_numbers: bool = False
) -> list[int]:
    """Return the positions of columns that users give as one name or several, or None."""
    listed = names if is_list_like(names) else [] if names is None else [names]
    found = sorted(columns_asked(listed, schema.names, parameter))
    for c in found:
        if of_numbers and isinstance(schema[c], CategoricalColumn):
            raise ValueError(
                f"{parameter} names {schema.names[c]!r}: allowed are columns of numbers."
            )
    return found


# ---- the nearest point of a leaf -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Program:
    """Parts y of a step with ``A @ y <= b`` and ``low <= y <= high``, some of which are whole."""

    A: np.ndarray  # of shape (n_constraints, n_parts), rows of a length near 1
    b: np.ndarray
    low: np.ndarray  # of shape (n_parts,), 0 or above
    high: np.ndarray  # perhaps infinite
    prices: np.ndarray  # what a part of length 1 costs, above 0
    is_whole: np.ndarray
    of: list[int]  # the features that the first parts are of
    moves: np.ndarray  # how far these move by a length of 1


def shortest_step(program: Program, farthest: float) -> np.ndarray | None:
    """Return the parts with the smallest sum of prices times lengths, or None if there are none.

    A sum above `farthest` is none.
    """
    # Programs whose parts are all pinned make HiGHS fail: the last part is free.
    A = np.pad(np.vstack([program.A, program.prices]), ((0, 0), (0, 1)))
    limits = np.append(program.b, farthest)
    # Presolving fails on some programs with narrow margins.
    for presolve in (True, False):
        result = milp(
            np.append(program.prices, 1.0),
            integrality=np.append(program.is_whole, False),
            bounds=Bounds(np.append(program.low, 0.0), np.append(program.high, 1.0)),
            constraints=LinearConstraint(A, -np.inf, limits),
            options=_PROGRAM_LIMITS | {"presolve": presolve},
        )
        if result.status in (_SOLVED, _LIMITED, _INFEASIBLE):
            break
    if result.status == _INFEASIBLE:
        return None
    if result.status == _SOLVED:
        parts = result.x[:-1]
        return np.where(program.is_whole, np.round(parts), parts)
    raise ValueError(
        "the nearest point takes too long to be found: fix columns (fixed), narrow bounds, or "
        "leave out integers."
    )


class Space:
    """The points that a row may become within the limits; an entry for each feature."""

    def __init__(
        self,
        fitted: Fitted,
        tree: ObliqueTree,
        x: np.ndarray,
        limits: pd.DataFrame,
        plausible: bool,
    ) -> None:
        schema, of = fitted.schema, fitted.schema.column_of
        training: Any = fitted.training
        self.tree, self.schema, self.x = tree, schema, x
        self.spread = np.where(tree.known_spread > 0.0, tree.known_spread, 1.0)
        cost, lower, upper, is_whole, is_fixed = (
            limits[name].to_numpy()[of] for name in limits
        )
        is_level = np.array([isinstance(schema[c], CategoricalColumn) for c in of])
        is_missing = np.array([level == MISSING for level in schema.levels])
        bends = list(schema.bends)
        self.is_whole = is_whole | is_level
        self.is_whole[bends] = False
        is_cut = self.is_whole & ~is_fixed & (x != np.round(x))
        for j in np.flatnonzero(is_cut).tolist():
            raise ValueError(
                f"{schema.names[of[j]]!r} holds whole numbers, by its type or by integers: the row "
                f"has {x[j]:g} there."
            )
        # No bound that is given, or left out, makes more of a level or a truth value.
        is_binary = is_level | [schema[c].holds == TRUTH for c in of]
        stays = is_fixed | is_missing  # no cell becomes so
        lowest = [lower, np.where(is_binary, 0.0, -np.inf), np.where(stays, x, -np.inf)]
        highest = [upper, np.where(is_binary, 1.0, np.inf), np.where(stays, x, np.inf)]
        if plausible:
            lowest.append(np.minimum(training.lowest, x))
            highest.append(np.maximum(training.highest, x))
        lower, upper = np.max(lowest, axis=0), np.min(highest, axis=0)
        reach = np.where(
            self.is_whole, _FARTHEST_WHOLE * np.maximum(1.0, self.spread), np.inf
        )
        self.bends: dict[int, dict[int, Bend]] = {j: {} for j in schema.read_by_code}
        for k, (j, bend) in schema.bends.items():
            self.bends[j][k] = bend
        bent = [j for j, of_number in self.bends.items() if of_number]
        reach[bent] = _FARTHEST_SPREADS * self.spread[bent]
        lower = np.where(np.isinf(lower), x - reach, lower)
        upper = np.where(np.isinf(upper), x + reach, upper)
        # The bounds of a bend are those of its number.
        lower[bends], upper[bends] = -np.inf, np.inf
        # HiGHS misses optima where bounds of whole variables are not whole.
        self.lower = np.where(self.is_whole, x + np.ceil(lower - x - _WHOLE), lower)
        self.upper = np.where(self.is_whole, x + np.floor(upper - x + _WHOLE), upper)
        self.prices = cost / self.spread
        self.prices[bends] = 0.0
        # A row has one level of a category at most. Of three levels and more each makes a feature:
        # a row keeps one if it has one.
        levels = [(of == c) & ~is_missing for c in np.unique(of[is_level])]
        self.level_rows = np.array(levels, dtype=np.float64).reshape(-1, len(x))
        held = self.level_rows @ x
        is_kept = (self.level_rows.sum(axis=1) > 1.0) & (held == 1.0)
        self.level_rows = np.vstack([self.level_rows, -self.level_rows[is_kept]])
        self.level_limits = np.append(1.0 - held, np.zeros(is_kept.sum()))

    def program(
        self, goal: Goal, margin: float, through: Sequence[np.ndarray]
    ) -> Program:
        """Return the steps that lead to a leaf, by a margin behind its hyperplanes.

        They have parts for each line by which a feature and its bends are drawn, and parts of 0
        and 1 that say which lines are full. Logarithms are exact at the numbers of some points.
        """
        A, b = self._constraints(goal, margin)
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
        return Program(
            A=np.vstack([np.pad(leads, ((0, 0), (0, m))), *chain]),
            b=np.concatenate([b, -is_full[before + 1], is_full[before]]),
            low=np.append(np.where(must, high, 0.0), np.zeros(m)),
            high=np.append(high, np.ones(m)),
            prices=np.append(self.prices[of] * unit, np.full(m, _FREE)),
            is_whole=np.append(is_whole, np.ones(m, dtype=bool)),
            of=of,
            moves=sign * unit,
        )

    def _constraints(self, goal: Goal, margin: float) -> tuple[np.ndarray, np.ndarray]:
        """Return what steps into a leaf keep, as normals and limits."""
        normals, limits = [*self.level_rows], [*self.level_limits]
        for normal, limit, is_closed, width in self._half_spaces(goal):
            norm = float(np.linalg.norm(normal * self.spread))
            if not 0.0 < norm < np.inf:
                norm = 1.0
            slack = (limit - normal @ self.x) / norm
            is_exact = is_closed and bool(self.is_whole[normal != 0.0].all())
            behind = 0.0 if is_exact else min(margin, 0.25 * width / norm)
            if margin == MARGINS[0] and slack >= 0.0:
                behind = min(behind, slack)  # what holds now may hold as narrowly
            normals.append(normal / norm)
            limits.append(slack - behind)
        return np.array(normals).reshape(-1, len(self.x)), np.array(limits)

    def _half_spaces(
        self, goal: Goal
    ) -> Iterator[tuple[np.ndarray, float, bool, float]]:
        """Yield what a point z of a leaf keeps, as normals and limits: ``normal @ z <= limit``."""
        # With each whether points on the hyperplane are meant whatever sums round to, and how far
        # the opposite half-space leaves room, if there is one.
        tree, models, leaf = self.tree, self.tree.models, goal.leaf
        nodes = np.arange(leaf)
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

        logs = {k: bend for k, bend in bends.items() if bend.kind == LOG}

        def cut(numbers: Any) -> np.ndarray:
            if self.is_whole[j]:
                numbers = np.append(np.floor(numbers), np.ceil(numbers))
            return np.unique(np.clip(numbers, least, most))

        ends = [x, low, high, *(bend.knot for bend in bends.values())]
        if bends:
            ends += [point[j] for point in through]
        for bend in logs.values():
            first = max(least, bend.knot)
            ends += np.geomspace(first, max(most, first), _N_TOUCHED).tolist()
        cuts = cut(ends)
        touched = {
            k: np.append(bend.knot, cuts[cuts > bend.knot]) for k, bend in logs.items()
        }
        for at in touched.values():  # and tangents meet between
            met = at[1:] * at[:-1] * np.diff(np.log(at)) / np.diff(at)
            cuts = cut([*cuts, *met])
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

    def nearest(
        self,
        goal: Goal,
        margin: float,
        through: Sequence[np.ndarray],
        farthest: float,
    ) -> np.ndarray | None:
        """Return the nearest point of a leaf, by a margin behind its hyperplanes, if any."""
        program = self.program(goal, margin, through)
        parts = shortest_step(program, farthest)
        if parts is None:
            return None
        lengths = parts[: len(program.of)] * program.moves
        step = np.bincount(program.of, lengths, minlength=len(self.x))
        moved = np.clip(self.x + step, self.lower, self.upper)
        point = np.where(np.abs(step) < _NOTHING * self.spread, self.x, moved)
        return self.schema.with_bends(self.schema.without_bends(point[np.newaxis]))[0]

    def keeps(self, point: np.ndarray, goal: Goal) -> bool:
        """Return whether a point reaches its leaf and is predicted as asked for."""
        row, models = point[np.newaxis], self.tree.models
        leaf = self.tree.apply(row)
        if models is None or leaf[0] != goal.leaf:
            return bool(leaf[0] == goal.leaf)
        if goal.label is not None:
            return bool(self.tree.predict_label(row)[0] == goal.label)
        return bool(goal.low <= models.scores(row, leaf)[0] <= goal.high)

    def distance(self, point: np.ndarray) -> float:
        """Return how far a point is from the row."""
        return float(self.prices @ np.abs(point - self.x))


def nearest_points(
    space: Space, goals: Sequence[Goal], n_points: int = 1
) -> list[LeafPoint]:
    """Return the nearest points of the leaves that predict what is asked for, the nearest first."""
    if (space.lower > space.upper).any():
        return []
    points: list[LeafPoint] = []
    for goal in goals:
        farthest = points[-1].distance if len(points) == n_points else np.inf
        nearest = nearest_of_leaf(space, goal, farthest)
        if nearest is not None:
            points = sorted([*points, nearest], key=lambda one: one.distance)[:n_points]
    return points


def nearest_of_leaf(space: Space, goal: Goal, farthest: float) -> LeafPoint | None:
    """Return the nearest point of a leaf that the tree itself takes there, if it is near enough."""
    tried: list[np.ndarray] = []
    for margin in MARGINS:
        for _ in range(_MAX_DRAWINGS):
            point = space.nearest(goal, margin, tried, farthest)
            if point is None:
                break
            if space.keeps(point, goal):
                return LeafPoint(space.distance(point), goal.leaf, point)
            is_again = bool(tried) and np.array_equal(point, tried[-1])
            tried.append(point)
            if is_again:
                break
    if tried and space.distance(tried[-1]) < farthest:
        warnings.warn(
            f"leaf {goal.leaf} is left out, since rounding takes its nearest point to another "
            f"leaf: other points may be farther than it is, {space.distance(tried[-1]):.4g}.",
            RuntimeWarning,
            stacklevel=2,
        )
    return None


def cell(column: Column, features: np.ndarray) -> Any:
    """Return the cell of a table that makes some features."""
    if isinstance(column, NumericColumn):
        kind = {WHOLE: int, TRUTH: bool}.get(column.holds, float)
        # A whole column may have a median between two numbers, which a missing cell has.
        kind = kind if float(features[0]).is_integer() else float
        return None if column.indicator and features[-1] else kind(features[0])
    return next(compress(column.levels, features), column.other)


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

    That of a row which is predicted so already is itself. A `ValueError` says that there is no
    point, or that columns of whole numbers and categories are too many; a
    `RuntimeWarning` names leaves whose points cannot be told from those of another one.

    The distance of a feature is in units of its spread, times the cost of its column. The rows
    that reach a leaf form a polytope; its nearest point is found exactly, and placed
    behind the hyperplanes on its way by 1e-5 of the spread of the projection. What is missing
    in `x` stays missing, and no other cell becomes so; a row has one level of a category. Columns
    that bend, such as by ``age above 52``, move by 100 spreads at most where they have no bounds,
    and whole numbers by a million of these, or of units where a spread is less than one.

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
    limits = limits_of(schema, costs, bounds, integers, fixed)
    limits["fixed"] |= np.asarray(pd.isna(pd.DataFrame(row))).ravel()
    tree = fitted.of_output(output).tree
    goals = (
        goals_of_class(tree, point, fitted.classes, target)
        if fitted.classes is not None
        else goals_of_interval(tree, target)
    )
    space = Space(fitted, tree, point, limits, plausible)
    found = nearest_points(space, goals, n_points)
    if not found:
        raise ValueError(
            f"target={target!r}: no point within the constraints: allow more by plausible=False, "
            "or by other bounds, integers or fixed. What is missing stays so."
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
    return Counterfactual(
        changed if isinstance(row, pd.DataFrame) else changed.to_numpy(),
        changes,
        found.distance,
        found.leaf,
    )

"""Trees in short decimal numbers, so that what a reader sees of a tree is what predicts.

A split is scaled so that the weight of its strongest term is 1 or -1. Then its other weights and
its threshold are rounded, and the rows decide how far: the nearest rows of both sides leave room
between them, in which the threshold may stand. The coefficients of a linear model of a leaf are
rounded by what that changes in the predictions of the leaf's rows.
"""

from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
)
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from evotree.leaf_models import LARGEST_SCORE, LeafModels
from evotree.operators.structure.splice import part_rows
from evotree.tree import ObliqueTree

AUTO = "auto"
"""As few digits as leave every row in its leaf."""

MOST_DIGITS = 17
"""Significant digits that tell any two numbers of double precision apart."""

# The largest unit of predictions that are rounded, and the inverse of the smallest.
_LARGEST_UNIT = 1e100
_EPSILON = float(np.finfo(np.float64).eps)
_N_NEAREST = 1024  # rows on each side that are looked at first


def round_tree(
    tree: ObliqueTree, X: Any, precision: int | str | None = AUTO
) -> ObliqueTree:
    """Return a tree whose splits, and linear models of leaves, have numbers of few digits.

    The strongest term of a split, that of the largest absolute weight times the spread of its
    feature, gets the weight 1 or -1. Each number is the double nearest to a short decimal number,
    so that ``repr`` gives that one. Linear models are rounded as `round_models` says.

    Parameters
    ----------
    tree : ObliqueTree
        A tree over the features of `X`.
    X : array-like of shape (n_samples, n_features)
        The training rows, finite.
    precision : int from 1 to 17, "auto" or None, default="auto"
        Number of significant digits: rows may change sides, but a split that would send all rows
        one way gets more digits until it parts them. With ``"auto"`` every row stays in its leaf,
        in whatever order a sum is added up: weights get the fewest digits, or are dropped, that
        leave half the room between the nearest rows of both sides, and change no term by more than
        3 % of the influence of the strongest. A split that this cannot shorten stays as it is.
        None returns the tree itself.

    Returns
    -------
    ObliqueTree
        It has the values and the rows of nodes of the given tree; where rows have changed sides,
        `evotree.Dataset.refill` makes them new. Its ``spread`` is that of the given tree, or else
        the standard deviations of the rows.

    Raises
    ------
    ValueError
        If `precision` is not as described, or the rows do not fit the tree.

    Examples
    --------
    >>> tree = ObliqueTree(
    ...     weights=np.array([[0.731, -0.4], [0.0, 0.0], [0.0, 0.0]]),
    ...     thresholds=np.array([0.1234, 0.0, 0.0]),
    ...     subtree_size=np.array([3, 1, 1], dtype=np.int32),
    ...     values=np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]),
    ... )
    >>> rounded = round_tree(tree, [[0.0, 0.0], [0.5, 0.2], [1.0, 2.0], [2.0, 3.0]])
    >>> rounded.weights[0].tolist(), rounded.thresholds[0].item()
    ([1.0, -0.55], 0.2)
    """
    if precision is None:
        return tree
    rounder = Rounder(X, precision)
    return round_models(rounder(tree), rounder.X, precision)


def round_models(
    tree: ObliqueTree,
    X: np.ndarray,
    precision: int | str | None,
    sample_weight: np.ndarray | None = None,
    sharing: np.ndarray | None = None,
) -> ObliqueTree:
    """Return a tree whose linear models of leaves are written in numbers of few digits."""
    # With "auto" no prediction of a row of `X` changes by more than 0.1 % of the standard deviation
    # of the predictions, of which the coefficients have half. A leaf that no row reaches stays as
    # it is, and so does a tree whose predictions are all alike.
    if precision is None or tree.models is None:
        return tree
    if not isinstance(tree.models, LeafModels):
        rounded = [
            round_models(tree.of_output(j), X, precision, sample_weight).models
            for j in range(tree.values.shape[1])
        ]
        return tree.with_models(tree.models.with_each(rounded))
    weight = np.ones(len(X)) if sample_weight is None else sample_weight
    leaves = tree.apply(X)
    with np.errstate(over="ignore", invalid="ignore"):
        predicted, unit = tree.models.scores(X, leaves), 0.0
        if len(X):  # their standard deviation
            centred = predicted - np.average(predicted, weights=weight)
            unit = float(np.sqrt(np.average(centred**2, weights=weight)))
        if not 1.0 / _LARGEST_UNIT <= unit <= _LARGEST_UNIT:
            return tree
        models = type(tree.models)(*(array.copy() for array in tree.models))
        spread = X.std(axis=0) if tree.spread is None else tree.spread
        sharing = np.arange(len(tree)) if sharing is None else sharing
        for line in np.unique(sharing[leaves]).tolist():
            rows, equals = (
                sharing[leaves] == line,
                np.flatnonzero(tree.is_leaf & (sharing == line)),
            )
            _round_line(models, equals, X[rows], weight[rows], spread, unit, precision)
    return tree.with_models(models)


class Rounder:
    """Rounds the splits of trees over the same rows."""

    def __init__(
        self,
        X: Any,
        precision: int | str = AUTO,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        is_digits = isinstance(precision, Integral) and 1 <= precision <= MOST_DIGITS
        if precision != AUTO and not is_digits:
            raise ValueError(
                f"precision={precision!r}: allowed are integers from 1 to {MOST_DIGITS}, 'auto' "
                "and None."
            )
        self.precision = precision
        self.X = np.ascontiguousarray(X, dtype=np.float64)
        if not np.isfinite(self.X).all():
            raise ValueError("X has values that are NaN or infinite.")
        self.weight = np.ones(len(self.X)) if sample_weight is None else sample_weight
        self._largest = np.maximum(  # magnitudes of the features
            self.X.max(axis=0, initial=0.0), -self.X.min(axis=0, initial=0.0)
        )

    def __call__(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a tree whose splits are written in numbers of few digits (`round_tree`)."""
        X, precision = self.X, self.precision
        leaves = tree.apply(X)
        spread = tree.spread
        if spread is None:
            spread = X.std(axis=0) if len(X) else np.zeros(X.shape[1])
        weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
        reached = {0: np.arange(len(X))}
        for k in np.flatnonzero(~tree.is_leaf).tolist():
            rows = reached.pop(k)
            is_left = leaves[rows] < tree.right(k)
            left, right = rows[is_left], rows[~is_left]
            split = _in_unit_of_strongest(
                weights[k], float(thresholds[k]), spread, self._largest
            )
            if split is not None:
                if isinstance(precision, str):
                    split = _shortest(split, X, left, right)
                else:
                    split = _split_of_digits(
                        split, X, rows, self.weight, int(precision)
                    )
            if split is not None:
                weights[k] = split.dense(X.shape[1])
                thresholds[k] = split.threshold
            if not isinstance(precision, str):
                left, right = _sides(X, rows, weights[k], float(thresholds[k]))
            reached |= {tree.left(k): left, tree.right(k): right}
        return tree.replaced(weights=weights, thresholds=thresholds, spread=spread)


class _Split(NamedTuple):
    """A split of some features, the strongest first, whose weight is 1 or -1."""

    features: np.ndarray
    weights: np.ndarray
    threshold: float
    spread: np.ndarray
    largest: np.ndarray  # magnitudes of the features

    def dense(self, n_features: int) -> np.ndarray:
        """Return the weights of all features."""
        weights = np.zeros(n_features)
        weights[self.features] = self.weights
        return weights

    def projections(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the projections of some rows, whose terms are added up one after the other."""
        terms = zip(self.features, self.weights, strict=True)
        return sum(weight * X[rows, feature] for feature, weight in terms)


def _in_unit_of_strongest(
    weights: np.ndarray, threshold: float, spread: np.ndarray, largest: np.ndarray
) -> _Split | None:
    """Return a split in the unit of its strongest term; None where numbers are too extreme."""
    with np.errstate(over="ignore"):
        influence = np.abs(weights) * spread
    order = np.lexsort((-np.abs(weights), -influence))
    features = order[weights[order] != 0.0]
    if features.size == 0 or influence[features[0]] == 0.0:
        return None
    unit = abs(float(weights[features[0]]))
    with np.errstate(over="ignore", under="ignore"):
        scaled, threshold = weights[features] / unit, threshold / unit
    if not np.isfinite([*scaled, threshold]).all() or not scaled.all():
        return None
    return _Split(features, scaled, threshold, spread[features], largest[features])


def _with_digits(value: float, digits: int, rounding: str = ROUND_HALF_EVEN) -> float:
    """Return a number of so many significant digits near another one; 0 of 0 digits."""
    if digits == 0:
        return 0.0
    return float(
        Context(prec=digits, rounding=rounding).create_decimal_from_float(value)
    )


def _rounded_weights(split: _Split, digits: int) -> np.ndarray:
    """Return weights of so many significant digits, of which none becomes the strongest."""
    weights = split.weights.tolist()
    rounded = [_with_digits(weight, digits) for weight in weights]
    for j, (before, after) in enumerate(zip(weights, rounded, strict=True)):
        if (abs(after) * split.spread[j], abs(after)) > (split.spread[0], 1.0):
            rounded[j] = _with_digits(before, digits, ROUND_DOWN)
    return np.array(rounded)


# ---- a given number of digits --------------------------------------------------------------------


def _split_of_digits(
    split: _Split, X: np.ndarray, rows: np.ndarray, weight: np.ndarray, digits: int
) -> _Split | None:
    """Return a split of so many digits, or more, that parts the rows; None if there is none."""
    if rows.size == 0:
        return None
    mean = [np.average(X[rows, j], weights=weight[rows]) for j in split.features]
    for enough in range(digits, MOST_DIGITS + 1):
        weights = _rounded_weights(split, enough)
        threshold = split.threshold + float((weights - split.weights) @ mean)
        threshold = _with_digits(threshold, enough)
        rounded = split._replace(weights=weights, threshold=threshold)
        left, right = _sides(X, rows, rounded.dense(X.shape[1]), threshold)
        if left.size and right.size:
            return rounded
    return None


def _sides(
    X: np.ndarray, rows: np.ndarray, weights: np.ndarray, threshold: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that a split sends to the left, and to the right."""
    order = rows.astype(np.int32)
    middle = part_rows(X, order, 0, order.size, weights, threshold)
    return order[:middle], order[middle:]


# ---- as few digits as possible -------------------------------------------------------------------


def _shortest(
    split: _Split, X: np.ndarray, left: np.ndarray, right: np.ndarray
) -> _Split | None:
    """Return a split of few digits that leaves the rows on their sides; None if there is none."""
    # Few rows decide: those nearest to the hyperplane. Others join them where a rounded hyperplane
    # comes too near to these.
    if left.size == 0 or right.size == 0:
        return None
    sides = [split.projections(X, rows) for rows in (left, right)]
    low, high = _room(split, split.weights, *sides)
    needed = 0.5 * (high - low)  # of the room, when the weights are rounded
    if not needed > 0.0:
        return None
    place = min(max((split.threshold - low) / (high - low), 0.0), 1.0)
    near = np.array([], dtype=np.int64), np.array([], dtype=np.int64)
    while True:
        first, second = _nearest(-sides[0]), _nearest(sides[1])
        known = near[0].size + near[1].size
        near = np.union1d(near[0], left[first]), np.union1d(near[1], right[second])
        if near[0].size + near[1].size == known:  # rows that only roundings tell apart
            return None
        weights = _fewest_digits(
            split, needed, *(X[rows][:, split.features] for rows in near)
        )
        if weights is None:
            return None
        rounded = split._replace(weights=weights)
        sides = [rounded.projections(X, rows) for rows in (left, right)]
        low, high = _room(split, weights, *sides)
        if high - low >= needed:
            threshold = _shortest_threshold(low, high, low + place * (high - low))
            return None if threshold is None else rounded._replace(threshold=threshold)


def _room(
    split: _Split, weights: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[float, float]:
    """Return the lowest threshold that parts projections, and the lowest that is too high."""
    # They are as far from the projections as roundings may take these, in whatever order the
    # products are added up. A single term with a weight of 1 or -1 is not rounded.
    n_terms = np.count_nonzero(weights)
    rounding = (n_terms + 1) * _EPSILON if n_terms > 1 else 0.0
    slack = rounding * float(np.abs(weights) @ split.largest)
    return float(left.max()) + slack, float(right.min()) - slack


def _nearest(distances: np.ndarray) -> np.ndarray:
    """Return the positions of the smallest distances."""
    if distances.size <= _N_NEAREST:
        return np.arange(distances.size)
    return np.argpartition(distances, _N_NEAREST)[:_N_NEAREST]


def _fewest_digits(
    split: _Split, needed: float, left: np.ndarray, right: np.ndarray
) -> np.ndarray | None:
    """Return weights of few digits that leave room between rows, None without any."""
    # Roundings that change the influence of a term by more than 3 % of the strongest's are NaN,
    # which leave no room: splits of few rows would lose terms that other rows need, half a point of
    # accuracy on small data sets.

    def has_room(weights: np.ndarray) -> bool:
        low, high = _room(split, weights, left @ weights, right @ weights)
        return high - low >= needed

    shorter: list[np.ndarray] = []
    for digits in range(MOST_DIGITS):
        weights = _rounded_weights(split, digits)
        change = np.abs(weights - split.weights) * split.spread
        weights[change > 0.03 * split.spread[0]] = np.nan
        if has_room(weights):
            break
        shorter.append(weights)
    else:
        return None
    thinned, sides = weights.copy(), [left @ weights, right @ weights]
    for j in range(weights.size - 1, 0, -1):
        for candidate in shorter:
            step = candidate[j] - thinned[j]
            moved = [sides[0] + step * left[:, j], sides[1] + step * right[:, j]]
            if moved[1].min() - moved[0].max() >= needed:
                thinned[j], sides = candidate[j], moved
                break
    return thinned if has_room(thinned) else weights  # changes add up roundings


def _shortest_threshold(low: float, high: float, target: float) -> float | None:
    """Return the number of the fewest digits near a target, in [low, high); None without any."""
    nearby = 0.25 * (high - low)
    low, high = max(low, target - nearby), min(high, target + nearby)
    if low <= 0.0 < high:
        return 0.0
    for digits in range(1, MOST_DIGITS + 1):
        around = (
            _with_digits(target, digits, rounding)
            for rounding in (ROUND_FLOOR, ROUND_CEILING)
        )
        inside = [value for value in around if low <= value < high]
        if inside:
            return min(inside, key=lambda value: abs(value - target))
    return None


# ---- linear models of leaves ---------------------------------------------------------------------


def _round_line(
    models: LeafModels,
    leaves: np.ndarray,
    X: np.ndarray,
    weight: np.ndarray,
    spread: np.ndarray,
    unit: float,
    precision: int | str,
) -> None:
    """Write the numbers of leaves of one line in few digits, given their rows and a unit."""
    # To the rows, which may be few and alike, one is added for each feature, a standard deviation
    # from their mean. The intercept is chosen again, so that the mean prediction of the rows is
    # kept, and is rounded to the place that moves predictions no further than the coefficients may;
    # the bounds to the same place, outwards.
    used = np.flatnonzero(models.coefficients[leaves[0]])
    mean = np.average(X[:, used], axis=0, weights=weight)
    before = models.coefficients[leaves[0], used]
    steps = np.concatenate([X[:, used] - mean, np.diag(spread[used])])
    if not np.isfinite(steps @ before).all():
        return
    if isinstance(precision, str):
        allowed = 0.0005 * unit
        after = _fewest_coefficient_digits(before, steps, allowed)
    else:
        after = np.array(
            [_with_digits(number, int(precision)) for number in before.tolist()]
        )
        moved = float(np.abs(steps @ (after - before)).max())
        last = Decimal(unit).adjusted() - int(precision) + 1
        allowed = max(moved, 0.5 * 10.0**last)
    moved, place = (before - after) @ mean, Decimal(2.0 * allowed).adjusted()
    for k in leaves.tolist():
        models.coefficients[k, used] = after
        models.intercepts[k] = _at_place(
            float(models.intercepts[k] + moved), place, ROUND_HALF_EVEN
        )
        for bounds, outwards in (
            (models.lowest, ROUND_FLOOR),
            (models.highest, ROUND_CEILING),
        ):
            if abs(bounds[k]) < LARGEST_SCORE:
                bounds[k] = _at_place(float(bounds[k]), place, outwards)


def _fewest_coefficient_digits(
    before: np.ndarray, steps: np.ndarray, allowed: float
) -> np.ndarray:
    """Return coefficients of few digits that move no row, by its steps, further than is allowed."""
    after, moved = before.copy(), np.zeros(len(steps))
    order = np.argsort(np.abs(before) * np.abs(steps).max(axis=0), kind="stable")
    for share, j in enumerate(order.tolist(), start=1):
        for digits in range(MOST_DIGITS):
            rounded = _with_digits(float(before[j]), digits)
            further = moved + (rounded - before[j]) * steps[:, j]
            if np.abs(further).max() <= allowed * share / len(before):
                after[j], moved = rounded, further
                break
    return after


def _at_place(value: float, place: int, rounding: str) -> float:
    """Return a multiple of ``10**place`` near a number."""
    wide = Context(prec=2 * MOST_DIGITS)
    units = Decimal(value).scaleb(-place, wide).to_integral_value(rounding)
    return float(units.scaleb(place, wide))

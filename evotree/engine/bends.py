"""Which bends columns get: knots at quantiles, of which a forward search keeps those that pay.

The search is that of a linear model of the targets, or of which class rows have. It begins with
all features, or those that tell most; a bend enters where it lowers the squared error by more than
the extended criterion of Chen and Chen (2008) takes for one of so many.

References
----------
Chen J., Chen Z. (2008). Extended Bayesian information criteria for model selection with large model
spaces. Biometrika 95(3), 759-771.
Friedman J. H. (1991). Multivariate adaptive regression splines. Annals of Statistics 19(1), 1-67.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from evotree.dataset import Dataset
from evotree.fitness.linear_leaves import sweep
from evotree.schema import ABOVE, BELOW, LOG, TRUTH, Bend, NumericColumn, Schema
from evotree.tree import ObliqueTree

KNOTS = (0.25, 0.5, 0.75)
"""Quantiles of the rows at which a column may bend."""

FEW_VALUES = 4
"""A column of no more different values does not bend."""

SKEWED = 1.0
"""A column of positive numbers has a logarithm if its skewness is above this."""

MOST_COLUMNS, MOST_BENDS, MOST_OF_COLUMN = 48, 16, 2
"""How many columns may bend, how many knots and logarithms there may be, and of one column."""

MOST_FIRST = 512
"""How many features, those that tell most, the linear model begins with; it takes their square."""

# A knot is rounded to this share of a standard deviation at least, since it is to be read.
_ROUND_TO_SHARE = 0.1
_ROUNDING = 1e-12  # share of the largest number that a spread is none below
_COLLINEAR = 1e-6  # share of its variance that a feature is nothing new below


def bent_schema(
    schema: Schema, dataset: Dataset, signs: np.ndarray | None = None
) -> Schema:
    """Return columns with the bends that pay, of rows whose features have none.

    `signs` are those that a monotonic constraint has for the features. Such a column has hinges
    from both sides of a knot: by those from above alone an effect that rises could not level off.
    """
    if dataset.n_classes == 1:
        return schema
    first = np.searchsorted(schema.column_of, np.arange(len(schema)))
    found = _forward_search(
        np.arange(dataset.X.shape[1]), dataset, _candidates(schema, dataset)
    )
    made = list(schema.columns)
    for c, bend, _ in sorted(found, key=lambda one: (one[1].kind, one[1].knot)):
        is_signed = bend.kind == ABOVE and signs is not None and signs[first[c]] != 0
        kinds = (ABOVE, BELOW) if is_signed else (bend.kind,)
        column = made[c]
        assert isinstance(column, NumericColumn)
        bends = tuple(Bend(kind, bend.knot) for kind in kinds)
        made[c] = replace(column, bends=(*column.bends, *bends))
    return replace(schema, columns=tuple(made))


def open_features(dataset: Dataset) -> np.ndarray:
    """Return which features, of rows with bends, a search by these rows would have.

    These are all that are no bends, and the bends that enter.
    """
    bends = dataset.schema.bends
    is_open = np.ones(dataset.X.shape[1], dtype=bool)
    is_open[list(bends)] = False
    # A hinge from below is the sum of its column and that from above.
    candidates = [
        (base, bend, dataset.X[:, j])
        for j, (base, bend) in bends.items()
        if bend.kind != BELOW
    ]
    entered = {
        (base, bend.kind == LOG, bend.knot)
        for base, bend, _ in _forward_search(
            np.flatnonzero(is_open), dataset, candidates
        )
    }
    for j, (base, bend) in bends.items():
        is_open[j] = (base, bend.kind == LOG, bend.knot) in entered
    return is_open


def without_lone_bends(
    tree: ObliqueTree, bends: Mapping[int, tuple[int, Bend]]
) -> ObliqueTree:
    """Return a tree over raw features whose splits on a single bend are splits on its column."""
    weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
    for k in np.flatnonzero(np.count_nonzero(weights, axis=1) == 1).tolist():
        j = int(np.flatnonzero(weights[k])[0])
        if j not in bends:
            continue
        base, bend = bends[j]
        number = bend.number(thresholds[k] / weights[k, j])
        # Between its ends a bend is as good as its column, which is read more easily.
        if bend.sign * (number - bend.knot) > 0.0 and math.isfinite(number):
            sign = bend.sign * math.copysign(1.0, weights[k, j])
            weights[k, j] = 0.0
            weights[k, base], thresholds[k] = sign, sign * number
    return tree.replaced(weights=weights, thresholds=thresholds)


def _candidates(schema: Schema, dataset: Dataset) -> list[tuple[int, Bend, np.ndarray]]:
    """Return the bends that columns may get, by their positions, and the features they make."""
    share = dataset.sample_weight / dataset.total_weight
    first = np.searchsorted(schema.column_of, np.arange(len(schema)))
    numbers = [
        c
        for c, column in enumerate(schema)
        if isinstance(column, NumericColumn)
        and column.holds != TRUTH
        and len(np.unique(dataset.raw[:, first[c]])) > FEW_VALUES
    ]
    if len(numbers) > MOST_COLUMNS:
        strength = correlations(dataset, share)[first[numbers]]
        strongest = np.argsort(-strength, kind="stable")[:MOST_COLUMNS]
        numbers = [numbers[at] for at in np.sort(strongest)]
    return [
        (c, bend, bend.of(dataset.raw[:, first[c]]))
        for c in numbers
        for bend in bends_of(dataset.raw[:, first[c]], share)
    ]


def bends_of(
    numbers: np.ndarray, share: np.ndarray, knots: Sequence[float] = KNOTS
) -> Iterator[Bend]:
    """Yield the bends that numbers may have."""
    mean = share @ numbers
    spread = math.sqrt(share @ (numbers - mean) ** 2)
    low, high = numbers.min(), numbers.max()
    if spread <= _ROUNDING * max(-low, high):
        return
    if low > 0.0 and share @ (numbers - mean) ** 3 > SKEWED * spread**3:
        yield Bend(LOG, float(low))
    decimals = -math.floor(math.log10(_ROUND_TO_SHARE * spread))
    quantiles = np.quantile(numbers, knots, weights=share, method="inverted_cdf")
    for knot in np.unique(np.round(quantiles, decimals)).tolist():
        if low < knot < high:
            yield Bend(ABOVE, knot + 0.0)


def _targets(dataset: Dataset) -> np.ndarray:
    """Return what is to be explained, of shape (n_distinct, n_targets)."""
    if dataset.n_classes == 0:
        return dataset.targets.reshape(dataset.n_distinct, -1)
    return (dataset.y[:, np.newaxis] == np.arange(1, dataset.n_classes)).astype(float)


def correlations(dataset: Dataset, share: np.ndarray) -> np.ndarray:
    """Return how strongly each feature is correlated with the targets."""
    targets = _targets(dataset)
    targets = targets - share @ targets
    return np.abs((targets * share[:, np.newaxis]).T @ dataset.X).max(axis=0) / (
        dataset.spread
    )


def _forward_search(
    first: np.ndarray,
    dataset: Dataset,
    candidates: Sequence[tuple[int, Bend, np.ndarray]],
) -> list[tuple[int, Bend, np.ndarray]]:
    """Return the candidates that enter a linear model, which begins with other features."""
    if not candidates:
        return []
    share = dataset.sample_weight / dataset.total_weight
    # The rows of a group tell less than as many others.
    n_rows = (
        float(dataset.n_groups) if dataset.groups is not None else dataset.total_weight
    )
    if len(first) > MOST_FIRST:
        strongest = np.argsort(-correlations(dataset, share)[first], kind="stable")
        first = np.sort(first[strongest[:MOST_FIRST]])
    n_first = len(first)
    columns = np.column_stack(
        [
            dataset.X[:, first],
            *(feature for _, _, feature in candidates),
            _targets(dataset),
        ]
    )
    columns -= share @ columns
    spread = np.sqrt(share @ columns**2)
    columns /= np.where(spread > 0.0, spread, 1.0)
    T = columns.T @ (columns * share[:, np.newaxis])
    n_targets = T.shape[0] - n_first - len(candidates)
    entered = 0
    order = np.argsort(-np.abs(T[:n_first, -n_targets:]).max(axis=1), kind="stable")
    for j in order[: int(n_rows / 4.0)].tolist():
        if T[j, j] > _COLLINEAR:
            sweep(T, j)
            entered += 1
    # That of Chen and Chen with their gamma at a half.
    price = math.log(n_rows) + math.log(len(candidates))
    kept: list[int] = []
    while len(kept) < MOST_BENDS:
        own = np.diag(T)[n_first:-n_targets]
        of_targets = T[n_first:-n_targets, -n_targets:]
        left = np.diag(T)[-n_targets:]
        is_open = own > _COLLINEAR
        gains = of_targets**2 / np.where(is_open, own, 1.0)[:, np.newaxis]
        columns_in = [candidates[at][0] for at in kept]
        for at, (c, _, _) in enumerate(candidates):
            if at in kept or columns_in.count(c) >= MOST_OF_COLUMN:
                is_open[at] = False
        # Of several targets the mean: each has a coefficient of its own, which costs as much.
        rest = np.maximum(left - gains, 1e-12) / np.maximum(left, 1e-12)
        gain = np.where(is_open, -n_rows * np.log(rest).mean(axis=1), 0.0)
        best = int(gain.argmax())
        if gain[best] <= price or len(kept) + entered > n_rows / 3.0:
            break
        sweep(T, n_first + best)
        kept.append(best)
    return [candidates[at] for at in kept]

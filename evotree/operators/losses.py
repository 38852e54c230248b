"""What rows lose by a tree, and the means of losses with their standard errors.

A finished tree is over raw features and predicts raw targets; an individual is over the features of
its data set, and knows its own objective. Losses of targets are in the units of the data set.

References
----------
Cochran W. G. (1977). Sampling techniques, chapter 9A: rows that belong together tell no more than
their sum does.
"""

from typing import Any

import numpy as np

from evotree.dataset import EXPOSURE, Dataset
from evotree.fitness.base import (
    leaf_table,
    loss_of_targets,
    loss_unit,
    losses_at,
)
from evotree.fitness.leaves import PINBALL, SQUARED
from evotree.fitness.probabilities import PROBABILITY_LOSSES
from evotree.tree import Individual, ObliqueTree, SoftSides

# ---- losses of rows ------------------------------------------------------------------------------


def row_losses(
    tree: ObliqueTree,
    rows: Dataset,
    *,
    sides: SoftSides | None = None,
    kind: str | None = None,
    reference: Individual | None = None,
) -> np.ndarray:
    """Return what a unit of weight of each row loses by a tree, of shape (n_distinct,).

    With a `kind` of `PROBABILITY_LOSSES` it is that of the probabilities of soft sides, or without
    these of leaves. Otherwise classes lose by the labels of leaves, and as the objective of the
    rows says: where that is no sum over rows, by what errors cost in the tree, or in `reference`.
    Targets lose by the squared error, Poisson's deviance, or the pinball loss of a quantile.
    """
    is_individual = isinstance(tree, Individual)
    X = rows.X if is_individual else rows.raw
    if kind is not None:
        shares = tree.predict_value(X) if sides is None else sides.predict(tree, X)
        return prediction_losses(shares, rows, kind)
    if isinstance(tree, Individual) and rows.n_classes == 0:
        rule = loss_of_targets(rows)
        return losses_at(leaf_table(tree, 0), tree.apply(X), X, rows.targets, *rule)
    if rows.n_classes == 0:
        return target_losses(tree.predict_value(X), rows)
    judged: Any = tree if is_individual else tree.counted()
    objective = judged.objective if is_individual else rows.bound_objective
    if objective is None or tree.models is not None:
        return tree.label_losses(X, rows.y)
    table = objective.held_out_table(judged, reference or judged)
    return table[tree.apply(X), rows.y]


def prediction_losses(
    predicted: np.ndarray, rows: Dataset, kind: str | None = None
) -> np.ndarray:
    """Return what rows lose by their probabilities, if a loss of these is named, or raw targets."""
    if kind is None:
        return target_losses(predicted, rows)
    return PROBABILITY_LOSSES[kind](predicted, rows.y, rows.sample_weight)


def target_losses(predicted: np.ndarray, rows: Dataset) -> np.ndarray:
    """Return what targets lose by raw predictions, (n_rows,) or (n_rows, n_outputs)."""
    # Each row is a leaf of its own.
    rule, leaves = loss_of_targets(rows), np.arange(rows.n_distinct, dtype=np.int32)
    standard = predicted.reshape(rows.n_distinct, -1) - rows.target_mean
    table = np.ascontiguousarray(standard / rows.target_scale)
    return losses_at(table, leaves, rows.X, rows.targets, *rule)


def null_loss(rows: Dataset) -> float:
    """Return what rows lose in all by one prediction, the best; of classes their weight."""
    weight = rows.sample_weight
    if rows.n_classes:
        return rows.total_weight
    targets = rows.targets.reshape(rows.n_distinct, -1)
    loss, level, _ = loss_of_targets(rows)
    best = np.average(targets, axis=0, weights=weight)
    if loss == PINBALL:
        best = np.quantile(
            targets, level, axis=0, weights=weight, method="inverted_cdf"
        )
    predicted = np.broadcast_to(
        best * rows.target_scale + rows.target_mean, targets.shape
    )
    return float(weight @ target_losses(predicted, rows))


def quality_on(
    rows: Dataset, tree: ObliqueTree, sides: SoftSides | None = None
) -> float:
    """Return the accuracy of a finished tree on its training rows, or the loss that it saves.

    That is a share of the loss of the mean of the targets, which is 0 on training rows.
    """
    losses = row_losses(tree, rows, sides=sides)
    if rows.n_classes:
        return float(np.average(1.0 - losses, weights=rows.sample_weight))
    squares = float((rows.sample_weight @ rows.targets**2).sum())
    whole = squares if loss_of_targets(rows)[0] == SQUARED else loss_unit(rows)
    return 1.0 - float(rows.sample_weight @ losses) / (whole or 1.0)


# ---- means and their standard errors -------------------------------------------------------------


def units_of(rows: Dataset) -> np.ndarray | None:
    """Return numbers of what counts as one observation in a standard error, from 0, by row.

    Groups do, and rows whose weights are exposures. None says that a row counts by its weight.
    """
    if rows.groups is None and EXPOSURE in rows.extras:
        return np.arange(rows.n_distinct)
    return rows.groups


def loss_moments(
    losses: np.ndarray, weight: np.ndarray, units: np.ndarray | None = None
) -> np.ndarray:
    """Return what `mean_and_error` takes of losses of shape (..., n_rows): sums, that may be added.

    They are of shape (..., 3); by `units`, the number of the unit of each row, of shape (..., 6).
    """
    total = losses @ weight
    if units is None:
        whole = np.full(total.shape, weight.sum())
        return np.stack([total, losses**2 @ weight, whole], axis=-1)
    order = np.argsort(units, kind="stable")
    first = np.flatnonzero(np.diff(units[order], prepend=-1))
    sums, weights = (
        np.add.reduceat(each[..., order], first, axis=-1)
        for each in (losses * weight, weight)
    )
    of_sums = sums.sum(axis=-1), np.square(sums).sum(axis=-1), sums @ weights
    of_weights = weights.sum(), weights @ weights, float(len(weights))
    return np.stack(np.broadcast_arrays(*of_sums, *of_weights), axis=-1)


def mean_and_error(moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means of losses, and their standard errors, of shape (...,)."""
    if moments.shape[-1] == 3:
        total, square, weight = np.moveaxis(moments, -1, 0)
        mean = total / weight
        # Of a share e of errors it is sqrt(e (1 - e) / n); a row of weight 2 counts as two.
        return mean, np.sqrt(np.maximum(0.0, square / weight - mean**2) / weight)
    total, square, product, weight, square_weight, n_units = np.moveaxis(moments, -1, 0)
    mean = total / weight
    deviation = square - 2.0 * mean * product + mean**2 * square_weight
    variance = np.maximum(0.0, deviation) * n_units / np.maximum(1.0, n_units - 1.0)
    return mean, np.sqrt(variance) / weight

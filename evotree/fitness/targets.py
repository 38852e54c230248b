"""Losses of targets, and what leaves predict to have the least of them."""

import math

import numpy as np

from evotree._jit import inner_kernel, kernel

SQUARED, PINBALL, POISSON = 0, 1, 2
"""Codes of the losses."""

LEAST_MEAN = 1e-9
"""The least mean that Poisson's deviance takes a logarithm of."""


@inner_kernel
def target_loss(y, predicted, loss, level, origin):
    """Return the loss of one target."""
    error = y - predicted
    if loss == SQUARED:
        return error * error
    if loss == PINBALL:
        return level * error if error > 0.0 else (level - 1.0) * error
    mean, count = max(LEAST_MEAN, predicted - origin), max(0.0, y - origin)
    return mean - count + (count * math.log(count / mean) if count > 0.0 else 0.0)


@kernel
def leaf_quantiles(order, start, end, y, sample_weight, level):
    """Return the weighted quantile of the targets of each node, the lower where two would do."""
    found = np.zeros(start.shape[0])
    for k in range(start.shape[0]):
        rows = order[start[k] : end[k]]
        if rows.shape[0] == 0:
            continue
        ranked = rows[np.argsort(y[rows], kind="mergesort")]
        total = 0.0
        for i in ranked:
            total += sample_weight[i]
        below, found[k] = 0.0, y[ranked[-1]]
        for i in ranked:
            below += sample_weight[i]
            if below >= level * total * (1.0 - 1e-12):
                found[k] = y[i]
                break
    return found


@kernel
def node_target_losses(order, start, end, y, sample_weight, predictions, loss, level, origin):
    """Return the loss of the rows of each node by what it predicts, of shape (n_nodes,)."""
    losses = np.zeros(start.shape[0])
    for k in range(start.shape[0]):
        for t in range(start[k], end[k]):
            i = order[t]
            losses[k] += sample_weight[i] * target_loss(y[i], predictions[k], loss, level, origin)
    return losses


@kernel
def losses_of_targets(y, predictions, loss, level, origin):
    """Return the loss of each row, of shape (n_rows,)."""
    losses = np.empty(y.shape[0])
    for i in range(y.shape[0]):
        losses[i] = target_loss(y[i], predictions[i], loss, level, origin)
    return losses

"""A naive twin of CO2: the bound, its gradient and the descent, one row after the other."""

import numpy as np


def log_loss(leaf, k):
    """Return the log loss of class k under the softmax of a leaf."""
    return float(np.logaddexp.reduce(leaf) - leaf[k])


def stump_loss(theta, leaves, rows, codes, shares):
    """Return the mean log loss of a stump."""
    losses = [
        log_loss(leaves[int(x @ theta > 0.0)], k)
        for x, k in zip(rows, codes, strict=True)
    ]
    return float(np.average(losses, weights=shares))


def upper_bound(theta, leaves, rows, codes, shares):
    """Return the mean of the bound of CO2."""
    bounds = []
    for x, k in zip(rows, codes, strict=True):
        s = float(x @ theta)
        bounds.append(
            max(g * s + log_loss(leaves[(g + 1) // 2], k) for g in (-1, 1)) - abs(s)
        )
    return float(np.average(bounds, weights=shares))


def bound_gradient(theta, leaves, rows, codes, shares):
    """Return the gradient of the bound by theta and by the leaves."""
    grad, leaf_grad = np.zeros_like(theta), np.zeros_like(leaves)
    total = shares.sum()
    for x, k, w in zip(rows, codes, shares, strict=True):
        s = float(x @ theta)
        g = max((-1, 1), key=lambda g: g * s + log_loss(leaves[(g + 1) // 2], k))  # noqa: B023
        grad += w / total * (g - (1 if s > 0.0 else -1)) * x
        leaf = leaves[(g + 1) // 2]
        share = np.exp(leaf - np.logaddexp.reduce(leaf))
        share[k] -= 1.0
        leaf_grad[(g + 1) // 2] += w / total * share
    return grad, leaf_grad


def descend_bound(theta, leaves, rows, codes, shares, batches, nu, rate, momentum):
    """Return hyperplane and leaves after one step of CO2 for each batch."""
    theta, leaves = theta.copy(), leaves.copy()
    velocity, leaf_velocity = np.zeros_like(theta), np.zeros_like(leaves)
    for batch in batches:
        grad, leaf_grad = bound_gradient(
            theta, leaves, rows[batch], codes[batch], shares[batch]
        )
        velocity = momentum * velocity - rate * grad
        leaf_velocity = momentum * leaf_velocity - rate * leaf_grad
        theta, leaves = theta + velocity, leaves + leaf_velocity
        if theta @ theta > nu:
            theta *= np.sqrt(nu / (theta @ theta))
    return theta, leaves

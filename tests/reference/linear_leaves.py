"""Naive twins of the linear models of leaves: least squares by subsets, errors row by row."""

import numpy as np


def products(X, y, weight):
    """Return the sums of products of (1, x, y)."""
    Z = np.column_stack([np.ones(len(y)), X, y])
    return Z.T @ (weight[:, np.newaxis] * Z)


def covariance(X, y, weight):
    """Return the covariances of the features and the target."""
    Z = np.column_stack([X, y])
    Z = Z - np.average(Z, axis=0, weights=weight)
    return Z.T @ (weight[:, np.newaxis] * Z) / weight.sum()


def loss_of(T, chosen):
    """Return the least squared error by the chosen features, and their coefficients."""
    A, b = T[np.ix_(chosen, chosen)], T[chosen, -1]
    coefficients = np.linalg.lstsq(A, b, rcond=None)[0]
    return T[-1, -1] - b @ coefficients, coefficients


def fit(X, y, weight, prior, shrinkage, n_rows, term_cost, most_terms, signs):
    """Choose features forwards, then backwards; return intercept, coefficients and squared error.

    The rows that the line of all rows stands for join as centred products. Features whose
    coefficients get a wrong sign leave for good.
    """
    m = X.shape[1]
    T = covariance(X, y, weight) * weight.sum() + shrinkage * prior
    bic, chosen, barred = np.log(max(n_rows, 2.0)), [], set()

    def is_wrong(j, among):
        return loss_of(T, among)[1][among.index(j)] * signs[j] < 0.0

    def drop_wrong():
        while wrong := [j for j in chosen if is_wrong(j, chosen)]:
            chosen.remove(max(wrong))
            barred.add(max(wrong))

    while len(chosen) < min(most_terms, int(n_rows / 5)):
        others = [j for j in range(m) if j not in chosen and j not in barred]
        losses = {
            j: loss_of(T, [*chosen, j])[0]
            for j in others
            if not is_wrong(j, [*chosen, j])
        }
        if not losses:
            break
        best = min(losses, key=losses.get)
        noise = losses[best] / max(1.0, n_rows - len(chosen) - 2)
        if loss_of(T, chosen)[0] - losses[best] <= max(term_cost, bic * noise):
            break
        chosen.append(best)
        drop_wrong()
    for _ in range(len(chosen)):
        here = loss_of(T, chosen)[0]
        rises = {j: loss_of(T, [i for i in chosen if i != j])[0] - here for j in chosen}
        if not rises:
            break
        worst = min(rises, key=rises.get)
        if rises[worst] > max(
            term_cost, bic * here / max(1.0, n_rows - len(chosen) - 1)
        ):
            break
        chosen.remove(worst)
        drop_wrong()
    coefficients = np.zeros(m)
    coefficients[chosen] = loss_of(T, chosen)[1]
    intercept = np.average(y - X @ coefficients, weights=weight)
    return intercept, coefficients, weight @ (y - intercept - X @ coefficients) ** 2


def fit_of_rows(objective, dataset, rows):
    """Return the fit of some rows of a data set: bounds, error, intercept, coefficients."""
    X, y, w = dataset.X[:, list(objective.used)], dataset.y, dataset.sample_weight
    n_rows = round(w[rows].sum(), 9)
    fitted = rows if n_rows >= 10 else np.arange(len(y))
    intercept, coefficients, _ = fit(
        X[fitted],
        y[fitted],
        w[fitted],
        covariance(X, y, w),
        objective.shrinkage,
        round(w[fitted].sum(), 9),
        objective.term_penalty * (w @ y**2 or 1.0),
        objective.max_terms,
        np.zeros(X.shape[1]),
    )
    error = w[rows] @ (y[rows] - intercept - X[rows] @ coefficients) ** 2
    return y[fitted].min(), y[fitted].max(), error, intercept, coefficients


def predict(model, x):
    """Return what a row is predicted by intercept, bounds and coefficients; or by a number."""
    if len(model) == 1:
        return model[0]
    predicted = model[0]
    for j, value in enumerate(x):
        predicted += model[3 + j] * value
    return min(max(predicted, model[1]), model[2])

"""A naive twin of the thermal training of a linear machine: vectors, one row after the other."""

import numpy as np


def norms(functions):
    """Return the magnitudes of the functions, those of absent classes left out."""
    return sum(np.linalg.norm(w) for w in functions if np.isfinite(w).all())


def train(rows, y, weight, order, functions, hot, cold, factor, step, most_passes):
    """Return the functions after training (Brodley and Utgoff 1995)."""
    functions = functions.copy()
    beta, rose = hot, False
    for _ in range(most_passes):
        corrected = False
        for i in order:
            x, right = rows[i], y[i]
            values = np.array(
                [w @ x if np.isfinite(w).all() else -np.inf for w in functions]
            )
            rivals = np.where(np.arange(len(values)) == right, -np.inf, values)
            j = rivals.argmax()
            k = (values[j] - values[right]) / (2 * x @ x)
            if k < 0 or k >= beta:
                continue
            corrected = True
            before = norms(functions)
            c = weight[i] * beta**2 / (beta + k)
            functions[right] += c * x
            functions[j] -= c * x
            after = norms(functions)
            if after < before and rose:
                beta = factor * beta - step
            rose = after > before
            if beta < cold:
                return functions
        if not corrected:
            return functions
    return functions

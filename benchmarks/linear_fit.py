"""The solver of linear classifiers beside LIBLINEAR and L-BFGS, as scikit-learn calls them."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks.inputs import make_rows
from benchmarks.measure import Cell, Table, by_turns, stopwatch
from evotree.operators.splitters.linear import LOSSES, PENALTIES, fit_linear

NOTES = (
    "Two overlapping groups of standardized rows, C = 1, from a cold start, with a tolerance of "
    "1e-4 by each solver's own measure. Objectives are those of the problem with a free constant, "
    "as a share of ours; LIBLINEAR penalizes the constant, which on centred rows changes little. "
    "Where scikit-learn's solver does not take the problem its figures are missing.",
    "Warm: from the solution, after a hundredth of the rows changed groups; the seconds as a share "
    "of those of the cold start on the same rows.",
)

MAX_ITER = 1000
TOL = 1e-4


def objective(
    theta: np.ndarray, X: np.ndarray, signs: np.ndarray, loss: str, penalty: str
) -> float:
    """Return the objective at C = 1."""
    margins = signs * (X @ theta[:-1] + theta[-1])
    losses = (
        np.maximum(0.0, 1.0 - margins) ** 2
        if loss == "svm"
        else np.logaddexp(0.0, -margins)
    )
    charge = (
        0.5 * theta[:-1] @ theta[:-1] if penalty == "l2" else np.abs(theta[:-1]).sum()
    )
    return float(charge + losses.sum())


def peers(
    loss: str, penalty: str
) -> dict[str, Callable[[], LinearSVC | LogisticRegression]]:
    """Return makers of scikit-learn's estimators for a problem."""
    if loss == "svm":
        return {
            "liblinear": lambda: LinearSVC(
                penalty=penalty, dual=False, tol=TOL, max_iter=MAX_ITER, random_state=0
            )
        }
    ratio = (
        {"l1_ratio": float(penalty == "l1")} if _by_ratio() else {"penalty": penalty}
    )
    makers = {
        "liblinear": lambda: LogisticRegression(
            solver="liblinear", tol=TOL, max_iter=MAX_ITER, random_state=0, **ratio
        )
    }
    if penalty == "l2":
        makers["lbfgs"] = lambda: LogisticRegression(tol=TOL, max_iter=MAX_ITER)
    return makers


def _by_ratio() -> bool:
    """Tell whether this scikit-learn names the penalty by a ratio."""
    return LogisticRegression().get_params().get("penalty") == "deprecated"


def measure(m: int, d: int, loss: str, penalty: str, quick: bool) -> dict[str, Cell]:
    """Return the row of one problem."""
    X, y = make_rows(m, d, 2, separation=0.3)
    X = np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0))
    signs, costs = np.where(y == 1, 1.0, -1.0), np.ones(m)

    def ours(goal: np.ndarray, start: np.ndarray) -> np.ndarray:
        theta = start.copy()
        fit_linear(
            X,
            goal,
            costs,
            theta,
            loss=loss,
            penalty=penalty,
            max_iter=MAX_ITER,
            tol=TOL,
        )
        return theta

    cold = np.zeros(d + 1)
    solution = ours(signs, cold)
    least = objective(solution, X, signs, loss, penalty)
    changed = signs.copy()
    changed[::100] *= -1.0
    number = 1 if quick else max(1, 40_000 // m // d)
    alternatives = {
        "ours": stopwatch(lambda: ours(signs, cold), number),
        "changed": stopwatch(lambda: ours(changed, cold), number),
        "warm": stopwatch(lambda: ours(changed, solution), number),
    }
    values: dict[str, float] = {}
    for name, make in peers(loss, penalty).items():
        model = make().fit(X, signs)
        theta = np.append(model.coef_[0], model.intercept_)
        values[name] = objective(theta, X, signs, loss, penalty) / least
        alternatives[name] = stopwatch(lambda make=make: make().fit(X, signs), number)  # type: ignore[misc]
    rounds = by_turns(alternatives, 3 if quick else 7)
    row: dict[str, Cell] = {
        "rows": m,
        "features": d,
        "loss": loss,
        "penalty": penalty,
        "ms": 1e3 * rounds.median("ours"),
    }
    for name in ("liblinear", "lbfgs"):
        has_run = name in values
        row[f"{name}, times ours"] = rounds.ratio(name, "ours") if has_run else None
        row[f"{name}, objective"] = f"{values[name]:.5f}" if has_run else None
    row["warm"] = rounds.ratio("warm", "changed")
    return row


def run(quick: bool = False) -> Table:
    """Measure every loss and penalty on problems of four sizes."""
    sizes = ((100, 8),) if quick else ((100, 8), (500, 18), (4000, 36), (4000, 180))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rows = [
            measure(m, d, loss, penalty, quick)
            for m, d in sizes
            for loss in LOSSES
            for penalty in PENALTIES
        ]
    return Table("linear_fit", "a linear classifier of two groups of rows", rows, NOTES)

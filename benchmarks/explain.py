"""What explanations cost: paths, Shapley values and counterfactuals."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np

from benchmarks.inputs import give_balanced_tree, make_rows
from benchmarks.measure import Cell, Table
from evotree import ObliqueTreeClassifier
from evotree.inspection import counterfactuals, shap_values
from evotree.inspection.shapley import MAX_EXACT

DEPTH, N_FEATURES = 4, 20  # 16 leaves
N_BACKGROUND = 100
TARGET = 50.0  # milliseconds of a counterfactual

NOTES = (
    "Trees of 16 leaves whose splits use all features, four classes; milliseconds of the "
    f"processor. Paths are of one call for many rows; Shapley values of one row against "
    f"{N_BACKGROUND}, by all subsets of {MAX_EXACT} columns, and by 100 orders of {N_FEATURES}; "
    "counterfactuals of one row each, for any other class within the range of the training rows. "
    "The target is an upper limit of the median.",
)


def classifier_of(n_features: int) -> tuple[ObliqueTreeClassifier, np.ndarray]:
    """Return a fitted classifier whose tree is a balanced one, and its rows."""
    X, y = make_rows(2_000, n_features, 4)
    classifier = ObliqueTreeClassifier("axis", max_depth=1).fit(X, y)
    give_balanced_tree(classifier, X, DEPTH)
    return classifier, X


def milliseconds(function: Callable[[], object], n_rows: int = 1) -> float:
    """Return what a call takes of the processor, for each row."""
    begin = time.process_time()
    function()
    return (time.process_time() - begin) * 1e3 / n_rows


def run(quick: bool = False) -> Table:
    """Measure explanations of all kinds."""
    n_calls, n_slow = (1, 1) if quick else (30, 6)
    classifier, X = classifier_of(N_FEATURES)
    narrow, of_narrow = classifier_of(MAX_EXACT)
    seconds = {
        "explain": [
            milliseconds(lambda: classifier.explain(X[:1_000]), 1_000)
            for _ in range(1 + n_calls)
        ],
        f"shap_values, {MAX_EXACT} columns": [
            milliseconds(
                lambda row=row: shap_values(
                    narrow, row[None], of_narrow[-N_BACKGROUND:]
                )
            )
            for row in of_narrow[: 1 + n_slow]
        ],
        f"shap_values, {N_FEATURES} columns": [
            milliseconds(
                lambda row=row: shap_values(
                    classifier, row[None], X[-N_BACKGROUND:], random_state=0
                )
            )
            for row in X[: 1 + n_slow]
        ],
    }
    seconds["counterfactuals"] = [
        milliseconds(lambda row=row: counterfactuals(classifier, row))
        for row in X[: 1 + n_calls]
    ]
    rows: list[dict[str, Cell]] = []
    for name, (_, *times) in seconds.items():  # the first call imports and compiles
        rows.append(
            {
                "what": name,
                "ms a row": median(times),
                "slowest ms": max(times),
                "rows /s": 1e3 / median(times),
                "target ms": TARGET if name.startswith("counterfactuals") else None,
            }
        )
    return Table("explain", "what explanations cost", rows, NOTES)

"""What a prediction costs, beside scikit-learn's axis-parallel tree of the same size."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from benchmarks.inputs import give_balanced_tree, make_rows
from benchmarks.measure import Table, by_turns, stopwatch
from evotree import EvoTreeClassifier

DEPTH = 4  # 31 nodes, 16 leaves

NOTES = (
    "One thread, validation of the input included. scikit-learn's tests look at one feature, "
    "evotree's at all 16; scikit-learn converts to float32, evotree takes both. *Ratio* is evotree "
    "/ scikit-learn, the target its upper limit.",
)


def classifier_of(X: np.ndarray, y: np.ndarray, depth: int) -> EvoTreeClassifier:
    """Return a fitted classifier whose tree is a balanced one."""
    classifier = EvoTreeClassifier(max_generations=1, random_state=0).fit(X, y)
    give_balanced_tree(classifier, X, depth)
    return classifier


def run(quick: bool = False) -> Table:
    """Measure `predict` of both on float64 and on float32 rows."""
    n_rows = 10_000 if quick else 1_000_000
    X, y = make_rows(n_rows, 16, 4)
    evotree = classifier_of(X[:2_000], y[:2_000], DEPTH)
    sklearn = DecisionTreeClassifier(max_leaf_nodes=2**DEPTH, random_state=0)
    sklearn.fit(X[:100_000], y[:100_000])
    inputs = {"float64": X, "float32": X.astype(np.float32)}
    alternatives = {
        f"{name} {dtype}": stopwatch(partial(estimator.predict, rows))
        for dtype, rows in inputs.items()
        for name, estimator in (("evotree", evotree), ("sklearn", sklearn))
    }
    rounds = by_turns(alternatives, 2 if quick else 11)
    rows = [
        {
            "input": f"{n_rows:,} x 16 {dtype}",
            "nodes": f"{evotree.tree_.n_nodes} / {sklearn.tree_.node_count}",
            "evotree ms": rounds.median(f"evotree {dtype}") * 1e3,
            "scikit-learn ms": rounds.median(f"sklearn {dtype}") * 1e3,
            "evotree ns / row": rounds.median(f"evotree {dtype}") * 1e9 / n_rows,
            "ratio": rounds.ratio(f"evotree {dtype}", f"sklearn {dtype}"),
            "target": 1.0,
        }
        for dtype in inputs
    ]
    return Table("predict", "trees of 31 nodes", rows, NOTES)

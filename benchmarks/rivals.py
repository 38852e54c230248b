"""Evotree beside other packages: ``python -m benchmarks.rivals --data-home DIR --out DIR``.

It does the fits that have no row in ``rivals_runs.csv`` of the folder: each method once, on one
thread, to the training rows of the first of five folds of each data set, which have no missing
values. What a method chooses by folds of those rows is part of its fit; seconds are those of the
processor. ``pip install interpret-core==0.7.8 sgtlearn==0.3.2 licketysplit==0.2.1 pystreed==1.4.0
obliquetree==1.1.1`` installs the other packages; the methods of missing ones are left out.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks.greedy import first_fold
from evotree import EvoTreeClassifier, TAOClassifier
from experiments import suites
from experiments.methods import chosen

DATASETS = (*suites.TINY, *suites.SMALL, "segment")
DEPTHS, OPTIMAL_DEPTHS = (2, 4, 6), (2, 3)
# The settings of LicketySPLIT; its own default depth is 3.
LEAF_PENALTIES, DEPTH_BUDGET = (
    (0.02, 0.01, 0.005),
    6,
)
# Seconds of a search of STreeD, which returns the best tree so far then.
TIME_LIMIT = 60.0

Rows = np.ndarray
Grow = Callable[[Any], Any]
"""Returns the model that a setting makes of rows that it knows."""


def shape_trees(X: Rows, codes: Rows, n_sweeps: int) -> Grow:
    """Grow shape generalized trees of a depth; the sweeps are those of TAO afterwards."""
    kind = import_module("sgtlearn").SGTClassifier
    return lambda depth: kind(max_depth=depth, tao_n_runs=n_sweeps, random_state=0).fit(
        X, codes
    )


def sparse_trees(X: Rows, codes: Rows) -> Grow:
    """Grow trees of LicketySPLIT at a penalty for a leaf, on the thresholds of boosted trees."""
    package = import_module("licketysplit")
    thresholds = package.ThresholdGuessBinarizer(
        learning_rate=0.1,
        n_estimators=100,
        max_depth=3,
        random_state=0,
        column_elimination=False,
    )
    tests = thresholds.fit_transform(X, codes)
    kind = partial(package.LicketySPLITClassifier, depth_budget=DEPTH_BUDGET)
    return lambda penalty: make_pipeline(
        thresholds, kind(lambda_leaf=penalty).fit(tests, codes)
    )


def optimal_trees(X: Rows, codes: Rows) -> Grow:
    """Find the best trees of a depth by STreeD, on its own default of five quantiles a feature."""
    kind = partial(
        import_module("pystreed").STreeDClassifier, time_limit=TIME_LIMIT, random_seed=0
    )
    return lambda depth: kind(max_depth=depth).fit(X, codes)


def pair_trees(X: Rows, codes: Rows) -> Grow:
    """Grow trees of obliquetree of a depth, with splits on two features."""
    kind = import_module("obliquetree").Classifier
    return lambda depth: kind(n_pair=2, max_depth=depth, random_state=0).fit(X, codes)


def choosing(
    prepare: Callable[..., Grow], settings: Sequence[Any]
) -> Callable[..., Any]:
    """Return the fit that takes the setting that folds find best, of equal ones the first."""

    def fit(X: Rows, codes: Rows) -> Any:
        folds = chosen.folds_of(codes, chosen.TUNING_FOLDS, 0)
        growers = [(prepare(X[train], codes[train]), test) for train, test in folds]
        scores = [
            np.mean(
                [
                    np.mean(grow(one).predict(X[test]) == codes[test])
                    for grow, test in growers
                ]
            )
            for one in settings
        ]
        return prepare(X, codes)(settings[int(np.argmax(scores))])

    return fit


METHODS: dict[str, Callable[..., Any]] = {
    "EvoTree": EvoTreeClassifier(n_jobs=1, random_state=0).fit,
    "TAO": TAOClassifier(random_state=0).fit,
    "CART, pruned": partial(chosen.pruned_cart, random_state=0),
    "forest, 500 trees": RandomForestClassifier(500, random_state=0).fit,
    "boosting": HistGradientBoostingClassifier(random_state=0).fit,
    "EBM": partial(chosen.boosting_machine, random_state=0),
    "ShapeCART (sgtlearn)": choosing(partial(shape_trees, n_sweeps=0), DEPTHS),
    "ShapeCART + TAO (sgtlearn)": choosing(partial(shape_trees, n_sweeps=10), DEPTHS),
    "LicketySPLIT": choosing(sparse_trees, LEAF_PENALTIES),
    "STreeD": choosing(optimal_trees, OPTIMAL_DEPTHS),
    "obliquetree": choosing(pair_trees, DEPTHS),
}


def leaves_of(model: Any, X: Rows) -> int | None:
    """Return the number of leaves of a model that is one tree, given its training rows."""
    if hasattr(model, "tree_export"):
        return sum(node["is_leaf"] for node in model.tree_export()["nodes"])
    if hasattr(model, "steps"):
        return len(model[-1].leaf_paths())
    if type(model).__module__.startswith("obliquetree"):
        # It does not say, and rows reach every leaf.
        return len(np.unique(model.apply(X)))
    return int(model.get_n_leaves()) if hasattr(model, "get_n_leaves") else None


def measured(
    method: str, X: Rows, X_test: Rows, y: Rows, y_test: Rows
) -> dict[str, Any]:
    """Fit a method to training rows, and return what it takes and reaches."""
    classes, codes = np.unique(y, return_inverse=True)
    with threadpool_limits(1):
        begin = time.process_time()
        model = METHODS[method](X, codes)
        seconds = time.process_time() - begin
        predicted = classes[np.asarray(model.predict(X_test), dtype=int)]
    reached = {"accuracy": np.mean(predicted == y_test), "leaves": leaves_of(model, X)}
    return {"seconds": seconds} | reached


def warm_up(method: str) -> None:
    """Fit a method to two and to three classes, so that no import or compilation is timed."""
    X, y = load_iris(return_X_y=True)
    for n_rows in (100, 150):
        measured(method, X[:n_rows], X[:n_rows], y[:n_rows], y[:n_rows])


def report(rows: pd.DataFrame) -> str:
    """Return the means over the data sets that all methods have as a table in Markdown."""
    n_methods = rows.method.nunique()
    common = [
        name
        for name, part in rows.groupby("dataset", sort=False)
        if len(part) == n_methods
    ]
    titles = "method | data sets | mean accuracy | mean seconds | median seconds | mean leaves"
    lines = [f"| {titles} |", "|---|---:|---:|---:|---:|---:|"]
    for method, part in rows[rows.dataset.isin(common)].groupby("method", sort=False):
        cells = [
            method,
            len(part),
            f"{part.accuracy.mean():.3f}",
            f"{part.seconds.mean():.2f}",
            f"{part.seconds.median():.2f}",
            "" if part.leaves.isna().all() else f"{part.leaves.mean():.1f}",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(
        [*lines, "", f"The data sets that all methods have: {', '.join(common)}."]
    )


def main() -> None:
    """Do what is missing, and print what there is of the data sets and methods asked for."""
    parser = argparse.ArgumentParser("python -m benchmarks.rivals", description=__doc__)
    parser.add_argument("--data-home", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), choices=list(METHODS)
    )
    options = parser.parse_args()
    file = options.out / "rivals_runs.csv"
    rows = pd.read_csv(file).to_dict("records") if file.exists() else []
    done = {(row["dataset"], row["method"]): row for row in rows}
    warm, missing = set[str](), set[str]()
    for name, method in product(options.datasets, options.methods):
        if (name, method) in done or method in missing:
            continue
        try:
            if method not in warm:
                warm_up(method)
                warm.add(method)
            figures = measured(method, *first_fold(name, options.data_home))
        except ModuleNotFoundError as error:
            missing.add(method)
            print(f"{method} is left out: {error}")
        except Exception as error:
            print(f"{method} is left out on {name}: {error!r}")
        else:
            done[name, method] = {"dataset": name, "method": method} | figures
            pd.DataFrame(done.values()).to_csv(file, index=False)
    rows = [
        done[key] for key in product(options.datasets, options.methods) if key in done
    ]
    print(report(pd.DataFrame(rows)) if rows else "There are no rows.")


if __name__ == "__main__":
    main()

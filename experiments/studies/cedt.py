"""The study of CEDT: cross-entropy, OC1 and axis-parallel trees compared by their ranks.

The paper: Bollwein and Westphal (2022), Computational Statistics 37.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from evotree.estimators import GREEDY_PRESETS, ObliqueTreeClassifier
from evotree.experiments.comparison import complete_datasets, mean_scores
from evotree.experiments.protocols import Task
from evotree.fitness.node import Criterion, Node
from evotree.rng import make_streams
from experiments.agreement import KEY, Paper, load_published
from experiments.study import Results, StudyProtocol, define
from experiments.tables import (
    MISSING,
    FriedmanTest,
    friedman,
    table,
)

SYSTEMS = ("CEDT", "OC1", "DT")
N_FOLDS = 10
_PRUNED = {
    "pruning": "cost_complexity",
    "validation_fraction": 0.1,
    "standard_errors": 0.0,
}
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "unpruned": {"criterion": "gini", "pruning": None},
    "pruned": {"criterion": "gini", **_PRUNED},
}
"""Parameters that differ from the presets."""
DATASETS = (
    *(
        "iris",
        "hepatitis",
        "wine",
        "glass",
        "heart",
        "bupa",
        "balance-scale",
        "fourclass",
    ),
    *(
        "breast-w",
        "wdbc",
        "sonar",
        "ionosphere",
        "pima",
        "vehicle",
        "credit-g",
        "segment",
    ),
    *("page-blocks", "waveform21"),
)
"""The cheap data sets come first."""
SIGNIFICANT = 0.05
PAPERS_SMOOTHING = 0.8
"""The smoothing that the paper names; the preset has .2."""
PRESETS = {name: GREEDY_PRESETS[name] for name in SYSTEMS}
SMOOTHED = PRESETS["CEDT"]["splitter"].set_params(smoothing=PAPERS_SMOOTHING)
OTHERS = {
    "NN": MLPClassifier(),
    "SVM": SVC(),
    "GB": GradientBoostingClassifier(),
    "RF": RandomForestClassifier(),
}
"""The methods of table 6, at scikit-learn's defaults, of which each version names others."""


class Comparison(NamedTuple):
    """Systems of a table of the paper, by our methods, and what they are ranked by."""

    systems: Mapping[str, str]
    metrics: tuple[str, ...]


COMPARISONS = {
    variant: Comparison(
        {f"{system}, {variant}": system for system in SYSTEMS},
        ("accuracy", "leaves", *more),
    )
    for variant, more in (("unpruned", ("seconds",)), ("pruned", ()))
}
COMPARISONS["others"] = Comparison(
    {"CEDT, pruned": "CEDT", **{name: name for name in OTHERS}}, ("accuracy",)
)
PUBLISHED_P = {
    ("unpruned", "accuracy"): 0.02,
    ("pruned", "accuracy"): 0.01,
    ("unpruned", "seconds"): 3e-7,
    ("others", "accuracy"): 1.3e-2,
}
"""The p-values of Friedman's test in the paper's text."""
SETTINGS = {
    "α = 0.8, K = 1, the paper's": SMOOTHED.set_params(patience=1),
    "α = 0.2, K = 3, the preset's": PRESETS["CEDT"]["splitter"],
}
N_SEARCHES = 50
METHODS = {
    f"{name}, {variant}": ObliqueTreeClassifier(**{**preset, **parameters})
    for variant, parameters in VARIANTS.items()
    for name, preset in PRESETS.items()
} | OTHERS
EXPERIMENT = define(
    "cedt",
    DATASETS,
    METHODS,
    StudyProtocol(N_FOLDS),
    plan=[
        Task(d, m, fold, 0) for d, fold, m in product(DATASETS, range(N_FOLDS), METHODS)
    ],
)


def rank_all(runs: pd.DataFrame) -> dict[tuple[str, str], FriedmanTest]:
    """Compare the systems of each comparison by its metrics."""
    tests = {}
    for name, (_, metrics) in COMPARISONS.items():
        fits = of_comparison(runs, name)
        datasets = complete_datasets(fits)[0]
        for metric in metrics:
            means = mean_scores(fits, metric).loc[datasets]
            tests[name, metric] = friedman(means, metric == "accuracy")
    return tests


def of_comparison(runs: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows of a comparison, their methods named as systems."""
    systems = dict(COMPARISONS[name].systems)
    return runs[runs["method"].isin(systems)].replace({"method": systems})


def measured(runs: pd.DataFrame) -> pd.DataFrame:
    """Return our mean ranks, named as the published figures are."""
    rows = [
        (name, "20 data sets", str(system), f"rank by {metric}", float(rank))
        for (name, metric), test in rank_all(runs).items()
        for system, rank in test.mean_ranks.items()
    ]
    return pd.DataFrame(rows, columns=[*KEY, "ours"])


def beside_control(test: FriedmanTest) -> dict[str, float]:
    """Return the p-values of CEDT and each other system, adjusted by Holm with CEDT as control."""
    rivals = [str(name) for name in test.mean_ranks.index if name != "CEDT"]
    p = test.p_values((rival, "CEDT") for rival in rivals)
    return dict(zip(rivals, p, strict=True))


def rank_row(key: tuple[str, str], test: FriedmanTest, theirs: Any) -> dict[str, str]:
    """Return the row of a ranking: mean ranks and p-values, published and ours."""
    row = {"trees": key[0], "ranked by": key[1]}
    for system in COMPARISONS[key[0]].systems.values():
        row[f"{system}, published"] = f"{theirs[system]:g}"
        row[f"{system}, ours"] = f"{test.mean_ranks[system]:.2f}"
    row["p, published"] = f"{PUBLISHED_P[key]:g}" if key in PUBLISHED_P else MISSING
    return row | {"p, ours": f"{test.p_value:.2g}"}


def control_row(key: tuple[str, str], test: FriedmanTest) -> dict[str, str]:
    """Return the row of a ranking in the table of p-values beside CEDT."""
    row = {"trees": key[0], "ranked by": key[1]}
    ranks = test.mean_ranks
    for rival, p in beside_control(test).items():
        better = min("CEDT", rival, key=ranks.get)
        row[f"CEDT / {rival}"] = f"{p:.2g}{f' ({better})' if p < SIGNIFICANT else ''}"
    return row


def claim(tests: Mapping[tuple[str, str], FriedmanTest]) -> str:
    """Return what holds of the claim that CEDT is significantly more accurate than both others."""
    said = []
    for variant in VARIANTS:
        test = tests[variant, "accuracy"]
        p = beside_control(test)
        is_first = test.mean_ranks.idxmin() == "CEDT"
        is_sure = is_first and max(test.p_value, *p.values()) < SIGNIFICANT
        pairs = ", ".join(f"{rival} {value:.2g}" for rival, value in p.items())
        said.append(
            f"{'confirmed' if is_sure else 'not confirmed'} for {variant} trees "
            f"(Friedman's p = {test.p_value:.2g}; beside CEDT {pairs})"
        )
    return "; ".join(said)


def searches_found() -> str:
    """Return how often each of `SETTINGS` finds the best split of iris by its sepals.

    That is the search of the paper's section 5.3.
    """
    X, y = load_iris(return_X_y=True)
    X, weight = np.ascontiguousarray(X[:, :2]), np.ones(len(y))
    node = Node.of(X, y.astype(np.int32), weight, 3, int(Criterion.GINI), 1)
    streams = make_streams(0, 0, N_SEARCHES)
    found = []
    for name, search in SETTINGS.items():
        splits = [search(node, stream.copy()) for stream in streams]
        n_best = sum(split.score < 1.0 / 3.0 + 1e-9 for split in splits)
        found.append(f"with {name}, {n_best} of {N_SEARCHES} searches find it")
    return "; ".join(found)


def report(results: Results) -> dict[str, Any]:
    """Return the tables."""
    tests = rank_all(results.runs)
    published = load_published("cedt").pivot(
        index=["table", "metric"], columns="system", values="mean"
    )
    theirs = {key: published.loc[key[0], f"rank by {key[1]}"] for key in tests}
    ranks = {key: rank_row(key, test, theirs[key]) for key, test in tests.items()}
    of_trees = {key: row for key, row in ranks.items() if key[0] in VARIANTS}
    return {
        "n_sets": max(test.n_datasets for test in tests.values()),
        "n_same": sum(
            theirs[key].idxmin() == tests[key].mean_ranks.idxmin() for key in of_trees
        ),
        "n_tests": len(of_trees),
        "ranks": table(of_trees.values(), 2),
        "others": table([row for key, row in ranks.items() if key not in of_trees], 2),
        "control": table([control_row(key, tests[key]) for key in of_trees], 2),
        "others_control": table(
            [control_row(key, tests[key]) for key in ranks if key not in of_trees], 2
        ),
        "claim": claim(tests),
        "smoothing": PAPERS_SMOOTHING,
        "found": searches_found(),
    }


STUDY = Paper(EXPERIMENT, report, measured=measured)

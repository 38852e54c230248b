"""The study of CEDT: cross-entropy, OC1 and axis-parallel trees compared by their ranks.

The paper: Bollwein and Westphal (2022), Computational Statistics 37.
"""

from collections.abc import Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evotree.estimators import ObliqueTreeClassifier
from evotree.experiments.comparison import (
    FriedmanTest,
    complete_datasets,
    friedman,
)
from evotree.experiments.problems import make_problem
from evotree.experiments.protocols import Task
from evotree.fitness.node import Criterion, Node
from evotree.operators.splitters.cross_entropy import CrossEntropy
from evotree.plotting.style import save_picture
from evotree.rng import make_streams
from experiments.agreement import KEY, load_published
from experiments.pictures import plot_sampling
from experiments.study import Results, Study, StudyProtocol, define
from experiments.tables import NOT_RUN, groups_of, mean_and_std, named, table

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
# what is ranked, and whether more of it is better
METRICS = {
    "accuracy": True,
    "leaves": False,
}
SIGNIFICANT = 0.05


METHODS = {
    f"{system}, {variant}": ObliqueTreeClassifier.from_preset(system, **parameters)
    for variant, parameters in VARIANTS.items()
    for system in SYSTEMS
}
EXPERIMENT = define(
    "cedt",
    DATASETS,
    METHODS,
    StudyProtocol(N_FOLDS),
    plan=[
        Task(d, m, fold, 0) for d, fold, m in product(DATASETS, range(N_FOLDS), METHODS)
    ],
)


def rank_variants(runs: pd.DataFrame) -> dict[tuple[str, str], FriedmanTest]:
    """Compare the systems by each of `METRICS`; none of a variant of fewer than two data sets."""
    tests = {}
    for variant in VARIANTS:
        fits = of_variant(runs, variant)
        if set(fits["method"]) == set(SYSTEMS) and len(complete_datasets(fits)[0]) > 1:
            for metric, larger_is_better in METRICS.items():
                tests[variant, metric] = friedman(fits, metric, larger_is_better)
    return tests


def of_variant(runs: pd.DataFrame, variant: str) -> pd.DataFrame:
    """Return the rows of a variant, their methods named as systems."""
    names = {f"{system}, {variant}": system for system in SYSTEMS}
    return runs[runs["method"].isin(names)].replace({"method": names})


def measured(runs: pd.DataFrame) -> pd.DataFrame:
    """Return our mean ranks, named as the published figures are."""
    rows = [
        (variant, "20 data sets", str(system), f"rank by {metric}", float(rank))
        for (variant, metric), test in rank_variants(runs).items()
        for system, rank in test.mean_ranks.items()
    ]
    return pd.DataFrame(rows, columns=[*KEY, "ours"])


def draw_sampling(path: Path) -> None:
    """Draw how the search closes in at the root of oblique stripes, after figures 4 and 5."""
    X, y = make_problem("zebra1", random_state=0)
    node = Node.of(X, y.astype(np.int32), np.ones(len(y)), 2, int(Criterion.GINI), 1)
    trace = CrossEntropy().trace(node, make_streams(0, 0, 1)[0])
    save_picture(plot_sampling(trace), path)


def report(results: Results) -> dict[str, Any]:
    """Return the tables, and draw the picture."""
    tests = rank_variants(results.runs)
    published = load_published("cedt").pivot(
        index=["table", "metric"], columns="system", values="mean"
    )
    ranks = []
    pairs = []
    n_same = 0
    for (variant, metric), test in tests.items():
        theirs = published.loc[variant, f"rank by {metric}"]
        ours = test.mean_ranks
        n_same += theirs.idxmin() == ours.idxmin()
        trees = {"trees": variant, "ranked by": metric}
        row = dict(trees)
        for system in SYSTEMS:
            row[f"{system}, published"] = f"{theirs[system]:g}"
            row[f"{system}, ours"] = f"{ours[system]:.2f}"
        ranks.append(
            row | {"Friedman's χ²": f"{test.statistic:.2f}", "p": f"{test.p_value:.2g}"}
        )
        for pair in combinations(SYSTEMS, 2):
            p = test.adjusted.loc[pair]
            verdict = f" ({min(pair, key=ours.get)})" if p < SIGNIFICANT else ""
            trees[" / ".join(pair)] = f"{p:.2g}{verdict}"
        pairs.append(trees)
    scores = dict.fromkeys(VARIANTS, NOT_RUN)
    complete = []
    for variant in [name for name in VARIANTS if (name, "accuracy") in tests]:
        complete = named(DATASETS, tests[variant, "accuracy"].datasets)
        groups = groups_of(of_variant(results.runs, variant), complete, SYSTEMS)
        rows = []
        for dataset in complete:
            cells = {system: groups[dataset, system] for system in SYSTEMS}
            row = {"data set": dataset}
            row |= {
                f"{s} %": mean_and_std(100.0 * fits.accuracy, 1)
                for s, fits in cells.items()
            }
            row |= {
                f"{s} leaves": mean_and_std(fits.leaves, 1) for s, fits in cells.items()
            }
            rows.append(row | {"folds": str(len(cells[SYSTEMS[0]]))})
        scores[variant] = table(rows)
    draw_sampling(results.out / "cedt_figure4.png")
    return {
        **{
            "n_sets": len(complete),
            "n_same": n_same,
            "n_tests": len(tests),
            "scores": scores,
        },
        **{"ranks": table(ranks, 2), "pairs": table(pairs, 2)},
    }


STUDY = Study(EXPERIMENT, report, measured)

"""The study of CEDT: cross-entropy, OC1 and axis-parallel trees compared by their ranks.

References
----------
Bollwein F., Westphal S. (2022). Oblique decision tree induction by cross-entropy optimization based
on the von Mises-Fisher distribution. Computational Statistics 37.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evotree.estimators import ObliqueTreeClassifier
from evotree.experiments.experiment import Experiment
from evotree.experiments.markdown import markdown_table, mean_and_std
from evotree.experiments.method_runs import complete_datasets
from evotree.experiments.pictures import save_picture
from evotree.experiments.pictures.sphere import plot_sampling_on_sphere
from evotree.experiments.problems import make_problem
from evotree.experiments.protocols import Task
from evotree.experiments.rank_tests import FriedmanTest, friedman
from evotree.experiments.studies.agreement import KEY as PUBLISHED_KEY
from evotree.experiments.studies.agreement import load_published
from evotree.experiments.studies.study import Results, Study, StudyProtocol
from evotree.fitness.criteria import Criterion
from evotree.fitness.node import Node
from evotree.operators.splitters.cross_entropy import CrossEntropy
from evotree.rng import make_streams

SYSTEMS = ("CEDT", "OC1", "DT")
N_FOLDS = 10
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "unpruned": {"criterion": "gini", "pruning": None},
    "pruned": {
        "criterion": "gini",
        "pruning": "cost_complexity",
        "validation_fraction": 0.1,
        "standard_errors": 0.0,
    },
}
"""Parameters that differ from the presets."""

DATASETS = (
    "iris",
    "hepatitis",
    "wine",
    "glass",
    "heart",
    "bupa",
    "balance-scale",
    "fourclass",
    "breast-w",
    "wdbc",
    "sonar",
    "ionosphere",
    "pima",
    "vehicle",
    "credit-g",
    "segment",
    "page-blocks",
    "waveform21",
    "satimage",
    "optdigits",
)
"""The cheap data sets come first."""

METRICS = {"accuracy": True, "leaves": False}
"""What is ranked, and whether more of it is better."""

SIGNIFICANT = 0.05


def make_experiment() -> Experiment:
    """Return the fits of the study, data set by data set."""
    methods = {
        f"{system}, {variant}": ObliqueTreeClassifier.from_preset(system, **parameters)
        for variant, parameters in VARIANTS.items()
        for system in SYSTEMS
    }
    tasks = [
        Task(dataset, method, fold, 0)
        for dataset in DATASETS
        for fold in range(N_FOLDS)
        for method in methods
    ]
    return Experiment(
        "cedt",
        DATASETS,
        methods,
        StudyProtocol(N_FOLDS),
        metrics=("accuracy", "train_accuracy"),
        plan=tasks,
        warm_up=True,
    )


def rank_systems(runs: pd.DataFrame) -> dict[tuple[str, str], FriedmanTest]:
    """Compare the systems by each of `METRICS`, trees of each variant.

    Parameters
    ----------
    runs : DataFrame
        Rows of the fits.

    Returns
    -------
    dict
        The test of each variant and metric; none of a variant of which fewer than two data sets are
        complete.
    """
    tests = {}
    for variant in VARIANTS:
        chosen = _as_methods(runs, variant)
        if set(chosen["method"]) == set(SYSTEMS) and len(complete_datasets(chosen)[0]) > 1:
            for metric, larger_is_better in METRICS.items():
                tests[variant, metric] = friedman(chosen, metric, larger_is_better)
    return tests


def _as_methods(runs: pd.DataFrame, variant: str) -> pd.DataFrame:
    """Return the rows of a variant, their methods named as systems."""
    names = {f"{system}, {variant}": system for system in SYSTEMS}
    return runs[runs["method"].isin(names)].replace({"method": names})


def measured(runs: pd.DataFrame) -> pd.DataFrame:
    """Return our mean ranks, named as the published figures are."""
    rows = [
        (variant, "20 data sets", str(system), f"rank by {metric}", float(rank))
        for (variant, metric), test in rank_systems(runs).items()
        for system, rank in test.mean_ranks.items()
    ]
    return pd.DataFrame(rows, columns=[*PUBLISHED_KEY, "ours"])


def scores_table(runs: pd.DataFrame, variant: str, names: Sequence[str]) -> str:
    """Return figures of one variant on some data sets as a table in Markdown."""
    groups = dict(iter(_as_methods(runs, variant).groupby(["dataset", "method"])))
    rows = []
    for name in names:
        cells = {system: groups[(name, system)] for system in SYSTEMS}
        row = {"data set": name}
        row |= {f"{s} %": mean_and_std(100.0 * cells[s].accuracy, 1) for s in SYSTEMS}
        row |= {f"{s} leaves": mean_and_std(cells[s].leaves, 1) for s in SYSTEMS}
        row |= {f"{s} s": f"{cells[s].seconds.mean():.2f}" for s in SYSTEMS}
        rows.append(row | {"folds": str(len(cells[SYSTEMS[0]]))})
    return markdown_table(pd.DataFrame(rows))


def ranks_table(tests: Mapping[tuple[str, str], FriedmanTest]) -> str:
    """Return mean ranks beside the published ones, and Friedman's test, as a table in Markdown."""
    published = load_published("cedt").set_index(["table", "metric", "system"])["mean"]
    rows = []
    for (variant, metric), test in tests.items():
        row = {"trees": variant, "ranked by": metric}
        for system in SYSTEMS:
            row[f"{system}, published"] = f"{published[(variant, f'rank by {metric}', system)]:g}"
            row[f"{system}, ours"] = f"{test.mean_ranks[system]:.2f}"
        row |= {"Friedman's χ²": f"{test.statistic:.2f}", "p": f"{test.p_value:.2g}"}
        rows.append(row)
    return markdown_table(pd.DataFrame(rows), n_left=2)


def pairs_table(tests: Mapping[tuple[str, str], FriedmanTest]) -> str:
    """Return the adjusted p-value of each pair of systems as a table in Markdown."""
    rows = []
    for (variant, metric), test in tests.items():
        row = {"trees": variant, "ranked by": metric}
        for k, first in enumerate(SYSTEMS):
            for second in SYSTEMS[k + 1 :]:
                p = test.adjusted.loc[first, second]
                better = min(first, second, key=test.mean_ranks.__getitem__)
                verdict = f" ({better})" if p < SIGNIFICANT else ""
                row[f"{first} / {second}"] = f"{p:.2g}{verdict}"
        rows.append(row)
    return markdown_table(pd.DataFrame(rows), n_left=2)


def _agreement(tests: Mapping[tuple[str, str], FriedmanTest]) -> str:
    published = load_published("cedt").pivot(
        index=["table", "metric"], columns="system", values="mean"
    )
    n_same = sum(
        published.loc[variant, f"rank by {metric}"].idxmin() == test.mean_ranks.idxmin()
        for (variant, metric), test in tests.items()
    )
    return (
        f" The system of the best mean rank is the published one in **{n_same} of {len(tests)}**"
        " rankings."
    )


def draw_sampling(path: Path) -> None:
    """Draw how the search closes in at the root of oblique stripes, after figures 4 and 5."""
    X, y = make_problem("zebra1", random_state=0)
    node = Node.of(X, y.astype(np.int32), np.ones(len(y)), 2, int(Criterion.GINI), 1)
    trace = CrossEntropy().trace(node, make_streams(0, 0, 1)[0])
    save_picture(plot_sampling_on_sphere(trace), path)


def write(results: Results) -> str:
    """Return the report, and draw its picture."""
    runs = results.runs
    tests, tables, names = rank_systems(runs), [], []
    for variant in VARIANTS:
        if (variant, "accuracy") in tests:
            ranked = tests[variant, "accuracy"].datasets
            names = [name for name in DATASETS if name in ranked]
            cells = scores_table(runs, variant, names)
            tables.append(f"## {variant.capitalize()} trees\n\n{cells}")
    ranks = f"{ranks_table(tests)}\n\n{pairs_table(tests)}" if tests else "Too few runs for ranks."
    scored = "\n\n".join(tables)
    draw_sampling(results.out / "cedt_figure4.png")
    return f"""# Cross-entropy trees, OC1 and axis-parallel trees, run again

Written by `evotree experiment study cedt --data-home DIR --out docs/results --n-jobs 2`, from
the rows in `cedt_runs.csv`: {results.planned} fits. The comparison is that of
Bollwein and Westphal (2022): cross-entropy trees (CEDT) against OC1 and axis-parallel trees (DT),
ten folds, Gini impurity, trees unpruned and trees pruned by cost-complexity on a tenth of the
training rows that is held out (the smallest tree of least error).

Settings: the presets of `ObliqueTreeClassifier` with the systems' names, the criterion Gini
throughout. Stratified 10-fold cross-validation, the same folds for all systems. Missing values are
replaced by the mean of the training rows, categories made columns of 0 and 1. Accuracy is the share
of test rows classified correctly, in percent; ± is the standard deviation over folds; *s* are
seconds a fit, of one thread.

The paper's tables and its list of 20 UCI data sets were not at hand. So the published figures are
mean ranks alone, and ours are of another list of {len(DATASETS)} data sets, of which
{len(names)} are complete: what can be compared is the order of the systems.

## Ranks

Rank 1 is the best mean over folds; ties share the mean of their ranks.{_agreement(tests)}

{ranks}

The second table holds the p-values of pairs of systems: the z-test of two mean ranks after
Friedman's test (Demšar 2006), adjusted by Holm for the three pairs, computed by scikit-posthocs.
The better system stands behind those below {SIGNIFICANT}.

{scored}

## Figures 4 and 5: the search on the sphere

At the root of zebra1, two features: a hyperplane is a direction on the sphere in three
dimensions, drawn as two discs of equal area. Around the mean direction of the candidates that
scored best the next ones are drawn, closer and closer.

![Candidates of three iterations on the sphere](cedt_figure4.png)
"""


STUDY = Study(
    "cedt",
    "the comparison of CEDT: cross-entropy, OC1 and axis-parallel trees by ranks",
    make_experiment,
    write,
    measured,
)

"""The study of CEDT: cross-entropy, OC1 and axis-parallel trees compared by their ranks.

``python -m evotree.experiments.cedt --data-home DIR --out docs/results --jobs 2`` runs what is
missing and writes ``cedt.md``. Every run is appended to ``cedt_runs.csv`` as it finishes, so that a
study that was stopped goes on where it was.

References
----------
Bollwein F., Westphal S. (2022). Oblique decision tree induction by cross-entropy optimization based
on the von Mises-Fisher distribution. Computational Statistics 37.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from evotree.experiments.protocols import load_cached, mean_and_std, take_fold, try_method
from evotree.experiments.studies import (
    RankTest,
    compare_ranks,
    count_done,
    load_published,
    markdown_table,
    read_arguments,
    run_study,
)

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
KEY = ("dataset", "system", "variant", "fold")


class Task(NamedTuple):
    """One fit: the columns `KEY`."""

    dataset: str
    system: str
    variant: str
    fold: int


def make_tasks(datasets: Sequence[str] = DATASETS, systems: Sequence[str] = SYSTEMS) -> list[Task]:
    """Return the fits of the study, data set by data set.

    Parameters
    ----------
    datasets : sequence of str
        Some of `DATASETS`.
    systems : sequence of str
        Some of `SYSTEMS`.

    Returns
    -------
    list of Task
        The fits.
    """
    return [
        Task(dataset, system, variant, fold)
        for dataset in DATASETS
        if dataset in datasets
        for fold in range(N_FOLDS)
        for variant in VARIANTS
        for system in systems
    ]


def run_task(task: Task, data_home: Path) -> dict[str, Any]:
    """Do one fit.

    Parameters
    ----------
    task : Task
        The fit.
    data_home : Path
        Folder of the data sets.

    Returns
    -------
    dict
        The task and what `try_greedy` found.
    """
    parts = take_fold(load_cached(task.dataset, data_home), N_FOLDS, 0, task.fold)
    return task._asdict() | try_method(task.system, parts, task.fold, **VARIANTS[task.variant])


def mean_scores(runs: pd.DataFrame, variant: str, metric: str) -> pd.DataFrame:
    """Return means over folds, for the data sets on which every system has the same folds.

    Parameters
    ----------
    runs : DataFrame
        Rows of `run_task`.
    variant : str
        A key of `VARIANTS`.
    metric : str
        A column of `runs`.

    Returns
    -------
    DataFrame of shape (n_datasets, n_systems)
        Means, in the order of `DATASETS` and `SYSTEMS`.
    """
    scores = (
        runs[runs.variant == variant]
        .pivot(index=["dataset", "fold"], columns="system", values=metric)
        .reindex(columns=list(SYSTEMS))
    )
    complete = scores.notna().all(axis=1).groupby("dataset").all()
    means = scores.groupby("dataset").mean()
    return means.loc[[name for name in DATASETS if complete.get(name, False)]]


def scores_table(runs: pd.DataFrame, variant: str) -> str:
    """Return accuracies, leaves and seconds of one variant as a table in Markdown."""
    chosen = runs[runs.variant == variant]
    groups = dict(iter(chosen.groupby(["dataset", "system"])))
    rows = []
    for name in mean_scores(runs, variant, "accuracy").index:
        cells = {system: groups[(name, system)] for system in SYSTEMS}
        row = {"data set": name}
        row |= {f"{s} %": mean_and_std(100.0 * cells[s].accuracy, 1) for s in SYSTEMS}
        row |= {f"{s} leaves": mean_and_std(cells[s].leaves, 1) for s in SYSTEMS}
        row |= {f"{s} s": f"{cells[s].seconds.mean():.2f}" for s in SYSTEMS}
        rows.append(row | {"folds": str(len(cells[SYSTEMS[0]]))})
    return markdown_table(pd.DataFrame(rows))


def ranks_table(tests: Mapping[tuple[str, str], RankTest]) -> str:
    """Return mean ranks beside the published ones, and Friedman's test, as a table in Markdown."""
    published = load_published("cedt").set_index(["table", "metric", "system"]).mean_rank
    rows = []
    for (variant, metric), test in tests.items():
        row = {"trees": variant, "ranked by": metric}
        for system in SYSTEMS:
            row[f"{system}, published"] = f"{published[(variant, metric, system)]:g}"
            row[f"{system}, ours"] = f"{test.mean_ranks[system]:.2f}"
        row |= {"Friedman's χ²": f"{test.statistic:.2f}", "p": f"{test.p_value:.2g}"}
        rows.append(row)
    return markdown_table(pd.DataFrame(rows), n_left=2)


def pairs_table(tests: Mapping[tuple[str, str], RankTest]) -> str:
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


def _agreement(tests: Mapping[tuple[str, str], RankTest]) -> str:
    published = load_published("cedt").pivot(
        index=["table", "metric"], columns="system", values="mean_rank"
    )
    n_same = sum(
        published.loc[key].idxmin() == test.mean_ranks.idxmin() for key, test in tests.items()
    )
    return (
        f" The system of the best mean rank is the published one in **{n_same} of {len(tests)}**"
        " rankings."
    )


def write_report(out: Path) -> Path:
    """Write ``cedt.md`` from the rows in the folder `out`; return its path."""
    runs = pd.read_csv(out / "cedt_runs.csv")
    tests, tables, names = {}, [], []
    for variant in VARIANTS:
        names = list(mean_scores(runs, variant, "accuracy").index)
        if len(names) < 2:
            continue
        tables.append(f"## {variant.capitalize()} trees\n\n{scores_table(runs, variant)}")
        for metric, larger_is_better in METRICS.items():
            scores = mean_scores(runs, variant, metric)
            tests[variant, metric] = compare_ranks(scores, larger_is_better)
    ranks = f"{ranks_table(tests)}\n\n{pairs_table(tests)}" if tests else "Too few runs for ranks."
    scored = "\n\n".join(tables)
    report = out / "cedt.md"
    report.write_text(
        f"""# Cross-entropy trees, OC1 and axis-parallel trees, run anew

Written by `python -m evotree.experiments.cedt --data-home DIR --out docs/results --jobs 2`, from
the rows in `cedt_runs.csv`: {count_done(make_tasks(), KEY, runs)} fits. The comparison is that of
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
""",
        encoding="utf-8",
    )
    return report


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study from the command line; return the exit status."""
    arguments = read_arguments(
        argv, "cedt", "Compare cross-entropy trees and write cedt.md.", DATASETS, SYSTEMS
    )
    tasks = make_tasks(arguments.only, arguments.systems)
    run_study(arguments, tasks, KEY, run_task, "cedt_runs.csv", write_report)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

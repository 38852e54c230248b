"""The study of variants: how the defaults of `EvoTreeClassifier` were chosen, what each is worth.

``evotree experiment study variants --data-home DIR --out docs/results --jobs 2`` runs what is
missing from ``variants_runs.csv``, each run as it finishes, and writes ``variants.md``.

Each row holds a checksum of all parameters of its variant (`evotree.experiments.variant_groups`):
where a default has changed, its rows no longer count and are run anew.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

from evotree.estimators import EvoTreeClassifier
from evotree.experiments.markdown import markdown_table
from evotree.experiments.problems import make_problem
from evotree.experiments.protocols import load_cached, take_fold
from evotree.experiments.studies.study import Study, count_done
from evotree.experiments.studies.variant_groups import (
    CHOSEN_ON,
    DEFAULT,
    TEN,
    Group,
    all_variants,
    default_text,
    make_groups,
    same_as,
    settings_of,
)

N_FOLDS = 5
KEY = ("dataset", "variant", "fold", "settings")


class Task(NamedTuple):
    """One fit: the columns `KEY`."""

    dataset: str
    variant: str
    fold: int
    settings: str


# ---- runs ----------------------------------------------------------------------------------------


def make_tasks() -> list[Task]:
    """Return the fits of the study, variant by variant, each on the data sets of its groups.

    Those of a variant that is the same as another are run under the name of the first.
    """
    named = all_variants()
    twins = same_as(named)
    places: dict[str, set[str]] = {DEFAULT: set(TEN)}
    for group in make_groups():
        for name in group.variants:
            places.setdefault(twins[name], set()).update(group.datasets)
    return [
        Task(dataset, name, fold, settings_of(named[name]))
        for name in dict.fromkeys(twins.values())
        for dataset in TEN
        if dataset in places[name]
        for fold in range(N_FOLDS)
    ]


def run_task(task: Task, data_home: Path) -> dict[str, Any]:
    """Do one fit; compilation is not in its seconds.

    Parameters
    ----------
    task : Task
        The fit.
    data_home : Path
        Folder of the data sets.

    Returns
    -------
    dict
        The task, ``accuracy`` on the test rows, ``train_accuracy``, ``leaves``, ``seconds`` of the
        fit and ``best_fitness``, the highest that a tree of the run had.
    """
    parts = take_fold(load_cached(task.dataset, data_home), N_FOLDS, 0, task.fold)
    overrides = all_variants()[task.variant]
    _warm_up(task.variant)
    model = EvoTreeClassifier(**{**overrides, "random_state": task.fold})
    begin = time.perf_counter()
    model.fit(parts.X_train, parts.y_train)
    seconds = time.perf_counter() - begin
    return task._asdict() | {
        "accuracy": model.score(parts.X_test, parts.y_test),
        "train_accuracy": model.score(parts.X_train, parts.y_train),
        "leaves": model.tree_.n_leaves,
        "seconds": seconds,
        "best_fitness": max(model.history_.chapters["fitness"].select("best")),
    }


@cache
def _warm_up(variant: str) -> None:
    """Compile what a variant needs, for two classes and for three."""
    few = {"max_generations": 20, "random_state": 0}
    for X, y in (make_problem("chessboard4", 100, 0), load_iris(return_X_y=True)):
        EvoTreeClassifier(**{**all_variants()[variant], **few}).fit(X, y)


# ---- report --------------------------------------------------------------------------------------


def present_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose settings are those that their variant has now."""
    current = {(name, settings_of(overrides)) for name, overrides in all_variants().items()}
    pairs = zip(runs["variant"], runs["settings"].astype(str), strict=True)
    return runs[[pair in current for pair in pairs]]


def difference(runs: pd.DataFrame, variant: str, datasets: Sequence[str]) -> str:
    """Return the mean difference of accuracy to the default, in points, and its standard error.

    Of the folds that both have; empty without such folds.
    """
    accuracy = runs[runs["dataset"].isin(datasets)].set_index(["variant", "dataset", "fold"])
    series = accuracy["accuracy"]
    if not {DEFAULT, variant} <= set(runs["variant"]):
        return ""
    paired = (100.0 * (series[variant] - series[DEFAULT])).dropna()
    if len(paired) < 2:
        return ""
    return f"{paired.mean():+.2f} ± {paired.std() / np.sqrt(len(paired)):.2f}"


def group_table(runs: pd.DataFrame, group: Group, twins: Mapping[str, str]) -> str:
    """Return the figures of a group's variants in Markdown.

    The default comes first, then the variants that have been run. A mean is that of all data sets,
    and empty until all are run.
    """
    names = dict.fromkeys([DEFAULT, *(twins[name] for name in group.variants)])
    rows = []
    for name in names:
        of_variant = runs[runs["variant"] == name]
        folds = of_variant.groupby("dataset")
        whole = folds.size().eq(N_FOLDS)
        means = folds[["accuracy", "train_accuracy", "leaves", "seconds", "best_fitness"]].mean()
        means = means[whole].reindex(list(group.datasets))
        if means["accuracy"].isna().all():
            continue
        row = {"variant": name}
        row |= {str(key): _text(100 * value, 1) for key, value in means["accuracy"].items()}
        overall = means.mean(skipna=False)
        row["mean"] = _text(100 * overall["accuracy"], 2)
        row["difference"] = "" if name == DEFAULT else difference(runs, name, group.datasets)
        row["on training rows"] = _text(100 * overall["train_accuracy"], 2)
        row["best fitness"] = _text(overall["best_fitness"], 4)
        row["leaves"], row["seconds"] = _text(overall["leaves"], 1), _text(overall["seconds"], 2)
        rows.append(row)
    return markdown_table(pd.DataFrame(rows)) if rows else "Not run yet."


def _text(value: float, decimals: int) -> str:
    return "" if np.isnan(value) else f"{value:,.{decimals}f}"


def group_section(runs: pd.DataFrame, group: Group) -> str:
    """Return the part of the report on a group."""
    twins = same_as(all_variants())
    lines = [f"## {group.title}", group.sentence, group_table(runs, group, twins)]
    for first in dict.fromkeys(twins[name] for name in group.variants):
        others = [name for name in group.variants if twins[name] == first != name]
        if others:
            lines.append(f"The same as *{first}*: {', '.join(others)}.")
    return "\n\n".join(lines)


def write_report(out: Path) -> Path:
    """Write ``variants.md`` from the rows in the folder `out`; return its path."""
    runs = pd.read_csv(out / "variants_runs.csv", dtype={"settings": str})
    current = present_runs(runs)
    stale = len(runs) - len(current)
    note = f" Rows of other defaults do not count: {stale:,}." if stale else ""
    sections = "\n\n".join(group_section(current, group) for group in make_groups())
    report = out / "variants.md"
    report.write_text(
        f"""# What the defaults are worth

Written by `evotree experiment study variants --data-home DIR --out docs/results --jobs 2`,
from the rows in `variants_runs.csv`: {count_done(make_tasks(), KEY, current)} fits.{note}

Stratified {N_FOLDS}-fold cross-validation, once, the same folds and seeds for all variants of
`EvoTreeClassifier`. Missing values are replaced by the mean of the training rows, categories made
columns of 0 and 1. Accuracy is the share of test rows classified correctly, in percent; *mean* and
all figures to its right are means over the data sets; *difference* is that to the default, in
points, with its standard error over the paired folds; *best fitness* is the highest of the run, to
be compared only where the fitness is the same. Seconds are those of a fit on one thread. A cell is
empty until all its folds are run.

The defaults were chosen on {len(CHOSEN_ON)} data sets ({", ".join(CHOSEN_ON)}) and no others; wine
is added where only the worth of a part is shown. The default has {default_text()}.

{sections}
""",
        encoding="utf-8",
    )
    return report


STUDY = Study(
    "variants",
    "what each default of EvoTreeClassifier is worth, by ablation",
    KEY,
    make_tasks,
    run_task,
    write_report,
    system="variant",
)

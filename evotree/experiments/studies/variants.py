"""The study of variants: how the defaults of `EvoTreeClassifier` were chosen, what each is worth.

A row says by a checksum with which parameters it was made: where a default has changed, its rows no
longer count and are made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evotree.experiments.experiment import Experiment
from evotree.experiments.markdown import markdown_table
from evotree.experiments.protocols import Task
from evotree.experiments.studies.study import Results, Study, StudyProtocol
from evotree.experiments.studies.variant_groups import (
    DEFAULT,
    TEN,
    Group,
    all_variants,
    default_text,
    make_groups,
    make_variant,
    same_as,
)

N_FOLDS = 5


def make_experiment() -> Experiment:
    """Return the fits of the study, variant by variant, each on the data sets of its groups.

    Those of a variant that is the same as another are run under the name of the first.
    """
    named = all_variants()
    twins = same_as(named)
    places: dict[str, set[str]] = {DEFAULT: set(TEN)}
    for group in make_groups():
        for name in group.variants:
            places.setdefault(twins[name], set()).update(group.datasets)
    methods = {name: make_variant(named[name]) for name in dict.fromkeys(twins.values())}
    return Experiment(
        "variants",
        TEN,
        methods,
        StudyProtocol(N_FOLDS),
        metrics=("accuracy", "train_accuracy"),
        plan=[
            Task(dataset, name, fold, 0)
            for name in methods
            for dataset in TEN
            if dataset in places[name]
            for fold in range(N_FOLDS)
        ],
        measures={"best_fitness": best_fitness},
        curve=None,
        warm_up=True,
    )


def best_fitness(model: Any) -> float:
    """Return the highest fitness that a tree of the run had."""
    return float(max(model.history_.chapters["fitness"].select("best")))


# ---- report --------------------------------------------------------------------------------------


def difference(runs: pd.DataFrame, variant: str, datasets: Sequence[str]) -> str:
    """Return the mean difference of accuracy to the default, in points, and its standard error.

    Of the folds that both have; empty without such folds.
    """
    accuracy = runs[runs["dataset"].isin(datasets)].set_index(["method", "dataset", "fold"])
    series = accuracy["accuracy"]
    if not {DEFAULT, variant} <= set(runs["method"]):
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
        of_variant = runs[runs["method"] == name]
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


def write(results: Results) -> str:
    """Return the report."""
    sections = "\n\n".join(group_section(results.runs, group) for group in make_groups())
    return f"""# What the defaults are worth

Written by `evotree experiment study variants --data-home DIR --out docs/results --jobs 2`,
from the rows in `variants_runs.csv`: {results.planned} fits.

Stratified {N_FOLDS}-fold cross-validation, once, the same folds and seeds for all variants of
`EvoTreeClassifier`. Missing values are replaced by the mean of the training rows, categories made
columns of 0 and 1. Accuracy is the share of test rows classified correctly, in percent; *mean* and
all figures to its right are means over the data sets; *difference* is that to the default, in
points, with its standard error over the paired folds; *best fitness* is the highest of the run, to
be compared only where the fitness is the same. Seconds are those of a fit on one thread. A cell is
empty until all its folds are run.

The parts are compared on {len(TEN)} data sets ({", ".join(TEN)}), all else on the smaller ones.
The default has {default_text()}.

{sections}
"""


STUDY = Study(
    "variants",
    "what each default of EvoTreeClassifier is worth, by ablation",
    make_experiment,
    write,
)

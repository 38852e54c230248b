"""The study of variants: what each part of the default `EvoTreeClassifier` is worth, by ablation.

A row says by a checksum with which parameters it was made: where a default has changed, its rows no
longer count and are made again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evotree.experiments.experiment import Experiment
from evotree.experiments.markdown import markdown_table
from evotree.experiments.protocols import Task
from evotree.experiments.studies.means import TIE, paired
from evotree.experiments.studies.oc1 import FILES, OC1Protocol
from evotree.experiments.studies.readable import fitness_of_best
from evotree.experiments.studies.study import Results, Study
from evotree.experiments.studies.variant_groups import (
    DATASETS,
    DEFAULT,
    GROUPS,
    SMALL,
    TOO_LONG,
    Group,
    all_variants,
    default_text,
    make_variant,
)

N_FOLDS = 3

FIGURES = ("accuracy", "train_accuracy", "fitness", "complexity", "seconds")
"""Columns of a row that are compared."""
MEASURED_BY = ("size_penalty", "term_penalty", "noise")
"""Columns that say how the fitness of a fit was measured."""


def make_experiment() -> Experiment:
    """Return the fits of the study, data set by data set, the quick ones first."""
    variants = all_variants()
    places = {name: set(group.datasets) for group in GROUPS for name in group.variants}
    places[DEFAULT] = set(DATASETS)
    return Experiment(
        "variants",
        DATASETS,
        {name: make_variant(overrides) for name, overrides in variants.items()},
        OC1Protocol(N_FOLDS, files={"digits": FILES["digits"]}),
        metrics=("accuracy", "train_accuracy"),
        plan=[
            Task(dataset, name, fold, 0)
            for dataset in DATASETS
            for name in variants
            if dataset in places[name]
            for fold in range(N_FOLDS)
        ],
        measures={
            "fitness": fitness_of_best,
            "size_penalty": size_penalty,
            "term_penalty": term_penalty,
            "noise": noise,
        },
        curve=None,
        warm_up=True,
    )


def size_penalty(model: Any) -> float:
    """Return the penalty for a node."""
    return float(model.size_penalty_)


def term_penalty(model: Any) -> float:
    """Return the penalty for each term after a split's first."""
    return float(model.term_penalty_)


def noise(model: Any) -> float | None:
    """Return the noise of the rows that the fitness was measured on; None for a teacher's rows."""
    chosen = model.regularization_
    return None if chosen.teacher is not None else float(chosen.noise)


# ---- differences ---------------------------------------------------------------------------------


def whole_fits(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the fits of the variants that have all folds of a data set, by variant, set, fold."""
    n_folds = runs.groupby(["method", "dataset"])["fold"].transform("size")
    whole = runs[n_folds == N_FOLDS].set_index(["method", "dataset", "fold"]).sort_index()
    # A column in which no fit has a value is not written.
    return whole.reindex(columns=[*FIGURES, *MEASURED_BY])


def differences(fits: pd.DataFrame, variant: str) -> pd.DataFrame:
    """Return the differences of a variant to the default, on the data sets that both have.

    Parameters
    ----------
    fits : DataFrame
        From `whole_fits`.
    variant : str
        The variant.

    Returns
    -------
    DataFrame of shape (n_datasets, 5)
        Means over folds of the variant's `FIGURES` less the default's: of the fitness over the
        folds in which both measured it in the same way, NaN where there is none; of the logarithms
        of the seconds. Empty where one has not been run.
    """
    if not {DEFAULT, variant} <= set(fits.index.get_level_values("method")):
        return pd.DataFrame(columns=list(FIGURES))
    own, default = fits.loc[variant].align(fits.loc[DEFAULT], join="inner", axis=0)
    found = own[list(FIGURES)] - default[list(FIGURES)]
    is_same = own[list(MEASURED_BY)].eq(default[list(MEASURED_BY)]).all(axis=1)
    found["fitness"] = found["fitness"].where(is_same)
    found["seconds"] = np.log(own["seconds"] / default["seconds"])
    return found.groupby("dataset").mean()


# ---- report --------------------------------------------------------------------------------------


def group_table(fits: pd.DataFrame, group: Group) -> str:
    """Return what the variants of a group that have been run differ in, in Markdown."""
    rows = []
    for variant in group.variants:
        found = differences(fits, variant)
        if found.empty:
            continue
        accuracy = fits.loc[variant]["accuracy"].groupby("dataset").mean()[found.index]
        fitness = 100.0 * found["fitness"].dropna()
        row = {"variant": variant, "data sets": str(len(found))}
        row["accuracy"] = f"{100.0 * accuracy.mean():.2f}"
        row["difference"] = paired(100.0 * found["accuracy"])
        row["on training rows"] = f"{100.0 * found['train_accuracy'].mean():+.2f}"
        row["fitness"] = f"{fitness.mean():+.2f} ({len(fitness)})" if len(fitness) else ""
        row["complexity"] = f"{found['complexity'].mean():+.1f}"
        row["seconds"] = f"× {np.exp(found['seconds'].mean()):.2f}"
        rows.append(row)
    return markdown_table(pd.DataFrame(rows)) if rows else "Not run yet."


def default_sentence(fits: pd.DataFrame, group: Group) -> str:
    """Return the figures of the default on the data sets of a group."""
    default = fits[fits.index.get_level_values("method") == DEFAULT]
    means = default[list(FIGURES)].groupby("dataset").mean()
    means = means[means.index.isin(group.datasets)]
    if means.empty:
        return "The default has not been run yet."
    mean = means.mean()
    return (
        f"The default, on {len(means)} of {len(group.datasets)} data sets: accuracy "
        f"{100.0 * mean['accuracy']:.2f}, on training rows {100.0 * mean['train_accuracy']:.2f}, "
        f"fitness {100.0 * mean['fitness']:.2f}, complexity {mean['complexity']:.1f}, "
        f"{mean['seconds']:.1f} seconds."
    )


def group_section(fits: pd.DataFrame, group: Group) -> str:
    """Return the part of the report on a group."""
    parts = f"## {group.title}", group.sentence, default_sentence(fits, group)
    return "\n\n".join([*parts, group_table(fits, group)])


def write(results: Results) -> str:
    """Return the report."""
    fits = whole_fits(results.runs)
    sections = "\n\n".join(group_section(fits, group) for group in GROUPS)
    return f"""# What the parts of the default are worth

Written by `evotree experiment study variants --data-home DIR --out docs/results --n-jobs 2`,
from the rows in `variants_runs.csv`: {results.planned} fits.

A variant whose *difference* is below 0 by more than about twice its standard error is worse than
the default: the default is right to have what the variant lacks, or to lack what it has.

The protocol is that of [readable trees](readable.md) with {N_FOLDS} folds, the same folds and seeds
for all variants. The parts are compared on its data sets but {" and ".join(TOO_LONG)}, which take
longest; all else on {len(SMALL)} small ones ({", ".join(SMALL)}). The defaults were chosen on these
data sets, too. A row is over the data sets of which both the variant and the
default have all folds. *Accuracy* is the variant's share of test rows classified right, in percent;
all else compares it with the default. *Difference* is that of the accuracy in points, its mean and
standard error over the data sets, and how many of these are won / tied / lost; below {TIE:g} points
is a tie. *On training rows* is the difference of the accuracy there. *Fitness* is what evolution
maximizes, times 100, and its difference is over the folds in which both fits chose the same
penalties and the same noise, on as many data sets as it says. *Complexity* is the difference of
leaves and terms. *Seconds* are those of a fit on one thread, as a multiple of the default's, the
geometric mean over the data sets.

The default has {default_text()}.

{sections}
"""


STUDY = Study(
    "variants",
    "what each part of the default EvoTreeClassifier is worth, by ablation",
    make_experiment,
    write,
)

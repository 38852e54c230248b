"""The study of variants: what each part of the default `EvoTreeClassifier` is worth, by ablation.

A variant overrides some of the defaults, whatever these are at the time. A row says by a checksum
with which parameters it was made: where a default has changed, its rows no longer count and are
made again.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from evotree.estimators import EvoTreeClassifier
from evotree.experiments.protocols import Task
from experiments import suites
from experiments.methods.trees import fitness_of_best
from experiments.study import ClassesProtocol, Results, Study, define
from experiments.suites import TINY
from experiments.tables import paired, table

N_FOLDS = 3
DEFAULT = "default"
DATASETS = (*TINY, *suites.SMALL, "segment")
"""The data sets on which the default is compared with itself without one of its parts."""
SMALL = (
    *("iris", "heart", "heart-cleveland", "spect", "glass", "breast-cancer", "ionosphere", "wdbc"),
)
"""The data sets of all other comparisons."""
FIGURES = ["accuracy", "train_accuracy", "fitness", "complexity", "seconds"]
"""Columns of a row that are compared."""
MEASURED_BY = ["size_penalty", "term_penalty"]
"""Columns that say how the fitness of a fit was measured."""
FIXED_PENALTIES: Mapping[str, Any] = {"size_penalty": 0.002, "term_penalty": 0.0005}
"""In the middle of what is tried for some hundred rows (`penalties_to_try`)."""


def _each(parameter: str, values: Sequence[Any], text: str) -> dict[str, dict[str, Any]]:
    """Return a variant for each value of a parameter, named by text with the value in it."""
    return {text.format(value): {parameter: value} for value in values}


GROUPS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "Parts": {
        "without refinement": {"evolution__refinement": None},
        "no evolution": {"max_generations": 0},
        "no mutation of terms": {"evolution__variation__term_mutation_probability": 0.0},
        "dense dipoles": {"evolution__variation__sparse_dipoles": False},
        "generational survival": {"evolution__variation__survival": "generational"},
        "no penalty for terms": {"term_penalty": 0.0},
        "no rounding": {"precision": None},
        "no noise": {"evolution__regularization__noise": 0.0},
        "fixed penalties": FIXED_PENALTIES,
    },
    "Refinement": _each(
        "evolution__refinement",
        ("tao", "linear", "oc1", "cross_entropy", "wodt"),
        "{} alone",
    ),
    "Regularization": _each("evolution__regularization__C", (0.1, 1.0, 10.0), "C {:g}")
    | {"C 0.1 to 10": {"evolution__regularization__C": (0.1, 10.0)}}
    | _each("evolution__regularization__penalty", ("l1",), "{}")
    | _each("evolution__regularization__noise", (0.05, 0.2, 0.5), "noise {}"),
    "Seeding": {
        "no seeds": {"evolution__init": None},
        "widths 0.3": {"evolution__init": {"widths": 0.3}},
        "widths 0.3, tao 0.3": {"evolution__init": {"widths": 0.3, "tao": 0.3}},
        "tao 0.5": {"evolution__init": {"tao": 0.5}},
        "tao, axis, linear": {"evolution__init": ("tao", "axis", "linear")},
        "axis, linear, oc1, wodt": {"evolution__init": ("axis", "linear", "oc1", "wodt")},
    },
}
"""The groups, the ablation first."""
VARIANTS: dict[str, Any] = {DEFAULT: {}} | {
    k: changed for of in GROUPS.values() for k, changed in of.items()
}
"""The overrides of every variant, the default's first."""


def datasets_of(variant: str) -> tuple[str, ...]:
    """Return the data sets on which a variant is run."""
    return DATASETS if variant in (DEFAULT, *GROUPS["Parts"]) else SMALL


SHARES: dict[str, Any] = {"leaves": "constant"}  # which all variants have

EXPERIMENT = define(
    "variants",
    dict.fromkeys((*DATASETS, *SMALL)),
    {name: EvoTreeClassifier().set_params(**SHARES | made) for name, made in VARIANTS.items()},
    ClassesProtocol(N_FOLDS),
    plan=[
        Task(dataset, name, fold, 0)
        for name in VARIANTS
        for dataset, fold in product(datasets_of(name), range(N_FOLDS))
    ],
    measures={
        "fitness": fitness_of_best,
        "size_penalty": attrgetter("size_penalty_"),
        "term_penalty": attrgetter("term_penalty_"),
    },
)


def whole_fits(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the fits of the variants that have all folds of a data set, by variant, set, fold."""
    n_folds = runs.groupby(["method", "dataset"])["fold"].transform("size")
    whole = runs[n_folds == N_FOLDS].set_index(["method", "dataset", "fold"]).sort_index()
    # A column in which no fit has a value is not written.
    return whole.reindex(columns=FIGURES + MEASURED_BY)


def differences(fits: pd.DataFrame, variant: str) -> pd.DataFrame:
    """Return the mean differences of a variant to the default, by data sets that both have.

    The fitness is compared in the folds in which both measured it in the same way, the seconds by
    their logarithms.
    """
    if not {DEFAULT, variant} <= set(fits.index.get_level_values("method")):
        return pd.DataFrame(columns=FIGURES)
    own, default = fits.loc[variant].align(fits.loc[DEFAULT], join="inner", axis=0)
    gains = own[FIGURES] - default[FIGURES]
    is_same = own[MEASURED_BY].eq(default[MEASURED_BY]).all(axis=1)
    gains["fitness"] = gains["fitness"].where(is_same)
    gains["seconds"] = np.log(own["seconds"] / default["seconds"])
    return gains.groupby("dataset").mean()


def variant_row(fits: pd.DataFrame, variant: str) -> dict[str, str]:
    """Return what a variant differs in; nothing where it has not been run."""
    gains = differences(fits, variant)
    if gains.empty:
        return {}
    accuracy = fits.loc[variant]["accuracy"].groupby("dataset").mean()[gains.index]
    fitness = 100.0 * gains["fitness"].dropna()
    row = {"variant": variant, "data sets": str(len(gains))}
    row["accuracy"] = f"{100.0 * accuracy.mean():.2f}"
    row["difference"] = paired(100.0 * gains["accuracy"])
    row["on training rows"] = f"{100.0 * gains['train_accuracy'].mean():+.2f}"
    row["fitness"] = f"{fitness.mean():+.2f} ({len(fitness)})" if len(fitness) else ""
    row["complexity"] = f"{gains['complexity'].mean():+.1f}"
    row["seconds"] = f"× {np.exp(gains['seconds'].mean()):.2f}"
    return row


def default_sentence(fits: pd.DataFrame) -> str:
    """Return the figures of the default."""
    default = fits[fits.index.get_level_values("method") == DEFAULT]
    means = default[FIGURES].groupby("dataset").mean()
    if means.empty:
        return "The default has not been run yet."
    mean = means.mean()
    return (
        f"The default, on {len(means)} data sets: accuracy {100.0 * mean['accuracy']:.2f}, on "
        f"training rows {100.0 * mean['train_accuracy']:.2f}, complexity {mean['complexity']:.1f}."
    )


def report(results: Results) -> dict[str, Any]:
    """Return the tables of the groups, and the defaults that the variants override."""
    fits, defaults = whole_fits(results.runs), EvoTreeClassifier().get_params()
    overridden = dict.fromkeys(key for changed in VARIANTS.values() for key in changed)
    values: dict[str, Any] = {"defaults": [f"`{key}={defaults[key]!r}`" for key in overridden]}
    values[DEFAULT] = default_sentence(fits)
    for title, variants in GROUPS.items():
        rows = [variant_row(fits, variant) for variant in variants]
        values[title] = table(row for row in rows if row)
    return values


STUDY = Study(EXPERIMENT, report)

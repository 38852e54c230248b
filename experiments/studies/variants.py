"""The study of variants: what parts of the default `EvoTreeClassifier` are worth, by ablation.

First trees, refinement and variation are in the study of operators.

A variant overrides some of the defaults, whatever these are at the time. A row says by a checksum
with which parameters it was made: where a default has changed, its rows no longer count and are
made again.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evotree.estimators import EvoTreeClassifier
from experiments import suites
from experiments.study import ClassesProtocol, Results, Study, define
from experiments.suites import TINY
from experiments.tables import paired, table

N_FOLDS, DEFAULT = 3, "default"
# Data sets on which the default is compared with its variants.
DATASETS = (
    *TINY,
    *suites.SMALL,
    "segment",
)
# Columns that are compared.
FIGURES = [
    "accuracy",
    "train_accuracy",
    "complexity",
    "seconds",
]
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    DEFAULT: {},
    "no evolution": {"max_generations": 0},
    "15 generations": {"max_generations": 15},
    "dense dipoles": {"evolution__variation__sparse_dipoles": False},
    "generational survival": {"evolution__variation__survival": "generational"},
    "no penalty for terms": {"term_penalty": 0.0},
    "no rounding": {"precision": None},
    "no noise": {"evolution__regularization__noise": 0.0},
    # `penalties_to_try`
    "fixed penalties": {
        "size_penalty": 0.002,
        "term_penalty": 0.0005,
    },
}
"""The overrides of every variant, the default's first."""
SHARES: dict[str, Any] = {"leaves": "constant"}  # which all variants have


METHODS: dict[str, Any] = {
    name: EvoTreeClassifier().set_params(**{**SHARES, **made})
    for name, made in VARIANTS.items()
}
EXPERIMENT = define("variants", DATASETS, METHODS, ClassesProtocol(N_FOLDS))


def whole_fits(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the fits of the variants that have all folds of a data set, by variant, set, fold."""
    n_folds = runs.groupby(["method", "dataset"])["fold"].transform("size")
    return (
        runs[n_folds == N_FOLDS]
        .set_index(["method", "dataset", "fold"])
        .sort_index()[FIGURES]
    )


def differences(fits: pd.DataFrame, variant: str) -> pd.DataFrame:
    """Return the mean differences of a variant to the default, by data sets that both have.

    Seconds are compared by their logarithms.
    """
    if not {DEFAULT, variant} <= set(fits.index.get_level_values("method")):
        return pd.DataFrame(columns=FIGURES)
    own, default = fits.loc[variant].align(fits.loc[DEFAULT], join="inner", axis=0)
    gains = own - default
    gains["seconds"] = np.log(own["seconds"] / default["seconds"])
    return gains.groupby("dataset").mean()


def variant_row(fits: pd.DataFrame, variant: str) -> dict[str, str]:
    """Return what a variant differs in; nothing where it has not been run."""
    gains = differences(fits, variant)
    if gains.empty:
        return {}
    accuracy = fits.loc[variant]["accuracy"].groupby("dataset").mean()[gains.index]
    row = {"variant": variant, "data sets": str(len(gains))}
    row["accuracy"] = f"{100.0 * accuracy.mean():.2f}"
    row["difference"] = paired(100.0 * gains["accuracy"])
    row["on training rows"] = f"{100.0 * gains['train_accuracy'].mean():+.2f}"
    row["complexity"] = f"{gains['complexity'].mean():+.1f}"
    row["seconds"] = f"× {np.exp(gains['seconds'].mean()):.2f}"
    return row


def default_sentence(fits: pd.DataFrame) -> str:
    """Return the figures of the default."""
    default = fits[fits.index.get_level_values("method") == DEFAULT]
    means = default.groupby("dataset").mean()
    if means.empty:
        return "The default has not been run yet."
    mean = means.mean()
    return (
        f"The default, on {len(means)} data sets: accuracy {100.0 * mean['accuracy']:.2f}, on "
        f"training rows {100.0 * mean['train_accuracy']:.2f}, complexity {mean['complexity']:.1f}."
    )


def report(results: Results) -> dict[str, Any]:
    """Return the table of the variants, and the defaults that they override."""
    fits = whole_fits(results.runs)
    defaults = EvoTreeClassifier().get_params()
    overridden = dict.fromkeys(key for changed in VARIANTS.values() for key in changed)
    rows = [variant_row(fits, variant) for variant in METHODS if variant != DEFAULT]
    return {
        "defaults": [f"`{key}={defaults[key]!r}`" for key in overridden],
        "default": default_sentence(fits),
        "parts": table(row for row in rows if row),
    }


STUDY = Study(EXPERIMENT, report)

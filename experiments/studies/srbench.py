"""The study of SRBench: EvoTree beside 21 published methods, symbolic regression among them.

The protocol is that of SRBench (La Cava et al. 2021, NeurIPS Datasets and Benchmarks) for sets
without a known formula: three quarters of the rows train, at most `MAX_TRAIN_ROWS` of them, and
targets are standardized by these. In the rows the fold is `OFFICIAL`, and the seed draws rows.
"""

import ast
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from evotree import EvoTreeRegressor
from evotree.experiments.protocols import Parts, Task, take_rows
from evotree.export import export_python
from experiments.agreement import DATA
from experiments.methods.classifiers import EVOTREE
from experiments.study import Results, Study, StudyProtocol, define
from experiments.suites import OFFICIAL
from experiments.tables import named, paired, shown, table

SEEDS = (860, 5390, 6265, 11284, 11964, 15795, 21575, 22118, 23654, 29802)
"""Seeds of the ten splits, inferred from the published figures."""
MAX_TRAIN_ROWS = 10_000
COPIES = ("562_cpu_small", "197_cpu_act")
"""Near copies of another set, 227_cpu_small."""
REAL = (
    *("659_sleuth_ex1714", "1089_USCrime", "192_vineyard", "228_elusage"),
    *("542_pollution", "687_sleuth_ex1605", "527_analcatdata_election2000"),
    *("665_sleuth_case2002", "207_autoPrice", "230_machine_cpu", "712_chscase_geyser1"),
    *("695_chatfield_4", "505_tecator", "560_bodyfat", "556_analcatdata_apnea2"),
    *("1027_ESL", "522_pm10", "1029_LEV", "529_pollen", "225_puma8NH", "227_cpu_small"),
    *(
        *COPIES,
        "215_2dplanes",
        "564_fried",
        "1201_BNG_breastTumor",
        "1203_BNG_pwLinear",
    ),
)
FRIEDMAN = (
    *("579_fri_c0_250_5", "657_fri_c2_250_10", "604_fri_c4_500_10"),
    *("633_fri_c0_500_25", "643_fri_c2_500_25", "609_fri_c0_1000_5"),
    *("593_fri_c1_1000_10", "586_fri_c3_1000_25"),
)
"""Sets that were drawn from Friedman's functions."""
PUBLISHED = pd.read_csv(DATA / "srbench.csv")
"""Medians of ten splits, by data set and method; R² below 0 is 0 there."""
SIZES = ("size", "complexity")
LEARNERS = ("AdaBoost", "KernelRidge", "LGBM", "Linear", "MLP", "RandomForest", "XGB")
"""The published methods that are not symbolic regression."""
BESIDE = ("XGB", "RandomForest", "FEAT", "GP-GOMEA", "Operon", "Linear")
"""The published methods in the tables of data sets."""
METHODS = {EVOTREE: EvoTreeRegressor()}


class SRBenchProtocol(StudyProtocol):
    """Three quarters of the rows to fit on, drawn for each seed, with standardized targets."""

    def take_parts(
        self, task: Task, data_home: Path | None, stratified: bool = True
    ) -> Parts:
        """Return the rows of a fit."""
        data = self.load(task.dataset, data_home)
        train, test = train_test_split(
            np.arange(len(data.y)), test_size=0.25, random_state=task.seed
        )
        if len(train) > MAX_TRAIN_ROWS:
            train = check_random_state(task.seed).choice(
                train, MAX_TRAIN_ROWS, replace=False
            )
        y = (data.y - data.y[train].mean()) / data.y[train].std()
        return take_rows(data.X, y, train, test)


def expression_nodes(model: Any) -> int:
    """Return the size of a tree as one expression: the nodes of the code of `export_python`."""
    return count_nodes(ast.parse(export_python(model)))


def count_nodes(code: ast.AST) -> int:
    """Count numbers, columns, operations, comparisons, calls and choices; signs count none.

    A leaf's sum within its bounds is the greater one of a bound and the lesser one of the sum and
    the other bound: two operations and two numbers.
    """
    if isinstance(code, ast.Subscript):
        return 1
    if isinstance(code, ast.IfExp):
        return 1 + count_nodes(code.body) + count_nodes(code.orelse)
    is_node = isinstance(
        code, ast.Constant | ast.BinOp | ast.Compare | ast.Call | ast.If
    )
    return is_node + sum(map(count_nodes, ast.iter_child_nodes(code)))


EXPERIMENT = define(
    "srbench",
    (*REAL, *FRIEDMAN),
    METHODS,
    SRBenchProtocol(),
    metrics=("r2", "train_r2"),
    measures={"expression_nodes": expression_nodes},
    plan=[
        Task(dataset, method, OFFICIAL, seed)
        for seed, method, dataset in product(SEEDS, METHODS, (*REAL, *FRIEDMAN))
    ],
)


def figures_by_method(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return medians over splits, data set by method: ours, and those published of the same sets.

    They are ``r2``, ``size``, which are nodes of an expression, ``complexity`` and ``seconds``.
    """
    runs = runs.rename(columns={"expression_nodes": "size"})
    ours = runs.groupby(["dataset", "method"])[["r2", *SIZES, "seconds"]].median()
    is_here = PUBLISHED["dataset"].isin(runs["dataset"])
    both = pd.concat([PUBLISHED[is_here].set_index(["dataset", "method"]), ours])
    # Only R² may be below 0, and counts as 0 then, as it does in the published figures.
    return {name: both[name].unstack().astype(float).clip(lower=0.0) for name in ours}


def over(sets: Sequence[str], values: pd.DataFrame, how: str = "mean") -> pd.Series:
    """Return each method's mean or median over those sets that we have; NaN if it lacks one."""
    return getattr(values.loc[named(sets, values.index)], how)(skipna=False)


def written(values: pd.Series, decimals: int) -> pd.Series:
    """Return numbers as text."""
    return values.map(partial(shown, spec=f",.{decimals}f"))


def means_table(
    figures: Mapping[str, pd.DataFrame], ranks: pd.DataFrame, ours: str
) -> str:
    """Return what methods reach on real sets and on Friedman's, by their mean R²."""
    r2 = figures["r2"]
    gains = 100.0 * r2.loc[named(REAL, r2.index)].rsub(r2[ours], axis=0)
    columns = {
        "method": r2.columns.to_series(),
        "R²": written(over(REAL, r2), 3),
        "copies once": written(over([s for s in REAL if s not in COPIES], r2), 3),
        f"{ours} minus it": gains.drop(columns=ours).apply(paired),
        "size": written(over(REAL, figures["size"]), 0),
        "median size": written(over(REAL, figures["size"], "median"), 0),
        "complexity": written(over(REAL, figures["complexity"]), 0),
        "median complexity": written(over(REAL, figures["complexity"], "median"), 0),
        "median seconds": written(over(REAL, figures["seconds"], "median"), 1),
        "Friedman: R²": written(over(FRIEDMAN, r2), 3),
        "Friedman: size": written(over(FRIEDMAN, figures["size"]), 0),
        "rank by R²": written(ranks["r2"], 1),
        "rank by size": written(ranks["size"], 1),
    }
    rows = pd.DataFrame(columns).loc[over(REAL, r2).sort_values(ascending=False).index]
    return table(rows.to_dict("records"))


def sets_table(figures: Mapping[str, pd.DataFrame], ours: Sequence[str]) -> str:
    """Return R² on each data set: of our methods, with their sizes, and of published ones."""
    facts = PUBLISHED.groupby("dataset")[["rows", "columns"]].first()
    rows = []
    for dataset in named((*REAL, *FRIEDMAN), figures["r2"].index):
        r2, size, complexity, _ = (values.loc[dataset] for values in figures.values())
        others = r2.drop(ours)
        rows.append(
            {
                "data set": dataset,
                **facts.loc[dataset].map("{:,}".format),
                **written(r2[ours], 3),
                **written(size[ours], 0).add_suffix(": size"),
                **written(complexity[ours], 0).add_suffix(": complexity"),
                **written(others[list(BESIDE)], 3),
                "best published": f"{others.max():.3f} {others.idxmax()}",
            }
        )
    return table(rows)


def mean_ranks(figures: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the mean ranks of methods by R² and by size, and the methods that each is behind.

    These rank no worse by both, and better by one.
    """
    r2 = figures["r2"].rank(axis=1, ascending=False).mean()
    ranks = pd.DataFrame({"r2": r2, "size": figures["size"].rank(axis=1).mean()})
    behind = [
        ", ".join(ranks.index[(ranks <= own).all(axis=1) & (ranks < own).any(axis=1)])
        for _, own in ranks.iterrows()
    ]
    return ranks.assign(behind=behind)


def report(results: Results) -> dict[str, Any]:
    """Return the tables."""
    figures = figures_by_method(results.runs)
    ours = named(METHODS, figures["r2"])
    ranks = mean_ranks(figures)
    front = ranks[ranks["behind"] == ""]
    places = [
        f"{method}, with mean ranks of {own['r2']:.1f} and {own['size']:.1f}, is "
        + (f"behind {own['behind']}" if own["behind"] else "one of them")
        for method, own in ranks.loc[ours].iterrows()
    ]
    n_splits = results.runs.groupby(["dataset", "method"]).size()
    return {
        "n_sets": len(figures["r2"]),
        "n_splits": " to ".join(map(str, sorted({n_splits.min(), n_splits.max()}))),
        "means": means_table(figures, ranks, ours[0]),
        "front": list(front.index),
        "places": "; ".join(places),
        "cells": sets_table(figures, ours),
    }


STUDY = Study(EXPERIMENT, report)

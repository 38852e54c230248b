"""The study of DTSemNet: its protocol, and its published figures beside ours.

DTSemNet trains complete oblique trees of a given depth by gradients. Its figures, and those that it
gives of other methods, stand in ``results`` of the authors' repository CPS-research-group/dtsemnet,
commit 6d94958: accuracies in ``ranking.csv``, depths and standard deviations in ``ecai_reported``,
the depth for letter in ``src/sup_configs_dtsemnet2.py``. Where several depths have the accuracy of
the ranking, the least is taken.
The paper: Panda, Genest, Easwaran and Suganthan (2024), ECAI.
"""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from evotree.experiments.datasets import LoadedData
from evotree.experiments.protocols import OFFICIAL, Parts, Task, take_rows
from experiments.agreement import load_published
from experiments.methods.classifiers import CART, EVOTREE, make_systems
from experiments.study import Results, Study, StudyProtocol, define
from experiments.tables import groups_of, mean_and_std, named, shown, table

METHODS = (EVOTREE, "TAO", CART)
SYSTEMS = make_systems()
SYSTEMS[EVOTREE].set_params(leaves="constant")
DTSEMNET = "DTSemNet"
PUBLISHED = (DTSEMNET, "DGT", "TAO", "CART")
HALVES = {
    **dict.fromkeys(
        ("sonar", "climate-crashes", "balance-scale", "blood-transfusion", "car"), 10
    ),
    **dict.fromkeys(("optdigits", "avila", "dry-bean"), 5),
}
"""The data sets that are drawn again for each fit: half of the rows train, a quarter tests."""
FIFTHS = {"segment": 3}  # those of which one draw of a fifth of the rows tests
OFFICIALS = {"satimage": 3, "pendigits": 3, "letter": 1}  # those with official parts
FITS = {**HALVES, **OFFICIALS, **FIFTHS}
"""How many fits each method has on each data set, with seeds from 0."""
DRAW_SEED = 1


class DTSemNetProtocol(StudyProtocol):
    """The draws and the parts of the paper's programs, with their seeds."""

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set; of optdigits the official training part, which alone is theirs."""
        data = super().load(dataset, data_home)
        if dataset != "optdigits":
            return data
        return replace(
            data, X=data.X[: data.n_train], y=data.y[: data.n_train], n_train=None
        )

    def take_parts(
        self, task: Task, data_home: Path | None, stratified: bool = True
    ) -> Parts:
        """Return the rows of a fit."""
        if task.dataset in OFFICIALS:
            return super().take_parts(task, data_home, stratified)
        data = self.load(task.dataset, data_home)
        rows = np.arange(len(data.y))
        if task.dataset in FIFTHS:
            train, test = train_test_split(rows, test_size=0.2, random_state=DRAW_SEED)
            return take_rows(data.X, data.y, train, test)
        halves = {"test_size": 0.5, "random_state": task.seed}
        train, rest = train_test_split(rows, stratify=data.y, **halves)
        test, _ = train_test_split(rest, stratify=data.y[rest], **halves)
        return take_rows(data.X, data.y, train, test)


EXPERIMENT = define(
    "dtsemnet",
    FITS,
    {name: SYSTEMS[name] for name in METHODS},
    DTSemNetProtocol(),
    # Seed by seed: an experiment that is stopped is balanced.
    plan=[
        Task(dataset, method, OFFICIAL, seed)
        for seed, dataset, method in product(range(max(FITS.values())), FITS, METHODS)
        if seed < FITS[dataset]
    ],
)


def published_table() -> pd.DataFrame:
    """Return the published accuracies in percent, and ``leaves``: those of complete trees."""
    figures = load_published("dtsemnet").pivot(
        index="dataset", columns=["metric", "system"], values="mean"
    )
    percent = 100.0 * figures["accuracy"][list(PUBLISHED)]
    return percent.assign(leaves=2.0 ** figures["depth"][DTSEMNET])


def summary_row(
    runs: pd.DataFrame, method: str, theirs: pd.DataFrame
) -> dict[str, str]:
    """Return how a method of ours stands to DTSemNet."""
    means = (
        runs[runs["method"] == method].groupby("dataset")[["accuracy", "leaves"]].mean()
    )
    theirs = theirs.loc[means.index]
    # The published accuracies are decimal: an equal one is not less by its last bits.
    gain = (100.0 * means["accuracy"] - theirs[DTSEMNET]).round(9)
    row = {
        "method": method,
        "at or above": f"{int((gain >= 0.0).sum())} of {len(gain)}",
    }
    row["mean difference"] = f"{gain.mean():+.2f}"
    row["leaves, ratio"] = (
        f"{np.exp(np.log(means['leaves'] / theirs['leaves']).mean()):.2f}"
    )
    return row


def report(results: Results) -> dict[str, Any]:
    """Return the tables."""
    runs = results.runs
    published = published_table()
    groups = groups_of(runs, FITS, METHODS)
    rows = []
    for dataset in named(FITS, runs["dataset"]):
        theirs = published.loc[dataset]
        row = {"data set": dataset}
        row |= {f"{name}, published": f"{theirs[name]:.1f}" for name in PUBLISHED}
        row["leaves"] = f"{theirs['leaves']:,.0f}"
        fits = [groups.get((dataset, method), runs[:0]) for method in METHODS]
        for method, some in zip(METHODS, fits, strict=True):
            has_run = len(some) > 0
            row[f"{method}, ours"] = (
                mean_and_std(100.0 * some["accuracy"], 1) if has_run else ""
            )
            row[f"{method}, leaves"] = shown(some["leaves"].mean(), ",.1f", "")
        rows.append(row | {"fits": " / ".join(str(len(some)) for some in fits)})
    methods = named(METHODS, runs["method"])
    summary = table(summary_row(runs, method, published) for method in methods)
    return {"summary": summary, "figures": table(rows)}


STUDY = Study(EXPERIMENT, report)

"""Our figures beside the published ones: which agree, and how many.

The published figures of a study are a CSV file in the folder ``data``, with the columns ``table``,
``dataset``, ``system``, ``metric``, ``mean`` and ``std``. A study's ``measured`` returns ours under
the same names: ``table``, ``dataset``, ``system``, ``metric`` and ``ours``.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from evotree.experiments.store import read_rows
from experiments import STUDIES, load_study
from experiments.study import TEXTS, Text
from experiments.tables import table

DATA = Path(__file__).parent / "data"
KEY = ["table", "dataset", "system", "metric"]
AS_PUBLISHED, BETTER, WORSE = "as published", "better", "worse"
OTHER_PROGRAM, NO_DATA, NOT_RUN = "another program's", "no such data at hand", "not run"
SHARES = ("accuracy", "test_error", "train_error")  # metrics that are shares of rows
TOLERATED_STDS = 2.0
TOLERATED_SHARE = 0.01
TOLERATED_RANK = 0.5
TOLERATED_SIZE = 0.1  # sizes may differ by so much of the published one


def load_published(study: str) -> pd.DataFrame:
    """Return the published figures of a study; ``std`` is NaN where none is published."""
    return pd.read_csv(DATA / f"{study}.csv", dtype={"table": str})


def name_as_published(runs: pd.DataFrame, tables: Mapping[str, str]) -> pd.DataFrame:
    """Return means of some metrics as published figures are named, given where each stands."""
    means = runs.groupby(["dataset", "method"])[list(tables)].mean()
    long = means.rename_axis(index=["dataset", "system"]).reset_index()
    long = long.melt(["dataset", "system"], var_name="metric", value_name="ours").dropna()
    return long.assign(table=long["metric"].map(tables))[[*KEY, "ours"]]


def judge(metric: str, published: float, std: float, ours: float) -> str:
    """Tell whether a figure agrees with the published one, is better or worse.

    It may differ by two standard deviations, and at least by a point of a share, half a rank, or a
    tenth of a size. Of accuracies the higher is better, of all else the lower.
    """
    if metric in SHARES:
        tolerance = TOLERATED_SHARE
    else:
        tolerance = TOLERATED_RANK if metric.startswith("rank") else TOLERATED_SIZE * published
    tolerance = max(tolerance, 0.0 if np.isnan(std) else TOLERATED_STDS * std)
    gain = ours - published if metric == "accuracy" else published - ours
    # The published figures are decimal: what differs by just the tolerance agrees.
    if abs(gain) <= tolerance + 1e-9:
        return AS_PUBLISHED
    return BETTER if gain > 0.0 else WORSE


def agreement(published: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Return published figures with ours, their difference, and the verdict of `judge`, if any."""
    both = published.merge(ours, "left", KEY, validate="one_to_one")
    both["difference"] = both["ours"] - both["mean"]
    verdicts = []
    for row in both.itertuples():
        if not np.isnan(row.ours):
            verdicts.append(judge(row.metric, row.mean, row.std, row.ours))
        elif row.system not in set(ours["system"]):
            verdicts.append(OTHER_PROGRAM)
        else:
            verdicts.append(NOT_RUN if row.dataset in set(ours["dataset"]) else NO_DATA)
    return both.assign(verdict=verdicts)


def all_agreements(out: Path) -> pd.DataFrame:
    """Return the agreements of all studies that have rows in a folder, with a column ``study``."""
    parts = []
    for study in map(load_study, STUDIES):
        if study.measured is not None and study.rows_file(out).exists():
            ours = study.measured(read_rows(study.rows_file(out)))
            parts.append(agreement(load_published(study.name), ours).assign(study=study.name))
    return pd.concat(parts, ignore_index=True)


def write_agreement(out: Path) -> Path:
    """Write ``published.md`` and ``published.csv`` from the rows of all studies in a folder."""
    figures = all_agreements(out)
    columns = ["study", *KEY, "mean", "std", "ours", "difference", "verdict"]
    figures[columns].to_csv(out / "published.csv", index=False, float_format="%.6g")
    order = [AS_PUBLISHED, BETTER, WORSE, OTHER_PROGRAM, NO_DATA, NOT_RUN]
    counts = pd.crosstab(figures["study"], figures["verdict"]).reindex(columns=order, fill_value=0)
    total = counts.sum()
    worse = []
    for row in figures[figures["verdict"] == WORSE].itertuples():
        scale = 100.0 if row.metric in SHARES else 1.0
        names = {"study": row.study, "table": row.table, "data set": row.dataset}
        std = "" if np.isnan(row.std) else f" ± {scale * row.std:.2f}"
        worse.append(names | {"system": row.system, "figure": row.metric.replace("_", " ")})
        worse[-1]["published"] = f"{scale * row.mean:,.2f}{std}"
        worse[-1]["ours"] = f"{scale * row.ours:,.2f}"
        worse[-1]["difference"] = f"{scale * row.difference:+,.2f}"
    counts = counts.assign(published=counts.sum(axis=1)).astype(str).reset_index()
    told = {
        **{"n": total[[AS_PUBLISHED, BETTER, WORSE]].sum(), "total": total},
        **{"counts": table(counts.to_dict("records")), "worse": table(worse, 5)},
    }
    text = (TEXTS / "published.md").read_text(encoding="utf-8")
    report = out / "published.md"
    report.write_text(Text().vformat(text, (), told), encoding="utf-8")
    return report

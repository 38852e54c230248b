"""Our figures beside the published ones: which agree, and how many.

The published figures of a study are a CSV file in the folder ``published``, with the columns
``table``, ``dataset``, ``system``, ``metric``, ``mean`` and ``std``. A study's ``compare`` returns
ours under the same names: ``table``, ``dataset``, ``system``, ``metric`` and ``ours``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from evotree.experiments.markdown import markdown_table
from evotree.experiments.rows import read_rows
from evotree.experiments.studies import STUDIES, load_study

KEY = ["table", "dataset", "system", "metric"]
AS_PUBLISHED, BETTER, WORSE = "as published", "better", "worse"
OTHER_PROGRAM, NO_DATA, NOT_RUN = "another program's", "no such data at hand", "not run"
SHARES = ("accuracy", "test_error", "train_error")
"""Metrics that are shares of rows."""

TOLERATED_STDS = 2.0
TOLERATED_SHARE = 0.01
TOLERATED_RANK = 0.5
TOLERATED_SIZE = 0.1
"""Sizes may differ by so much of the published one."""


def load_published(study: str) -> pd.DataFrame:
    """Return the published figures of a study.

    Parameters
    ----------
    study : str
        Name of the study.

    Returns
    -------
    DataFrame
        ``table`` (str), ``dataset``, ``system``, ``metric``, ``mean`` and ``std``, which is NaN
        where none is published.
    """
    source = files("evotree.experiments.studies") / "published" / f"{study}.csv"
    with source.open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype={"table": str})


def name_as_published(means: pd.DataFrame, tables: Mapping[str, str]) -> pd.DataFrame:
    """Return means of data sets and systems under the names that published figures have.

    Parameters
    ----------
    means : DataFrame
        Indexed by data set and method; one column a metric.
    tables : mapping of str to str
        The table of the paper that each metric stands in; other columns are left out.

    Returns
    -------
    DataFrame
        ``table``, ``dataset``, ``system``, ``metric`` and ``ours``, without missing values.
    """
    long = means[list(tables)].rename_axis(index=["dataset", "system"]).reset_index()
    long = long.melt(["dataset", "system"], var_name="metric", value_name="ours").dropna()
    return long.assign(table=long["metric"].map(tables))[[*KEY, "ours"]]


def tolerance(metric: str, published: float, std: float) -> float:
    """Return by how much a figure may differ from the published one and still agree with it.

    Parameters
    ----------
    metric : str
        What the figure is.
    published, std : float
        The published mean and standard deviation; NaN where there is none.

    Returns
    -------
    float
        Two standard deviations, and at least a point of a share, half a rank, a tenth of a size.
    """
    if metric in SHARES:
        least = TOLERATED_SHARE
    else:
        least = TOLERATED_RANK if metric.startswith("rank") else TOLERATED_SIZE * published
    # The published figures are decimal: what differs by just the tolerance agrees.
    return max(least, 0.0 if np.isnan(std) else TOLERATED_STDS * std) + 1e-9


def judge(metric: str, published: float, std: float, ours: float) -> str:
    """Tell whether a figure agrees with the published one, is better or worse.

    Parameters
    ----------
    metric : str
        What the figure is; of accuracies the higher is better, of all else the lower.
    published, std : float
        The published mean and standard deviation; NaN where there is none.
    ours : float
        Our mean.

    Returns
    -------
    str
        `AS_PUBLISHED`, `BETTER` or `WORSE`.
    """
    gain = ours - published if metric == "accuracy" else published - ours
    if abs(gain) <= tolerance(metric, published, std):
        return AS_PUBLISHED
    return BETTER if gain > 0.0 else WORSE


def agreement(published: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Put our figures beside the published ones.

    Parameters
    ----------
    published : DataFrame
        From `load_published`.
    ours : DataFrame
        What a study's ``compare`` returned.

    Returns
    -------
    DataFrame
        The published figures with ``ours``, ``difference`` and ``verdict``: that of `judge`, or why
        there is none of ours.
    """
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
    found = []
    for name in STUDIES:
        study = load_study(name)
        path = study.rows_file(out)
        if study.compare is not None and path.exists():
            ours = study.compare(read_rows(path))
            found.append(agreement(load_published(name), ours).assign(study=name))
    return pd.concat(found, ignore_index=True)


def summary(figures: pd.DataFrame) -> str:
    """Return in one sentence how many figures agree."""
    counts = figures["verdict"].value_counts()
    n_agree, n_better, n_worse = (int(counts.get(v, 0)) for v in (AS_PUBLISHED, BETTER, WORSE))
    n = n_agree + n_better + n_worse
    if n == 0:
        return "None of the published figures stands beside one of ours yet."
    return (
        f"Of {n:,} published figures that stand beside ours, **{n_agree + n_better:,} agree or are "
        f"bettered ({100 * (n_agree + n_better) / n:.0f} %)**: {n_agree:,} as published, "
        f"{n_better:,} better, {n_worse:,} worse."
    )


def write_agreement(out: Path) -> Path:
    """Write ``published.md`` and ``published.csv`` from the rows of all studies in a folder.

    Parameters
    ----------
    out : Path
        Folder of the rows of at least one study of a paper.

    Returns
    -------
    Path
        The report.
    """
    figures = all_agreements(out)
    columns = ["study", *KEY, "mean", "std", "ours", "difference", "verdict"]
    figures[columns].to_csv(out / "published.csv", index=False, float_format="%.6g")
    order = [AS_PUBLISHED, BETTER, WORSE, OTHER_PROGRAM, NO_DATA, NOT_RUN]
    counts = pd.crosstab(figures["study"], figures["verdict"]).reindex(columns=order, fill_value=0)
    table = counts.assign(published=counts.sum(axis=1)).astype(str).reset_index()
    worse = figures[figures["verdict"] == WORSE]
    report = out / "published.md"
    report.write_text(
        f"""# Published figures and ours

Written by `evotree experiment study NAME --data-home DIR --out {out.as_posix()}`, for the studies
of papers. {summary(figures)}

A figure agrees if it differs by at most two published standard deviations, or by a point of
accuracy or error, half a rank, or a tenth of a size, whichever is more; beyond that it is better
(more accurate, smaller) or worse. All figures stand in `published.csv`, with the differences, and
in the studies' own reports.

{markdown_table(table)}

*{OTHER_PROGRAM.capitalize()}*: figures of systems that are none of ours, as cover trees.
*Not run*: the studies' own reports say why.

## Worse

{_figures_table(worse) if len(worse) else "None."}
""",
        encoding="utf-8",
    )
    return report


def _figures_table(figures: pd.DataFrame) -> str:
    rows = []
    for row in figures.itertuples():
        scale, decimals = (100.0, 2) if row.metric in SHARES else (1.0, 2)
        std = "" if np.isnan(row.std) else f" ± {scale * row.std:.{decimals}f}"
        rows.append(
            {
                "study": row.study,
                "table": row.table,
                "data set": row.dataset,
                "system": row.system,
                "figure": row.metric.replace("_", " "),
                "published": f"{scale * row.mean:,.{decimals}f}{std}",
                "ours": f"{scale * row.ours:,.{decimals}f}",
                "difference": f"{scale * row.difference:+,.{decimals}f}",
            }
        )
    return markdown_table(pd.DataFrame(rows), n_left=5)

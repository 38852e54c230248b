"""Our figures beside the published ones: which agree, and how many.

The published figures of a study are a CSV file in the folder ``data``, with the columns ``table``,
``dataset``, ``system``, ``metric``, ``mean`` and ``std``, and perhaps ``recalled``: those that were
recalled, not read, do not count.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments import load_study
from experiments.problems import PROBLEMS
from experiments.study import TEXTS, Study, Text, read_rows, tables_of
from experiments.tables import table

DATA = Path(__file__).parent / "data"
KEY = ["table", "dataset", "system", "metric"]
COLUMNS = ["study", *KEY, "mean", "std", "ours", "difference", "verdict"]
AS_PUBLISHED, BETTER, WORSE = "as published", "better", "worse"
OTHER_PROGRAM, NO_DATA, NOT_RUN = "another program's", "no such data at hand", "not run"
OTHER_DATA = "of other data"
RECALLED = "recalled, not read"
VERDICTS = (
    AS_PUBLISHED,
    BETTER,
    WORSE,
    OTHER_DATA,
    OTHER_PROGRAM,
    NO_DATA,
    NOT_RUN,
    RECALLED,
)
OWN = {"gea_odt": "GEA-ODT", "wodt": "WODT", "cedt": "CEDT", "oc1": "OC1", "tao": "TAO"}
"""The studies of papers, which the page ``reproductions.md`` has, and the papers' own methods."""
WITH_OTHER_DATA = {"gea_odt": tuple(PROBLEMS), "wodt": ("usps", "connect4")}
"""Data sets of a study that are not the paper's: problems whose angles are not published, and those
on which the tree of APDT, which draws nothing, has a third more leaves than published."""
SHARES = ("accuracy", "test_error", "train_error")  # metrics that are shares of rows
TOLERATED_STDS = 2.0
TOLERATED_SHARE = 0.01
TOLERATED_RANK = 0.5
TOLERATED_SIZE = 0.1  # sizes may differ by so much of the published one


@dataclass(frozen=True)
class Paper(Study):
    """A study of a paper: ``measured(runs)`` returns our figures, named as the published ones.

    Its columns are ``table``, ``dataset``, ``system``, ``metric`` and ``ours``. The page is that of
    all papers.
    """

    measured: Callable[[pd.DataFrame], pd.DataFrame] = field(kw_only=True)

    def page(self, out: Path) -> Path:
        """Return the page that it writes into a folder."""
        return out / "reproductions.md"

    def write(self, out: Path) -> None:
        """Write the page, and all figures as CSV, from the rows in a folder."""
        write_reproductions(out)


def load_published(study: str) -> pd.DataFrame:
    """Return the published figures of a study; ``std`` is NaN where none is published."""
    published = pd.read_csv(DATA / f"{study}.csv", dtype={"table": str})
    return published if "recalled" in published else published.assign(recalled=False)


def name_as_published(runs: pd.DataFrame, tables: Mapping[str, str]) -> pd.DataFrame:
    """Return means of some metrics as published figures are named, given where each stands."""
    means = runs.groupby(["dataset", "method"])[list(tables)].mean()
    long = means.rename_axis(index=["dataset", "system"]).reset_index()
    long = long.melt(
        ["dataset", "system"], var_name="metric", value_name="ours"
    ).dropna()
    return long.assign(table=long["metric"].map(tables))[[*KEY, "ours"]]


def judge(metric: str, published: float, std: float, ours: float) -> str:
    """Tell whether a figure agrees with the published one, is better or worse.

    It may differ by two standard deviations, and at least by a point of a share, half a rank, or a
    tenth of a size. Of accuracies the higher is better, of all else the lower.
    """
    tolerance = TOLERATED_SIZE * published
    if metric in SHARES:
        tolerance = TOLERATED_SHARE
    elif metric.startswith("rank"):
        tolerance = TOLERATED_RANK
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
    families = set(ours["system"].str.split(" ").str[0])
    verdicts = []
    for row in both.itertuples():
        if row.recalled:
            verdicts.append(RECALLED)
        elif not np.isnan(row.ours):
            verdicts.append(judge(row.metric, row.mean, row.std, row.ours))
        elif row.system.split(" ")[0] not in families:
            verdicts.append(OTHER_PROGRAM)
        else:
            verdicts.append(NOT_RUN if row.dataset in set(ours["dataset"]) else NO_DATA)
    return both.assign(verdict=verdicts)


def all_agreements(out: Path) -> pd.DataFrame:
    """Return the agreements of all studies of papers, with a column ``study``."""
    parts = []
    for study in map(load_study, sorted(OWN)):
        assert isinstance(study, Paper)
        ours = study.measured(read_rows(study.rows_file(out)))
        figures = agreement(load_published(study.name), ours)
        is_other = figures["dataset"].isin(WITH_OTHER_DATA.get(study.name, ()))
        figures.loc[is_other & figures["ours"].notna(), "verdict"] = OTHER_DATA
        parts.append(figures.assign(study=study.name))
    return pd.concat(parts, ignore_index=True)


def counts_table(figures: pd.DataFrame) -> str:
    """Return how many figures agree, of a paper's own method and of those beside it."""
    rows = []
    for study, own in OWN.items():
        of_study = figures[figures["study"] == study]
        is_own = of_study["system"].str.split(" ").str[0] == own
        for title, some in (
            (own, of_study[is_own]),
            ("those beside it", of_study[~is_own]),
        ):
            counts = some["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
            cells = {verdict: f"{n}" for verdict, n in counts.items()}
            rows.append({"study": study, "method": title, **cells})
    return table(rows, 2)


def worse_table(figures: pd.DataFrame) -> str:
    """Return the figures that are worse than the published ones."""
    rows = []
    for row in figures[figures["verdict"] == WORSE].itertuples():
        scale = 100.0 if row.metric in SHARES else 1.0
        std = "" if np.isnan(row.std) else f" ± {scale * row.std:.2f}"
        rows.append(
            {
                "study": row.study,
                "data set": row.dataset,
                "system": row.system,
                "figure": row.metric.replace("_", " "),
                "published": f"{scale * row.mean:,.2f}{std}",
                "ours": f"{scale * row.ours:,.2f}",
            }
        )
    return table(rows, 4)


def write_reproductions(out: Path) -> None:
    """Write the page ``reproductions.md``, and all figures as CSV, from the rows in a folder."""
    figures = all_agreements(out)
    figures[COLUMNS].to_csv(out / "published.csv", index=False, float_format="%.6g")
    counts = figures["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
    papers: dict[str, Any] = {name: tables_of(load_study(name), out) for name in OWN}
    papers["n"] = counts[[AS_PUBLISHED, BETTER, WORSE]].sum()
    papers |= {"total": counts, "counts": counts_table(figures)}
    papers["worse"] = worse_table(figures)
    text = (TEXTS / "reproductions.md").read_text(encoding="utf-8")
    page = Text().vformat(text, (), papers)
    (out / "reproductions.md").write_text(page, encoding="utf-8")

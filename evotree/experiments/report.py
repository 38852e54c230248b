"""The report of an experiment: tables in three languages, tests of ranks, and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from evotree.experiments.comparison import friedman, mean_table
from evotree.experiments.runner import DONE
from evotree.experiments.store import read_curves, read_definition, read_runs

_SIZES = (("leaves", 1), ("nonzero_weights", 0), ("seconds", 2), ("peak_memory_mb", 0))
_LEAST_FOR_RANKS = 3  # methods, and data sets, below which tests of ranks say nothing


PICTURE_FORMATS = ("png", "pdf")


def write_report(
    folder: Path, reference: str | None = None, picture_format: str = "png"
) -> list[Path]:
    """Write what the results of an experiment say: ``report.md``, tables and pictures.

    Parameters
    ----------
    folder : Path
        Folder of the results; written to.
    reference : str, optional
        The method that the others are compared with.
    picture_format : {"png", "pdf"}, default="png"
        Format of the pictures; Markdown shows the first kind and links to the other.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    FileNotFoundError
        If there are no results.
    ValueError
        If no fit is done yet, or the format is neither.
    """
    if picture_format not in PICTURE_FORMATS:
        allowed = ", ".join(map(repr, PICTURE_FORMATS))
        raise ValueError(f"picture_format={picture_format!r}: allowed are {allowed}.")
    everything, definition = read_runs(folder), read_definition(folder)
    runs = everything[everything["status"] == DONE]
    if runs.empty:
        raise ValueError(f"{folder} holds no fit that is done.")
    written, sections = [], []
    for metric in definition["metrics"]:
        table = mean_table(runs, metric, reference=reference)
        for ending, text in (("csv", table.to_csv()), ("tex", table.to_latex(decimals=4))):
            path = folder / f"{metric}.{ending}"
            path.write_text(text, encoding="utf-8")
            written.append(path)
        sections += [f"## {metric}", table.to_markdown(decimals=4), *_rank_section(runs, metric)]
    for size, decimals in _SIZES:
        if runs[size].notna().any():
            some = runs[runs[size].notna()]
            table = mean_table(some, size, larger_is_better=False)
            sections += [f"## {size}", table.to_markdown(decimals=decimals)]
    metric = next(iter(definition["metrics"]))
    shown = "!" if picture_format == "png" else ""
    for path in _draw(folder, runs, metric, picture_format):
        written.append(path)
        sections.append(f"{shown}[{path.stem.replace('_', ' ')}]({path.name})")
    statuses = everything["status"].value_counts()
    counts = ", ".join(f"{count:,} {status}" for status, count in statuses.items())
    report = folder / "report.md"
    head = [f"# {definition['name']}", f"{len(everything):,} fits: {counts}."]
    report.write_text("\n\n".join([*head, *sections]) + "\n", encoding="utf-8")
    return [report, *written]


def _can_rank(runs: pd.DataFrame) -> bool:
    if find_spec("scikit_posthocs") is None:  # an optional library; the rest does without
        return False
    n_methods = runs["method"].nunique()
    n_complete = (runs.groupby("dataset")["method"].nunique() == n_methods).sum()
    return n_methods >= _LEAST_FOR_RANKS and n_complete >= _LEAST_FOR_RANKS


def _rank_section(runs: pd.DataFrame, metric: str) -> list[str]:
    """Return what Friedman's test says, where there is enough to rank."""
    if not _can_rank(runs):
        return []
    test = friedman(runs, metric)
    lines = [
        f"Friedman's test over {len(test.datasets)} data sets: chi-squared {test.statistic:.2f}, "
        f"p = {test.p_value:.2g}. Pairs that differ at the level 0.05, after Holm:"
    ]
    names = list(test.mean_ranks.sort_values().index)
    pairs = [
        f"{better} before {worse} (p = {test.adjusted.loc[better, worse]:.2g})"
        for i, better in enumerate(names)
        for worse in names[i + 1 :]
        if test.adjusted.loc[better, worse] < 0.05
    ]
    return [" ".join(lines) + " " + ("; ".join(pairs) if pairs else "none") + "."]


def _draw(folder: Path, runs: pd.DataFrame, metric: str, ending: str) -> Iterator[Path]:
    """Draw what there is to see, and yield the files."""
    from evotree import plotting
    from evotree.experiments.pictures import save_picture

    def save(name: str, ax: Any) -> Path:
        return save_picture(ax, folder / f"{name}.{ending}")

    if _can_rank(runs):
        test = friedman(runs, metric)
        yield save("critical_differences", plotting.plot_critical_differences(test))
    if runs["leaves"].notna().any():
        sized = runs[runs["leaves"].notna()]
        yield save(
            "accuracy_against_size", plotting.plot_accuracy_against_size(sized, metric=metric)
        )
    yield save("times", plotting.plot_times(runs))
    curves: dict[str, list[pd.DataFrame]] = {}
    for (_, method, *_), curve in read_curves(folder).items():
        curves.setdefault(method, []).append(curve)
    if curves:
        yield save("learning_curves", plotting.plot_learning_curves(curves))

"""What a study is: an experiment, and a report on its rows.

Its rows are kept as text beside the report, so that a version control holds them and a study goes
on from them; while it runs, they are in a database in the folder of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from evotree.experiments.datasets import LoadedData
from evotree.experiments.execution import run_experiment
from evotree.experiments.experiment import Experiment
from evotree.experiments.problems import PROBLEMS, make_problem
from evotree.experiments.protocols import OFFICIAL, Parts, Protocol, Task, load_cached
from evotree.experiments.rows import fill, read_curve_rows, read_rows, write_rows
from evotree.experiments.runner import DONE, STATUSES
from evotree.experiments.store import KEY, Store


class Results(NamedTuple):
    """What a report is written from.

    Attributes
    ----------
    runs : DataFrame
        Rows of the fits that are done.
    curves : mapping of tuple to DataFrame
        Learning curves, by the values of `evotree.experiments.store.KEY`.
    planned : str
        How many of the planned fits have a row.
    out : Path
        Folder of the report and of its pictures.
    """

    runs: pd.DataFrame
    curves: Mapping[tuple[Any, ...], pd.DataFrame]
    planned: str
    out: Path


@dataclass(frozen=True)
class Study:
    """A study: what is run, and what is written about it.

    Attributes
    ----------
    name : str
        Name of its module, and the beginning of its files' names.
    title : str
        What it does, in one line.
    make_experiment : callable
        ``make_experiment() -> Experiment``.
    write : callable
        ``write(results) -> str``: the report, in Markdown; it may draw pictures into the folder.
    compare : callable, optional
        ``compare(runs) -> DataFrame``: our figures beside the published ones, as
        `evotree.experiments.studies.agreement` describes them.
    draw : callable, optional
        ``draw(data_home, out)`` draws the pictures that need the data, where they are missing.
    """

    name: str
    title: str
    make_experiment: Callable[[], Experiment]
    write: Callable[[Results], str]
    compare: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    draw: Callable[[Path, Path], None] | None = None

    def rows_file(self, out: Path) -> Path:
        """Return the CSV file of the rows in a folder."""
        return out / f"{self.name}_runs.csv"

    def curves_file(self, out: Path) -> Path:
        """Return the CSV file of the learning curves in a folder."""
        return out / f"{self.name}_curves.csv"


@dataclass(frozen=True)
class StudyProtocol(Protocol):
    """How a study takes its rows.

    Parameters
    ----------
    n_folds, official
        As for `Protocol`.
    files : mapping of str to str, optional
        The files of data sets that a paper calls otherwise.
    n_train : int, optional
        Training rows of a synthetic problem, by default as many as in its paper.
    n_test : int, default=10_000
        Its test rows. Both are drawn again for each seed where the fold is `OFFICIAL`.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    n_train: int | None = None
    n_test: int = 10_000

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set under its name in the paper."""
        return load_cached(self.files.get(dataset, dataset), data_home)

    def check(self, dataset: str, data_home: Path | None) -> dict[str, int]:
        """Return the size of a data set; synthetic problems need no file."""
        if dataset in PROBLEMS:
            return {"columns": PROBLEMS[dataset].n_features, "classes": PROBLEMS[dataset].n_classes}
        return super().check(dataset, data_home)

    def source(self, dataset: str, data_home: Path | None) -> str:
        """Return where a data set comes from; synthetic problems are drawn."""
        if dataset in PROBLEMS:
            return f"synthetic: {PROBLEMS[dataset].description}"
        return super().source(dataset, data_home)

    def take_parts(self, task: Task, data_home: Path | None, stratified: bool = True) -> Parts:
        """Return the rows of a fit: a fold or the official split, or a problem drawn again."""
        if task.dataset in PROBLEMS and task.fold == OFFICIAL:
            train = make_problem(task.dataset, self.n_train, random_state=task.seed)
            return Parts(
                *train, *make_problem(task.dataset, self.n_test, random_state=10_000 + task.seed)
            )
        return super().take_parts(task, data_home, stratified)

    def random_state(self, task: Task) -> int:
        """Return the random state with which the rows of the studies were made."""
        return task.seed if task.fold == OFFICIAL else 1000 * task.seed + task.fold


def select_tasks(
    experiment: Experiment, datasets: Sequence[str] | None, methods: Sequence[str] | None
) -> list[Task]:
    """Return the fits of an experiment, all or those of some data sets and methods.

    Raises
    ------
    ValueError
        If the experiment has no such data set or method.
    """
    known = {"datasets": experiment.datasets, "methods": experiment.methods}
    for what, names in (("datasets", datasets), ("methods", methods)):
        if unknown := [name for name in names or () if name not in known[what]]:
            raise ValueError(
                f"{what} names {', '.join(unknown)}: those of the study {experiment.name} are "
                f"{', '.join(known[what])}."
            )
    return [
        task
        for task in experiment.tasks()
        if (datasets is None or task.dataset in datasets)
        and (methods is None or task.method in methods)
    ]


def run_study(
    study: Study,
    data_home: Path | None,
    out: Path,
    *,
    jobs: int = 1,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    max_seconds: float | None = None,
) -> tuple[pd.DataFrame, Path | None]:
    """Do what is missing of a study and write its rows and its report.

    Parameters
    ----------
    study : Study
        The study.
    data_home : Path or None
        Folder of the data sets.
    out : Path
        Folder of the rows and the report; made where it is missing. The database and the log are in
        a folder there that has the study's name.
    jobs : int, default=1
        Number of processes.
    datasets, methods : sequence of str or None, default=None
        Run these alone; None means all.
    max_seconds : float or None, default=None
        No fit is begun after so many seconds.

    Returns
    -------
    runs : DataFrame
        All rows, also of fits that failed; these are done again the next time.
    report : Path or None
        The report; None if no fit is done.

    Raises
    ------
    ValueError
        If the study has no such data set or method.
    """
    experiment = study.make_experiment()
    tasks = select_tasks(experiment, datasets, methods)
    folder = out / study.name
    store = Store(folder, experiment.columns(), experiment.definition())
    fill(store, experiment, study.rows_file(out), study.curves_file(out))
    runs = run_experiment(
        replace(experiment, plan=tasks),
        folder,
        data_home,
        jobs=jobs,
        max_seconds=max_seconds,
        retry=tuple(status for status in STATUSES if status != DONE),
    )
    if not (runs["status"] == DONE).any():
        return runs, None
    write_rows(store, study.rows_file(out), study.curves_file(out))
    if study.draw is not None and data_home is not None:
        study.draw(data_home, out)
    return runs, write_report(study, out)


def write_report(study: Study, out: Path) -> Path:
    """Write the report of a study from the CSV files in a folder; return its path."""
    runs, curves = read_rows(study.rows_file(out)), read_curve_rows(study.curves_file(out))
    experiment = study.make_experiment()
    done = set(runs[list(KEY)].itertuples(index=False, name=None))
    planned = experiment.tasks()
    counted = f"{sum(task in done for task in planned):,} of {len(planned):,} planned"
    report = out / f"{study.name}.md"
    report.write_text(study.write(Results(runs, curves, counted, out)), encoding="utf-8")
    return report

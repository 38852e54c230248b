"""What a study is: an experiment, and a report on its rows.

Its rows are kept as CSV beside the report, so that a version control holds them and a study goes
on from them; while it runs, they are in a store in the folder of its name.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evotree.experiments.datasets import LoadedData
from evotree.experiments.execution import run_experiment
from evotree.experiments.experiment import Experiment
from evotree.experiments.protocols import (
    KEY,
    Parts,
    Protocol,
    Task,
    load_cached,
    take_rows,
)
from evotree.experiments.runner import DONE, STATUSES
from evotree.experiments.store import Store
from experiments import suites
from experiments.methods import chosen, classifiers, regressors, trees
from experiments.probabilities import LEAST
from experiments.problems import PROBLEMS, make_problem
from experiments.rows import fill, read_rows, write_rows
from experiments.suites import OFFICIAL
from experiments.tables import LOSS_TIE, MISSING, TIE

TEXTS = Path(__file__).parent / "texts"
"""The texts of the reports, a file a study; `Text` fills them."""
SHARED: dict[str, Any] = {
    "chosen": chosen,
    "classifiers": classifiers,
    "regressors": regressors,
    "trees": trees,
    "suites": suites,
    "TIE": TIE,
    "LOSS_TIE": LOSS_TIE,
    "MISSING": MISSING,
    "LEAST": LEAST,
}
"""What all texts may name."""
HOUSING_LIMIT = 21.0  # thousands of dollars
DIGITS_ROWS = 1797


class Results(NamedTuple):
    """What a report is written from: rows of fits, and the folder of pictures."""

    runs: pd.DataFrame
    out: Path


@dataclass(frozen=True)
class Study:
    """A study: what is run, and what is written about it.

    Its name is that of its experiment, of its module and of its text, which may name the constants
    of the module and what ``report(results)`` returns; that may draw pictures into the folder, too.
    A study of a paper has ``measured(runs)``: our figures, as `experiments.agreement` describes
    them, which writes its page.
    """

    experiment: Experiment
    report: Callable[[Results], Mapping[str, Any]]
    measured: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    also: Sequence[str] = ()  # further pages, of the same values

    @property
    def name(self) -> str:
        """The name of its experiment."""
        return self.experiment.name

    def rows_file(self, out: Path) -> Path:
        """Return the CSV file of the rows in a folder."""
        return out / f"{self.name}_runs.csv"


class Text(Formatter):
    """Fills ``{NAME}`` in a text; lists are joined by commas, and ``{NAME!n}`` counts items."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """Return the number of items of a list where it is asked for."""
        return (
            len(value)
            if conversion == "n"
            else super().convert_field(value, conversion)
        )

    def format_field(self, value: Any, spec: str) -> str:
        """Return a value as text, each item of a list in the same way."""
        items = value if isinstance(value, tuple | list | Mapping) else [value]
        return ", ".join(format(item, spec) for item in items)


@dataclass(frozen=True)
class StudyProtocol(Protocol):
    """How a study takes its rows: folds, official splits, or synthetic problems.

    The files of some data sets have other names than the papers' ones. A problem is drawn again for
    each seed where the fold is `OFFICIAL`, by default with as many training rows as in its paper.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    n_train: int | None = None
    n_test: int = 10_000

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set under its name in the paper."""
        return load_cached(self.files.get(dataset, dataset), data_home)

    def facts(self, dataset: str, data_home: Path | None) -> dict[str, int | str]:
        """Return source and size of a data set; synthetic problems need no file."""
        if dataset not in PROBLEMS:
            return super().facts(dataset, data_home)
        problem = PROBLEMS[dataset]
        return {
            "source": f"synthetic: {problem.description}",
            "columns": problem.n_features,
            "classes": problem.n_classes,
        }

    def take_parts(
        self, task: Task, data_home: Path | None, stratified: bool = True
    ) -> Parts:
        """Return the rows of a fit: a fold or the official split, or a problem drawn again."""
        if task.fold != OFFICIAL:
            return super().take_parts(task, data_home, stratified)
        if task.dataset in PROBLEMS:
            train = make_problem(task.dataset, self.n_train, task.seed)
            return Parts(
                *train, *make_problem(task.dataset, self.n_test, 10_000 + task.seed)
            )
        data = self.load(task.dataset, data_home)
        n_train = suites.OFFICIAL_TRAIN_ROWS[task.dataset]
        parts = np.split(np.arange(len(data.y)), [n_train])
        return take_rows(data.X, data.y, *parts)

    def random_state(self, task: Task) -> int:
        """Return the random state with which the rows of the studies were made."""
        return task.seed if task.fold == OFFICIAL else 1000 * task.seed + task.fold


@dataclass(frozen=True)
class ClassesProtocol(StudyProtocol):
    """Data sets as the paper of OC1 had them: cancer, housing of two classes, and fewer digits."""

    files: Mapping[str, str] = field(
        default_factory=lambda: {
            "cancer": "breast-w",
            "diabetes": "pima",
            "digits": "optdigits",
        }
    )

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set: cancer has its complete rows, and digits are the last ones."""
        data = super().load(dataset, data_home)
        if dataset == "cancer":
            complete = data.X.notna().all(axis=1).to_numpy()
            return replace(data, X=data.X[complete], y=data.y[complete])
        if dataset == "housing":
            return replace(data, y=np.where(data.y < HOUSING_LIMIT, "below", "above"))
        if dataset != "digits":
            return data
        return replace(data, X=data.X[-DIGITS_ROWS:], y=data.y[-DIGITS_ROWS:])


def define(
    name: str,
    datasets: Iterable[str],
    methods: Mapping[str, Any],
    protocol: Protocol,
    **more: Any,
) -> Experiment:
    """Return the experiment of a study: accuracies, and no curves."""
    usual = {"metrics": ("accuracy", "train_accuracy"), "curve": None}
    return Experiment(name, list(datasets), methods, protocol, **usual | more)


def score(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the accuracy, or R²."""
    return float(model.score(X, y))


def select_tasks(
    experiment: Experiment,
    datasets: Sequence[str] | None,
    methods: Sequence[str] | None,
) -> list[Task]:
    """Return the fits of an experiment, all or those of some data sets and methods."""
    names_of = {"datasets": experiment.datasets, "methods": experiment.methods}
    for what, names in (("datasets", datasets), ("methods", methods)):
        if unknown := [name for name in names or () if name not in names_of[what]]:
            raise ValueError(
                f"{what} names {', '.join(unknown)}: those of the study {experiment.name} are "
                f"{', '.join(names_of[what])}."
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
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Do what is missing of a study, or of some data sets and methods; write the rows.

    The database and the log are in a folder in `out` that has the study's name. The options are
    those of `run_experiment`. Returned are all rows, also of fits that failed, which are done again
    the next time.
    """
    experiment = study.experiment
    tasks = select_tasks(experiment, datasets, methods)
    folder = out / study.name
    store = Store(folder, experiment.columns(), experiment.definition())
    fill(store, experiment, study.rows_file(out))
    failed = tuple(status for status in STATUSES if status != DONE)
    some = replace(experiment, plan=tasks)
    runs = run_experiment(some, folder, data_home, retry=failed, **options)
    if (runs["status"] == DONE).any():
        write_rows(store, study.rows_file(out))
    return runs


def write_report(study: Study, out: Path) -> Path:
    """Write the report of a study from the CSV files in a folder; return its path."""
    for page in study.also:
        write_text(out / f"{page}.md", text_of(study, out, page))
    return write_text(out / f"{study.name}.md", text_of(study, out))


def write_text(path: Path, text: str) -> Path:
    """Write a text, and return its path."""
    path.write_text(text, encoding="utf-8")
    return path


def text_of(study: Study, out: Path, page: str = "") -> str:
    """Return the text of a study, or of another page, filled from the CSV files in a folder."""
    text = (TEXTS / f"{page or study.name}.md").read_text(encoding="utf-8")
    constants = vars(sys.modules[study.report.__module__])
    return Text().vformat(text, (), SHARED | constants | tables_of(study, out))


def tables_of(study: Study, out: Path) -> dict[str, Any]:
    """Return what a study reports on the CSV files in a folder, and how that was ``written``."""
    runs = read_rows(study.rows_file(out))
    done = set(runs[list(KEY)].itertuples(index=False, name=None))
    planned = study.experiment.tasks()
    name = study.name
    n_done = sum(task in done for task in planned)
    of_all = "" if n_done == len(planned) else f" of {len(planned):,} planned"
    written = (
        f"Written by `python -m experiments {name} --data-home DIR --out docs/results`, from\n"
        f"{n_done:,}{of_all} fits in `{name}_runs.csv`"
    )
    return {**study.report(Results(runs, out)), "written": written}

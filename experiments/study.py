"""What a study is: an experiment, and a report on its rows.

Its rows are kept as CSV beside the report, so that a version control holds them and a study goes
on from them; while it runs, they are in a store in the folder of its name.
"""

import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import fetch_openml
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

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
from evotree.experiments.store import Store, check_runs, checksum, read_runs
from evotree.tables.readers import EXACT_NUMBERS
from experiments import suites
from experiments.methods import chosen, classifiers, trees
from experiments.problems import PROBLEMS, make_problem
from experiments.suites import OFFICIAL
from experiments.tables import LOSS_TIE, MISSING, TIE

log = logging.getLogger(__name__)

# Smaller probabilities count as this one in the log loss; trees' are often 0.
LEAST = 1e-3
TEXTS = Path(__file__).parent / "texts"
"""The texts of the reports, a file a study; `Text` fills them."""
SHARED: dict[str, Any] = {
    "chosen": chosen,
    "classifiers": classifiers,
    "trees": trees,
    "suites": suites,
    "TIE": TIE,
    "LOSS_TIE": LOSS_TIE,
    "MISSING": MISSING,
    "LEAST": LEAST,
}
"""What all texts may name."""
PUBLIC: Mapping[str, str | int] = {
    "iris": "sklearn:iris",
    "wine": "sklearn:wine",
    "wdbc": "sklearn:breast_cancer",
    "balance-scale": 11,
    "breast-w": 15,
    "credit-g": 31,
    "glass": 41,
    "heart": 53,
    "hepatitis": 55,
    "ionosphere": 59,
    "mnist": 554,
    "optdigits": 28,
    "page-blocks": 30,
    "pendigits": 32,
    "pima": 37,
    "segment": 36,
    "sonar": 40,
    "vehicle": 54,
}
"""Data sets that need no folder: where they are, scikit-learn or a number of OpenML."""
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
    """

    experiment: Experiment
    report: Callable[[Results], Mapping[str, Any]]
    also: Sequence[str] = ()  # further pages, of the same values

    @property
    def name(self) -> str:
        """The name of its experiment."""
        return self.experiment.name

    def rows_file(self, out: Path) -> Path:
        """Return the CSV file of the rows in a folder."""
        return out / f"{self.name}_runs.csv"

    def page(self, out: Path) -> Path:
        """Return the page that it writes into a folder."""
        return out / f"{self.name}.md"

    def write(self, out: Path) -> None:
        """Write the page, and further ones, from the CSV files in a folder."""
        for page in (*self.also, self.name):
            text = text_of(self, out, page)
            (out / f"{page}.md").write_text(text, encoding="utf-8")

    def run(
        self,
        out: str | Path,
        data_home: str | Path | None = None,
        datasets: Sequence[str] | None = None,
        methods: Sequence[str] | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """Do what is missing of the study, or of some data sets and methods; write the rows.

        A run of the whole study writes the page, too. The database and the log are in a folder in
        `out` that has the study's name. Without a folder of data sets, some are taken from
        elsewhere (`load_public`). The options are those of `run_experiment`. Returned are all rows,
        also of fits that failed, which are done again the next time.
        """
        experiment, out = self.experiment, Path(out)
        folder_of_data = None if data_home is None else Path(data_home)
        tasks = select_tasks(experiment, datasets, methods)
        folder = out / self.name
        store = Store(folder, experiment.columns(), experiment.definition())
        if self.rows_file(out).exists():
            fill(store, experiment, self.rows_file(out))
        failed = tuple(status for status in STATUSES if status != DONE)
        some = replace(experiment, plan=tasks)
        runs = run_experiment(some, folder, folder_of_data, retry=failed, **options)
        if (runs["status"] == DONE).any():
            write_rows(store, self.rows_file(out))
            if datasets is None and methods is None:
                self.write(out)
        return runs


@lru_cache(maxsize=2)
def load_public(name: str) -> LoadedData:
    """Return a data set of `PUBLIC`; its rows may be in another order than those of the files."""
    source = PUBLIC[name]
    if isinstance(source, str):
        return load_cached(source, None)
    X, y = fetch_openml(data_id=source, return_X_y=True, as_frame=True)
    return LoadedData(X, y.astype(str).to_numpy(), f"OpenML, data set {source}")


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
    each seed where the fold is `OFFICIAL`, by default with as many training rows as in its paper,
    and so are the parts of data sets that have a ``train_size`` in `drawn`, perhaps a `test_size`.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    drawn: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    n_train: int | None = None
    n_test: int = 10_000

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set under its name in the paper."""
        name = self.files.get(dataset, dataset)
        if data_home is None and name in PUBLIC:
            return load_public(name)
        return load_cached(name, data_home)

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
        rows = np.arange(len(data.y))
        if sizes := self.drawn.get(task.dataset):
            draw = {**sizes, "stratify": data.y, "random_state": task.seed}
            return take_rows(data.X, data.y, *train_test_split(rows, **draw))
        n_train = suites.OFFICIAL_TRAIN_ROWS[self.files.get(task.dataset, task.dataset)]
        return take_rows(data.X, data.y, *np.split(rows, [n_train]))

    def random_state(self, task: Task) -> int:
        """Return the random state with which the rows of the studies were made."""
        return task.seed if task.fold == OFFICIAL else 1000 * task.seed + task.fold


class RenumberedProtocol(StudyProtocol):
    """Rows as any study takes them, and random states one higher."""

    def random_state(self, task: Task) -> int:
        """Return the random state with which the rows of these studies were made."""
        return 1000 * task.seed + task.fold + 1


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


# ---- scores of probabilities, NaN for models without ---------------------------------------------


def probabilities(model: Any, X: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the probabilities of some classes, (n_rows, n_classes); NaN if there are none."""
    if not hasattr(model, "predict_proba"):
        return np.full((len(X), len(classes)), np.nan)
    predicted = np.asarray(model.predict_proba(X))
    columns = dict(zip(np.asarray(model.classes_).tolist(), predicted.T, strict=True))
    absent = np.zeros(len(predicted))
    return np.column_stack([columns.get(label, absent) for label in classes.tolist()])


def auc(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the area under the ROC curve: each class against the others, weighted by its rows."""
    classes, counts = np.unique(y, return_counts=True)
    predicted = probabilities(model, X, classes)
    if len(classes) < 2 or np.isnan(predicted).any():
        return float("nan")
    areas = [
        roc_auc_score(y == c, column)
        for c, column in zip(classes, predicted.T, strict=True)
    ]
    return float(np.average(areas, weights=counts))


def clipped_log_loss(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean of -log of the probabilities of the rows' classes, at least `LEAST` each."""
    classes, codes = np.unique(y, return_inverse=True)
    predicted = probabilities(model, X, classes)[np.arange(len(y)), codes]
    return float(-np.log(np.maximum(predicted, LEAST)).mean())


# ---- tasks, rows and texts -----------------------------------------------------------------------


def read_rows(path: Path, columns: Sequence[str] = KEY) -> pd.DataFrame:
    """Read a CSV file of rows that has some columns."""
    if not path.exists():
        raise ValueError(
            f"{path.parent} has no file {path.name}: copy it there from docs/results, or let the "
            "study run, without --report."
        )
    # Types are inferred from whole columns; the first column is never taken for row names.
    kinds = {"settings": str, "revision": str}  # both may be of digits alone
    rows = pd.read_csv(
        path, index_col=False, low_memory=False, dtype=kinds, **EXACT_NUMBERS
    )
    if missing := [name for name in columns if name not in rows]:
        raise ValueError(
            f"{path} has no column {', '.join(missing)}. Move it away to begin again."
        )
    return check_runs(rows, path)


def fill(store: Store, experiment: Any, rows_file: Path) -> None:
    """Put rows of a CSV file into a store, but those of other settings than a method's now."""
    rows = read_rows(rows_file)
    methods = experiment.definition()["methods"]
    now = rows["method"].map({name: checksum(text) for name, text in methods.items()})
    is_stale = rows["settings"].notna() & now.notna() & (rows["settings"] != now)
    if is_stale.any():
        names = ", ".join(rows["method"][is_stale].unique())
        log.warning("%d rows of other settings do not count: %s", is_stale.sum(), names)
    rows = rows[~is_stale]
    done = store.done()
    for row in rows.astype(object).where(rows.notna(), None).to_dict("records"):
        key = tuple(row[name] for name in KEY)
        if key not in done:
            store.add({**row, "status": DONE})


def write_rows(store: Store, rows_file: Path) -> None:
    """Write the fits that are done as CSV."""
    runs = read_runs(store.path.parent)
    runs = runs[runs["status"] == DONE].drop(columns=["status", "error", "versions"])
    # Whole numbers are written as such.
    runs.dropna(axis=1, how="all").convert_dtypes().to_csv(rows_file, index=False)


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


def text_of(study: Study, out: Path, page: str) -> str:
    """Return the text of a page of a study, filled from the CSV files in a folder."""
    text = (TEXTS / f"{page}.md").read_text(encoding="utf-8")
    constants = vars(sys.modules[study.report.__module__])
    return Text().vformat(text, (), SHARED | constants | tables_of(study, out))


def tables_of(study: Study, out: Path) -> dict[str, Any]:
    """Return what a study reports on the CSV files in a folder, and how that was ``written``.

    It reports on all its data sets, or not at all.
    """
    made = study.experiment
    runs = read_rows(study.rows_file(out))
    if lacking := {*made.datasets} - {*runs["dataset"]}:
        raise ValueError(
            f"{study.rows_file(out)} has no row of {', '.join(sorted(lacking))[:200]}, and a page "
            "is of the whole study: begin with the rows in docs/results, or run all."
        )
    done = set(runs[list(KEY)].itertuples(index=False, name=None))
    planned = made.tasks()
    n_done = sum(task in done for task in planned)
    of_all = "" if n_done == len(planned) else f" of {len(planned):,} planned"
    written = (
        f"Written by `python -m experiments {study.name} --data-home DIR --out docs/results`, "
        f"from\n{n_done:,}{of_all} fits in `{study.name}_runs.csv`"
    )
    return {**study.report(Results(runs, out)), "written": written}

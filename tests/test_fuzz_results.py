"""Experiments and results as strangers may send them, damaged as those of `tests.test_fuzz`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree.experiments.experiment import read_experiment
from evotree.experiments.rows import read_rows
from evotree.experiments.store import FILE, KEY, Store, read_curves, read_definition, read_runs
from tests.damage import damaged, fuzz, sound_or_refused
from tests.experiments.test_store import COLUMNS, DEFINITION, row


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


# ---- experiments and their results ---------------------------------------------------------------

TOML = b"""
name = "small"
datasets = ["sklearn:iris", "wine"]
seeds = [0, 1]
metrics = ["accuracy", "train_accuracy"]

[protocol]
n_folds = 2

[methods.CART]
estimator = "sklearn.tree.DecisionTreeClassifier"
max_depth = 3

[methods.EvoTree]
preset = "gea_odt"
max_generations = 3
"""


def use_experiment(experiment: Any) -> None:
    tasks = experiment.tasks()
    assert 0 < len(tasks) <= 10_000_000
    with closing(sqlite3.connect(":memory:")) as database:
        for task in tasks[:50]:  # as the results are kept
            database.execute("SELECT ?, ?, ?, ?", task)
            np.random.RandomState(task.seed)
    json.dumps(experiment.definition())
    assert all(isinstance(column, str) for column in experiment.columns())


@fuzz
@given(content=damaged([TOML]))
def test_experiments(folder: Path, content: bytes) -> None:
    path = folder / "experiment.toml"
    path.write_bytes(content)
    sound_or_refused(path, lambda: read_experiment(path), use_experiment)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("results")
    store = Store(folder, COLUMNS, DEFINITION)
    curve = pd.DataFrame({"gen": range(5), "fitness": np.linspace(0.0, 1.0, 5)})
    for fold in range(4):
        store.add(row(fold, accuracy=fold / 7, seconds=0.5), curve)
    return (folder / FILE).read_bytes()


def use_results(found: tuple[pd.DataFrame, dict[str, Any], dict[Any, pd.DataFrame]]) -> None:
    runs, definition, curves = found
    for name in ("accuracy", "seconds"):
        assert name not in runs or runs.empty or runs[name].dtype.kind in "fi"
    assert all(name in runs for name in ("dataset", "method", "fold", "seed", "status"))
    assert isinstance(definition["metrics"], dict) and isinstance(definition["name"], str)
    assert all(isinstance(curve, pd.DataFrame) and len(key) == 4 for key, curve in curves.items())


def read_all(folder: Path) -> tuple[pd.DataFrame, dict[str, Any], dict[Any, pd.DataFrame]]:
    return read_runs(folder), read_definition(folder), read_curves(folder)


def check_results(folder: Path) -> None:
    """Read a folder of results, then go on with its experiment."""
    path = folder / FILE
    sound_or_refused(path, lambda: read_all(folder), use_results)
    sound_or_refused(path, lambda: Store(folder, COLUMNS, DEFINITION).done())


@fuzz
@given(data=st.data())
def test_results_of_damaged_bytes(folder: Path, results: bytes, data: st.DataObject) -> None:
    home = folder / "bytes"
    home.mkdir(exist_ok=True)
    for file in home.iterdir():
        file.unlink()
    (home / FILE).write_bytes(data.draw(damaged([results])))
    check_results(home)


SQL_VALUES = ["NULL", "1", "-1", "1e999", "'x'", "x'00ff'", "''", "9223372036854775807", "'done'"]
SQL = [
    "DROP TABLE curves",
    "DROP TABLE runs",
    "DELETE FROM experiment",
    "DELETE FROM runs",
    "ALTER TABLE runs ADD COLUMN more",
    "ALTER TABLE runs DROP COLUMN status",
    "ALTER TABLE runs RENAME COLUMN accuracy TO precision",
    "ALTER TABLE runs RENAME TO old; CREATE VIEW runs AS SELECT * FROM old",
    "ALTER TABLE runs RENAME TO old; CREATE VIEW runs AS WITH RECURSIVE r(dataset) AS "
    "(SELECT 1 UNION ALL SELECT dataset + 1 FROM r) SELECT * FROM r",
    "DROP TABLE runs; CREATE TABLE runs (dataset, method, fold, seed, status, "
    "accuracy AS (hex(zeroblob(400000000))), seconds, error); "
    "INSERT INTO runs (dataset) VALUES (1)",
    "CREATE TRIGGER t BEFORE UPDATE ON experiment BEGIN DELETE FROM runs; END",
    "CREATE TRIGGER t BEFORE UPDATE ON experiment BEGIN SELECT hex(zeroblob(400000000)); END",
    "UPDATE experiment SET format = {value}",
    "UPDATE experiment SET definition = {value}",
    "UPDATE experiment SET definition = '[]'",
    "UPDATE experiment SET definition = '{{}}'",
    'UPDATE experiment SET definition = \'{{"name": 1, "metrics": [1]}}\'',
    "UPDATE curves SET curve = {value}",
    "UPDATE curves SET curve = '[]'",
    "UPDATE curves SET curve = '[[[[[[1'",
    'UPDATE curves SET curve = \'{{"columns": [1], "data": [[1], [1, 2]]}}\'',
    'UPDATE curves SET curve = \'{{"columns": [[1], {{}}], "data": {{}}, "index": 4}}\'',
    'UPDATE curves SET curve = \'{{"columns": ["gen"], "data": [[1e999], [null]]}}\'',
    "UPDATE curves SET fold = 'x'",
    "UPDATE runs SET fold = {value} WHERE fold = 0",
    "UPDATE runs SET dataset = {value} WHERE fold = 1",
    "UPDATE runs SET accuracy = {value}",
    "UPDATE runs SET seconds = {value}",
    "UPDATE runs SET status = {value}",
    "UPDATE runs SET method = {value} WHERE fold = 3",
    "PRAGMA user_version = 7",
    "PRAGMA journal_mode = WAL",
]


@fuzz
@given(
    statements=st.lists(
        st.tuples(st.sampled_from(SQL), st.sampled_from(SQL_VALUES)), min_size=1, max_size=3
    )
)
def test_results_that_others_changed(
    folder: Path, results: bytes, statements: list[tuple[str, str]]
) -> None:
    home = folder / "sql"
    home.mkdir(exist_ok=True)
    for file in home.iterdir():
        file.unlink()
    (home / FILE).write_bytes(results)
    with closing(sqlite3.connect(home / FILE)) as database:
        for statement, value in statements:
            try:
                database.executescript(statement.format(value=value))
            except sqlite3.Error:
                continue
    check_results(home)


# ---- rows of studies -----------------------------------------------------------------------------

ROWS = (
    b"dataset,method,fold,seed,accuracy\niris,CART,0,0,0.95\niris,CART,1,0,0.9\nwine,CART,0,0,0.8\n"
)


@fuzz
@given(content=damaged([ROWS]))
def test_rows_of_studies(folder: Path, content: bytes) -> None:
    """They are refused, or fill a store that can be read."""
    path, home = folder / "study_runs.csv", folder / "filled"
    path.write_bytes(content)
    (home / FILE).unlink(missing_ok=True)
    store = Store(home, COLUMNS, DEFINITION)
    known = [*KEY, "accuracy"]

    def fill() -> Any:
        rows = read_rows(path)
        store.fill(rows[[name for name in known if name in rows]].assign(status="done"), {})
        return rows

    sound_or_refused(path, fill, lambda rows: len(read_runs(home)) <= len(rows))

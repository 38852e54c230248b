"""Results on disk: whole rows, one experiment a folder, and clear errors."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree.experiments.store import (
    FILE,
    KEY,
    Store,
    differences,
    merged,
    read_curves,
    read_definition,
    read_runs,
)

COLUMNS = (*KEY, "status", "accuracy", "seconds", "error")
DEFINITION = {
    "name": "one",
    "datasets": ["iris"],
    "seeds": [0],
    "methods": {"CART": {"depth": 3}},
    "metrics": {"accuracy": True},
}


def row(fold=0, **others):
    return {"dataset": "iris", "method": "CART", "fold": fold, "seed": 0, "status": "done"} | others


def test_rows_come_back_as_they_were(tmp_path):
    store = Store(tmp_path / "a" / "b", COLUMNS, DEFINITION)
    assert store.done() == set() and len(store.runs()) == 0
    store.add(row(1, accuracy=0.1 + 0.2, seconds=1e-300, error="an 'odd'\n\"text\" ü"))
    store.add(row(0, status="failed", error="x"))
    runs = store.runs()
    assert tuple(runs.columns) == COLUMNS and runs["fold"].tolist() == [0, 1]
    assert runs["accuracy"][1] == 0.1 + 0.2 and np.isnan(runs["accuracy"][0])
    assert runs["error"][1] == "an 'odd'\n\"text\" ü"
    assert store.done() == {("iris", "CART", 0, 0), ("iris", "CART", 1, 0)}
    assert store.done(["failed"]) == {("iris", "CART", 0, 0)} and store.done([]) == set()
    store.add(row(0, accuracy=0.5))  # done again
    assert len(store.runs()) == 2 and store.done(["failed"]) == set()
    pd.testing.assert_frame_equal(read_runs(tmp_path / "a" / "b"), store.runs())


def test_curves_come_back(tmp_path):
    store = Store(tmp_path, COLUMNS, DEFINITION)
    values = np.random.default_rng(0).random(50)
    curve = pd.DataFrame({"gen": np.arange(50), "fitness": values, "share": np.nan})
    store.add(row(0), curve)
    store.add(row(1))
    found = read_curves(tmp_path)
    assert list(found) == [("iris", "CART", 0, 0)]
    pd.testing.assert_frame_equal(found["iris", "CART", 0, 0], curve, check_dtype=False, rtol=1e-14)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"name": "two"}, "name was one and is two"),
        ({"name": "o" * 500}, "name was one and is ooo"),
        ({"methods": {"CART": {"depth": 4}}}, "methods.CART.depth was 3 and is 4"),
        (
            {"methods": {"CART": {"depth": 3, "leaves": 9}}},
            "methods.CART.leaves was not given and is 9",
        ),
    ],
)
def test_a_folder_holds_one_experiment(tmp_path, changed, what):
    Store(tmp_path, COLUMNS, DEFINITION).add(row())
    with pytest.raises(ValueError, match=f"another experiment: {what}"):
        Store(tmp_path, COLUMNS, DEFINITION | changed)
    with pytest.raises(ValueError, match="has the columns"):
        Store(tmp_path, (*COLUMNS, "more"), DEFINITION)
    assert read_definition(tmp_path) == DEFINITION and len(read_runs(tmp_path)) == 1


def test_an_experiment_may_grow(tmp_path):
    Store(tmp_path, COLUMNS, DEFINITION)
    grown = {"datasets": ["wine"], "seeds": [0, 1], "methods": {"forest": "500"}}
    Store(tmp_path, COLUMNS, DEFINITION | grown)
    found = read_definition(tmp_path)
    assert found["datasets"] == ["iris", "wine"] and found["seeds"] == [0, 1]
    assert found["methods"] == {"CART": {"depth": 3}, "forest": "500"}


definitions = st.fixed_dictionaries(
    {
        "name": st.sampled_from("ab"),
        "datasets": st.lists(st.sampled_from("xyz"), unique=True),
        "methods": st.dictionaries(st.sampled_from("pqr"), st.sampled_from("12")),
    }
)


@given(definitions, definitions)
def test_differences_are_those_that_cannot_be_merged(first, second):
    same = first["name"] == second["name"] and all(
        second["methods"].get(name, method) == method for name, method in first["methods"].items()
    )
    assert (differences(first, second) == []) == same
    both = merged(first, second)
    assert differences(second, both) == []
    assert set(both["datasets"]) == {*first["datasets"], *second["datasets"]}


def test_files_of_others_are_refused(tmp_path):
    (tmp_path / FILE).write_text("no database at all, but long enough to be looked into" * 40)
    with pytest.raises(OSError, match="cannot be used: file is not a database"):
        Store(tmp_path, COLUMNS, DEFINITION)
    with pytest.raises(OSError, match="cannot be read"):
        read_runs(tmp_path)
    (tmp_path / FILE).unlink()
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("CREATE TABLE birds (name TEXT)")
    with pytest.raises(ValueError, match="not one of an experiment's results"):
        Store(tmp_path, COLUMNS, DEFINITION)
    with pytest.raises(FileNotFoundError, match="holds no results"):
        read_runs(tmp_path / "nowhere")


def test_text_of_no_encoding_is_kept_in_escapes(tmp_path):
    """As the message has that names a file of such a name."""
    store = Store(tmp_path, COLUMNS, DEFINITION)
    store.add(row(0, status="failed", error="cannot open '\udcff.csv'"))
    assert store.runs()["error"].tolist() == [r"cannot open '\udcff.csv'"]


KILLED = """
import os, sqlite3, sys
from pathlib import Path
from tests.experiments import test_store as t
connect, left = sqlite3.connect, int(sys.argv[2])
def count(statement):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
def watched(*arguments, **options):
    database = connect(*arguments, **options)
    database.set_trace_callback(count)
    return database
sqlite3.connect = watched
t.Store(Path(sys.argv[1]), t.COLUMNS, t.DEFINITION)
"""


@pytest.mark.slow
def test_killed_at_any_statement_of_its_making_the_folder_stays_good(tmp_path):
    for n_statements in range(100):
        folder = tmp_path / str(n_statements)
        command = [sys.executable, "-c", KILLED, folder, str(n_statements)]
        status = subprocess.run(command, check=False).returncode
        Store(folder, COLUMNS, DEFINITION).add(row())
        assert len(read_runs(folder)) == 1 and read_definition(folder) == DEFINITION
        if status == 0:
            break
    assert n_statements >= 5 and status == 0


def test_two_may_begin_at_once(tmp_path):
    for attempt in range(20):
        with ThreadPoolExecutor(4) as pool:
            folder = tmp_path / str(attempt)
            made = [pool.submit(Store, folder, COLUMNS, DEFINITION) for _ in range(4)]
        assert all(future.result().runs().empty for future in made)


def test_a_full_disk_is_an_error_and_what_was_there_stays(tmp_path, monkeypatch):
    store = Store(tmp_path, COLUMNS, DEFINITION)
    store.add(row(0, error="x" * 1000))
    connect = sqlite3.connect

    def small(*arguments, **options):
        database = connect(*arguments, **options)
        n_pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {n_pages + 2}")
        return database

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(OSError, match="results.sqlite cannot be used: database or disk is full"):
        store.add(row(1, error="x" * 100_000))
    assert store.done() == {("iris", "CART", 0, 0)}


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        Store(tmp_path / "file" / "folder", COLUMNS, DEFINITION)


def test_a_transaction_left_half_done_is_undone(tmp_path):
    """As a writer leaves it that is killed in the middle: with its journal."""
    Store(tmp_path, COLUMNS, DEFINITION).add(row(0))
    code = (
        "import os, sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "d.execute('PRAGMA cache_size = 1'); d.execute('BEGIN');"
        "[d.execute('INSERT INTO runs (dataset, method, fold, seed, error) VALUES (?, ?, ?, ?, ?)',"
        " ('iris', 'CART', i, 0, 'x' * 5000)) for i in range(1, 200)];"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / FILE], check=False)
    assert (tmp_path / f"{FILE}-journal").exists()
    assert read_runs(tmp_path)["fold"].tolist() == [0]


WRITER = """
import sys
from pathlib import Path
from tests.experiments.test_store import COLUMNS, DEFINITION, Store, row
store = Store(Path(sys.argv[1]), COLUMNS, DEFINITION)
for fold in range(len(store.done()), 100_000):
    store.add(row(fold, accuracy=fold / 7, error="x" * (fold % 5000)))
    print(fold, flush=True)
"""


def test_killed_writers_lose_nothing_that_they_reported(tmp_path):
    n_rows = 0
    for attempt in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE, text=True
        )
        reported = int(writer.stdout.readline())
        time.sleep(0.05 * attempt)
        os.kill(writer.pid, signal.SIGKILL)
        *_, reported = [reported, *map(int, writer.stdout.read().split("\n")[:-1])]
        writer.wait()
        runs = read_runs(tmp_path)
        assert n_rows < len(runs) and len(runs) in (reported + 1, reported + 2)
        assert runs["fold"].tolist() == list(range(len(runs)))
        np.testing.assert_array_equal(runs["accuracy"], runs["fold"] / 7)
        n_rows = len(runs)

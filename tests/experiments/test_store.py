"""Results on disk: whole rows, one experiment a folder, several writers, and clear errors."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree.experiments.protocols import KEY
from evotree.experiments.store import (
    FILE,
    Store,
    merge,
    read_curves,
    read_definition,
    read_runs,
)

COLUMNS = (*KEY, "status", "accuracy", "error", "versions")
DEFINITION = {
    "name": "one",
    "datasets": ["iris"],
    "seeds": [0],
    "methods": {"CART": {"depth": 3}},
    "metrics": {"accuracy": True},
    "protocol": {"n_folds": 5},
    "shown": [],
    "data": {"iris": {"source": "iris.csv", "rows": 150}},
}


def row(fold=0, **others):
    return {
        "dataset": "iris",
        "method": "CART",
        "fold": fold,
        "seed": 0,
        "status": "done",
    } | others


def test_rows_come_back_as_they_were(tmp_path):
    store = Store(tmp_path / "a" / "b", COLUMNS, DEFINITION)
    assert store.done() == {} and len(read_runs(store.path.parent)) == 0
    store.add(row(1, accuracy=0.1 + 0.2, error="an 'odd'\n\"text\" ü"))
    store.add(row(np.int64(0), status="failed", error="x"))
    runs = read_runs(store.path.parent)
    assert tuple(runs.columns) == COLUMNS and runs["fold"].tolist() == [0, 1]
    assert runs["accuracy"][1] == 0.1 + 0.2 and np.isnan(runs["accuracy"][0])
    assert runs["error"][1] == "an 'odd'\n\"text\" ü"
    first, second = ("iris", "CART", 0, 0), ("iris", "CART", 1, 0)
    assert store.done() == {first: "failed", second: "done"}
    store.add(row(0, accuracy=0.5))  # done again
    assert store.done() == {first: "done", second: "done"}


def test_curves_come_back(tmp_path):
    store = Store(tmp_path, COLUMNS, DEFINITION)
    curve = pd.DataFrame(
        {"gen": np.arange(50), "fitness": np.sqrt(np.arange(50)), "share": np.nan}
    )
    store.add(row(0), curve)
    store.add(row(1))
    ((key, kept),) = read_curves(tmp_path).items()
    assert key == ("iris", "CART", 0, 0)
    pd.testing.assert_frame_equal(kept, curve)


def test_a_folder_holds_one_experiment(tmp_path):
    Store(tmp_path, COLUMNS, DEFINITION).add(row())
    changed = {"name": "two", "methods": {"CART": {"depth": 4}}}
    what = "methods.CART.depth was 3 and is 4; name was one and is two"
    with pytest.raises(ValueError, match=f"another experiment: {what}"):
        Store(tmp_path, COLUMNS, DEFINITION | changed)
    with pytest.raises(ValueError, match="its fits have not measured more"):
        Store(tmp_path, (*COLUMNS, "more"), DEFINITION)
    assert read_definition(tmp_path).items() >= DEFINITION.items()


definitions = st.fixed_dictionaries(
    {
        "name": st.sampled_from("ab"),
        "datasets": st.lists(st.sampled_from("xyz"), unique=True),
        "methods": st.dictionaries(st.sampled_from("pqr"), st.sampled_from("12")),
    }
)


@given(definitions, definitions)
def test_an_experiment_may_grow_but_not_change(first, second):
    same = first["name"] == second["name"] and all(
        second["methods"].get(name, method) == method
        for name, method in first["methods"].items()
    )
    both, changes = merge(first, second)
    assert (changes == []) == same
    assert merge(second, both)[1] == [] and merge(both, second) == (both, [])
    assert set(both["datasets"]) == {*first["datasets"], *second["datasets"]}


def test_files_of_others_are_refused(tmp_path):
    (tmp_path / FILE).write_text("no results\nat all\n")
    with pytest.raises(ValueError, match="does not say of which experiment"):
        Store(tmp_path, COLUMNS, DEFINITION)
    with pytest.raises(FileNotFoundError, match="holds no results"):
        read_runs(tmp_path / "nowhere")
    with pytest.raises(OSError):
        Store(tmp_path / FILE / "folder", COLUMNS, DEFINITION)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fold": 0.5}, "no fold"),
        ({"accuracy": "high"}, "no accuracy"),
        ({"error": 3}, "no error"),
    ],
)
def test_rows_of_other_kinds_are_refused(tmp_path, change, message):
    Store(tmp_path, COLUMNS, DEFINITION)
    with (tmp_path / FILE).open("a") as file:
        file.write(json.dumps(row() | change) + "\n")
    with pytest.raises(ValueError, match=message):
        read_runs(tmp_path)


@pytest.mark.parametrize("n_lost", [1, 60])
def test_a_line_that_is_not_whole_does_not_count(tmp_path, n_lost):
    """As a killed writer or a full disk leaves it; what is added next is whole."""
    store = Store(tmp_path, COLUMNS, DEFINITION)
    for fold in (0, 1):
        store.add(row(fold))
    content = store.path.read_bytes()
    store.path.write_bytes(content[:-n_lost])
    kept = 2 if n_lost == 1 else 1
    assert len(read_runs(store.path.parent)) == kept
    Store(tmp_path, COLUMNS, DEFINITION).add(row(2))
    assert read_runs(store.path.parent)["fold"].tolist() == [*range(kept), 2]


def test_a_line_with_a_number_that_no_column_holds_does_not_count(tmp_path):
    store = Store(tmp_path, COLUMNS, DEFINITION)
    for fold, accuracy in enumerate([0.5, 10**400]):
        store.add(row(fold) | {"accuracy": accuracy})
    assert read_runs(tmp_path)["fold"].tolist() == [0]


def test_several_writers_lose_nothing(tmp_path):
    def write(fold):
        store = Store(tmp_path, COLUMNS, DEFINITION)
        for seed in range(20):
            store.add(row(fold, seed=seed, error="x" * 5000))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(read_runs(tmp_path)) == 80

"""Fits of the command line to files of Parquet: what is held out, scored and shown."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix, recall_score

from evotree.cli import collections
from evotree.cli.main import main
from evotree.model_file import load_model
from tests.estimators.test_dask import table_of_all_kinds

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

BRIEF = ["--max-generations", 4, "--population-size", 12]
BRIEF += ["--size-penalty", 0.005, "--max-samples", 300]


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def address():
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


def write(folder, table, n_rows=250):
    """Write files of so many rows; return their pattern."""
    for at in range(0, len(table), n_rows):
        table[at : at + n_rows].to_parquet(folder / f"{at:04}.parquet")
    return folder / "*.parquet"


def held_out(table, seed=0, share=0.3):
    """Return the rows that a fit tests on, those without a target being left out."""
    lazy = dd.from_pandas(table.dropna(subset=["y"]).reset_index(drop=True), 2, sort=False)
    X, y, test = collections.hold_out(lazy.drop(columns="y"), lazy["y"], share, seed)
    return dask.compute(X, y, *test)


def test_rows_are_held_out_by_their_numbers():
    table = pd.DataFrame({"x": np.arange(3000.0), "y": np.arange(3000) % 7})
    drawn = []
    for n_partitions in (1, 5):
        lazy = dd.from_pandas(table, n_partitions, sort=False)
        X, y, test = collections.hold_out(lazy[["x"]], lazy["y"], 0.3, 4)
        assert X.npartitions == test[1].npartitions == n_partitions
        X, y, X_test, y_test = dask.compute(X, y, *test)
        assert sorted([*X["x"], *X_test["x"]]) == list(table["x"])
        for rows, targets in ((X, y), (X_test, y_test)):
            np.testing.assert_array_equal(targets, rows["x"] % 7)
        drawn.append(list(X_test["x"]))
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == pytest.approx(900, abs=5 * np.sqrt(3000 * 0.3 * 0.7))
    others = held_out(table, seed=5)[2]["x"]
    assert abs(len(set(others) & set(drawn[0])) - 270) < 90
    with pytest.raises(ValueError, match="leaves 0 of 3 rows to test on"):
        held_out(table[:3], share=1e-9)


def test_classes_are_tested_on_rows_held_out(tmp_path, capsys, address):
    table, y = table_of_all_kinds()
    table["y"] = y.where(np.arange(len(y)) % 50 > 0)
    told = ["fit", write(tmp_path, table), "--target", "y", "--out", tmp_path / "m.json"]
    told += ["--dask", address, "--test-size", 0.3, "--report", tmp_path / "r.html"]
    told += ["--plots", tmp_path / "plots", "--class-weight", "balanced"]
    assert main([*map(str, [*told, "--drop", "weight"])]) == 2
    assert "--drop 'weight': there is no such column" in capsys.readouterr().err
    assert main([*map(str, [*told, *BRIEF])]) == 0, capsys.readouterr().err
    model = load_model(tmp_path / "m.json")
    _, y_train, X, y = held_out(table)
    y, predicted = y.to_numpy(object), model.predict(X)
    known = model.training
    assert (known["rows"], known["test_rows"]) == (len(y_train), len(y))
    assert known["confusion"] == confusion_matrix(y, predicted).tolist()
    assert known["recall"] == pytest.approx(recall_score(y, predicted, average=None))
    assert known["test_accuracy"] == pytest.approx((predicted == y).mean())
    assert known["base_rate"] == pytest.approx((y == y_train.mode()[0]).mean())
    assert known["test_accuracy"] > known["base_rate"]
    shown = capsys.readouterr()
    assert "no rows were held out" not in shown.out
    assert "5 partitions on 1 workers" in shown.err
    assert "<html" in (tmp_path / "r.html").read_text("utf-8")
    assert {path.name for path in (tmp_path / "plots").iterdir()} >= {"tree.png"}

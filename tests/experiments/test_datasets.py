"""Loading of data sets: from folders, from scikit-learn, from OpenML."""

import gzip
import hashlib
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.utils import Bunch

from evotree.experiments.datasets import BUNDLED, load
from evotree.experiments.protocols import Protocol

CSV = "a,colour,b,target\n1,red,0.5,yes\n,blue,1.5,no\n3,,NA,yes\n"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_load_csv(tmp_path, ending):
    raw = CSV.encode() if ending == ".csv" else gzip.compress(CSV.encode())
    (tmp_path / f"toy{ending}").write_bytes(raw)
    data = load("toy", tmp_path)
    assert data.name == "toy" and data.n_train is None
    assert data.source == f"toy{ending}, SHA-256 {hashlib.sha256(raw).hexdigest()}"
    np.testing.assert_array_equal(data.X["a"], [1.0, np.nan, 3.0])
    # Only the empty cell is missing, so "NA" is a category.
    assert data.X.dtypes.to_dict() == {"a": np.float64, "colour": object, "b": object}
    assert data.X["b"].tolist() == ["0.5", "1.5", "NA"]
    assert data.X["colour"].tolist()[:2] == ["red", "blue"] and pd.isna(
        data.X["colour"][2]
    )
    assert isinstance(data.y, np.ndarray) and data.y.tolist() == ["yes", "no", "yes"]


def test_a_file_may_have_its_ending_and_a_target_by_name(tmp_path):
    (tmp_path / "toy.csv").write_text("a,area,b\n1,x,0.5\n2,y,1.5\n")
    protocol = Protocol(2, target="area")
    for name in ("toy", "toy.csv"):
        data = protocol.load(name, tmp_path)
        assert data.y.tolist() == ["x", "y"] and list(data.X) == ["a", "b"]
    path = re.escape(str(tmp_path / "toy.csv"))
    with pytest.raises(
        ValueError, match=f"{path}: it has no column 'size'; it has a, a"
    ):
        Protocol(2, target="size").check("toy.csv", tmp_path)
    missing = r"looked for toys\.csv; did you mean toy\?"
    with pytest.raises(FileNotFoundError, match=missing):
        protocol.check("toys.csv", tmp_path)


def test_official_splits(tmp_path):
    for n_rows in (2001, 2000):
        (tmp_path / "dna.csv").write_text("a,target\n" + "1,x\n" * n_rows)
        if n_rows == 2001:
            assert load("dna", tmp_path).n_train == 2000
    with pytest.raises(ValueError, match="2000 rows"):
        load("dna", tmp_path)


def test_a_missing_data_set_says_what_was_looked_for_and_what_is_there(tmp_path):
    for file_name in ("Segment.svm.gz", "vehicle.csv", "notes.md"):
        (tmp_path / file_name).write_text("")
    for name, home, message in (
        (
            "SEGMNT",
            tmp_path,
            r"SEGMNT\.arff.*did you mean Segment\?.*are Segment.svm.gz, vehicle",
        ),
        ("wine", tmp_path, "did you mean sklearn:wine"),
        ("rice", tmp_path / "nowhere", "not a folder"),
        ("vehicle", None, "data_home must be the folder of the data set 'vehicle'"),
    ):
        with pytest.raises((FileNotFoundError, ValueError), match=message):
            load(name, home)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *((name, "", "plain name") for name in ("", "../iris", "a/b")),
        ("toy", "a,b\n1,2\n", "last column must be 'target', but it is 'b'"),
        ("toy", "a,target\n1,x\n2,\n", "missing in 1 of 2 rows"),
        ("toy", "target\n1\n2\n", "at least one feature"),
    ],
)
def test_wrong_names_and_contents_are_refused(tmp_path, name, content, message):
    (tmp_path / "toy.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        load(name, tmp_path)


@pytest.mark.parametrize(
    ("names", "target"),
    [
        ("a b c", "c"),
        ("Class b c", "Class"),
        ("class b target", "target"),
        ("class target c", ""),
    ],
)
def test_the_target_of_an_arff_file(tmp_path, names, target):
    header = "".join(f"@attribute {name} numeric\n" for name in names.split())
    (tmp_path / "toy.arff").write_text(f"@relation r\n{header}@data\n0.5,1.5,2.5\n")
    if not target:
        with pytest.raises(
            ValueError, match=r"toy\.arff: the target may be any of class, target;"
        ):
            load("toy", tmp_path)
        return
    data = load("toy", tmp_path)
    expected = dict(zip(names.split(), [0.5, 1.5, 2.5], strict=True))
    assert (
        data.y.tolist() == [expected.pop(target)]
        and data.X.iloc[0].to_dict() == expected
    )


def test_load_bundled_sets():
    for name in BUNDLED:
        data = load(f"sklearn:{name}", "no folder is needed")
        assert data.name == f"sklearn:{name}" and data.n_train is None
        assert len(data.X) == len(data.y)
    np.testing.assert_array_equal(data.X.to_numpy(), load_diabetes().data)
    with pytest.raises(ValueError, match="'moons'; there are iris, digits"):
        load("sklearn:moons")


@pytest.fixture
def openml(monkeypatch):
    """Stand in for scikit-learn's loader; the list takes what it was asked for."""
    calls = []

    def serve(answer):
        def fetch(**wanted):
            calls.append(wanted)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        return calls

    return serve


def bunch(*targets):
    columns = {
        "digit": pd.Series(["0", "1", None], dtype="category"),
        "number": pd.Series([4, None, 5], dtype="Int64"),
        "class": pd.Series(["1", "2", "3"], dtype="category"),
    }
    X = pd.DataFrame(
        {name: column for name, column in columns.items() if name not in targets}
    )
    y = columns[targets[0]] if len(targets) == 1 else None
    details = {"name": "toy", "version": "2", "id": "7"}
    return Bunch(data=X, target=y, target_names=list(targets), details=details)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("7", {"data_id": 7}),
        ("toy", {"name": "toy", "version": "active"}),
        ("toy@2", {"name": "toy", "version": 2}),
    ],
)
def test_load_from_openml(tmp_path, openml, name, wanted):
    calls = openml(bunch("class"))
    data = load(f"openml:{name}", tmp_path)
    assert wanted.items() <= calls[0].items() and calls[0]["data_home"] == tmp_path
    # Values of nominal attributes are strings, digits too.
    assert data.X.dtypes.tolist() == [object, np.float64]
    assert data.X["digit"].tolist()[:2] == ["0", "1"] and isinstance(
        data.X["digit"][2], float
    )
    np.testing.assert_array_equal(data.X["number"], [4.0, np.nan, 5.0])
    assert data.y.tolist() == ["1", "2", "3"] and data.y.dtype == object
    assert data.source == "OpenML's toy, version 2, number 7"


def test_a_version_of_openml_is_a_number(tmp_path, openml):
    openml(bunch("class"))
    with pytest.raises(
        ValueError, match=r"'toy@new' of OpenML, NAME, NAME@VERSION or a number"
    ):
        load("openml:toy@new", tmp_path)

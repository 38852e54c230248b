"""Loading of data sets: from folders, from scikit-learn, from OpenML."""

import gzip
import hashlib
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.utils import Bunch

from evotree.experiments.datasets import BUNDLED, load

CSV = "a,colour,b,target\n1,red,0.5,yes\n,blue,1.5,no\n3,,NA,yes\n"


def write(path, content, checksum=True):
    """Write text, gzip where the name says so, and its line of checksums.txt."""
    raw = content if isinstance(content, bytes) else content.encode()
    if path.suffix == ".gz":
        raw = gzip.compress(raw)
    path.write_bytes(raw)
    if checksum:
        with (path.parent / "checksums.txt").open("a") as file:
            file.write(f"{hashlib.sha256(raw).hexdigest()}  {path.name}\n")
    return path


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_load_csv(tmp_path, ending):
    write(tmp_path / f"toy{ending}", CSV)
    data = load("toy", tmp_path)
    assert data.name == "toy" and data.n_train is None
    assert list(data.X.columns) == ["a", "colour", "b"]
    np.testing.assert_array_equal(data.X["a"], [1.0, np.nan, 3.0])
    # only the empty cell is missing, so "NA" is a category
    assert [data.X[c].dtype for c in data.X] == [np.float64, object, object]
    assert data.X["b"].tolist() == ["0.5", "1.5", "NA"]
    assert data.X["colour"].tolist()[:2] == ["red", "blue"] and pd.isna(data.X["colour"][2])
    assert isinstance(data.y, np.ndarray) and data.y.tolist() == ["yes", "no", "yes"]


def test_official_splits(tmp_path):
    write(tmp_path / "dna.csv", "a,target\n" + "1,x\n" * 2001, checksum=False)
    assert load("dna", tmp_path).n_train == 2000
    write(tmp_path / "dna.csv", "a,target\n" + "1,x\n" * 2000, checksum=False)
    with pytest.raises(ValueError, match="2000 rows"):
        load("dna", tmp_path)


def test_a_missing_data_set_says_what_was_looked_for_and_what_is_there(tmp_path):
    for file_name in ("Segment.svm.gz", "vehicle.csv", "checksums.txt", "notes.md"):
        (tmp_path / file_name).write_text("")
    with pytest.raises(FileNotFoundError, match=r"SEGMNT\.arff.*did you mean Segment\?") as caught:
        load("SEGMNT", tmp_path)
    assert str(caught.value).endswith("there are Segment.svm.gz, vehicle.csv")
    with pytest.raises(FileNotFoundError, match="did you mean sklearn:wine"):
        load("wine", tmp_path)
    with pytest.raises(FileNotFoundError, match="'checksums' is not in") as caught:
        load("checksums", tmp_path)
    assert "did you mean" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match="not a folder"):
        load("rice", tmp_path / "nowhere")
    with pytest.raises(ValueError, match="data_home must be the folder of the data set 'vehicle'"):
        load("vehicle")


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
    write(tmp_path / "toy.csv", content)
    with pytest.raises(ValueError, match=message):
        load(name, tmp_path)


@pytest.mark.parametrize(
    ("line", "is_wrong"),
    [("{sum}  toy.csv", False), ("{zeros} *toy.csv", True), ("{zeros}  other.csv", False)],
)
def test_checksums_are_respected(tmp_path, line, is_wrong):
    path = write(tmp_path / "toy.csv", CSV, checksum=False)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "checksums.txt").write_text(line.format(sum=digest, zeros="0" * 64) + "\n")
    if is_wrong:
        with pytest.raises(ValueError, match="checksum"):
            load("toy", tmp_path)
    else:
        assert load("toy", tmp_path).source == f"toy.csv, SHA-256 {digest}"


@pytest.mark.parametrize(
    ("names", "target"),
    [
        ("a b c", "c"),
        ("Class b c", "Class"),
        ("class b target", "target"),
        ("class target c", None),
    ],
)
def test_the_target_of_an_arff_file(tmp_path, names, target):
    header = "".join(f"@attribute {name} numeric\n" for name in names.split())
    write(tmp_path / "toy.arff", f"@relation r\n{header}@data\n0.5,1.5,2.5\n")
    if target is None:
        with pytest.raises(ValueError, match=r"toy\.arff: the target may be any of class, target;"):
            load("toy", tmp_path)
        return
    data = load("toy", tmp_path)
    expected = dict(zip(names.split(), [0.5, 1.5, 2.5], strict=True))
    assert data.y.tolist() == [expected.pop(target)] and data.X.iloc[0].to_dict() == expected


def test_load_bundled_sets():
    for name in BUNDLED:
        data = load(f"sklearn:{name}")
        assert (
            data.name == f"sklearn:{name}" and data.n_train is None and len(data.X) == len(data.y)
        )
    data = load("sklearn:diabetes", "no folder is needed")
    np.testing.assert_array_equal(data.X.to_numpy(), load_diabetes().data)
    np.testing.assert_array_equal(data.y, load_diabetes().target)
    with pytest.raises(ValueError, match="'moons'; there are iris, digits"):
        load("sklearn:moons")


@pytest.fixture
def openml(monkeypatch):
    """Stand in for scikit-learn's loader; the list takes what it was asked for."""
    asked = []

    def serve(answer):
        def fetch(**wanted):
            asked.append(wanted)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        return asked

    return serve


def bunch(*targets):
    frame = pd.DataFrame(
        {
            "digit": pd.Series(["0", "1", None], dtype="category"),
            "number": pd.Series([4, None, 5], dtype="Int64"),
            "class": pd.Series(["1", "2", "3"], dtype="category"),
        }
    )
    return Bunch(
        data=frame.drop(columns=list(targets)),
        target=frame[targets[0]] if len(targets) == 1 else None,
        target_names=list(targets),
        details={"name": "toy", "version": "2", "id": "7"},
    )


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("7", {"data_id": 7}),
        ("toy", {"name": "toy", "version": "active"}),
        ("toy@2", {"name": "toy", "version": 2}),
    ],
)
def test_load_from_openml(tmp_path, openml, name, wanted):
    asked = openml(bunch("class"))
    data = load(f"openml:{name}", tmp_path)
    assert wanted.items() <= asked[0].items() and asked[0]["data_home"] == tmp_path
    # values of nominal attributes are strings, digits too
    assert data.X.dtypes.tolist() == [object, np.float64]
    assert data.X["digit"].tolist()[:2] == ["0", "1"] and isinstance(data.X["digit"][2], float)
    np.testing.assert_array_equal(data.X["number"], [4.0, np.nan, 5.0])
    assert data.y.tolist() == ["1", "2", "3"] and data.y.dtype == object
    assert data.source == "OpenML's toy, version 2, number 7"


def test_openml_errors(tmp_path, openml):
    openml(bunch())
    with pytest.raises(ValueError, match="'toy' of OpenML must have one target, but has none"):
        load("openml:toy")
    openml(bunch("class", "digit"))
    with pytest.raises(ValueError, match="but has .*digit"):
        load("openml:toy")
    openml(RuntimeError("a damaged file"))
    with pytest.raises(ValueError, match="'toy' of OpenML cannot be loaded: a damaged file"):
        load("openml:toy")
    openml(URLError("no route to host"))
    with pytest.raises(ConnectionError, match="'toy' of OpenML.*a network is needed.*no route"):
        load("openml:toy", tmp_path)
    for name in ("", "a b", "toy@", "toy@x", "toy@0", "@2", "a/b", "toy@1@2"):
        with pytest.raises(ValueError, match="NAME@VERSION or a number, but got"):
            load(f"openml:{name}")

"""Loading of data sets and tables, and their numeric encoding."""

import bz2
import gzip
import hashlib
import io

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_diabetes, load_iris

from evotree.experiments import readers
from evotree.experiments.datasets import (
    OFFICIAL_TRAIN_ROWS,
    load,
    make_preprocessor,
    read_csv,
)

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


# ---- load ----------------------------------------------------------------------------------------


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


def test_load_accepts_a_string_as_folder(tmp_path):
    write(tmp_path / "toy.csv", CSV)
    assert len(load("toy", str(tmp_path)).y) == 3


def test_load_prefers_the_compressed_file(tmp_path):
    write(tmp_path / "toy.csv", "a,target\n1,plain\n")
    write(tmp_path / "toy.csv.gz", "a,target\n1,compressed\n")
    assert load("toy", tmp_path).y.tolist() == ["compressed"]


def test_load_npz(tmp_path):
    pixels = np.arange(12, dtype=np.uint8).reshape(4, 3)
    np.savez_compressed(tmp_path / "digits.npz", data=pixels, target=np.array([0, 1, 1, 0]))
    data = load("digits", tmp_path)
    assert list(data.X.columns) == ["x1", "x2", "x3"]
    np.testing.assert_array_equal(data.X.to_numpy(), pixels)
    assert data.X.to_numpy().dtype == np.uint8
    assert data.y.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"data": np.zeros((2, 2))}, "'data' and 'target'"),
        ({"data": np.zeros(3), "target": np.zeros(3)}, "shapes are"),
        ({"data": np.zeros((3, 2)), "target": np.zeros(2)}, "shapes are"),
        ({"data": np.zeros((0, 2)), "target": np.zeros(0)}, "shapes are"),
        ({"data": np.zeros((2, 0)), "target": np.zeros(2)}, "at least one feature"),
    ],
)
def test_load_npz_of_wrong_content(tmp_path, arrays, message):
    np.savez(tmp_path / "digits.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load("digits", tmp_path)


@pytest.mark.parametrize("content", [b"not a zip file", b"PK\x03\x04 broken", b""])
def test_load_damaged_npz(tmp_path, content):
    (tmp_path / "digits.npz").write_bytes(content)
    with pytest.raises(ValueError, match="digits.npz"):
        load("digits", tmp_path)


def test_official_splits(tmp_path):
    assert OFFICIAL_TRAIN_ROWS["satimage"] == 4435 and len(OFFICIAL_TRAIN_ROWS) == 10
    write(tmp_path / "dna.csv", "a,target\n" + "1,x\n" * 2001, checksum=False)
    assert load("dna", tmp_path).n_train == 2000
    write(tmp_path / "dna.csv", "a,target\n" + "1,x\n" * 2000, checksum=False)
    with pytest.raises(ValueError, match="2000 rows"):
        load("dna", tmp_path)


def test_missing_data_set_says_what_was_looked_for_and_what_is_there(tmp_path):
    write(tmp_path / "iris.csv.gz", CSV)
    write(tmp_path / "wine.csv", CSV)
    with pytest.raises(FileNotFoundError) as caught:
        load("rice", tmp_path)
    message = str(caught.value)
    for part in (str(tmp_path), "rice.csv.gz", "rice.csv", "rice.npz", "iris.csv.gz, wine.csv"):
        assert part in message
    assert "checksums" not in message
    with pytest.raises(FileNotFoundError, match="no data sets"):
        (tmp_path / "empty").mkdir()
        load("rice", tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match="not a folder"):
        load("rice", tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["", "../iris", "a/b"])
def test_name_must_be_plain(tmp_path, name):
    with pytest.raises(ValueError, match="plain name"):
        load(name, tmp_path)


def test_checksum_mismatch(tmp_path):
    path = write(tmp_path / "toy.csv", CSV)
    load("toy", tmp_path)
    path.write_text(CSV.replace("0.5", "0.6"))
    with pytest.raises(ValueError, match="checksum"):
        load("toy", tmp_path)


def test_checksum_of_another_file_does_not_matter(tmp_path):
    write(tmp_path / "other.csv", CSV)
    write(tmp_path / "toy.csv", CSV, checksum=False)
    assert len(load("toy", tmp_path).y) == 3


def test_checksum_in_binary_notation(tmp_path):
    write(tmp_path / "toy.csv", CSV, checksum=False)
    (tmp_path / "checksums.txt").write_text("0" * 64 + " *toy.csv\n")
    with pytest.raises(ValueError, match="checksum"):
        load("toy", tmp_path)


@pytest.mark.parametrize(
    "content, message",
    [
        ("a,b\n1,2\n", "last column must be 'target', but it is 'b'"),
        ("target,b\n1,2\n", "last column must be 'target'"),
        ("a,target\n1,x\n2,\n", "missing in 1 of 2 rows"),
        ("target\n1\n2\n", "at least one feature"),
    ],
)
def test_load_csv_of_wrong_content(tmp_path, content, message):
    write(tmp_path / "toy.csv", content)
    with pytest.raises(ValueError, match=message):
        load("toy", tmp_path)


# ---- other forms of files: their details are tests of the readers --------------------------------

ARFF = """@relation r
@attribute size numeric
@attribute 'its colour' {red, "dark blue"}
@attribute class {a, b}
@data
1.5, 'dark blue', a
?, ?, b
"""


@pytest.mark.parametrize("ending", [".arff", ".arff.gz"])
def test_load_arff(tmp_path, ending):
    write(tmp_path / f"toy{ending}", ARFF)
    data = load("toy", tmp_path)
    assert list(data.X) == ["size", "its colour"] and data.y.tolist() == ["a", "b"]
    assert data.X.dtypes.tolist() == [np.float64, object]
    assert data.X.iloc[0].tolist() == [1.5, "dark blue"] and data.X.iloc[1].isna().all()
    assert make_preprocessor(data.X).fit_transform(data.X).tolist() == [[1.5, 1.0], [1.5, 1.0]]
    write(tmp_path / f"toy{ending}", ARFF + "2, red, a\n", checksum=False)
    with pytest.raises(ValueError, match="checksum"):
        load("toy", tmp_path)


@pytest.mark.parametrize("ending", [".libsvm", ".svm", ".txt", ".svm.gz", ".txt.bz2"])
def test_load_libsvm(tmp_path, ending, monkeypatch):
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X, y, text := io.BytesIO(), zero_based=False)
    raw = bz2.compress(text.getvalue()) if ending.endswith("bz2") else text.getvalue()
    write(tmp_path / f"toy{ending}", raw)
    data = load("toy", tmp_path)
    np.testing.assert_array_equal(data.X.to_numpy(), X)
    np.testing.assert_array_equal(data.y, y)
    assert list(data.X) == ["x1", "x2", "x3", "x4"] and data.y.dtype == np.int64
    monkeypatch.setattr(readers, "_memory", lambda: 2.0 * X.nbytes - 1.0)
    with pytest.raises(MemoryError, match="4 columns and 150 rows"):
        load("toy", tmp_path)


def test_missing_data_set_names_near_ones(tmp_path):
    for file_name in ("Segment.svm.gz", "vehicle.csv", "checksums.txt", "notes.md"):
        (tmp_path / file_name).write_text("")
    with pytest.raises(FileNotFoundError, match=r"SEGMNT\.arff.*did you mean Segment\?") as caught:
        load("SEGMNT", tmp_path)
    assert "there are Segment.svm.gz, vehicle.csv" in str(caught.value)
    for name, hint in [
        ("vehicle.csv", "mean vehicle"),
        ("wine", "mean sklearn:wine"),
        ("x", "for"),
    ]:
        with pytest.raises(FileNotFoundError, match=hint) as caught:
            load(name, tmp_path)
        assert ("did you mean" in str(caught.value)) == (name != "x")
    with pytest.raises(FileNotFoundError, match="'checksums' is not in"):
        load("checksums", tmp_path)
    with pytest.raises(ValueError, match="data_home must be the folder of the data set 'vehicle'"):
        load("vehicle")


# ---- scikit-learn and OpenML ---------------------------------------------------------------------


def test_load_bundled_sets():
    for name in readers.BUNDLED:
        data = load(f"sklearn:{name}")
        assert (
            data.name == f"sklearn:{name}" and data.n_train is None and len(data.X) == len(data.y)
        )
    data = load("sklearn:diabetes", "no folder is needed")
    np.testing.assert_array_equal(data.X.to_numpy(), load_diabetes().data)
    np.testing.assert_array_equal(data.y, load_diabetes().target)
    with pytest.raises(ValueError, match="'moons'; there are iris, digits"):
        load("sklearn:moons")


def test_load_from_openml(tmp_path, monkeypatch):
    found = pd.DataFrame({"a": [1.0, 2.0]}), np.array(["u", "v"])
    monkeypatch.setattr(
        "evotree.experiments.datasets.fetch_from_openml",
        lambda name, home: found if (name, home) == ("toy@2", tmp_path) else None,
    )
    data = load("openml:toy@2", tmp_path)
    assert data.X is found[0] and data.y is found[1] and data.name == "openml:toy@2"


# ---- read_csv ------------------------------------------------------------------------------------


def test_read_csv_types(tmp_path):
    table = read_csv(
        write(
            tmp_path / "t.csv",
            "whole,real,text,truth,some_truth,mixed,empty\n"
            "1,0.1,x,true,TRUE,1,\n2,nan,NA,false,,b,\n3,1e-3,z,true,FALSE,3,NaN\n",
        )
    )
    assert table["whole"].tolist() == [1, 2, 3]
    np.testing.assert_array_equal(table["real"], [0.1, np.nan, 1e-3])
    assert table["text"].tolist()[::2] == ["x", "z"] and pd.isna(table["text"][1])
    assert table["truth"].tolist() == ["true", "false", "true"]
    assert table["some_truth"].tolist()[::2] == ["TRUE", "FALSE"]
    assert table["mixed"].tolist() == ["1", "b", "3"]
    assert table["empty"].isna().all() and table["empty"].dtype == np.float64
    strings = ["text", "truth", "some_truth", "mixed"]
    assert all(table[c].dtype == object for c in strings)
    assert list(table) == ["whole", "real", "text", "truth", "some_truth", "mixed", "empty"]


def test_read_csv_keeps_the_digits_of_numbers(tmp_path):
    values = np.random.default_rng(0).normal(size=(200, 3)) * 10.0 ** np.arange(-8, 16, 8)
    pd.DataFrame(values, columns=list("abc")).to_csv(tmp_path / "t.csv.gz", index=False)
    table = read_csv(tmp_path / "t.csv.gz")
    np.testing.assert_allclose(table.to_numpy(), values, rtol=1e-15)


def test_read_csv_skips_a_byte_order_mark(tmp_path):
    path = write(tmp_path / "t.csv", b"\xef\xbb\xbfa,b\n1,2\n")
    assert list(read_csv(path)) == ["a", "b"]


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "no data rows"),
        (",,a\n1,2,3\n", "distinct; repeated: ''"),
        ("a,b,a\n1,2,3\n", "distinct; repeated: 'a'"),
        ("a,b\n1,2\n1,2,3\n", "2 columns"),
        ("a,b\n1,2,3\n4,5,6\n", "2 columns"),
        ("a;b\n1;2\n", "separated by commas"),
        (b"a,b\n\xff\xfe,\x80\n", "UTF-8"),
        ('a,b\n"1,2\n', "not a table"),
    ],
)
def test_read_csv_errors(tmp_path, content, message):
    path = write(tmp_path / "bad.csv", content)
    with pytest.raises(ValueError, match=message) as caught:
        read_csv(path)
    assert str(path) in str(caught.value)


def test_read_csv_of_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such file.*none\.csv"):
        read_csv(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is not a file"):
        read_csv(tmp_path)


def test_read_csv_damaged_gzip(tmp_path):
    path = tmp_path / "bad.csv.gz"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="cannot be read"):
        read_csv(path)
    rows = "\n".join(f"{v:.17f},{v}" for v in np.random.default_rng(0).random(2000))
    whole = gzip.compress(("a,b\n" + rows).encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cannot be read"):
        read_csv(path)


# ---- make_preprocessor ---------------------------------------------------------------------------


@pytest.fixture
def mixed():
    text = "n1,c1,n2,n3,c2\n1,b,4,,x\n,a,5,,\n3,a,,,x\n4,,7,,y\n"
    return pd.read_csv(io.StringIO(text))


def test_preprocessor_keeps_the_order_and_names_the_outputs(mixed):
    preprocessor = make_preprocessor(mixed).fit(mixed)
    expected = ["n1", "c1_a", "c1_b", "n2", "n3", "c2_x", "c2_y"]
    assert preprocessor.get_feature_names_out().tolist() == expected
    Z = preprocessor.transform(mixed)
    assert isinstance(Z, np.ndarray) and Z.dtype == np.float64
    mean1, mean2 = 8 / 3, 16 / 3
    np.testing.assert_allclose(
        Z,
        [
            [1, 0, 1, 4, 0, 1, 0],
            [mean1, 1, 0, 5, 0, 1, 0],
            [3, 1, 0, mean2, 0, 1, 0],
            [4, 1, 0, 7, 0, 0, 1],
        ],
    )


def test_preprocessor_works_on_object_columns_too(mixed):
    as_object = mixed.astype({"c1": object, "c2": object})
    np.testing.assert_array_equal(
        make_preprocessor(as_object).fit_transform(as_object),
        make_preprocessor(mixed).fit_transform(mixed),
    )


def test_preprocessor_learns_from_the_fitted_rows_only(mixed):
    preprocessor = make_preprocessor(mixed).fit(mixed.iloc[1:3])
    Z = preprocessor.transform(mixed)
    # "b" of c1 was not fitted: zeros; the mean of n1 is that of the one fitted value
    assert preprocessor.get_feature_names_out()[1] == "c1_a"
    np.testing.assert_array_equal(Z[:, :2], [[1, 0], [3, 1], [3, 1], [4, 1]])
    assert np.isfinite(Z).all()


def test_preprocessor_of_numbers_alone_changes_nothing():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=list("abc"))
    np.testing.assert_array_equal(make_preprocessor(X).fit_transform(X), X.to_numpy())


def test_preprocessor_takes_a_loaded_data_set(tmp_path):
    write(tmp_path / "toy.csv", CSV)
    data = load("toy", tmp_path)
    Z = make_preprocessor(data.X).fit_transform(data.X)
    assert Z.shape == (3, 6) and np.isfinite(Z).all()


def test_preprocessor_takes_truth_values():
    X = pd.DataFrame({"a": [True, False, True]})
    assert make_preprocessor(X).fit_transform(X).ravel().tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "X, message",
    [
        (np.zeros((2, 2)), "DataFrame"),
        (pd.DataFrame(index=[0, 1]), "at least one column"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "repeated: a"),
    ],
)
def test_preprocessor_errors(X, message):
    with pytest.raises(ValueError, match=message):
        make_preprocessor(X)

"""The readers of ARFF, of the format of LIBSVM, and of OpenML."""

import gzip
import hashlib
import io
import json
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse

import numpy as np
import pandas as pd
import pytest
import scipy.io.arff
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from evotree.experiments import readers
from evotree.experiments.readers import fetch_from_openml, read_arff, read_libsvm

# ---- ARFF ----------------------------------------------------------------------------------------


def arff(folder, attributes, rows, ending=".arff"):
    """Write an ARFF file and read it."""
    text = "\n".join(["% about", "@relation 'a b'", *attributes, "@data", *rows]) + "\n"
    path = folder / f"toy{ending}"
    path.write_bytes(gzip.compress(text.encode()) if ending == ".arff.gz" else text.encode())
    return read_arff(path)


NUMBER = "@attribute number real"
LABEL = "@attribute class {u, v}"


def test_arff_types_quotes_and_missing_values(tmp_path):
    X, y = arff(
        tmp_path,
        [
            "@ATTRIBUTE age INTEGER",
            "@attribute\t'the height'\treal [0, 2]",
            '  @attribute "place" string  ',
            "@attribute nominal {'a b', \"c'd\", 50%, é}",
            "@attribute class {u}",
        ],
        ["2.5, 1e-3, 'New, York', 'a b', u", "% a comment", "", "?,?,?,?,u", "3,-1,'?',é,u"],
    )
    assert list(X) == ["age", "the height", "place", "nominal"]
    assert X.dtypes.tolist() == [np.float64, np.float64, object, object]
    # fractions stay, whatever the type is called
    np.testing.assert_array_equal(X["age"], [2.5, np.nan, 3.0])
    np.testing.assert_array_equal(X["the height"], [1e-3, np.nan, -1.0])
    assert X["place"].tolist()[::2] == ["New, York", "?"]
    assert X["nominal"].tolist()[::2] == ["a b", "é"]
    assert all(isinstance(value, float) for value in X.loc[1, ["place", "nominal"]])
    assert y.tolist() == ["u"] * 3


def test_arff_sparse_rows(tmp_path):
    rows = ["{0 2.5, 1 b, 2 v}", "{}", "{1 ?, 0 ?}", "{2 v}"]
    X, y = arff(tmp_path, [NUMBER, "@attribute letter {a, b}", LABEL], rows)
    np.testing.assert_array_equal(X["number"], [2.5, 0.0, np.nan, 0.0])
    assert X["letter"].fillna("missing").tolist() == ["b", "a", "missing", "a"]
    assert y.tolist() == ["v", "u", "u", "v"]


def test_arff_in_several_parts(tmp_path, monkeypatch):
    rows = [f"{i}, {'uv'[i % 2]}" if i % 3 else f"?, {'uv'[i % 2]}" for i in range(40)]
    whole = arff(tmp_path, [NUMBER, LABEL], rows)
    monkeypatch.setattr(readers, "_CHUNK", 14)
    parts = arff(tmp_path, [NUMBER, LABEL], rows, ".arff.gz")
    pd.testing.assert_frame_equal(whole[0], parts[0])
    assert whole[1].tolist() == parts[1].tolist() and len(parts[1]) == 40
    monkeypatch.setattr(readers, "_memory", lambda: 8.0 * 2 * 35 * 2 - 1.0)
    with pytest.raises(MemoryError, match="2 columns and 35 rows"):
        arff(tmp_path, [NUMBER, LABEL], rows)


@pytest.mark.parametrize(
    "names, target",
    [
        ("a b c", "c"),
        ("Class b c", "Class"),
        ("a TARGET c", "TARGET"),
        ("class b target", "target"),
        ("target b class", "class"),
    ],
)
def test_arff_target(tmp_path, names, target):
    X, y = arff(tmp_path, [f"@attribute {n} numeric" for n in names.split()], ["0.5,1.5,2.5"])
    expected = dict(zip(names.split(), [0.5, 1.5, 2.5], strict=True))
    assert y.tolist() == [expected.pop(target)] and X.iloc[0].to_dict() == expected


@pytest.mark.parametrize(
    "values, kind", [("1 2 2", "i"), ("1.5 2 2", "f"), ("1 ? 2", "f"), ("1 inf 2", "f")]
)
def test_arff_target_of_whole_numbers(tmp_path, values, kind):
    _, y = arff(tmp_path, [NUMBER, "@attribute y numeric"], [f"0,{v}" for v in values.split()])
    assert y.dtype.kind == kind


@pytest.mark.parametrize(
    "attributes, rows, message",
    [
        ([NUMBER, LABEL], [], "no data rows"),
        ([NUMBER, LABEL], ["1,u", "1,u,3"], "line 7: Bad @DATA instance format: 1,u,3"),
        ([NUMBER, LABEL], ["1,50%"], "line 6: Data value 50% not found in nominal declaration"),
        ([NUMBER, LABEL], ["x,u"], "line 6: Invalid numerical value"),
        ([NUMBER, LABEL], ["1,New York"], "line 6: Invalid layout"),
        ([NUMBER, LABEL], ["{0 1, 2 u}"], "line 6: Bad @DATA"),
        ([NUMBER, LABEL], ["1" * 999 + ",,,"], "line 6: Bad @DATA .{90,190}[.]{3}$"),
        ([NUMBER, LABEL], ["1," + "u" * 200_000], "line 6: field larger"),
        ([NUMBER, "@attribute day date 'yyyy'", LABEL], ["1,2,u"], "line 4: the type of an attr"),
        ([NUMBER, "@attribute empty {}", LABEL], ["1,2,u"], "cannot read line 4"),
        ([NUMBER, NUMBER], ["1,2"], "number, this name is already in use in line 3"),
        (["@attribute Class real", "@attribute target real", NUMBER], ["1,2,3"], "Class, target;"),
    ],
)
def test_arff_errors(tmp_path, attributes, rows, message):
    with pytest.raises(ValueError, match=message) as caught:
        arff(tmp_path, attributes, rows)
    assert str(tmp_path / "toy.arff") in str(caught.value)


@pytest.mark.parametrize(
    "ending, content, message",
    [
        (".arff", b"", "line 0: Invalid layout"),
        (".arff", b"a,b\n1,2\n", "line 2: Invalid layout"),
        (".arff", b"@relation\n@data\n", "cannot read line 1"),
        (".arff", b"@relation r\n@attribute a {\xff}\n@data\n", "UTF-8"),
        (".arff.gz", b"@relation r\n", "damaged or not gzip"),
        (
            ".arff.gz",
            gzip.compress(b"@relation r\n" + b"% a comment\n" * 99, mtime=0)[:-9],
            "damaged or not gzip",
        ),
    ],
)
def test_arff_of_wrong_content(tmp_path, ending, content, message):
    path = tmp_path / f"toy{ending}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_arff(path)
    assert str(path) in str(caught.value)


numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.sampled_from(["red", "dark-blue", "2"])


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(st.tuples(numbers, values, st.none() | numbers, values), min_size=1))
def test_arff_agrees_with_scipy(tmp_path_factory, rows):
    kinds = ["numeric", "{red, dark-blue, 2}"] * 2
    attributes = [f"@attribute a{m} {kind}" for m, kind in enumerate(kinds)]
    folder = tmp_path_factory.mktemp("arff")
    lines = [",".join("?" if v is None else str(v) for v in row) for row in rows]
    X, y = arff(folder, attributes, lines)
    truth = pd.DataFrame(scipy.io.arff.loadarff(folder / "toy.arff")[0])
    for name in ("a0", "a2"):
        np.testing.assert_array_equal(X[name], truth[name])
    assert X["a1"].tolist() == truth["a1"].str.decode("utf-8").tolist()
    assert y.tolist() == truth["a3"].str.decode("utf-8").tolist()


@settings(max_examples=200, deadline=None)
@given(
    header=st.lists(st.text("@atribue 'd{}%,\"\\\tx1", max_size=25), max_size=2),
    rows=st.lists(st.text("{}01,'\"\\? %uv\t;é", max_size=12), max_size=3),
)
def test_arff_of_any_text_gives_a_table_or_says_why_not(tmp_path_factory, header, rows):
    try:
        X, y = arff(tmp_path_factory.getbasetemp(), [NUMBER, *header, LABEL], rows)
    except ValueError as error:
        assert "toy.arff" in str(error)
    else:
        assert X["number"].dtype == np.float64 and len(X) == len(y) > 0
        assert set(y[pd.notna(y)]) <= {"u", "v"}


# ---- LIBSVM --------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.dictionaries(st.integers(1, 9), numbers, min_size=1, max_size=4), min_size=1, max_size=9
    )
)
def test_libsvm_agrees_with_a_naive_table(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "naive.svm"
    lines = [f"{i % 2} " + " ".join(f"{k}:{r[k]!r}" for k in sorted(r)) for i, r in enumerate(rows)]
    path.write_text("# a comment\n" + "\n".join(lines) + "\n")
    X, y = read_libsvm(path)
    naive = np.zeros((len(rows), max(map(max, rows))))
    for i, row in enumerate(rows):
        for k, value in row.items():
            naive[i, k - 1] = value
    np.testing.assert_array_equal(X.to_numpy(), naive)
    assert list(X) == [f"x{m + 1}" for m in range(naive.shape[1])]
    assert y.tolist() == [i % 2 for i in range(len(rows))] and y.dtype == np.int64


@pytest.mark.parametrize(
    "ending, content, message",
    [
        (".svm", b"", "no data rows"),
        (".svm", b"a,b\n1,2\n", "format of LIBSVM"),
        (".svm", b"1,2 1:3\n", "format of LIBSVM"),
        (".svm", b"1 3:1 2:1\n", "sorted and unique"),
        (".svm", b"1 99999999999999999999:1\n", "format of LIBSVM"),
        (".svm.gz", b"1 1:2\n", "damaged"),
        (".svm.bz2", b"1 1:2\n", "damaged"),
        (".svm.gz", gzip.compress(b"1 1:2\n" * 99, mtime=0)[:-9], "damaged"),
    ],
)
def test_libsvm_errors(tmp_path, ending, content, message):
    path = tmp_path / f"toy{ending}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_libsvm(path)
    assert str(path) in str(caught.value)


def test_libsvm_that_would_not_fit_into_memory(tmp_path):
    path = tmp_path / "toy.svm"
    path.write_text("1 1:1\n" * 1000 + "2 2000000000:1\n")
    assert load_svmlight_file(path)[0].nnz == 1001
    with pytest.raises(MemoryError, match=r"2000000000 columns and 1001 rows.*1.49e\+04 GiB"):
        read_libsvm(path)
    path.write_text("1.5 0:1\n2 1:1\n")
    assert read_libsvm(path)[1].tolist() == [1.5, 2.0]


# ---- OpenML --------------------------------------------------------------------------------------

DENSE = """@relation toy
@attribute 'the age' integer
@attribute number integer
@attribute digit {0, 1}
@attribute place string
@attribute class {1, 2, 3}
@data
1, 4, 0, 'New York', 1
2, ?, ?, ?, 2
3, 5, 1, "Paris", 3
"""
DENSE_TYPES = {"the age": "numeric", "number": "numeric", "digit": "nominal", "place": "string"}
SPARSE = """@relation toy
@attribute a numeric
@attribute b {x, y}
@attribute class {u, v}
@data
{0 2.5, 2 v}
{1 y}
{0 -1}
"""
SPARSE_TYPES = {"a": "numeric", "b": "nominal"}


class Answer(io.BytesIO):
    """What urlopen returns."""

    def info(self):
        return {}


@pytest.fixture
def openml(monkeypatch):
    """Make a stand-in for OpenML's server, which knows one data set: toy, number 7."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)

    def serve(arff, types, sparse=False, targets=("class",)):
        about = {"name": "toy", "version": "1", "status": "active", "description": "-"}
        about |= {"format": "Sparse_ARFF" if sparse else "ARFF", "url": "https://x.org/7/toy.arff"}
        about["md5_checksum"] = hashlib.md5(arff.encode()).hexdigest()
        no = {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
        features = [
            {"index": str(m), "name": name, "data_type": kind, **no}
            | {"is_target": "true" if name in targets else "false"}
            for m, (name, kind) in enumerate([*types.items(), ("class", "nominal")])
        ]
        api, named = "/api/v1/json/data/", "/api/v1/json/data/list/data_name/toy/limit/2"
        found = [{"did": 7, "version": version, "status": "active"} for version in (1, 2)]
        answers = {
            f"{named}/data_version/2": {"data": {"dataset": found[1:]}},
            f"{named}/status/active/": {"data": {"dataset": found[:1]}},
            f"{api}7": {"data_set_description": about},
            f"{api}features/7": {"data_features": {"feature": features}},
            f"{api}qualities/7": {"data_qualities": {"quality": []}},
        }
        asked = []

        def urlopen(request, *args, **options):
            path = urlparse(request.full_url).path
            asked.append(path)
            if path == "/7/toy.arff":
                return Answer(arff.encode())
            if path not in answers:
                raise HTTPError(path, 412, "no such data set", None, io.BytesIO())
            return Answer(json.dumps(answers[path]).encode())

        monkeypatch.setattr("sklearn.datasets._openml.urlopen", urlopen)
        return asked

    return serve


@pytest.fixture
def no_network(monkeypatch):
    """Return a function that cuts the network."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)

    def fail(request, *args, **options):
        raise URLError("no route to host")

    return lambda: monkeypatch.setattr("sklearn.datasets._openml.urlopen", fail)


@pytest.mark.parametrize("name", ["7", "toy", "Toy@2"])
def test_openml_by_name_and_number(tmp_path, openml, no_network, name):
    asked = openml(DENSE, DENSE_TYPES)
    X, y = fetch_from_openml(name, tmp_path)
    assert list(X) == list(DENSE_TYPES)
    assert X.dtypes.tolist()[1:] == [np.float64, object, object]
    np.testing.assert_array_equal(X["number"], [4.0, np.nan, 5.0])
    # values of nominal attributes are strings, digits too
    assert X["digit"].tolist()[::2] == ["0", "1"] and isinstance(X["digit"][1], float)
    assert X["place"].tolist()[::2] == ["New York", "Paris"] and isinstance(X["place"][1], float)
    assert y.tolist() == ["1", "2", "3"] and y.dtype == object
    assert any("data_version/2" in path for path in asked) == (name == "Toy@2")
    # the second time everything is in the cache
    no_network()
    again = fetch_from_openml(name, tmp_path)
    pd.testing.assert_frame_equal(again[0], X)
    assert again[1].tolist() == y.tolist()


def test_openml_agrees_with_our_reader_of_arff(tmp_path, openml):
    openml(DENSE, DENSE_TYPES)
    (tmp_path / "toy.arff").write_text(DENSE)
    X, y = read_arff(tmp_path / "toy.arff")
    pd.testing.assert_frame_equal(fetch_from_openml("toy", tmp_path)[0], X, check_dtype=False)
    assert y.tolist() == ["1", "2", "3"]


def test_openml_sparse(tmp_path, openml, monkeypatch):
    openml(SPARSE, SPARSE_TYPES, sparse=True)
    X, y = fetch_from_openml("toy", tmp_path)
    assert X["a"].tolist() == [2.5, 0.0, -1.0] and X["b"].tolist() == ["x", "y", "x"]
    assert X["b"].dtype == object and y.tolist() == ["v", "u", "u"]
    monkeypatch.setattr(readers, "_memory", lambda: 8.0)
    with pytest.raises(MemoryError, match="'toy' of OpenML"):
        fetch_from_openml("toy", tmp_path)


def test_openml_errors(tmp_path, openml):
    openml(DENSE, DENSE_TYPES, targets=())
    with pytest.raises(ValueError, match="must have one target, but has none"):
        fetch_from_openml("toy", tmp_path / "none")
    openml(DENSE, DENSE_TYPES, targets=("class", "digit"))
    with pytest.raises(ValueError, match="but has .*digit.*class"):
        fetch_from_openml("toy", tmp_path / "two")
    openml(DENSE.replace("string", "date"), DENSE_TYPES)
    with pytest.raises(ValueError, match="'toy' of OpenML cannot be loaded: the type of an attr"):
        fetch_from_openml("toy", tmp_path / "date")
    for name in ("8", "tov", "toy@3"):
        with pytest.raises(ValueError, match=f"'{name}' of OpenML cannot be loaded: .*found"):
            fetch_from_openml(name, tmp_path)
    for name in ("", "a b", "toy@", "toy@x", "toy@0", "@2", "a/b", "toy@1@2"):
        with pytest.raises(ValueError, match="NAME@VERSION or a number, but got"):
            fetch_from_openml(name, tmp_path)


@pytest.mark.filterwarnings("ignore:A network error occurred:UserWarning")
def test_openml_without_a_network(tmp_path, no_network):
    no_network()
    with pytest.raises(
        ConnectionError, match="'toy' of OpenML.*a network is needed.*no route"
    ) as e:
        fetch_from_openml("toy", tmp_path)
    assert str(tmp_path) in str(e.value)

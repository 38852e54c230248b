"""How columns of tables become features, and readers of CSV and Parquet."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer

from evotree.schema import CategoricalColumn, NumericColumn
from evotree.tables.columns import encode, fit_columns
from evotree.tables.readers import read_table

# ---- columns -------------------------------------------------------------------------------------


def names_of(frame):
    return list(fit_columns(frame).features)


cells = st.lists(
    st.tuples(*[st.none() | st.floats(-1e9, 1e9)] * 3, st.integers(0, 3)),
    min_size=1,
    max_size=9,
).filter(lambda rows: any(weight for *_, weight in rows))


def table_of(rows):
    return pd.DataFrame(rows, columns=["a", "b", "c"], dtype=np.float64)


@given(training=cells, later=cells)
def test_numbers_are_filled_as_scikit_learn_fills_them(training, later):
    frame, others = (table_of([row[:3] for row in rows]) for rows in (training, later))
    imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(frame)
    columns = fit_columns(frame)
    for rows in (frame, others):
        features = pd.DataFrame(encode(columns, rows), columns=list(columns.features))
        np.testing.assert_allclose(features[list("abc")], imputer.transform(rows))
        for name in "abc":
            indicator = features.get(f"{name} is missing")
            assert (indicator is not None) == (
                0 < frame[name].isna().sum() < len(frame)
            )
            assert indicator is None or (indicator == rows[name].isna()).all()


@given(rows=cells, order=st.randoms())
def test_a_weight_is_a_number_of_rows(rows, order):
    order.shuffle(rows)
    frame = table_of([row[:3] for row in rows])
    frame["d"] = pd.Series(
        ["a" if (row[0] or 0.0) > 0.0 else "b" for row in rows], dtype=object
    )
    weight = np.array([row[3] for row in rows], dtype=np.float64)
    repeated = frame.loc[np.repeat(frame.index, weight.astype(int))]
    try:
        expected = fit_columns(repeated)
    except ValueError as error:
        expected = str(error)
    for factor in (1.0, 0.5):
        try:
            fitted = fit_columns(frame, sample_weight=factor * weight)
        except ValueError as error:
            fitted = str(error)
        assert fitted == expected


levels = st.sampled_from(["a", "b", "c", "missing"]) | st.none()


@given(
    training=st.lists(levels, min_size=1, max_size=9),
    later=st.lists(levels | st.just("new")),
)
def test_levels_are_told_apart_by_as_few_features_as_it_takes(training, later):
    levels = set(training)
    frame = pd.DataFrame({"a": pd.Series(training, dtype=object), "b": 0.0})
    columns = fit_columns(frame)
    features = encode(columns, frame)[:, :-1]
    # A level has a feature of its own; of two, and of one with missing cells, one makes none.
    n_features = len(levels) - (len(levels - {None}) <= 2)
    assert features.shape[1] == n_features
    assert len({tuple(row) for row in features}) == len(levels)
    names = columns.features
    assert ("a is missing" in names) == (None in levels and len(levels) > 1)
    assert ("a is 'missing'" in names) == ("missing" in columns[0].levels)
    rows = {level: tuple(row) for level, row in zip(training, features, strict=True)}
    again = encode(
        columns, pd.DataFrame({"a": pd.Series(later, dtype=object), "b": 0.0})
    )[:, :-1]
    for level, row in zip(later, again, strict=True):
        assert tuple(row) == rows.get(level, (0.0,) * n_features)


names = st.sampled_from(
    ["a", "b", "a is b", "b is a", "a is missing", "a is 'missing'"]
)
parts = st.sampled_from(
    [[1.0, None, 2.0], ["b", "missing", None], ["'missing'", "missing", "b is a"]]
)


@given(st.dictionaries(names, parts, min_size=1))
def test_no_two_features_have_one_name(columns):
    cells = {name: pd.Series(part * 2) for name, part in columns.items()}
    frame = pd.DataFrame({**cells, "z": [1.0, 2.0] * 3})
    made = fit_columns(frame).features
    assert len(set(made)) == len(made)
    assert {name for name in frame if frame[name].dtype == np.float64} <= set(made)


def test_names_that_stay_ambiguous_are_refused():
    part = [1.0, np.nan]
    frame = pd.DataFrame({"x": part, "x is missing": part, "'x' is missing": part})
    with pytest.raises(
        ValueError, match="2 features of the name \"'x' is missing\": rename some"
    ):
        fit_columns(frame)


@given(
    st.lists(levels, min_size=2, max_size=9),
    st.permutations(["a", "b", "c", "missing", "z"]),
)
def test_the_codes_of_levels_do_not_matter(cells, order):
    plain = pd.DataFrame({"a": pd.Series(cells, dtype=object), "b": 0.0})
    coded = plain.assign(a=pd.Categorical(cells, categories=order))
    assert fit_columns(coded) == fit_columns(plain)
    np.testing.assert_array_equal(
        encode(fit_columns(plain), coded), encode(fit_columns(coded), plain)
    )


def test_the_most_frequent_of_two_levels_makes_no_feature():
    assert names_of(pd.DataFrame({"sex": ["F", "M", "F"]})) == ["sex is M"]
    assert names_of(pd.DataFrame({"sex": ["F", "M", "M", None]})) == [
        "sex is F",
        "sex is missing",
    ]
    assert names_of(pd.DataFrame({"ill": ["no", "yes"]})) == ["ill is yes"]


@pytest.mark.parametrize(
    "cell", ["1" * 400, "-" + "1" * 400, "1e999", 10**400, np.inf, "-inf"]
)
def test_a_number_beyond_all_floats_is_named(cell):
    frame = pd.DataFrame({"a": pd.Series([1.0, "2", None, cell], dtype=object)})
    # Older versions of pandas read text beyond all floats as no number.
    with pytest.raises(
        ValueError, match=r"column 'a': .* in data row 4 is (not a finite|no) number"
    ):
        encode([NumericColumn("a", 0.0)], frame)


FITTED = NumericColumn("a", 0.5), CategoricalColumn("b", ("x", "y"))


@pytest.mark.parametrize(
    ("use", "frame", "named"),
    [
        ("encode", pd.DataFrame({"a": [1.0]}), "lack 1 of the 2 columns.*'b'"),
        (
            "encode",
            pd.DataFrame({"a": [1.0, "many"], "b": "x"}),
            "'a': 'many' in data row 2 is no",
        ),
        (
            "encode",
            pd.DataFrame({"a": [1.0, 2.0, -np.inf], "b": "x"}),
            "'a': -inf in data row 3",
        ),
        (
            "encode",
            pd.DataFrame([[1, 2, "x"]], columns=["a", "a", "b"]),
            "'a' more than once",
        ),
        ("fit", np.zeros((2, 2)), "ndarray"),
        ("fit", pd.DataFrame(index=[0, 1]), "no column"),
        ("fit", pd.DataFrame({"a": ["x", "x"]}), "no column"),
        ("fit", pd.DataFrame({"a": [1.0, np.inf]}), "'a': inf in data row 2"),
        ("fit", pd.DataFrame({"a": [1.0, 2.0, np.inf]})[1:], "inf in the row 2 is"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(use, frame, named):
    with pytest.raises(ValueError, match=named):
        fit_columns(frame) if use == "fit" else encode(FITTED, frame)


# ---- readers -------------------------------------------------------------------------------------


in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(folder, name, content, **options):
    """Write a file, packed as its name says, and read it."""
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return read_table(folder / name, **options)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "table"])
def test_csv_types(tmp_path, name):
    header = "\ufeffwhole,real,text,truth,some_truth,mixed,empty\n"  # a byte order mark is skipped
    content = "1,0.1,x,true,TRUE,1,\n2,nan,NA,false,,b,\n3,1e-3,z,true,FALSE,3,NaN\n"
    table = read(tmp_path, name, header + content)
    columns = {
        "whole": [1, 2, 3],
        "real": [0.1, np.nan, 1e-3],
        "text": ["x", np.nan, "z"],
        "truth": ["True", "False", "True"],
        "some_truth": ["True", np.nan, "False"],
        "mixed": ["1", "b", "3"],
        "empty": [np.nan] * 3,
    }
    texts = dict.fromkeys(["text", "truth", "some_truth", "mixed"], object)
    pd.testing.assert_frame_equal(table, pd.DataFrame(columns).astype(texts))
    as_written = read(tmp_path, name, header + content, texts=["truth", "whole"])
    assert as_written["truth"].tolist() == ["true", "false", "true"]
    assert as_written["whole"].tolist() == ["1", "2", "3"]
    assert read(tmp_path, name, header + content, na_values=[""])["text"][1] == "NA"


@in_one_folder
@given(rows=st.lists(st.tuples(st.floats(), st.integers(-(2**53), 2**53)), min_size=1))
def test_csv_gives_back_the_numbers_that_pandas_writes(tmp_path, rows):
    frame = pd.DataFrame(rows, columns=["x", "n"])
    table = read(tmp_path, "t.csv.gz", frame.to_csv(index=False))
    np.testing.assert_allclose(table["x"].astype(float), frame["x"], rtol=1e-15)
    assert table["n"].tolist() == frame["n"].tolist()


FEW_ROWS = st.lists(
    st.tuples(
        st.floats(-1e9, 1e9),
        st.integers(-(2**53), 2**53),
        st.text("abcäöüßé .", min_size=1).filter(str.strip),
    ),
    min_size=1,
    max_size=5,
)


@in_one_folder
@given(
    rows=FEW_ROWS,
    form=st.sampled_from(
        [(",", "."), (";", ","), (";", "."), ("\t", ","), ("\t", "."), ("|", ",")]
    ),
    encoding=st.sampled_from([None, "utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    is_told=st.booleans(),
)
def test_tables_are_read_as_programs_write_them(
    tmp_path, rows, form, encoding, is_told
):
    """Separator and decimal sign need not be told: what is guessed is said."""
    sep, decimal = form
    frame = pd.DataFrame(rows, columns=["x", "n", "the text"])
    content = frame.to_csv(index=False, sep=sep, decimal=decimal)
    said = []
    told = {"sep": sep, "decimal": decimal} if is_told else {}
    told |= {"encoding": encoding} if encoding else {}
    table = read(
        tmp_path,
        "t.csv",
        content.encode(encoding or "utf-8"),
        say=said.append,
        **told,
    )
    np.testing.assert_allclose(table["x"], frame["x"], rtol=1e-15)
    assert table["n"].tolist() == frame["n"].tolist()
    assert table["the text"].tolist() == frame["the text"].tolist()
    has_sign = any("." in repr(number) for number in frame["x"])  # 1e-05 has none
    guesses = []
    if not is_told:
        guesses = ["separated"] * (sep != ",")
        guesses += ["decimal"] * (decimal == "," and has_sign)
    assert len(said) == len(guesses)
    assert all(word in line for word, line in zip(guesses, said, strict=True))


LONG_NAMES = [f"a, {k}" for k in range(3000)]
THOUSANDS = "a;b;c;d\n1.234,56;1.234;01.02.2024;1,5\n-2.000.000,1;999;y;0.500\n12,5;1.000;x;2,25"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # Numbers among words have the decimal sign of the others.
        ("a;b\n1,5;?\n3,5;7,25\n2,5;x,5\n", {"b": ["?", "7.25", "x,5"]}),
        # Points of thousands are no decimals beside commas.
        (
            THOUSANDS,
            {"a": ["1234.56", "-2000000.1", "12.5"], "c": ["01.02.2024", "y", "x"]},
        ),
        (THOUSANDS, {"b": ["1234", "999", "1000"], "d": ["1.5", "0.500", "2.25"]}),
        # A header may be longer than what separators are guessed from.
        (
            ";".join(LONG_NAMES) + "\n" + ";".join("1" for _ in LONG_NAMES),
            {"a, 2999": [1]},
        ),
        ('a;b\n"two\nlines";1\n' * 60, {"b": ["1", "b"] * 59 + ["1"]}),
    ],
)
def test_forms_are_guessed(tmp_path, content, expected):
    table = read(tmp_path, "t.csv", content)
    assert {name: table[name].tolist() for name in expected} == expected


@pytest.mark.parametrize("name", ["t.csv", "t"])
@pytest.mark.parametrize(
    ("content", "options", "named"),
    [
        (
            "a,b\n1,2\n".encode("utf-16"),
            {},
            "not written in utf-8.*utf-16, may read",
        ),
        ("ä,b\n1,2\n".encode("cp1252"), {}, "not written in utf-8.*encoding=cp1252"),
        (b"PK\x03\x04 the book", {}, "Excel.*save the table as CSV"),
        (b"\xd0\xcf\x11\xe0 the book", {}, "Excel.*save the table as CSV"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), {}, "compressed by gzip.*name"),
        (b"PAR1 the rows", {}, "Parquet.*name"),
        ("ä,b\n1,2\n", {"encoding": "ascii"}, "not written in ascii"),
        ("ä,b\n1,2\n", {"encoding": "no"}, "encoding: no"),
    ],
)
def test_what_is_no_text_in_its_encoding_is_named(
    tmp_path, name, content, options, named
):
    with pytest.raises(ValueError, match=named):
        read(tmp_path, name, content, **options)


def test_parquet(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "kind": pd.Categorical(["a", None, "b"]),
            "truth": [True, False, True],
        },
        index=[5, 6, 7],
    )
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    np.testing.assert_array_equal(table["whole"], [1.0, np.nan, 3.0])
    assert table["kind"].tolist()[::2] == ["a", "b"] and pd.isna(table["kind"][1])
    assert table["truth"].tolist() == ["True", "False", "True"]
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ValueError, match=r"t\.parquet .*pyarrow"):
        read_table(tmp_path / "t.parquet")


BAD = {
    "csv": {
        "": "No columns",
        "\n\n": "No columns",
        "a,b\n": "no data rows",
        "a,b,a\n1,2,3\n": "distinct; repeated: 'a'",
        "a,b\n1,2\n1,2,3\n": "2 columns",
        "a,b\n1,2,3\n4,5,6\n": "2 columns",
        b"a,b\n\xff\xfe,\x80\n": "utf-8",
        'a,b\n"1,2\n': "2 columns",
    },
    "csv.gz": {gzip.compress(np.random.default_rng(0).bytes(999))[:500]: "ended"},
}


@pytest.mark.parametrize(
    ("ending", "content", "message"),
    [(end, *pair) for end, contents in BAD.items() for pair in contents.items()],
)
def test_what_cannot_be_read_ends_in_one_sentence(tmp_path, ending, content, message):
    path = tmp_path / f"bad.{ending}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = rf"bad\.{ending} cannot be read: (?=.*{message}).{{5,210}}$"
    with pytest.raises(ValueError, match=said):
        read_table(path)
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="cannot be read"):
        read_table(tmp_path)

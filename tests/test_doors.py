"""A table is the same table, whoever has it: in memory and in files."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree import (
    Cost,
    EvoTreeClassifier,
    ObliqueTreeClassifier,
    load_model,
    save_model,
)
from evotree.schema import TRUTH, WHOLE, CategoricalColumn
from evotree.tables.columns import encode, positions_of, value_of
from evotree.tables.frames import read_labels
from evotree.tables.readers import EXACT_NUMBERS, read_table
from tests.quick_models import brief

LEVELS = {
    "colour": ["red", "green", "it's", None],
    "code": ["01", "02", "A1"],
    "digits": ["07", "1", "12"],
    "answer": ["true", "false"],
    "word": ["None", "some", "no"],
    "grade": [1, 2, 3],
    "share": [0.1, 0.3, 0.7],
    "agreed": [True, False],
    "day": ["2020-01-01", "2020-01-02", "2021-06-30"],
}


@st.composite
def tables(draw):
    """Draw a table of columns of many types, and labels that depend on all of them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(20, 60))
    named = draw(
        st.lists(st.sampled_from(sorted(LEVELS)), min_size=1, max_size=4, unique=True)
    )
    frame = pd.DataFrame(
        {name: rng.choice(np.array(LEVELS[name], dtype=object), n) for name in named}
    )
    for name in named:
        kind = type(LEVELS[name][0])
        frame[name] = frame[name].astype(object if kind is str else kind)
    frame["amount"] = rng.normal(size=n) * 10.0 ** draw(st.integers(-6, 6))
    frame["size"] = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 9, n) / 8.0)
    frame["count"] = rng.integers(-3, 9, n)
    frame["flag"] = rng.random(n) < 0.4
    codes = sum(pd.factorize(frame[name])[0] for name in named)
    y = (codes + frame["flag"] + (frame["count"] > 2) + rng.integers(0, 2, n)) % 3
    return frame, np.array(["low", "mid", "high"])[y], named


def as_polars(frame):
    objects = frame.astype(object).where(frame.notna(), None)
    return pl.DataFrame({name: [*objects[name]] for name in frame})


IN_MEMORY = {
    "objects": lambda frame: frame.astype(object),
    "none": lambda frame: frame.astype(object).where(frame.notna(), None),
    "nullable": lambda frame: frame.convert_dtypes(),
    "arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": as_polars,
    "table of Arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "categories": lambda frame: frame.astype(
        {name: "category" for name in frame if frame[name].dtype == object}
    ),
}


def by_file(write, read):
    """Return what takes a table to a file and back."""

    def there_and_back(frame):
        with TemporaryDirectory() as folder:
            path = Path(folder, "t" + write)
            if write == ".csv":
                frame.to_csv(path, index=False)
            else:
                frame.to_parquet(path)
            return read(path)

    return there_and_back


BY_FILE = {
    "pandas": by_file(".csv", partial(pd.read_csv, **EXACT_NUMBERS)),
    "readers": by_file(".csv", read_table),
    "parquet": by_file(".parquet", read_table),
    "pandas' parquet": by_file(".parquet", pd.read_parquet),
    "single precision": lambda frame: frame.astype(
        {name: np.float32 for name in frame if name == "share"}
    ),
    "truth as numbers": lambda frame: frame.astype({"flag": int}),
    "truth as words": lambda frame: frame.assign(
        flag=frame["flag"].map({True: "TRUE", False: "false"}).astype(object)
    ),
}


def few_rows(frame, data):
    """Draw a few rows, of which types are inferred anew: codes without letters are numbers."""
    positions = st.integers(0, len(frame) - 1)
    return sorted(data.draw(st.sets(positions, min_size=1, max_size=6)))


def tree_of(named):
    """Return a greedy tree that takes the named columns for categories."""
    return ObliqueTreeClassifier(
        "axis", max_depth=4, random_state=0, categorical_features=named
    )


@settings(max_examples=25, deadline=None)
@given(tables())
def test_what_holds_a_table_changes_no_fit(drawn):
    frame, y, named = drawn
    fitted = tree_of(named).fit(frame, y)
    holds = {column.name: column.holds for column in fitted.columns_}
    assert (holds["flag"], holds["count"]) == (TRUTH, WHOLE)
    expected = fitted.predict_proba(frame)
    for name, held in IN_MEMORY.items():
        rows = held(frame)
        other = tree_of(named).fit(rows, y)
        assert other.tree_ == fitted.tree_, name
        assert other.columns_ == fitted.columns_, name
        np.testing.assert_array_equal(
            other.predict_proba(frame), expected, err_msg=name
        )


@pytest.mark.filterwarnings("error")
@settings(max_examples=25, deadline=None)
@given(tables(), st.data())
def test_a_model_knows_its_columns_whoever_reads_a_table(drawn, data):
    frame, y, named = drawn
    model = tree_of(named).fit(frame, y)
    expected = model.predict_proba(frame)
    some = few_rows(frame, data)
    with TemporaryDirectory() as folder:
        save_model(Path(folder, "m.json"), model)
        loaded = load_model(Path(folder, "m.json"))
    assert loaded.schema == model.fitted_.schema
    for name, held in (IN_MEMORY | BY_FILE).items():
        rows = held(frame.iloc[some])
        for one in (model, loaded):
            np.testing.assert_array_equal(
                one.predict_proba(rows), expected[some], err_msg=name
            )
    plain = frame.iloc[some].astype(object).to_numpy()
    np.testing.assert_array_equal(loaded.predict_proba(plain), expected[some])
    numbered = frame.iloc[some].set_axis(range(frame.shape[1]), axis=1)
    np.testing.assert_array_equal(loaded.predict_proba(numbered), expected[some])


def test_levels_that_are_unknown_are_told_once():
    frame = pd.DataFrame({"sex": ["Male", "Female"] * 10, "x": np.arange(20.0)})
    y = np.arange(20) % 2 + (np.arange(20) > 9)
    model = ObliqueTreeClassifier(categorical_features=["sex"]).fit(frame, y)
    with pytest.warns(UserWarning) as told:
        model.predict(frame.assign(sex=["Male"] * 17 + ["M", "M", "F"]))
    (message,) = [str(one.message) for one in told]
    assert "'sex' has 'M' in 2, 'F' in 1 of 20 rows" in message
    with pytest.warns(
        UserWarning, match=r"\('Male', 'Female'\) in NO row, but 'M' in 20"
    ):
        model.predict(frame.assign(sex="M"))
    with pytest.warns(UserWarning, match="missing values in columns that had none"):
        model.predict(frame.assign(x=np.nan))


@given(
    st.lists(
        st.sampled_from(["1", "01", "1.0", "+1", "1e0", "true", "True"]),
        unique=True,
        min_size=1,
    )
)
def test_a_level_is_the_only_one_of_its_value(levels):
    column = CategoricalColumn("a", tuple(levels))
    frame = pd.DataFrame({"a": [*levels, "one"]})
    features = encode([column], frame)
    np.testing.assert_array_equal(features, np.eye(len(levels) + 1)[:, :-1])
    assert len({value_of(level) for level in levels}) == 1
    others = encode([column], pd.DataFrame({"a": ["1.00"]}))
    assert others.sum() == (len(levels) == 1)


ALIKE = {
    "truth values": ([True, False] * 6, bool),
    "whole numbers": ([2**60, 2**60 + 1] * 6, np.int64),
    "texts": (["a", "b"] * 6, object),
}


@pytest.mark.parametrize("kind", ALIKE)
def test_labels_are_the_same_in_all_types(kind):
    values, dtype = ALIKE[kind]
    series = pd.Series(values)
    forms = [
        values,
        np.array(values, dtype=object),
        series,
        series.astype(object),
        series.astype("category"),
        series.convert_dtypes(),
        series.convert_dtypes(dtype_backend="pyarrow"),
        pl.Series(values),
        pa.array(values),
        pa.chunked_array([values]),
    ]
    if kind == "texts":
        forms.append(np.array(values, dtype=np.dtypes.StringDType()))
    X = np.arange(12.0)[:, np.newaxis] % 2
    for form in forms:
        labels = read_labels(form)
        assert labels.dtype == dtype and labels.tolist() == values
        model = ObliqueTreeClassifier().fit(X, form)
        assert model.classes_.tolist() == sorted(set(values))
        assert model.predict(X).tolist() == values and model.score(X, form) == 1.0
        assert (
            model.classes_[positions_of(model.classes_.tolist(), form)].tolist()
            == values
        )


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        (["a", None, "b", None], "missing labels: 2 of 4, the first in row 1"),
        (pd.Series([True, None, False], dtype="boolean"), "1 of 3, the first in row 1"),
        (pd.Series(["a", None], dtype="string[pyarrow]"), "1 of 2, the first in row 1"),
        (np.array([1.0, np.nan]), "1 of 2, the first in row 1"),
        (["a", 1], "of the types int, str"),
        ([2**70, 1], "more than 64 bits"),
        (pd.Series(pd.date_range("2020", periods=3)), "dates or times, such as 2020"),
        (pd.Series(pd.period_range("2020", periods=3, freq="D")), "dates or times"),
    ],
)
def test_what_is_wrong_with_labels_is_said(labels, named):
    with pytest.raises(ValueError, match=named):
        read_labels(labels)
    with pytest.raises(ValueError, match=named):
        ObliqueTreeClassifier().fit(np.arange(len(labels) * 1.0)[:, np.newaxis], labels)


def test_parameters_with_labels_are_taken_by_them():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        rng.normal(size=(120, 3)), columns=["a", "b", "c"], index=rng.permutation(120)
    )
    y = np.where(X["a"] + 0.5 * rng.normal(size=120) > 0, "yes", "no")
    costs = pd.DataFrame([[0, 1], [5, 0]], index=["yes", "no"], columns=["yes", "no"])
    signs = pd.Series({"c": 0, "b": 0, "a": 1})
    prices = pd.Series({"c": 3.0, "b": 2.0, "a": 1.0})
    weight = pd.Series(rng.random(120), index=X.index)
    by_hand = brief(objective=Cost([[0, 5], [1, 0]], [1.0, 2.0, 3.0]))
    labelled = brief(objective=Cost(costs, prices))
    for model, weights in (
        (by_hand, weight.to_numpy()),
        (labelled, weight.sample(frac=1, random_state=0)),
    ):
        model.fit(X, y, weights)
    assert labelled.tree_ == by_hand.tree_
    signed = [brief(monotonic_cst=one).fit(X, y) for one in (signs, {"a": 1})]
    assert signed[0].tree_ == signed[1].tree_
    mask = pd.Series({"c": True, "a": False, "b": False})
    coarse = X.round().astype(int)
    model = ObliqueTreeClassifier(categorical_features=mask).fit(coarse, y)
    assert [isinstance(c, CategoricalColumn) for c in model.columns_] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (
            {
                "objective": Cost(
                    pd.DataFrame(np.eye(2), index=["yes", "no"], columns=["y", "n"])
                )
            },
            "matrix has the labels 'y', 'n'",
        ),
        (
            {"objective": Cost(None, pd.Series({"a": 1.0, "z": 2.0}))},
            "features has the labels 'a', 'z'",
        ),
        (
            {"monotonic_cst": pd.Series({"a": 1, "z": 0})},
            "monotonic_cst has the labels",
        ),
        (
            {"interaction_cst": pd.Series({"a": 1, "b": 0})},
            "'interaction_cst' parameter",
        ),
        (
            {"categorical_features": pd.Series({"a": True, "z": False})},
            "categorical_features has the labels",
        ),
    ],
)
def test_labels_of_other_things_are_refused(given, named):
    X = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) % 3})
    y = np.where(np.arange(20) > 9, "yes", "no")
    with pytest.raises(ValueError, match=named):
        EvoTreeClassifier(max_generations=1, **given).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight has the row labels 50, 51"):
        ObliqueTreeClassifier().fit(
            X.set_axis(range(20, 40)), y, pd.Series(np.ones(20), index=range(50, 70))
        )


def test_masked_cells_are_missing_and_lazy_frames_are_named():
    X = np.ma.masked_array(np.arange(12.0).reshape(6, 2), mask=np.eye(6, 2, dtype=bool))
    model = ObliqueTreeClassifier().fit(X, [0, 1] * 3)
    assert model.feature_names_ == ("x0", "x0 is missing", "x1", "x1 is missing")
    with pytest.raises(ValueError, match=r"LazyFrame.*collect\(\)"):
        ObliqueTreeClassifier().fit(pl.DataFrame({"a": [1, 2]}).lazy(), [0, 1])


def test_periods_are_no_numbers():
    years = pd.Series(pd.period_range("2000", periods=9, freq="Y"))
    for column in (years, years.astype(object), years.astype("datetime64[ns]")):
        with pytest.raises(ValueError, match="column 'when'.*days since the first"):
            ObliqueTreeClassifier().fit(pd.DataFrame({"when": column}), [0, 1, 2] * 3)

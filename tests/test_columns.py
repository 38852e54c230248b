"""How columns of tables become features."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer

from evotree.schema import CategoricalColumn, NumericColumn
from evotree.tables.columns import encode, fit_columns


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
    assert names_of(pd.DataFrame({"sex": ["F", "M", "M"]})) == ["sex is F"]
    assert names_of(pd.DataFrame({"sex": ["F", "M", "M", None]})) == [
        "sex is F",
        "sex is missing",
    ]
    assert names_of(pd.DataFrame({"ill": ["no", "yes"]})) == ["ill is yes"]
    assert names_of(pd.DataFrame({"ill": [None, "yes", None]})) == ["ill is missing"]


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

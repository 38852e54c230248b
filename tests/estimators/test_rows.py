"""What all estimators make of gaps, categories, frames, layouts of arrays, and weights."""

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris

from evotree import (
    ObliqueTreeClassifier,
)
from evotree.estimators import GREEDY_PRESETS
from evotree.tables.columns import encode
from tests.quick_models import (
    assert_same,
    draws_rows,
    every,
    every_classifier,
    outputs,
    rows_for,
    weights_for,
)

NAMES = (
    *("size", "size is missing", "count"),
    *("colour is blue", "colour is green", "colour is red", "colour is missing"),
    *("sex is m", "extra"),
)


def mixed(n=150):
    """Return a frame of numbers, whole numbers and categories with missing values, and classes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "count": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue", None], n)),
            "sex": pd.Categorical(rng.choice(["f", "m"], n, p=[0.6, 0.4])),
            "extra": rng.normal(size=n),
        }
    )
    y = 2 * (frame["colour"] == "red") + (frame["size"].isna() | (frame["extra"] > 0.8))
    return frame, y.to_numpy()


def mixed_for(model):
    X, y = mixed()
    return X, y if is_classifier(model) else y + 0.5 * (y == 2)


@cache
def fitted_to_mixed(model):
    """Return a fitted model, which no test changes, and its rows and targets."""
    X, y = mixed_for(model)
    return clone(model).fit(X, y), X, y


@every
def test_rows_may_be_encoded_outside(model):
    fitted, X, y = fitted_to_mixed(model)
    assert fitted.feature_names_ == NAMES and fitted.tree_.n_features == len(NAMES)
    assert fitted.n_features_in_ == 5 and fitted.feature_names_in_.tolist() == [*X]
    rows = encode(fitted.columns_, X)
    assert np.isfinite(rows).all()
    plain = clone(model).fit(rows, y)
    assert plain.tree_ == fitted.tree_ and fitted.get_n_leaves() > 1
    np.testing.assert_array_equal(outputs(plain, rows), outputs(fitted, X))
    np.testing.assert_array_equal(fitted.encode(X), rows)
    np.testing.assert_array_equal(fitted.apply(X), fitted.tree_.apply(rows))
    assert fitted.score(X, y) == plain.score(rows, y)
    assert fitted.decision_path(X).shape == (len(y), fitted.tree_.n_nodes)


@every
def test_where_rows_come_from_changes_nothing(model):
    fitted, X, y = fitted_to_mixed(model)
    objects = X.astype(object)
    none = objects.where(objects.notna(), None)
    for rows, declared in (
        (none, ["colour", "sex"]),
        (objects, [False, False, True, True, False]),
        (objects, "from_dtype"),
        (X.astype({"colour": "string", "sex": "string"}), "from_dtype"),
        (none.to_numpy(), [2, 3]),
        (objects.to_numpy(), [2, 3]),
        (none.to_numpy().tolist(), np.array([2, 3])),
        (X.assign(count=X["count"].astype(np.int8)), "from_dtype"),
        (X.set_axis([10 * j for j in range(len(y))]), "from_dtype"),
    ):
        other = clone(model).set_params(categorical_features=declared).fit(rows, y)
        assert other.tree_ == fitted.tree_
        np.testing.assert_array_equal(outputs(other, rows), outputs(fitted, X))


@every
def test_missing_values_that_are_new_are_filled(model):
    fitted, X, _ = fitted_to_mixed(model)
    later = X.copy()
    later["extra"], later["count"], later["sex"] = np.nan, pd.NA, None
    filled = later.assign(
        extra=X["extra"].median(), count=int(X["count"].median()), sex="f"
    )
    # There is no warning of 'size', which lacks some in the fit.
    with pytest.warns(UserWarning) as told:
        found = outputs(fitted, later)
    message, of_levels = [str(one.message) for one in told]
    assert (
        f"'sex' has a level of the fit ('m', 'f') in NO row, but missing in {len(X)}"
        in of_levels
    )
    assert re.search(
        r"none in fit; the median .*: 'count' \(2\), 'extra' \(-0.018\d*\)\.$", message
    )
    assert told[0].filename.endswith("quick_models.py")  # where the package is called
    np.testing.assert_array_equal(found, outputs(fitted, filled))


@every
def test_columns_without_any_value(model):
    X, y = mixed_for(model)
    more = X[["extra"]].assign(nothing=np.nan, never=pd.Categorical([None] * len(y)))
    fitted = clone(model).fit(more, y)
    assert fitted.feature_names_ == ("extra", "nothing") and fitted.tree_.complexity > 1
    later = more.assign(nothing=7.0, never="now")
    np.testing.assert_array_equal(outputs(fitted, more), outputs(fitted, later))
    empty = clone(model).fit(np.full((len(y), 2), np.nan), y)
    assert empty.get_n_leaves() == 1


@pytest.mark.parametrize("n_levels", [50, 51, 120])
def test_many_levels_of_text_are_warned_of(n_levels):
    names = [f"n{j % n_levels}" for j in range(120)]
    X = pd.DataFrame({"a": np.arange(120.0), "name": names})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ObliqueTreeClassifier("axis").fit(X, X.a > 60.0)
    said = [str(one.message) for one in caught if "'name'" in str(one.message)]
    assert len(said) == (n_levels > 50)
    assert all(f"'name' ({n_levels})" in one for one in said)


NOT_ENCODED = {
    r"column 'colour': 'red' in data row 1 is no number; .* A column of categories": lambda X: (
        X.assign(colour=["red", *map(str, range(len(X) - 1))])
    ),
    r"column 'x1': 'red' in data row 1 is no number": lambda X: [[1.0, "red"]] * len(X),
    r"column 'extra': 2020-01-01 00:00:00 in data row 1 is .* numbers of dates": lambda X: (
        X.assign(extra=pd.Timestamp(2020, 1, 1))
    ),
    r"column 'extra': 2020-01-01 in data row 1 is .* numbers of dates": lambda X: (
        X.assign(extra=pd.Timestamp(2020, 1, 1).date())
    ),
    r"column 'extra': \(1\+2j\) in data row 1 is no real number\.$": lambda X: X.assign(
        extra=1.0 + 2.0j
    ),
    r"^Complex data not supported: .{,60}$": lambda X: [[1j, 0.0]] * len(X),
    r"X has the column 'sex' more than once": lambda X: X.rename(
        columns={"colour": "sex"}
    ),
    r"'extra': inf in data row 3 is not a finite number": lambda X: X.assign(
        extra=[0.0, 1.0] + [np.inf] * (len(X) - 2)
    ),
    r"infinity": lambda X: np.full((len(X), 1), np.inf),
    r"no column .* makes a feature": lambda X: X[["sex"]].assign(
        sex=pd.Categorical(["m"] * len(X))
    ),
}
NOT_PREDICTED = {
    r"column 'extra': 'much' in data row 1 is no number": lambda X: X.assign(
        extra="much"
    ),
    r"column 'extra': 'much' in data row 2 is no number": lambda X: X.assign(
        extra=["0.5", "much"] + ["1"] * (len(X) - 2)
    ),
    r"'size': -inf in data row 1": lambda X: X.assign(size=-np.inf),
    r"should match|unseen at fit": lambda X: X.rename(columns={"sex": "kind"}),
    r"X has shape \(0, 5\)": lambda X: X.iloc[:0],
}


@pytest.mark.parametrize("named", NOT_ENCODED)
@every
def test_what_cannot_be_encoded_is_named(model, named):
    X, y = mixed_for(model)
    with pytest.raises(ValueError, match=named):
        clone(model).fit(NOT_ENCODED[named](X), y)


@pytest.mark.parametrize("named", NOT_PREDICTED)
@every
def test_what_cannot_be_predicted_is_named(model, named):
    fitted, X, _ = fitted_to_mixed(model)
    with pytest.raises(ValueError, match=named):
        fitted.predict(NOT_PREDICTED[named](X))


@pytest.mark.parametrize(
    "given", [[5], [-1], ["size", "weight"], [True], [[0]], [0.5], "dtype", 3, None]
)
def test_wrong_categorical_features_are_named(given):
    X, y = mixed()
    with pytest.raises(ValueError, match="categorical_features"):
        ObliqueTreeClassifier(categorical_features=given).fit(X, y)


# ---- rows as they were given ---------------------------------------------------------------------


def cells(n_rows, seed):
    """Rows of three discrete columns, 16 cells in all, whose classes are drawn by the cell."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.integers(0, 4, n_rows), rng.integers(0, 2, (n_rows, 2)).T[0]]
    )
    X = np.column_stack([X, rng.integers(0, 2, n_rows)]).astype(float)
    share = np.where(X[:, 2] == 1.0, 0.8, 0.2)
    share = np.where((X[:, 0] == 3.0) & (X[:, 1] == 0.0), 1.0 - share, share)
    return X, (rng.random(n_rows) < share).astype(int)


@pytest.mark.parametrize("name", sorted({*GREEDY_PRESETS} - {"WODT"}))
def test_rows_given_k_times_are_rows_of_weight_k(name):
    """But for splitters that weigh a loss against a penalty, by the number of rows."""
    X, y = cells(60, 2)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    model = ObliqueTreeClassifier.from_preset(name, pruning=None, random_state=0)
    one = model.fit(X, y, times).predict(X)
    np.testing.assert_array_equal(
        one, model.fit(X.repeat(times, 0), y.repeat(times)).predict(X)
    )


# ---- frames, layouts and weights -----------------------------------------------------------------


@cache
def fitted_to_rows(model):
    """Return a fitted model, which no test changes."""
    return clone(model).fit(*rows_for(model))


@every
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_have_names(model, library):
    X, y = rows_for(model)
    columns = [f"column {j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=columns)
    frame = frame if library == "pandas" else pl.from_pandas(frame)
    fitted = clone(model).fit(frame, y)
    np.testing.assert_array_equal(fitted.feature_names_in_, columns)
    plain = fitted_to_rows(model)
    assert fitted.tree_ == plain.tree_
    np.testing.assert_array_equal(outputs(fitted, frame), outputs(plain, X))
    targets = pd.Series(y) if library == "pandas" else pl.Series(y)
    assert (
        clone(model).fit(frame, targets, sample_weight=targets * 0 + 1).tree_
        == plain.tree_
    )


# ---- what arrays look like -----------------------------------------------------------------------


@every
def test_layout_and_type_of_arrays_change_nothing(model):
    X, y = rows_for(model)
    # Exact in single precision.
    X = np.round(16.0 * (X - X.mean(axis=0)) / X.std(axis=0))
    expected = clone(model).fit(X, y)
    read_only, targets = X.copy(), y.copy()
    read_only.flags.writeable = targets.flags.writeable = False
    for rows in (
        np.asfortranarray(X),
        X[::-1][::-1],
        read_only,
        X.astype(np.float32),
        X.astype(np.int8),
        X.astype(">f8"),
        X.astype(object),
        X.tolist(),
    ):
        assert_same(clone(model).fit(rows, targets), expected, X)
        np.testing.assert_array_equal(outputs(expected, rows), outputs(expected, X))


@every
def test_little_data(model):
    X, y = rows_for(model)
    constant = clone(model).fit(np.ones_like(X), y)
    assert constant.get_n_leaves() == 1
    if not is_classifier(model):
        np.testing.assert_allclose(constant.predict(X), y.mean())
    one_class = clone(model).fit(X, np.full(len(y), 7))
    assert one_class.get_n_leaves() == 1 and (one_class.predict(X) == 7).all()
    for n in (1, 2, 3):
        few = clone(model).fit(X[:n], y[:n])
        assert (
            few.predict(X).min() >= y[:n].min() and few.predict(X).max() <= y[:n].max()
        )


# ---- weights -------------------------------------------------------------------------------------


@every
def test_rows_without_weight_are_not_there_and_weights_are_repetitions(model):
    X, y = rows_for(model)
    weight = weights_for(y)
    there = weight > 0.0
    with pytest.raises(ValueError, match="sample_weight"):
        clone(model).fit(X, y, np.ones(len(y) - 1))
    for given in ({}, {"class_weight": "balanced"}) if is_classifier(model) else ({},):
        weighted = clone(model).set_params(**given).fit(X, y, weight)
        dropped = clone(weighted).fit(X[there], y[there], weight[there])
        assert_same(weighted, dropped, X)
        if not (given or draws_rows(model)):
            repeated = np.repeat(np.arange(len(y)), weight.astype(int))
            assert_same(weighted, clone(weighted).fit(X[repeated], y[repeated]), X)
        assert weighted.tree_ != fitted_to_rows(model).tree_


@every_classifier
def test_class_weights(model):
    X, y = load_iris(return_X_y=True)
    X, y = X[30:], y[30:]
    balanced = clone(model).set_params(class_weight="balanced")
    by_hand = {c: len(y) / (3 * (y == c).sum()) for c in range(3)}
    given = clone(model).set_params(class_weight=by_hand)
    assert_same(balanced.fit(X, y), given.fit(X, y), X)
    # A class without weight keeps its name alone.
    weighted = balanced.fit(X, y, (y != 1).astype(float))
    assert weighted.classes_.tolist() == [0, 1, 2]
    dropped = clone(balanced).fit(X[y != 1], y[y != 1])
    np.testing.assert_array_equal(
        weighted.predict_proba(X)[:, [0, 2]], dropped.predict_proba(X)
    )
    assert not weighted.predict_proba(X)[:, 1].any()
    for wrong, message in (
        ({0: -1.0}, "class_weight={0: -1.0}: allowed are finite weights, at least 0"),
        ({0: np.nan}, "class_weight={0: nan}: allowed are finite"),
        ({0: 1e308}, "sums from"),
        ({0: 0, 1: 0, 2: 0}, "2: 0}: the product with sample_weight is zero"),
        ({"rose": 2}, "are not in class_weight"),
        ("heavy", "'class_weight' parameter"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            clone(model).set_params(class_weight=wrong).fit(X, y)

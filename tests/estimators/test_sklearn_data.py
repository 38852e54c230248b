"""What all estimators make of frames, labels, layouts of arrays, weights and routed weights."""

import re
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris

from tests.quick_models import (
    assert_same,
    draws_rows,
    every,
    every_classifier,
    name_of,
    outputs,
    rows_for,
    weights_for,
)


@cache
def fitted_to_rows(model):
    """Return a fitted model, which no test changes."""
    return clone(model).fit(*rows_for(model))


# ---- frames ---------------------------------------------------------------------------


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
    strange = frame[columns]
    strange.columns = ["other", *columns[1:]]
    for estimator, rows, named in (
        (fitted, frame[columns[::-1]], "must be in the same order as they were in fit"),
        (fitted, strange, r"unseen at fit time:\n- other"),
        (plain, X[:, :2], f"X has 2 features, but {name_of(model)} is expecting"),
    ):
        with pytest.raises(ValueError, match=named):
            estimator.predict(rows)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        fitted.predict(X)


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
    for column in range(2):
        alone = clone(model).fit(X[:, [column]], y)
        assert np.isin(alone.predict(X[:, [column]]), y).all() or not is_classifier(
            model
        )
    one_class = clone(model).fit(X, np.full(len(y), 7))
    assert one_class.get_n_leaves() == 1 and (one_class.predict(X) == 7).all()
    for rows in (sparse.csr_array(X), sparse.coo_array(X)):
        with pytest.raises(
            TypeError, match="Sparse data was passed for X, but dense data is req"
        ):
            clone(model).fit(rows, y)
    for n in (1, 2, 3):
        few = clone(model).fit(X[:n], y[:n])
        assert (
            few.predict(X).min() >= y[:n].min() and few.predict(X).max() <= y[:n].max()
        )
    if not model.__sklearn_tags__().target_tags.multi_output:
        with pytest.raises(ValueError, match="1d array"):
            clone(model).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(model).fit(X, y[:-1])


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
    words = np.array(["a", "b", "c"])
    named = clone(model).set_params(
        class_weight={"abc"[c]: by_hand[c] for c in by_hand}
    )
    assert named.fit(X, words[y]).tree_ == given.tree_
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

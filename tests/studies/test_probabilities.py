"""Scores of probabilities, compared with scikit-learn's."""

import types

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from experiments.probabilities import (
    LEAST,
    N_BINS,
    auc,
    brier,
    calibration_error,
    clipped_log_loss,
    probabilities,
)


def fixed(predicted, classes):
    """Make a model that predicts given probabilities."""
    return types.SimpleNamespace(predict_proba=lambda X: predicted, classes_=np.array(classes))


def random_shares(n_rows, n_classes, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, 5.0), n_rows)


@pytest.mark.parametrize("labels", [["a", "b", "c", "d"], [7, 3, 5, 9]])
def test_the_scores_of_many_classes_are_scikit_learns(labels):
    shares = random_shares(80, 4)
    labels = np.sort(labels)
    y = labels[np.random.default_rng(1).choice(4, 80, p=[0.1, 0.2, 0.3, 0.4])]
    model = fixed(shares, labels)
    expected = roc_auc_score(y, shares, multi_class="ovr", average="weighted", labels=labels)
    assert auc(model, None, y) == pytest.approx(expected)
    assert (shares > LEAST).all()
    assert clipped_log_loss(model, None, y) == pytest.approx(log_loss(y, shares, labels=labels))
    expected = brier_score_loss(y, shares, labels=labels, scale_by_half=False)
    assert brier(model, None, y) == pytest.approx(expected)


def test_classes_of_one_side_alone():
    """The model knows a class that no row has, and the rows one that the model does not know."""
    shares = random_shares(40, 3)
    model = fixed(shares, ["a", "b", "c"])
    y = np.array(["a", "b", "z"] * 13 + ["z"])
    found = probabilities(model, None, np.array(["a", "b", "z"]))
    np.testing.assert_array_equal(found, np.column_stack([shares[:, :2], np.zeros(40)]))
    areas = [roc_auc_score(y == c, shares[:, at]) for at, c in enumerate("ab")]
    assert auc(model, None, y) == pytest.approx((13 * sum(areas) + 14 * 0.5) / 40)
    assert clipped_log_loss(model, None, y[y == "z"]) == pytest.approx(-np.log(LEAST))
    assert brier(fixed([[1.0]], ["a"]), None, np.array(["b"])) == 2.0


def test_what_has_no_score_is_not_a_number():
    X, y = load_iris(return_X_y=True)
    machine, tree = LinearSVC().fit(X, y), DecisionTreeClassifier().fit(X, y)
    scores = (auc, clipped_log_loss, brier, calibration_error)
    assert np.isnan([score(machine, X, y) for score in scores]).all()
    assert np.isnan(auc(tree, X[y == 0], y[y == 0]))
    assert auc(tree, X, y) == 1.0 and clipped_log_loss(tree, X, y) == 0.0


def test_the_calibration_error_is_that_of_its_definition():
    shares = random_shares(200, 3)
    y = np.random.default_rng(1).choice(3, 200)
    top, is_right = shares.max(axis=1), shares.argmax(axis=1) == y
    expected = 0.0
    for low in np.arange(N_BINS) / N_BINS:
        here = (top >= low) & (top < low + 1.0 / N_BINS)
        if here.any():
            expected += here.mean() * abs(top[here].mean() - is_right[here].mean())
    assert calibration_error(fixed(shares, range(3)), None, y) == pytest.approx(expected)
    certain = fixed(np.eye(3)[y], range(3))
    assert calibration_error(certain, None, y) == 0.0
    assert calibration_error(certain, None, (y + 1) % 3) == 1.0

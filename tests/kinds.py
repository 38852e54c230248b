"""Kinds of leaves: fitted models of each, and what a row is predicted, derived once more.

A kind is a function in `KINDS` that makes a fitted model. A kind that is new is in all tests that
take `every` once it stands there.
"""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score

from evotree import EvoTreeClassifier, EvoTreeRegressor, keep_best_trees
from evotree.leaf_models import ScoreModels
from tests.quick_models import brief
from tests.reference.naive import leaf_of

NAMES = ["a", "b"]
N_ROWS = 80


class Kind(NamedTuple):
    """A fitted model, and the rows that it was fitted to."""

    model: Any
    X: pd.DataFrame
    y: Any

    @property
    def tree(self):
        return self.model.tree_

    @property
    def classes(self):
        """The classes as Python's own, None where numbers are predicted."""
        labels = getattr(self.model, "classes_", None)
        return None if labels is None else labels.tolist()


# ---- kinds of leaves -----------------------------------------------------------------------------

LABELS = {
    "0 and 1": [0, 1],
    "truth values": [False, True],
    "words": ["no", "yes"],
    "3 and 7": [3, 7],
    "three numbers": [3, 7, 9],
    "three words": ["red", "green 'o'", "blue"],
}


def rows(seed=0, n=N_ROWS):
    values = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, 2)).round(3)
    return pd.DataFrame(values, columns=NAMES)


def slopes(X):
    """Return targets that are lines on both sides of a split."""
    a, b = X.to_numpy().T
    return np.where(a > 0.0, b, 0.2 - b)


def classes_of(X, labels):
    """Return classes, of two as many as the lines parts, of three those of two cells and a line."""
    values = slopes(X)
    codes = values > 0.0
    if len(labels) == 3:
        codes = np.where(X.a > 0.4, 2, codes)
    return np.array(labels)[codes.astype(int)]


def classified(labels, **parameters):
    X = rows()
    y = classes_of(X, LABELS[labels])
    parameters = {"callbacks": [keep_best_trees], "size_penalty": 0.001} | parameters
    return Kind(brief(EvoTreeClassifier, **parameters).fit(X, y), X, y)


def by_hand(labels):
    model, X, y = classified(labels, leaves="constant")
    leaf = int(model.apply(X)[0])
    before = model.predict(X)[0]
    other = next(label for label in model.classes_ if label != before)
    return Kind(model.edit(X, y).relabel(leaf, other), X, y)


def on_score(labels):
    """Fit a tree on a score, whose leaves add points; a score alone may be better."""
    found = classified(labels, leaves="constant")
    model, tree = found.model, found.tree
    random = np.random.default_rng(0)
    n_classes = tree.values.shape[1]
    is_scored = np.arange(n_classes) >= (n_classes == 2)
    models = ScoreModels.of(
        random.normal(size=(len(tree), n_classes)).round(2) * is_scored,
        random.normal(size=(n_classes, tree.n_features)).round(2) * is_scored[:, None],
    )
    scored = tree.with_models(models)
    model.fitted_ = replace(model.fitted_, tree=scored, sides=None, chosen=scored)
    return Kind(model, found.X, found.y)


def regressed(n_outputs=1, **parameters):
    X = rows()
    y = slopes(X)
    if n_outputs == 2:
        y = pd.DataFrame({"height": y, "width": X.a**2})
    parameters = {"size_penalty": 0.01} | parameters
    return Kind(brief(EvoTreeRegressor, **parameters).fit(X, y), X, y)


def counts(X):
    rates = np.exp(1.0 + 2.0 * slopes(X))
    return np.random.default_rng(1).poisson(rates).astype(float)


def counted():
    """Fit log-linear leaves to counts, and take the tree of the front that has splits."""
    X = rows(n=300)
    y = counts(X)
    parameters = {"objective": "poisson", "leaves": "linear", "size_penalty": 0.001}
    model = brief(EvoTreeRegressor, **parameters).fit(X, y)
    return Kind(model.select_tree("tree"), X, y)


OF_CLASSES = {
    "soft shares": lambda labels: classified(labels, leaves="constant"),
    "shares": lambda labels: classified(labels, leaves="constant", probability="leaf"),
    "labels by hand": by_hand,
    "points on a score": lambda labels: on_score(labels),
}
KINDS = {
    # Each kind of leaf with two sets of labels, and each set with two kinds or one.
    **{
        f"{kind}, {labels}": lambda kind=kind, labels=labels: OF_CLASSES[kind](labels)
        for at, kind in enumerate(OF_CLASSES)
        for labels in (list(LABELS)[(2 * at + shift) % 6] for shift in (0, 3))
    },
    "means": lambda: regressed(leaves="constant"),
    "lines": lambda: regressed(leaves="linear"),
    "log-lines": lambda: counted(),
    "means of two outputs": lambda: regressed(2, leaves="constant"),
    "lines of two outputs": lambda: regressed(2, leaves="linear"),
}


@cache
def kind_of(name):
    """Return the kind of a name, fitted once."""
    return KINDS[name]()


def every(*wanted, without=()):
    """Parametrize a test by the kinds whose names have one of some words, or by all."""
    return pytest.mark.parametrize(
        "name",
        [
            name
            for name in KINDS
            if any(word in name for word in wanted or ("",))
            and not any(word in name for word in without)
        ],
    )


every_model = every()
every_classifier = every(*OF_CLASSES)
one_output = every(without=("outputs",))


# ---- the same once more, row by row --------------------------------------------------------------


def numbers_of_row(tree, row):
    """Return what a row is predicted: shares, probabilities by scores, or numbers."""
    k = leaf_of(row, tree)
    if tree.models is None:
        return tree.values[k]
    sums = [
        min(
            max(
                one.intercepts[k]
                + sum(w * x for w, x in zip(one.coefficients[k], row, strict=True)),
                one.lowest[k],
            ),
            one.highest[k],
        )
        for one in tree.models.each
    ]
    if tree.models.is_log:
        sums = np.exp(sums).tolist()
    if not tree.models.of_classes:
        return np.array(sums)
    if len(sums) == 2:
        return np.array([expit(sums[0] - sums[1]), expit(sums[1] - sums[0])])
    odds = np.exp(np.array(sums) - max(sums))
    return odds / odds.sum()


def label_of_row(tree, row):
    if tree.models is None and tree.given_labels is not None:
        return int(tree.given_labels[leaf_of(row, tree)])
    return int(np.argmax(numbers_of_row(tree, row)))


def numbers(tree, X):
    return np.array([numbers_of_row(tree, row) for row in np.asarray(X, dtype=float)])


def expected(kind, X, tree=None):
    """Return what a model has to predict by a tree, its own by default."""
    tree = kind.tree if tree is None else tree
    if kind.classes is not None:
        return [
            kind.classes[label_of_row(tree, row)] for row in np.asarray(X, dtype=float)
        ]
    found = numbers(tree, X)
    return found[:, 0] if found.shape[1] == 1 else found


def assert_predicts(model, X, truth):
    found = model.predict(X)
    if is_classifier(model):
        assert found.tolist() == list(truth)
        assert found.dtype == model.classes_.dtype
    else:
        np.testing.assert_allclose(found, truth, rtol=1e-9)


def worth(kind, X, y, tree=None):
    """Return the accuracy or R² of a tree, by what is expected of it."""
    score = accuracy_score if kind.classes is not None else r2_score
    return score(y, expected(kind, X, tree))


def is_of_counts(kind):
    return getattr(kind.model, "objective", None) == "poisson"


def quality(kind, X, y, tree=None):
    """Return the accuracy, R² or the share of Poisson's deviance, by what is expected."""
    if is_of_counts(kind):
        return d2_tweedie_score(y, expected(kind, X, tree), power=1)
    return worth(kind, X, y, tree)


def held_out(kind):
    X = rows(7, 60)
    if is_of_counts(kind):
        return X, counts(X)
    if kind.classes is not None:
        return X, classes_of(X, kind.classes)
    y = slopes(X)
    if np.ndim(kind.y) == 2:
        y = pd.DataFrame({"height": y, "width": X.a**2})
    return X, y


def outputs_of(kind):
    return kind.tree.output_names or (None,)

"""Models made up without a fit: what is known of trees, and estimators as if fitted."""

from typing import Any, NamedTuple

import numpy as np

import evotree
from evotree import ObliqueTreeClassifier, ObliqueTreeRegressor
from evotree.fitted import Fitted, summarize
from evotree.model_file import Model
from evotree.schema import NumericColumn, Schema
from evotree.tree import ObliqueTree, SoftSides, mean_of_trees


def fitted(tree, columns=None, classes=None, rows=None, **facts):
    """Return what is known of a tree, by default over columns of numbers ``x0``, ``x1``.

    Classes are labels, texts as objects; `rows` are encoded training rows.
    """
    if columns is None:
        columns = (NumericColumn(f"x{j}", 0.0) for j in range(tree.n_features))
    if classes is not None:
        is_text = isinstance(classes[0], str)
        classes = np.array(classes, dtype=object if is_text else None)
    if rows is not None:
        facts["training"] = summarize(tree, rows, np.ones(len(rows)))
    return Fitted(tree, Schema(tuple(columns)), classes, **facts)


def model(tree, columns=None, classes=None, target="y", **facts):
    """Return a model of one tree that stands alone."""
    return Model(target, (fitted(tree, columns, classes, **facts),))


def estimator(*members):
    """Return an estimator of a tree, or of a forest, as if it had been fitted."""
    is_classifier = members[0].classes is not None
    kind = ObliqueTreeClassifier if is_classifier else ObliqueTreeRegressor
    trees = [_with(kind(), member, fitted_=member) for member in members]
    if len(trees) == 1:
        return trees[0]
    forest = f"ObliqueForest{'Classifier' if is_classifier else 'Regressor'}"
    return _with(getattr(evotree, forest)(), members[0], estimators_=trees)


def _with(estimator, member, **attributes):
    """Set what a fit sets, by the columns of a tree."""
    vars(estimator).update(attributes, n_features_in_=len(member.schema))
    return estimator


class Case(NamedTuple):
    """Trees of one kind, one or a forest, and rows."""

    trees: tuple[ObliqueTree, ...]
    rows: np.ndarray
    classes: tuple[Any, ...] | None = None
    sides: SoftSides | None = None
    columns: tuple[NumericColumn, ...] = ()  # by default one for each number of a row

    @property
    def features(self):
        """The rows as the trees read them."""
        return Schema(self.columns).with_bends(self.rows)

    @property
    def has_probabilities(self):
        """Whether code for probabilities can be written."""
        is_sum = (
            self.sides is not None
            or len(self.trees) > 1
            or self.trees[0].models is not None
        )
        return self.classes is not None and is_sum

    def predict_proba(self):
        """Return shares of classes, or numbers, a column for each output."""
        if self.sides is not None:
            return self.sides.predict(self.trees[0], self.features)
        return mean_of_trees(self.trees, self.features)

    def predict(self):
        """Return positions of classes, or numbers, a column for each output."""
        if self.classes is None:
            return self.predict_proba()
        if len(self.trees) > 1:
            return self.predict_proba().argmax(axis=1)
        return self.trees[0].predict_label(self.features)

    @property
    def estimator(self):
        """An estimator that holds the trees as if it had been fitted."""
        return estimator(*self.members)

    @property
    def members(self):
        """The trees with what is known of them."""
        return tuple(
            fitted(tree, self.columns or None, self.classes, sides=self.sides)
            for tree in self.trees
        )

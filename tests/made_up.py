"""Models made up without a fit: what is known of trees, and estimators as if fitted."""

import numpy as np

import evotree
from evotree import ObliqueTreeClassifier, ObliqueTreeRegressor
from evotree.fitted import Fitted, summarize
from evotree.model_file import Model
from evotree.schema import NumericColumn, Schema


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

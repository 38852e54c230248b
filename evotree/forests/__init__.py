"""Forests: tens of small sparse oblique trees that vote.

`estimators` has the classifier and the regressor, `growing` makes their trees.
"""

from evotree.forests.estimators import ObliqueForestClassifier, ObliqueForestRegressor

__all__ = ["ObliqueForestClassifier", "ObliqueForestRegressor"]

"""The classifier: scikit-learn's own checks, and what they leave out."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from evotree import EvoTreeClassifier


@parametrize_with_checks([EvoTreeClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)

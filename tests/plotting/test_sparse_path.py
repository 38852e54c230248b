"""Pictures of sparse trees: hyperplanes as images."""

import pytest
from sklearn.datasets import load_digits

from evotree import TAOClassifier, tao_path
from evotree.plotting import plot_tree


@pytest.fixture(scope="module")
def path():
    X, y = load_digits(return_X_y=True)
    rows = {"X_test": X[400:800], "y_test": y[400:800]}
    estimator = TAOClassifier(scaling="common")
    return tao_path(X[:400], y[:400], Cs=(1.0, 0.1, 0.02), estimator=estimator, **rows)


def test_bad_calls_are_named(path):
    with pytest.raises(ValueError, match="whose product is 64"):
        plot_tree(path.estimators[0], image_shape=(8, 9))

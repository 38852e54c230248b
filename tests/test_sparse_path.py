"""Pictures of sparse trees: the path, and hyperplanes as images."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_digits

from evotree import TAOClassifier, tao_path
from evotree.plotting import plot_tao_path, plot_tree
from tests.test_plotting import line_data, other_axes


@pytest.fixture(scope="module")
def path():
    X, y = load_digits(return_X_y=True)
    rows = {"X_test": X[400:800], "y_test": y[400:800]}
    estimator = TAOClassifier(scaling="common")
    return tao_path(X[:400], y[:400], Cs=(1.0, 0.1, 0.02), estimator=estimator, **rows)


@pytest.mark.parametrize("x", ["C", "weights", "cost"])
def test_curves_show_the_table(path, x):
    _, given = plt.subplots()
    assert plot_tao_path(path, x=x, ax=given) is given
    left = line_data(given)
    assert sorted(left) == ["test error", "train error"]
    for name, (abscissa, error) in left.items():
        np.testing.assert_array_equal(abscissa, path.table[x])
        np.testing.assert_allclose(error, 1.0 - path.table[name.replace(" error", "_score")])
    right = line_data(other_axes(given))
    np.testing.assert_array_equal(right["leaves (right)"][1], path.table["leaves"])
    assert len(right) == (1 if x == "weights" else 2)
    given.figure.canvas.draw()


def test_bad_calls_are_named(path):
    with pytest.raises(TypeError, match="allowed is what tao_path returns"):
        plot_tao_path(path.table)
    with pytest.raises(ValueError, match="x='leaves': allowed are"):
        plot_tao_path(path, x="leaves")
    with pytest.raises(ValueError, match="whose product is 64"):
        plot_tree(path.estimators[0], image_shape=(8, 9))
    with pytest.raises(TypeError, match="ax is a"):
        plot_tao_path(path, ax=plt.figure())

"""Pictures of sparse trees: the path, and hyperplanes as images."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from evotree import TAOClassifier, tao_path
from evotree.plotting import plot_tao_path, plot_tree


@pytest.fixture(scope="module")
def path():
    X, y = load_digits(return_X_y=True)
    return tao_path(
        X[:400],
        y[:400],
        Cs=(1.0, 0.1, 0.02),
        X_test=X[400:800],
        y_test=y[400:800],
        estimator=TAOClassifier(scaling="common"),
    )


def curves(ax):
    """Return what the lines of an axes show, by their labels."""
    return {line.get_label(): (line.get_xdata(), line.get_ydata()) for line in ax.get_lines()}


@pytest.mark.parametrize("x", ["C", "weights", "cost"])
def test_curves_show_the_table(path, x):
    ax = plot_tao_path(path, x=x)
    left = curves(ax)
    assert sorted(left) == ["test error", "train error"]
    for name, (abscissa, error) in left.items():
        np.testing.assert_array_equal(abscissa, path.table[x])
        column = name.replace(" error", "_score")
        np.testing.assert_allclose(error, 1.0 - path.table[column])
    right = curves(next(other for other in ax.figure.axes if other is not ax))
    np.testing.assert_array_equal(right["leaves (right)"][1], path.table["leaves"])
    assert len(right) == (1 if x == "weights" else 2)
    ax.figure.canvas.draw()


def test_given_axes_are_drawn_on(path):
    _, ax = plt.subplots()
    assert plot_tao_path(path, ax=ax) is ax


def test_trees_of_one_leaf_are_drawn_where_they_have_a_place():
    X, y = load_iris(return_X_y=True)
    path = tao_path(X, y, Cs=(1.0, 1e-9))
    assert path.table["leaves"].tolist()[-1] == 1
    for x in ("C", "weights"):
        ax = plot_tao_path(path, x=x)
        assert len(curves(ax)["train error"][0]) == (2 if x == "C" else 1)
        ax.figure.canvas.draw()


def test_bad_calls_are_named(path):
    with pytest.raises(TypeError, match="allowed is what tao_path returns"):
        plot_tao_path(path.table)
    with pytest.raises(ValueError, match="x='leaves': allowed are"):
        plot_tao_path(path, x="leaves")
    with pytest.raises(ValueError, match="whose product is 64"):
        plot_tree(path.estimators[0], image_shape=(8, 9))
    with pytest.raises(TypeError, match="ax is a"):
        plot_tao_path(path, ax=plt.figure())


def test_images_keep_their_aspect_and_change_nothing_else(path):
    tree = path.trees[2]
    wide = plot_tree(tree, image_shape=(4, 16)).images[0].get_extent()
    assert (wide[1] - wide[0]) == pytest.approx(4.0 * (wide[3] - wide[2]))
    ax = plot_tree(tree)
    assert not ax.images
    _, given = plt.subplots(figsize=(9, 6))
    assert plot_tree(tree, image_shape=(8, 8), ax=given) is given
    assert given.get_aspect() == 1.0

"""A tree, or the vote of a forest, as source code that runs on its own: in Python or in C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evotree.export.forest import c_forest, python_forest
from evotree.export.functions import (
    c_probabilities,
    c_source,
    python_probabilities,
    python_source,
)
from evotree.export.named import is_forest, named_members, named_tree


def export_python(
    tree: Any,
    name: str = "predict",
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    probability: bool = False,
) -> str:
    """Return a tree as a Python function that needs nothing, no import either.

    The function takes one row, a sequence of floats in the order of the features, and returns what
    ``predict`` returns for it: the label of a class, a number, or a list of several outputs. The
    features of an estimator are
    those that its ``encode`` returns; comments say how they are made of its columns. Numbers of
    single precision are to be made Python's own first (``row.tolist()``), else NumPy reckons in
    single precision.

    ``predict`` may add the products of a node in another order, as the processor does it fastest.
    So a row may go another way where it lies on a hyperplane to within the rounding errors of that
    sum, about its number of terms times 1e-16 of their absolute sum; nowhere else. Missing values
    (NaN), which encoded rows do not have, go to the right.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator
        The tree; of an estimator its ``tree_``, with the names of its features and classes. Of a
        forest the vote is exported, each tree as a function of its own.
    name : str, default="predict"
        Name of the function.
    feature_names : sequence of str, optional
        One name for each feature, for comments; by default those of the estimator, else ``x0``,
        ``x1``, ...
    class_names : sequence, optional
        One label for each class: strings, finite numbers or truth values; by default those of the
        estimator, else 0, 1, ... The function of a tree with one output and no class names returns
        its values.
    probability : bool, default=False
        Whether the function returns what ``predict_proba`` does, a list of probabilities. `tree` is
        then a classifier fitted with ``probability="soft"``; the code imports `math.exp`, and has a
        second function, ``<name>_class``, which returns the index of the class.

    Returns
    -------
    str
        Source code, to be written to a file in UTF-8. However deep the tree is, its splits nest no
        deeper than the binary logarithm of the number of leaves.

    Raises
    ------
    ValueError
        If `name` is no name of a function, the number of names does not fit the tree, a label is of
        another kind, or there are no soft sides to take probabilities from.

    Examples
    --------
    >>> from evotree.tree import ObliqueTree
    >>> tree = ObliqueTree(
    ...     weights=np.array([[0.5, -2.0], [0.0, 0.0], [0.0, 0.0]]),
    ...     thresholds=np.array([1.5, 0.0, 0.0]),
    ...     subtree_size=np.array([3, 1, 1], dtype=np.int32),
    ...     values=np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]),
    ... )
    >>> print(export_python(tree, feature_names=["length", "width"]), end="")
    def predict(x):
        # x holds 2 floats:
        # x[0] is 'length'
        # x[1] is 'width'
        if 0.5 * x[0] - 2.0 * x[1] <= 1.5:
            return 0
        return 1
    """
    if is_forest(tree):
        members = named_members(tree, feature_names, class_names)
        return python_forest(members, name, probability)
    named = named_tree(tree, feature_names, class_names)
    return python_probabilities(named, name) if probability else python_source(named, name)


def export_c(
    tree: Any,
    name: str = "predict",
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    probability: bool = False,
) -> str:
    """Return a tree as a C function that needs nothing, no header either.

    The function takes one row, an array of doubles in the order of the features. Of a classifier it
    returns the index of the class, which ``<name>_classes[index]`` is the label of, as text; of a
    regressor it returns the number. Several outputs are written into a second array of doubles,
    ``void <name>(const double *x, double *y)``.

    Where a row lies on a hyperplane to within rounding errors it may go another way than in
    ``predict``, and missing values (NaN) go to the right: see `export_python`. With
    ``-ffp-contract=off`` (gcc, clang) or ``/fp:precise`` (MSVC), C and Python agree to the last
    bit; compilers that may fuse a multiplication with an addition round otherwise.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator
        As for `export_python`.
    name : str, default="predict"
        Name of the function.
    feature_names : sequence of str, optional
        As for `export_python`.
    class_names : sequence, optional
        As for `export_python`; not with a NUL, which ends a string in C.
    probability : bool, default=False
        Whether the function writes what ``predict_proba`` returns into a second array of doubles,
        one for each class, and returns nothing. As for `export_python`; the code includes
        ``math.h``.

    Returns
    -------
    str
        Source code in C99, which C++ reads as well, to be written to a file in UTF-8. Labels are in
        UTF-8. Splits nest as in `export_python`.

    Raises
    ------
    ValueError
        If `name` is no name of a function, the number of names does not fit the tree, a label is of
        another kind, or there are no soft sides to take probabilities from.

    Examples
    --------
    >>> from evotree.tree import ObliqueTree
    >>> tree = ObliqueTree(
    ...     weights=np.array([[0.5, -2.0], [0.0, 0.0], [0.0, 0.0]]),
    ...     thresholds=np.array([1.5, 0.0, 0.0]),
    ...     subtree_size=np.array([3, 1, 1], dtype=np.int32),
    ...     values=np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]),
    ... )
    >>> print(export_c(tree, feature_names=["length", "width"], class_names=["no", "yes"]), end="")
    // Compile with -ffp-contract=off, so that every product and every sum is rounded.
    const char *const predict_classes[2] = {
        "no",
        "yes",
    };
    <BLANKLINE>
    int predict(const double *x)
    {
        // x holds 2 doubles:
        // x[0] is 'length'
        // x[1] is 'width'
        if (0.5 * x[0] - 2.0 * x[1] <= 1.5) {
            return 0;
        }
        return 1;
    }
    """
    if is_forest(tree):
        return c_forest(named_members(tree, feature_names, class_names), name, probability)
    named = named_tree(tree, feature_names, class_names)
    return c_probabilities(named, name) if probability else c_source(named, name)

"""A tree with names for its features and classes: what every written form starts from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from evotree.tree import ObliqueTree

Label: TypeAlias = str | int | float | bool

LINE_WIDTH = 100
LEAST_WIDTH = 40


@dataclass(frozen=True, eq=False)
class NamedTree:
    """A tree and its names.

    Attributes
    ----------
    tree : ObliqueTree
        The tree.
    features : tuple of str
        One name for each feature.
    classes : tuple or None
        One name for each class, as given; None where the leaves hold numbers.
    """

    tree: ObliqueTree
    features: tuple[str, ...]
    classes: tuple[Any, ...] | None

    def terms(self, k: int) -> list[tuple[float, int]]:
        """Return the weights of node `k` that are not 0 with their features, in order."""
        weights = self.tree.weights[k]
        return [(float(weights[j]), int(j)) for j in np.flatnonzero(weights)]

    def used_features(self) -> list[int]:
        """Return the features that some node has a weight for, in order."""
        return [int(j) for j in np.flatnonzero((self.tree.weights != 0.0).any(axis=0))]

    def winners(self) -> list[int]:
        """Return the class of each node, the first one of the largest value."""
        return [int(c) for c in self.tree.values.argmax(axis=1)]

    def outputs(self) -> list[Label]:
        """Return what each node predicts: its class as a plain label, or its number.

        Raises
        ------
        ValueError
            If a class is no string, number or truth value.
        """
        if self.classes is None:
            return [float(value) for value in self.tree.values[:, 0]]
        labels = [plain_label(label, at) for at, label in enumerate(self.classes)]
        return [labels[c] for c in self.winners()]


def plain_label(label: Any, at: int) -> Label:
    """Return a class as a label that code can hold.

    Parameters
    ----------
    label : object
        One of `class_names`, perhaps of a type of NumPy's.
    at : int
        Its place, for the message.

    Returns
    -------
    str, int, float or bool
        The label, of a type of Python's own.

    Raises
    ------
    ValueError
        If it is of another type, or not finite.
    """
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, str):
        # NumPy's own strings are a subclass, which writes itself in another way.
        return str(label)
    if isinstance(label, int) or (isinstance(label, float) and math.isfinite(label)):
        return label
    raise ValueError(
        f"class_names[{at}] is {label!r}: allowed in code are strings, finite numbers and truth "
        "values."
    )


def named_tree(
    tree: Any, feature_names: Sequence[str] | None, class_names: Sequence[Any] | np.ndarray | None
) -> NamedTree:
    """Return a tree with the names that are given, those its estimator knows, or made ones.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator
        The tree; of an estimator its ``tree_``, with the names of its features and classes.
    feature_names : sequence of str, optional
        One name for each feature; by default those of the estimator, else ``x0``, ``x1``, ...
    class_names : sequence, optional
        One name for each class; by default those of the estimator, else 0, 1, ... A tree with one
        output and no class names predicts its values.

    Returns
    -------
    NamedTree
        The tree with one name for each feature, and for each class where there are classes.

    Raises
    ------
    ValueError
        If there is no tree, it is not sound, or the number of names does not fit it.
    """
    if not isinstance(tree, ObliqueTree):
        tree, feature_names, class_names = _of_estimator(tree, feature_names, class_names)
    tree.validate()
    n_features, n_outputs = tree.n_features, tree.values.shape[1]
    if feature_names is None:
        feature_names = [f"x{j}" for j in range(n_features)]
    if class_names is None and n_outputs > 1:
        class_names = range(n_outputs)
    check_length("feature_names", feature_names, n_features, "features")
    if class_names is not None:
        check_length("class_names", class_names, n_outputs, "classes")
    return NamedTree(
        tree,
        tuple(str(name) for name in feature_names),
        None if class_names is None else tuple(class_names),
    )


def _of_estimator(
    estimator: Any,
    feature_names: Sequence[str] | None,
    class_names: Sequence[Any] | np.ndarray | None,
) -> tuple[ObliqueTree, Sequence[str] | None, Sequence[Any] | np.ndarray | None]:
    """Return the tree of a fitted estimator, and its names where none are given."""
    tree = getattr(estimator, "tree_", None)
    if not isinstance(tree, ObliqueTree):
        raise ValueError(
            f"tree is a {type(estimator).__name__}: allowed are an ObliqueTree and a fitted "
            "estimator that has one as tree_."
        )
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", None)
    if class_names is None:
        class_names = getattr(estimator, "classes_", None)
    return tree, feature_names, class_names


def influence(tree: ObliqueTree, spreads: Sequence[float] | np.ndarray | None) -> np.ndarray:
    """Return the influence of each weight, |weight| times the spread of its feature.

    Parameters
    ----------
    tree : ObliqueTree
        The tree.
    spreads : sequence of float, optional
        A standard deviation for each feature; by default 1.

    Returns
    -------
    ndarray of shape (n_nodes, n_features)
        Numbers of at least 0.

    Raises
    ------
    ValueError
        If there are not as many spreads as features.
    """
    if spreads is None:
        return np.abs(tree.weights)
    check_length("spreads", spreads, tree.n_features, "features")
    return np.abs(tree.weights) * np.asarray(spreads, dtype=np.float64)


def check_length(name: str, given: Sequence[Any] | np.ndarray, n: int, things: str) -> None:
    """Check that a parameter has one entry for each of so many things.

    Parameters
    ----------
    name : str
        Name of the parameter.
    given : sequence
        Its value.
    n : int
        The number of things.
    things : str
        What they are called.

    Raises
    ------
    ValueError
        If there are more or fewer.
    """
    if len(given) != n:
        raise ValueError(f"{name} has {len(given)} entries: the tree has {n} {things}.")


def check_whole(name: str, value: Any, least: int) -> None:
    """Check that a parameter is a whole number of at least `least`.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        Its value.
    least : int
        The smallest one allowed.

    Raises
    ------
    ValueError
        If it is another value.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name}={value!r}: allowed is a whole number of at least {least}.")


def printable(name: Any) -> str:
    """Return a name for a terminal: what would move the cursor or change colours is escaped.

    Parameters
    ----------
    name : object
        The name of a feature or a class.

    Returns
    -------
    str
        Its text, on one line.
    """
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "replace").decode()
        for sign in str(name)
    )


def fold(pieces: Sequence[str], width: int) -> list[str]:
    """Return pieces set into lines with blanks between them; a longer one has its own line.

    Parameters
    ----------
    pieces : sequence of str
        At least one; none is ever broken.
    width : int
        The length of a line.

    Returns
    -------
    list of str
        Lines.
    """
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + 1 + len(piece) <= width:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return lines


def clauses(tree: ObliqueTree) -> Iterator[tuple[int, int, bool]]:
    """Yield the nodes in an order that nests little, however deep the tree is.

    Below each test comes the smaller one of its two subtrees, and then, outside of the test, the
    larger one: whoever is in the smaller one has left by then. A subtree inside has at most half
    the leaves, so the tests nest no deeper than the binary logarithm of the number of leaves.

    Parameters
    ----------
    tree : ObliqueTree
        Any valid tree.

    Yields
    ------
    tuple of (int, int, bool)
        A node, the number of tests that it stands inside of, and whether its smaller subtree is
        the left one.
    """
    waiting = [(0, 0)]
    while waiting:
        k, level = waiting.pop()
        if tree.subtree_size[k] == 1:
            yield k, level, True
            continue
        left, right = tree.left(k), tree.right(k)
        left_first = bool(tree.subtree_size[left] <= tree.subtree_size[right])
        yield k, level, left_first
        inside, outside = (left, right) if left_first else (right, left)
        waiting += [(outside, level), (inside, level + 1)]

"""Synthetic problems with known optimal oblique trees.

The problems are those of GEA-ODT (Krętowski and Grześ 2005, Table 1) and the artificial data of OC1
(Murthy, Kasif and Salzberg 1994). The papers publish neither the data nor every
parameter: they fix the number of features, of classes and of regions, and so the size of the
optimal tree. Angle, width and sampling region are choices of this module, made so that
axis-parallel trees do about as well as the published C4.5; each docstring states them. "Pruned
CART" there is scikit-learn's DecisionTreeClassifier, its cost-complexity chosen by 10-fold
cross-validation, on the default number of rows: mean of five samples, 20,000 test rows each.

In: a name, a number of rows, a seed. Out: ``X`` of shape (n_samples, n_features), float64, and
``y`` of shape (n_samples,), int64 class labels 0, ..., n_classes - 1, free of noise. The labels are
computed from the geometric definition, not from the reference tree, so that the two check each
other.

A leaf of a tree is a convex region. A reference tree is therefore optimal where no two of its
leaves could be served by one convex region of a single class.

References
----------
Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary approach.
Intelligent Information Processing and Web Mining, Advances in Soft Computing 31, 309-318.
Murthy S. K., Kasif S., Salzberg S. (1994). A system for induction of oblique decision trees.
Journal of Artificial Intelligence Research 2, 1-32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from evotree.experiments.shapes import (
    ZEBRA3_NORMAL,
    ZEBRA3_WIDTH,
    ReferenceTree,
    Sample,
    chessboard_tree,
    house_tree,
    parallel_tree,
    rcb_tree,
    sample_chessboard2,
    sample_chessboard4,
    sample_house,
    sample_ls10,
    sample_pol,
    sample_rcb,
    sample_zebra1,
    sample_zebra2,
    sample_zebra3,
)

__all__ = ["PROBLEMS", "Problem", "make_problem", "reference_predict", "reference_size"]


@dataclass(frozen=True)
class Problem:
    """A synthetic classification problem and its optimal oblique tree.

    Attributes
    ----------
    name : str
        Name as in the papers' tables.
    n_features : int
        Number of features, at least 1.
    n_classes : int
        Number of classes, at least 2.
    optimal_nodes : int
        Number of all nodes, leaves included, of the smallest tree without error; odd.
    default_samples : int
        Number of training rows in the paper.
    class_shares : tuple of float, length n_classes
        Exact probability of each class; the shares sum to 1.
    description : str
        One line of plain words.
    sample : callable
        ``sample(n_samples, rng) -> (X, y)`` draws independent rows from a numpy Generator.
    tree : ReferenceTree
        An optimal tree: either a leaf, which is its class label, or a tuple ``("split", weights,
        threshold, left, right)``. A row goes left when ``weights @ x <= threshold``.
    """

    name: str
    n_features: int
    n_classes: int
    optimal_nodes: int
    default_samples: int
    class_shares: tuple[float, ...]
    description: str
    sample: Callable[[int, np.random.Generator], Sample]
    tree: ReferenceTree


def reference_size(tree: ReferenceTree) -> int:
    """Count all nodes of a reference tree.

    Parameters
    ----------
    tree : ReferenceTree
        Leaf label or nested ``("split", weights, threshold, left, right)``.

    Returns
    -------
    int
        Number of internal nodes and leaves, at least 1.
    """
    if isinstance(tree, tuple):
        return 1 + reference_size(tree[3]) + reference_size(tree[4])
    return 1


def reference_predict(tree: ReferenceTree, X: NDArray[np.float64]) -> NDArray[np.int64]:
    """Classify rows with a reference tree.

    Parameters
    ----------
    tree : ReferenceTree
        Leaf label or nested ``("split", weights, threshold, left, right)``.
    X : ndarray of shape (n_samples, n_features), float64
        Rows; read only.

    Returns
    -------
    ndarray of shape (n_samples,), int64
        Class labels.
    """
    if not isinstance(tree, tuple):
        return np.full(len(X), tree, dtype=np.int64)
    _, weights, threshold, left, right = tree
    goes_left = X @ np.asarray(weights) <= threshold
    y = np.empty(len(X), dtype=np.int64)
    y[goes_left] = reference_predict(left, X[goes_left])
    y[~goes_left] = reference_predict(right, X[~goes_left])
    return y


_PROBLEMS = (
    Problem(
        name="chessboard2",
        n_features=2,
        n_classes=2,
        optimal_nodes=7,
        default_samples=1000,
        class_shares=(0.5, 0.5),
        description="2 x 2 chessboard rotated by 45 degrees, two classes",
        sample=sample_chessboard2,
        tree=chessboard_tree(0, 1, 1, 0),
    ),
    Problem(
        name="chessboard4",
        n_features=2,
        n_classes=4,
        optimal_nodes=7,
        default_samples=1000,
        class_shares=(0.25, 0.25, 0.25, 0.25),
        description="2 x 2 chessboard rotated by 45 degrees, each field its own class",
        sample=sample_chessboard4,
        tree=chessboard_tree(0, 1, 2, 3),
    ),
    Problem(
        name="zebra1",
        n_features=2,
        n_classes=2,
        optimal_nodes=7,
        default_samples=1000,
        class_shares=(0.5, 0.5),
        description="four stripes at 45 degrees that no axis-parallel split sees",
        sample=sample_zebra1,
        tree=parallel_tree((1.0, 1.0), (0.5, 1.0, 1.5), (0, 1, 0, 1)),
    ),
    Problem(
        name="zebra2",
        n_features=2,
        n_classes=2,
        optimal_nodes=5,
        default_samples=1000,
        class_shares=(4 / 9, 5 / 9),
        description="three stripes at 45 degrees, alternating two classes",
        sample=sample_zebra2,
        tree=parallel_tree((1.0, 1.0), (2 / 3, 4 / 3), (0, 1, 0)),
    ),
    Problem(
        name="zebra3",
        n_features=2,
        n_classes=2,
        optimal_nodes=15,
        default_samples=1000,
        class_shares=(0.5, 0.5),
        description="eight stripes 10 degrees off the vertical, alternating two classes",
        sample=sample_zebra3,
        tree=parallel_tree(
            ZEBRA3_NORMAL, [k * ZEBRA3_WIDTH for k in range(1, 8)], [k % 2 for k in range(8)]
        ),
    ),
    Problem(
        name="house",
        n_features=2,
        n_classes=2,
        optimal_nodes=11,
        default_samples=1000,
        class_shares=(0.183088, 0.816912),
        description="rectangle with a gable roof, inside against outside",
        sample=sample_house,
        tree=house_tree(),
    ),
    Problem(
        name="LS10",
        n_features=10,
        n_classes=2,
        optimal_nodes=3,
        default_samples=1000,
        class_shares=(0.5, 0.5),
        description="two linearly separable classes in ten dimensions",
        sample=sample_ls10,
        tree=("split", (1.0,) * 5 + (-1.0,) * 5, 0.0, 1, 0),
    ),
    Problem(
        name="POL",
        n_features=2,
        n_classes=2,
        optimal_nodes=9,
        default_samples=2000,
        class_shares=(0.52, 0.48),
        description="four parallel oblique lines, five bands of alternating two classes",
        sample=sample_pol,
        tree=parallel_tree((1.0, 1.0), (0.4, 0.8, 1.2, 1.6), (0, 1, 0, 1, 0)),
    ),
    Problem(
        name="RCB",
        n_features=2,
        n_classes=8,
        optimal_nodes=31,
        default_samples=2000,
        class_shares=(0.125,) * 8,
        description="4 x 4 checkerboard rotated by 45 degrees, eight classes",
        sample=sample_rcb,
        tree=rcb_tree(),
    ),
)

#: All problems by name, read-only, in the order of the papers' tables.
PROBLEMS = MappingProxyType({problem.name: problem for problem in _PROBLEMS})


def make_problem(
    name: str,
    n_samples: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Sample:
    """Draw a sample of a synthetic problem.

    Parameters
    ----------
    name : str
        One of ``PROBLEMS``.
    n_samples : int, optional
        Number of rows, at least 1; by default the paper's number of training rows (1,000 for the
        problems of GEA-ODT, 2,000 for POL and RCB of OC1).
    random_state : int, numpy Generator or None
        A seed of at least 0, which makes the sample reproducible; a Generator, which is advanced;
        or None for fresh entropy.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float64
        Features, independent rows.
    y : ndarray of shape (n_samples,), int64
        Class labels 0, ..., n_classes - 1, free of noise.

    Raises
    ------
    ValueError
        If the name is unknown, n_samples is not a whole number of at least 1, or random_state is
        of another kind.

    Examples
    --------
    >>> X, y = make_problem("zebra1", n_samples=100, random_state=0)
    >>> X.shape, y.shape
    ((100, 2), (100,))
    """
    if name not in PROBLEMS:
        raise ValueError(
            f"name={name!r} is not a synthetic problem; allowed: {', '.join(PROBLEMS)}"
        )
    problem = PROBLEMS[name]
    if n_samples is None:
        n_samples = problem.default_samples
    elif not _is_whole(n_samples) or n_samples < 1:
        raise ValueError(f"n_samples={n_samples!r} must be a whole number of at least 1, or None")
    return problem.sample(int(n_samples), _as_generator(random_state))


def _is_whole(value: object) -> bool:
    """Tell whole numbers from everything else, booleans included."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _as_generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """Return the Generator itself, or a new one from a seed or from fresh entropy."""
    if isinstance(random_state, np.random.Generator) or random_state is None:
        return np.random.default_rng(random_state)
    if not _is_whole(random_state) or random_state < 0:
        raise ValueError(
            f"random_state={random_state!r} must be None, a whole number of at least 0 or a "
            "numpy.random.Generator"
        )
    return np.random.default_rng(int(random_state))

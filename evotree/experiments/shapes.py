"""The shapes of the synthetic problems: how their rows are drawn, and their optimal trees.

Every sampler returns ``X`` of shape (n_samples, n_features), float64, and ``y`` of shape
(n_samples,), int64, free of noise. The labels are computed from the geometric definition, not from
the reference tree, so that the two check each other. `evotree.experiments.problems` names them.

A leaf of a tree is a convex region. A reference tree is therefore optimal where no two of its
leaves could be served by one convex region of a single class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Split: TypeAlias = tuple[
    Literal["split"], tuple[float, ...], float, "ReferenceTree", "ReferenceTree"
]
ReferenceTree: TypeAlias = int | Split
Sample: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int64]]


def parallel_tree(
    weights: tuple[float, ...], thresholds: Sequence[float], labels: Sequence[ReferenceTree]
) -> ReferenceTree:
    """Build a balanced tree over len(thresholds) + 1 bands between parallel hyperplanes."""
    if not thresholds:
        return labels[0]
    m = len(thresholds) // 2
    return (
        "split",
        weights,
        thresholds[m],
        parallel_tree(weights, thresholds[:m], labels[: m + 1]),
        parallel_tree(weights, thresholds[m + 1 :], labels[m + 1 :]),
    )


def _direction(degrees: float) -> tuple[float, float]:
    """Return the unit vector at an angle, in degrees, to the first axis."""
    return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))


def _labels(values: NDArray) -> NDArray[np.int64]:
    """Convert conditions or whole numbers to class labels."""
    return values.astype(np.int64)


# ---- chessboards ---------------------------------------------------------------------------------


def sample_chessboard2(n_samples: int, rng: np.random.Generator) -> Sample:
    """Draw from a 2 x 2 chessboard rotated by 45 degrees.

    X is uniform in the unit square, which the diagonals x1 + x2 = 1 and x1 = x2 cut into four
    triangles. y = 1 where exactly one of x1 + x2 > 1 and x1 > x2 holds (the lower and the upper
    triangle), else 0 (left and right). 2 classes of share 1/2.

    The optimum has 7 nodes: a convex region of one class lies within one triangle, so four leaves
    are needed, and the two diagonals give them in three splits.

    The square itself is not rotated (our choice): a rotated square leaves corners that are easy for
    axis-parallel trees, whose accuracy rises to 0.965. With this one pruned CART has 0.949 (C4.5
    published: 0.933).
    """
    X = rng.random((n_samples, 2))
    return X, _labels((X[:, 0] + X[:, 1] > 1.0) ^ (X[:, 0] > X[:, 1]))


def sample_chessboard4(n_samples: int, rng: np.random.Generator) -> Sample:
    """Draw from the board of ``chessboard2``, each field a class of its own.

    X is uniform in the unit square; y = 2 [x1 + x2 > 1] + [x1 > x2]: 0 left, 1 bottom, 2 top,
    3 right. 4 classes of share 1/4. The optimum has 7 nodes: four classes need four leaves. Pruned
    CART has 0.946 (C4.5 published: 0.946).
    """
    X = rng.random((n_samples, 2))
    return X, _labels(2 * (X[:, 0] + X[:, 1] > 1.0) + (X[:, 0] > X[:, 1]))


def chessboard_tree(left: int, bottom: int, top: int, right: int) -> ReferenceTree:
    """Build the tree of the two diagonals: first x1 + x2 <= 1, then x1 <= x2 on both sides."""
    diagonal = (1.0, -1.0)
    return (
        "split",
        (1.0, 1.0),
        1.0,
        ("split", diagonal, 0.0, left, bottom),
        ("split", diagonal, 0.0, top, right),
    )


# ---- stripes -------------------------------------------------------------------------------------

ZEBRA3_NORMAL = _direction(10.0)
ZEBRA3_WIDTH = sum(ZEBRA3_NORMAL) / 8


def sample_zebra1(n_samples: int, rng: np.random.Generator) -> Sample:
    """Draw from four parallel stripes at 45 degrees in two alternating classes.

    X is uniform in the unit square; y = floor(2 (x1 + x2)) mod 2, hence the boundaries x1 + x2 =
    1/2, 1 and 3/2. 2 classes of share 1/2. The optimum has 7 nodes: neighbouring stripes differ in
    class, so each of the four stripes needs a leaf.

    The stripes repeat along either axis with period 1, the side of the square (our choice). So each
    line parallel to an axis lies half in either class, P(y = 1 | x1) = P(y = 1 | x2) = 1/2
    everywhere, and no axis-parallel split has any gain in expectation. C4.5, which asks for a gain
    above chance, stays at a single leaf (published: accuracy 0.5, 1 node).
    """
    X = rng.random((n_samples, 2))
    return X, _labels(np.floor(2.0 * (X[:, 0] + X[:, 1]))) % 2


def sample_zebra2(n_samples: int, rng: np.random.Generator) -> Sample:
    """Draw from three parallel stripes at 45 degrees in two alternating classes.

    X is uniform in the unit square; y = 1 where 2/3 < x1 + x2 <= 4/3, else 0. 2 classes of shares
    4/9 and 5/9. The optimum has 5 nodes: the middle stripe divides the others, so each of the three
    needs a leaf.

    The stripes are equally wide (our choice). Pruned CART has 0.959 (C4.5 published: 0.969).
    """
    X = rng.random((n_samples, 2))
    total = X[:, 0] + X[:, 1]
    return X, _labels((total > 2.0 / 3.0) & (total <= 4.0 / 3.0))


def sample_zebra3(n_samples: int, rng: np.random.Generator) -> Sample:
    """Draw from eight parallel stripes, 10 degrees off the vertical, in two alternating classes.

    X is uniform in the unit square; v = x1 cos 10° + x2 sin 10° ranges from 0 to V = cos 10° +
    sin 10°; y = floor(8 v / V) mod 2. 2 classes of share 1/2, since the reflection in the centre of
    the square maps each stripe to one of the other class. The optimum has 15 nodes: neighbouring
    stripes differ in class, so each of the eight needs a leaf.

    The angle is our choice. At 45 degrees the stripes would repeat with period 1/2 along both axes
    and hide from axis-parallel splits as in ``zebra1``; the published C4.5 finds them (0.916). At
    10 degrees pruned CART has 0.918.
    """
    X = rng.random((n_samples, 2))
    v = X[:, 0] * ZEBRA3_NORMAL[0] + X[:, 1] * ZEBRA3_NORMAL[1]
    return X, _labels(np.floor(v / ZEBRA3_WIDTH)) % 2


def sample_pol(n_samples: int, rng: np.random.Generator) -> Sample:
    """Draw from OC1's parallel oblique lines: five bands in two alternating classes.

    X is uniform in the unit square; y = floor(5 (x1 + x2) / 2) mod 2, hence the four boundaries
    x1 + x2 = 0.4, 0.8, 1.2 and 1.6. 2 classes of shares 0.52 and 0.48. The optimum has 9 nodes (5
    leaves): neighbouring bands differ in class, so each of the five needs a leaf.

    The angle of 45 degrees and the equal widths are our choice.
    """
    X = rng.random((n_samples, 2))
    return X, _labels(np.floor(2.5 * (X[:, 0] + X[:, 1]))) % 2


# ---- house ---------------------------------------------------------------------------------------

_WALL, _FLOOR, _EAVES, _APEX = 0.012, 0.008, 0.7, 0.99
_ROOF_SLOPE = (_APEX - _EAVES) / (0.5 - _WALL)


def sample_house(n_samples: int, rng: np.random.Generator) -> Sample:
    """Draw from the outline of a house: a rectangle and a gable roof, inside against outside.

    X is uniform in the unit square; y = 1 (inside) where 0.012 <= x1 <= 0.988, 0.008 <= x2 and
    x2 <= 0.99 - s |x1 - 0.5| with the slope s = 0.29 / 0.488, so that the roof rises from 0.7 at
    the walls to 0.99. 2 classes of shares 0.183088 (outside) and 0.816912 (inside).

    The optimum has 11 nodes: the inside has five edges. A convex region outside the house that
    touches an edge along a segment can be separated from the house only by the line of that edge,
    so each edge needs a leaf of its own; with the inside that makes six.

    The proportions are our choice. The published trees are smaller than the exact one (GEA-ODT 5.4
    nodes and 0.958, OC1 5 nodes and 0.959): the roof alone, 5 nodes, has 0.975 here, and each of
    the three other edges adds about 0.008, less than two nodes cost at alpha = 0.005. Pruned CART
    has 0.978 with 43 nodes (C4.5 published: 0.98 with 39).
    """
    X = rng.random((n_samples, 2))
    between_walls = (X[:, 0] >= _WALL) & (X[:, 0] <= 1.0 - _WALL)
    above_floor = X[:, 1] >= _FLOOR
    below_roof = X[:, 1] <= _APEX - _ROOF_SLOPE * np.abs(X[:, 0] - 0.5)
    return X, _labels(between_walls & above_floor & below_roof)


def house_tree() -> ReferenceTree:
    """Build the chain of the five edges; what lies outside an edge is a leaf at once."""
    half_planes: tuple[tuple[tuple[float, float], float], ...] = (
        ((-_ROOF_SLOPE, 1.0), _APEX - 0.5 * _ROOF_SLOPE),
        ((_ROOF_SLOPE, 1.0), _APEX + 0.5 * _ROOF_SLOPE),
        ((0.0, -1.0), -_FLOOR),
        ((-1.0, 0.0), -_WALL),
        ((1.0, 0.0), 1.0 - _WALL),
    )
    tree: ReferenceTree = 1
    for weights, threshold in reversed(half_planes):
        tree = ("split", weights, threshold, tree, 0)
    return tree


# ---- linearly separable --------------------------------------------------------------------------


def sample_ls10(n_samples: int, rng: np.random.Generator) -> Sample:
    """Draw from LS10: two linearly separable classes in ten dimensions.

    X is uniform in the unit cube of dimension 10; y = 1 where x1 + ... + x5 < x6 + ... + x10,
    else 0. 2 classes of share 1/2. The optimum has 3 nodes: one hyperplane separates the classes.

    GEA-ODT trains on 1,000 rows, the default; OC1 uses the same problem with 2,000. Pruned CART has
    0.728 at 1,000 rows (C4.5 published: 0.762).
    """
    X = rng.random((n_samples, 10))
    return X, _labels(X[:, :5].sum(axis=1) < X[:, 5:].sum(axis=1))


# ---- rotated checkerboard ------------------------------------------------------------------------

_RCB_COS, _RCB_SIN = _direction(45.0)


def sample_rcb(n_samples: int, rng: np.random.Generator) -> Sample:
    """Draw from OC1's rotated checkerboard: 4 x 4 fields in eight classes.

    U is uniform in the unit square, i = floor(4 u1), j = floor(4 u2), y = (4 i + j) mod 8: the
    class repeats after two columns. X is U rotated by 45 degrees about the centre (1/2, 1/2).
    8 classes of share 1/8. The optimum has 31 nodes (16 leaves): between the two fields of a class
    lies a field of another, which every convex region around both would meet, so each of the
    sixteen fields needs a leaf.

    The sampling region turns with the board and the angle is 45 degrees (our choices), so that all
    fields are whole and equally likely.
    """
    U = rng.random((n_samples, 2))
    cell = np.floor(4.0 * U)
    u1, u2 = U[:, 0] - 0.5, U[:, 1] - 0.5
    X = np.column_stack((_RCB_COS * u1 - _RCB_SIN * u2, _RCB_SIN * u1 + _RCB_COS * u2)) + 0.5
    return X, _labels(4 * cell[:, 0] + cell[:, 1]) % 8


def rcb_tree() -> ReferenceTree:
    """Build the tree that finds the column first and then the row."""
    along, across = (_RCB_COS, _RCB_SIN), (-_RCB_SIN, _RCB_COS)
    quarters = (-0.25, 0.0, 0.25)
    columns = [
        parallel_tree(
            across,
            [q + 0.5 * sum(across) for q in quarters],
            [(4 * i + j) % 8 for j in range(4)],
        )
        for i in range(4)
    ]
    return parallel_tree(along, [q + 0.5 * sum(along) for q in quarters], columns)

"""What the tests of exported trees share: drawn trees, readers of printed ones, and damage."""

import operator
import re

import numpy as np
from hypothesis import strategies as st

from evotree.leaf_models import LeafModels
from evotree.tree import ObliqueTree, SoftSides
from tests.reference.pruning import random_sizes

finite = st.floats(allow_nan=False, allow_infinity=False)
tame = st.floats(0.01, 100.0) | st.floats(-100.0, -0.01)


@st.composite
def trees(draw, numbers=finite, n_classes=None):
    """Draw a tree of up to 15 nodes; its values are class shares.

    Some know the spread of their features, and some the rows of their nodes.
    """
    n_features, n_outputs = (
        draw(st.integers(1, 4)),
        n_classes or draw(st.integers(1, 3)),
    )

    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    subtree_size = np.array(random_sizes(rng, draw(st.integers(0, 7))), dtype=np.int32)
    weights = np.zeros((len(subtree_size), n_features))
    thresholds = np.zeros(len(subtree_size))
    for k in np.flatnonzero(subtree_size > 1):
        weights[k] = draw(st.lists(numbers, min_size=n_features, max_size=n_features))
        thresholds[k] = draw(numbers)
    counts = rng.integers(1, 10, (len(subtree_size), n_outputs)).astype(np.float64)
    samples = counts.sum(axis=1)
    spread = draw(
        st.sampled_from((None, 1e3 * rng.random(n_features), np.zeros(n_features)))
    )
    known = samples if draw(st.booleans()) else None
    values = counts / samples[:, np.newaxis]
    return ObliqueTree(weights, thresholds, subtree_size, values, spread, known)


def with_models(tree, rng):
    """Return a regression tree with linear models in its leaves, whose numbers have all digits."""
    shape = tree.weights.shape
    coefficients = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)
    coefficients[rng.random(shape) < 0.1] = 1.0  # which is not written
    coefficients[(rng.random(shape) < 0.4) | ~tree.is_leaf[:, np.newaxis]] = 0.0
    intercepts = np.where(
        tree.is_leaf, 10.0 * rng.normal(size=shape[0]), tree.values[:, 0]
    )
    room = np.where(
        tree.is_leaf, 10.0 ** rng.integers(0, 4, shape[0]) * rng.random(shape[0]), 0.0
    )
    models = LeafModels(
        intercepts, coefficients, intercepts - room, intercepts + 2.0 * room
    )
    return tree.with_models(models).validate()


def soft_sides(tree, rng):
    """Return soft sides of a tree of classes, some of which are nearly hard."""
    inner = ~tree.is_leaf
    slopes = 10.0 ** rng.uniform(-2.0, 2.0, len(tree)) * inner
    return SoftSides(slopes, rng.normal(size=len(tree)) * inner, tree.values)


@st.composite
def modelled_trees(draw, numbers=finite):
    """Draw a tree as `trees` does, with linear models in its leaves."""
    tree = draw(trees(numbers, n_classes=1))
    return with_models(tree, np.random.default_rng(draw(st.integers(0, 2**32))))


def chain(n_nodes):
    """Return a tree whose splits stand below each other, each with a leaf on its left."""
    sizes = np.ones(n_nodes, dtype=np.int32)
    sizes[::2] = np.arange(n_nodes, 0, -2)
    inner = sizes > 1
    thresholds = np.where(inner, np.arange(n_nodes), 0.0)
    return ObliqueTree(
        inner[:, np.newaxis] * 1.0, thresholds, sizes, np.eye(2)[sizes % 2]
    )


def assert_same(a, b):
    """Compare trees to the last bit, the sign of zeros included."""

    def bits(part):
        if isinstance(part, np.ndarray):
            return part.dtype, part.shape, part.tobytes()
        return [bits(one) for one in part] if isinstance(part, tuple) else part

    for name in ObliqueTree.__slots__:
        assert bits(getattr(a, name)) == bits(getattr(b, name)), name


def stump(weights, threshold=1.0):
    n = len(weights)
    return ObliqueTree(
        np.array([weights, [0.0] * n, [0.0] * n]),
        np.array([threshold, 0.0, 0.0]),
        np.array([3, 1, 1], dtype=np.int32),
        np.array([[0.5, 0.5], [1.0, 0.0], [0.002, 0.998]]),
    )


_RELATIONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


def holds(rule, row):
    """Read a printed inequality, and say whether a row meets it."""
    sums, relation, bound = re.fullmatch(r"(.*) (<=|>=|<|>) (\S+)", rule).groups()
    total = 0.0
    for sign, factor, j in re.findall(r"([+-]?) ?(?:([\d.e+-]+) \* )?x(\d+)", sums):
        total += (-1.0 if sign == "-" else 1.0) * float(factor or 1.0) * row[int(j)]
    return _RELATIONS[relation](total, float(bound))


def matching(text, row):
    """Return what the rules say whose conditions a row meets, by reading them."""
    found = []
    for block in text.rstrip("\n").split("\n\n"):
        *conditions, leaf = re.sub(r"\n     ", " ", block).split("\n")
        if all(rule == "IF   anything" or holds(rule[5:], row) for rule in conditions):
            found.append(leaf)
    return found


JUNK = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        1,
        3,
        10**400,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "a",
        [],
        [[]],
        {},
    ]
) | st.recursive(
    st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)


def places(data):
    """List the places of plain data, each as a container and a key."""
    keys = data.keys() if isinstance(data, dict) else range(len(data))
    found = [(data, key) for key in list(keys)]
    for key in list(keys):
        if isinstance(data[key], dict | list):
            found += places(data[key])
    return found


def mutate(draw, data):
    """Replace, remove or repeat something in plain data."""
    container, key = draw(st.sampled_from(places(data)))
    action = draw(st.sampled_from(["replace", "remove", "repeat"]))
    if action == "replace":
        container[key] = draw(JUNK)
    elif action == "remove":
        del container[key]
    elif isinstance(container, list):
        container.append(container[key])

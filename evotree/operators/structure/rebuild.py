"""Trees that are handed over as arrays: checked, and their rows routed from scratch."""

from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.individual import Individual
from evotree.operators.structure.splice import make_individual
from evotree.tree import ObliqueTree


def checked_arrays(
    weights: Any, thresholds: Any, subtree_size: Any, values: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a tree in the types that kernels take, which check nothing."""
    arrays = {
        "weights": weights,
        "thresholds": thresholds,
        "subtree_size": subtree_size,
        "values": np.zeros((len(subtree_size), 1)) if values is None else values,
    }
    for name, array in arrays.items():
        try:
            arrays[name] = np.ascontiguousarray(array, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} holds something that is not a number.") from None
    size = arrays["subtree_size"]
    if not (np.abs(size) < 2**31).all() or (size != size.round()).any():
        raise ValueError(
            f"subtree_size has {size.tolist()}: allowed are integers below 2**31."
        )
    arrays["subtree_size"] = size.astype(np.int32)
    return ObliqueTree(**arrays).validate().splits


def with_tree(
    individual: Individual,
    dataset: Dataset,
    weights: Any,
    thresholds: Any,
    subtree_size: Any,
) -> Individual:
    """Return an individual of another tree: what an operator in plain Python makes of one.

    The training rows are routed from scratch and the parts that none of them reaches are left out,
    so the tree may be smaller than the one given. Its fitness is not yet evaluated. Arrays that are
    no tree, or one over another number of features, are a ValueError.

    Parameters
    ----------
    individual : Individual
        The one in whose place the new one stands: its stream, origin and kind of fitness are kept.
    dataset : Dataset
        Training rows.
    weights, thresholds : array-like of shape (n_nodes, n_features), and (n_nodes,)
        Hyperplanes in the units of the data set: x goes left where ``weights @ x <= threshold``.
    subtree_size : array-like of shape (n_nodes,)
        Number of nodes of the subtree of each node, in prefix order; 1 at a leaf.

    Examples
    --------
    >>> from evotree import Dataset, make_toolbox
    >>> from evotree.rng import as_generator
    >>> dataset = Dataset.from_arrays([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> toolbox = make_toolbox(dataset, size_penalty=0.005, init=None, random_state=0)
    >>> def mutate(individual):
    ...     rng = as_generator(individual.stream)
    ...     thresholds = individual.thresholds + 0.1 * rng.normal(size=len(individual))
    ...     size = individual.subtree_size
    ...     return (with_tree(individual, dataset, individual.weights, thresholds, size),)
    >>> toolbox.register("mutate", mutate)
    >>> (before,) = toolbox.population(n=1)
    >>> (after,) = toolbox.mutate(before)
    >>> len(after) == len(before)
    True
    """
    arrays = checked_arrays(weights, thresholds, subtree_size)
    n_features = dataset.X.shape[1]
    if arrays[0].shape[1] != n_features:
        raise ValueError(
            f"weights has {arrays[0].shape[1]} features, the data set {n_features}."
        )
    return in_place_of(individual, make_individual(dataset, *arrays))


def in_place_of(individual: Individual, other: Individual) -> Individual:
    """Give another individual the stream, the origin and the kind of fitness of one; return it."""
    kind: Any = type(individual.fitness)
    other.stream = individual.stream
    other.origin = individual.origin
    other.fitness = kind()
    return other


def on_rows(individual: Individual, dataset: Dataset) -> Individual:
    """Return an individual of the same tree with other rows, which are routed through it."""
    return in_place_of(individual, make_individual(dataset, *individual.splits))

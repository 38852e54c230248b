"""Why single rows reach their leaves: what each term adds to each decision on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from evotree.inspection.training_rows import TrainingRows
from evotree.tree import ObliqueTree, node_depths


class Explanation(NamedTuple):
    """Two tables that say why rows are predicted as they are.

    Attributes
    ----------
    terms : pandas.DataFrame
        One line for each term of each node on the path of each row: ``row``; ``step``, 0 at the
        root; ``node``, as ``apply`` counts; ``side``, ``"left"``, ``"right"`` or ``"leaf"``;
        ``feature`` and its ``value`` and ``weight``; ``contribution``; ``centre``; ``total``.

        A contribution is the weight times what the value is above the mean of the training rows at
        the node. ``total`` is ``centre`` plus all contributions of the step, and ``centre`` what it
        would be for the mean row. At a split it is the signed distance to the hyperplane, above 0
        on the right, and all three are in units of the spread of the projection over the training
        rows of the node. At a leaf with a linear model it is what the model says before its bounds,
        in the units of the target. Leaves without a model have no lines.
    rows : pandas.DataFrame
        One line for each row: ``prediction``, a class or a number; ``leaf``; ``decision_distance``,
        the smallest absolute distance to a hyperplane on its path, infinite where there is none;
        ``outside``, the names of the features whose values are outside the range of the training
        rows.
    """

    terms: pd.DataFrame
    rows: pd.DataFrame


def explain(
    tree: ObliqueTree,
    training: TrainingRows,
    X: np.ndarray,
    feature_names: Sequence[str],
    classes: np.ndarray | None = None,
) -> Explanation:
    """Explain the path of each row."""
    names = np.array(feature_names, dtype=object)
    leaves = tree.apply(X)
    nearest = np.full(len(X), np.inf)
    reached = _reached(tree, leaves)
    made = (_of_node(k, side, rows, tree, training, X) for k, side, rows in reached)
    parts = [part for part in made if part is not None]
    for part in parts:
        if part.side != "leaf":
            nearest[part.rows] = np.minimum(nearest[part.rows], np.abs(part.total))
    is_outside = np.less(X, training.lowest) | np.greater(X, training.highest)
    predicted = tree.predict_value(X)[:, 0] if classes is None else classes[tree.labels[leaves]]
    of_rows = pd.DataFrame(
        {
            "prediction": predicted,
            "leaf": leaves,
            "decision_distance": nearest,
            "outside": [tuple(names[one]) for one in is_outside],
        }
    )
    return Explanation(_table(parts, X, names, node_depths(tree.subtree_size)), of_rows)


class _Part(NamedTuple):
    """The terms of one node for the rows that take one side of it."""

    node: int
    side: str
    rows: np.ndarray
    features: np.ndarray
    weights: np.ndarray
    contributions: np.ndarray  # of shape (n_rows, n_terms)
    centre: float
    total: np.ndarray


def _reached(tree: ObliqueTree, leaves: np.ndarray) -> Iterator[tuple[int, str, np.ndarray]]:
    """Yield each node with a side and the rows that take it."""
    for k in range(len(tree)):
        if tree.subtree_size[k] == 1:
            yield k, "leaf", np.flatnonzero(leaves == k)
            continue
        for side, child in (("left", tree.left(k)), ("right", tree.right(k))):
            end = child + tree.subtree_size[child]
            yield k, side, np.flatnonzero((leaves >= child) & (leaves < end))


def _of_node(
    k: int, side: str, rows: np.ndarray, tree: ObliqueTree, training: TrainingRows, X: np.ndarray
) -> _Part | None:
    """Return the contributions at a node, the most influential terms first; None without terms."""
    if side != "leaf":
        scale = training.spreads[k]
        weights, constant = tree.weights[k], -tree.thresholds[k]
    elif tree.models is not None:
        scale = 1.0
        weights, constant = tree.models.coefficients[k], tree.models.intercepts[k]
    else:
        return None
    spread = np.ones(tree.n_features) if tree.spread is None else tree.spread
    features = np.flatnonzero(weights)
    features = features[np.argsort(-np.abs(weights * spread)[features], kind="stable")]
    if not rows.size or not features.size:
        return None
    used, mean = weights[features], training.means[k, features]
    contributions = used * (X[np.ix_(rows, features)] - mean) / scale
    centre = float(used @ mean + constant) / scale
    total = centre + contributions.sum(axis=1)
    return _Part(k, side, rows, features, used, contributions, centre, total)


def _table(
    parts: Sequence[_Part], X: np.ndarray, names: np.ndarray, depths: np.ndarray
) -> pd.DataFrame:
    """Return the lines of all parts, sorted by rows and steps."""
    columns: dict[str, list[np.ndarray]] = {
        name: [np.empty(0, dtype=dtype)]
        for name, dtype in (
            ("row", np.int64),
            ("step", np.int64),
            ("node", np.int64),
            ("side", object),
            ("feature", object),
            ("value", np.float64),
            ("weight", np.float64),
            ("contribution", np.float64),
            ("centre", np.float64),
            ("total", np.float64),
        )
    }
    for part in parts:
        n_rows, n_terms = part.contributions.shape
        n = n_rows * n_terms
        columns["row"].append(np.repeat(part.rows, n_terms))
        columns["step"].append(np.full(n, depths[part.node], dtype=np.int64))
        columns["node"].append(np.full(n, part.node))
        columns["side"].append(np.full(n, part.side, dtype=object))
        columns["feature"].append(np.tile(names[part.features], n_rows))
        columns["value"].append(X[np.ix_(part.rows, part.features)].ravel())
        columns["weight"].append(np.tile(part.weights, n_rows))
        columns["contribution"].append(part.contributions.ravel())
        columns["centre"].append(np.full(n, part.centre))
        columns["total"].append(np.repeat(part.total, n_terms))
    table = pd.DataFrame({name: np.concatenate(pieces) for name, pieces in columns.items()})
    return table.sort_values(["row", "step"], kind="stable", ignore_index=True)

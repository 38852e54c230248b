"""Why single rows reach their leaves: what each term adds to each decision on the way."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evotree.fitted import Fitted
from evotree.leaf_models import LeafModels
from evotree.texts import Wording
from evotree.tree import ObliqueTree, node_depths

_NUMBERS = "value", "weight", "contribution", "centre", "total", "unit"
_COLUMNS: dict[str, Any] = dict.fromkeys(("row", "step", "node"), np.int64)
_COLUMNS |= dict.fromkeys(("side", "split", "feature"), object)
_COLUMNS |= dict.fromkeys(_NUMBERS, np.float64)
_SPLIT_TERMS = 4


class Explanation(NamedTuple):
    """Two tables that say why rows are predicted as they are.

    Attributes
    ----------
    terms : pandas.DataFrame
        One line for each term of each node on the path of each row: ``row``; ``step``, 0 at the
        root; ``node``, as ``apply`` counts; ``side``, ``"yes"`` where the split holds, ``"no"``
        where it does not, or ``"leaf"``; ``split``, as it is printed with its first terms;
        ``feature`` and its ``value`` and ``weight``; ``contribution``; ``centre``; ``total``;
        ``unit``.

        A contribution is the weight times what the value is above the mean of the training rows at
        the node. ``total`` is ``centre`` plus all contributions of the step, and ``centre`` what it
        would be for the mean row. At a split it is the signed distance to the hyperplane, above 0
        where the split does not hold, and all three are in units of the spread of the projection
        over the training rows of the node; times ``unit`` they are in those of the printed sum. At
        a leaf with a linear model it is what the model says before its bounds,
        in the units of the target; of classes the score of the one that is predicted, of two its
        log-odds. Leaves without a model have no lines.
    rows : pandas.DataFrame
        One line for each row: ``prediction``, a class or a number; ``leaf``; ``decision_distance``,
        the smallest absolute distance to a hyperplane on its path, or to another class by the
        logistic model of its leaf, infinite where there is neither; ``outside``, the names of the
        features whose values are outside the range of the training rows. The distance to another
        class is a difference of scores, in units of the spread that it would have if the features
        were not correlated.
    """

    terms: pd.DataFrame
    rows: pd.DataFrame

    def __repr__(self) -> str:
        rows = self.rows.to_string(max_rows=10, show_dimensions=False)
        return f"Explanation of {len(self.rows)} rows, {len(self.terms)} terms\n{rows}"


def explain(fitted: Fitted, X: np.ndarray, of: np.ndarray | None = None) -> Explanation:
    """Explain the path of each row; `of` has other classes than those predicted, by position."""
    tree, training, classes = fitted.tree, fitted.training, fitted.classes
    assert training is not None
    names = np.array(fitted.features, dtype=object)
    leaves = tree.apply(X)
    labels = leaves if classes is None else tree.predict_label(X)
    depths = node_depths(tree.subtree_size)
    distances = np.full(len(X), np.inf)
    parts = {name: [np.empty(0, dtype)] for name, dtype in _COLUMNS.items()}
    words = Wording(fitted, max_terms=_SPLIT_TERMS)
    for k, side, rows, models in _sides(tree, leaves, labels if of is None else of):
        if side != "leaf":
            weights, constant, scale = (
                tree.weights[k],
                -tree.thresholds[k],
                training.spreads[k],
            )
        elif models is not None:
            weights, constant, scale = models.coefficients[k], models.intercepts[k], 1.0
        else:
            continue
        features = np.flatnonzero(weights)
        if not rows.size or not features.size:
            continue
        # The most influential first.
        features = features[
            np.argsort(-np.abs(weights * tree.known_spread)[features], kind="stable")
        ]
        weights = weights[features]
        mean, values = training.means[k, features], X[np.ix_(rows, features)]
        with np.errstate(over="ignore", invalid="ignore"):
            contributions = weights * (values - mean) / scale
            centre = float(weights @ mean + constant) / scale
            total = centre + contributions.sum(axis=1)
        # Sums that overflow to both sides: such rows go right, and get the upper bound.
        total[np.isnan(total)] = np.inf
        split, unit = "", 1.0
        if side != "leaf":
            distances[rows] = np.minimum(distances[rows], np.abs(total))
            shown = fitted.split(k)
            split, unit = " ".join(words.split(shown)), scale * shown.terms[0][0]
            unit /= float(tree.weights[k, shown.terms[0][1]])
        columns: dict[str, Any] = {
            "row": np.repeat(rows, len(features)),
            "step": depths[k],
            "node": k,
            "side": side,
            "split": split,
            "feature": np.tile(names[features], len(rows)),
            "value": values.ravel(),
            "weight": np.tile(weights, len(rows)),
            "contribution": contributions.ravel(),
            "centre": centre,
            "total": np.repeat(total, len(features)),
            "unit": unit,
        }
        for name, dtype in _COLUMNS.items():
            parts[name].append(
                np.broadcast_to(np.asarray(columns[name], dtype=dtype), values.size)
            )
    if classes is not None and tree.models is not None:
        inside = _distances_to_classes(tree, X, leaves, labels)
        distances = np.minimum(distances, inside)
    terms = pd.DataFrame({name: np.concatenate(part) for name, part in parts.items()})
    is_outside = np.less(X, training.lowest) | np.greater(X, training.highest)
    # A bend is outside of its range where the number is.
    is_outside[:, list(fitted.schema.bends)] = False
    return Explanation(
        terms.sort_values(["row", "step"], kind="stable", ignore_index=True),
        pd.DataFrame(
            {
                "prediction": tree.predict_value(X)[:, 0]
                if classes is None
                else classes[labels],
                "leaf": leaves,
                "decision_distance": distances,
                "outside": [tuple(names[features]) for features in is_outside],
            }
        ),
    )


def _sides(
    tree: ObliqueTree, leaves: np.ndarray, labels: np.ndarray
) -> Iterator[tuple[int, str, np.ndarray, LeafModels | None]]:
    """Yield each node with a side, the rows that take it, and what a leaf predicts them by."""
    for k in range(len(tree)):
        at = np.flatnonzero(leaves == k)
        if tree.subtree_size[k] > 1:
            for side, child in (("yes", tree.left(k)), ("no", tree.right(k))):
                end = child + tree.subtree_size[child]
                yield k, side, np.flatnonzero((leaves >= child) & (leaves < end)), None
        elif tree.models is None or not tree.models.of_classes:
            yield k, "leaf", at, tree.models
        else:
            for label, models in enumerate(_speaking(tree.models)):
                yield k, "leaf", at[labels[at] == label], models


def _speaking(models: Any) -> list[LeafModels]:
    """Return the models of the scores of classes, of two those of their log-odds."""
    if len(models.each) > 2:
        return list(models.each)
    second = models.each[1]
    first = LeafModels(
        -second.intercepts, -second.coefficients, -second.highest, -second.lowest
    )
    return [first, second]


def _distances_to_classes(
    tree: ObliqueTree, X: np.ndarray, leaves: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Return how far rows are from where the model of their leaf predicts another class."""
    models: Any = tree.models
    scores = models.scores(X, leaves)
    coefficients = tree.known_spread * np.stack(
        [one.coefficients for one in models.each]
    )
    distances = np.full(len(X), np.inf)
    for k, label in {*zip(leaves.tolist(), labels.tolist(), strict=True)}:
        rows = np.flatnonzero((leaves == k) & (labels == label))
        units = np.linalg.norm(coefficients[:, k] - coefficients[label, k], axis=1)
        others = units > 0.0  # classes whose log-odds against this one change
        gaps = scores[rows, label, np.newaxis] - scores[rows][:, others]
        distances[rows] = (gaps / units[others]).min(axis=1, initial=np.inf)
    return distances

"""What it costs to know the features that a tree asks for on the way to a leaf.

A column is paid for once on a path, and so is what a group of columns costs together, such as the
blood sample of some analyses (Turney 1995, "Cost-sensitive classification: empirical evaluation of
a hybrid genetic decision tree induction algorithm", JAIR 2, section 2).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from evotree._jit import kernel
from evotree.tables.columns import columns_asked


@kernel
def path_prices(weights, subtree_size, is_part, prices):
    """Return what the features of the splits above each node cost, each item once, (n_nodes,)."""
    n_nodes, n_items = subtree_size.shape[0], prices.shape[0]
    paid = np.zeros((n_nodes, n_items), dtype=np.bool_)
    spent = np.zeros(n_nodes)
    for k in range(n_nodes):
        for item in range(n_items):
            if paid[k, item]:
                spent[k] += prices[item]
        if subtree_size[k] > 1:
            left = k + 1
            right = left + subtree_size[left]
            for item in range(n_items):
                needed = paid[k, item]
                for j in range(weights.shape[1]):
                    needed |= is_part[j, item] and weights[k, j] != 0.0
                paid[left, item] = paid[right, item] = needed
    return spent


@dataclass(frozen=True, eq=False)
class FeatureCosts:
    """Prices of the columns that features come from, and of groups of columns."""

    # (n_features, n_items): which items a feature needs; an item is a column, or a group of them.
    is_part: np.ndarray
    prices: np.ndarray  # (n_items,), of the items, at least 0

    @classmethod
    def of(
        cls, feature_costs: Any, names: Sequence[str], column_of: Sequence[int]
    ) -> "FeatureCosts":
        """Return the prices of items, from what users say of columns.

        `feature_costs` is a number for each of the columns, whose names are `names`, or a mapping
        of columns, and tuples of columns that are paid together, to numbers. ``column_of`` is the
        position of the column that each feature was made of.
        """
        if not isinstance(feature_costs, Mapping):
            prices = np.asarray(feature_costs, dtype=object)
            if prices.shape != (len(names),):
                raise ValueError(
                    f"features has shape {prices.shape}: allowed are {len(names)} numbers, one for "
                    "each column of X, and mappings."
                )
            feature_costs = dict(enumerate(prices.tolist()))
        items: list[set[int]] = []
        costs = []
        for key, cost in feature_costs.items():
            if not isinstance(cost, Real) or not math.isfinite(cost) or cost < 0.0:
                raise ValueError(
                    f"features[{key!r}]={cost!r}: allowed are finite numbers from 0."
                )
            members = key if isinstance(key, tuple) else (key,)
            item = columns_asked(members, names, "features")
            if not item or item in items:
                raise ValueError(
                    f"features names {key!r}: allowed are columns, and groups of at least one "
                    "column, each once."
                )
            items.append(item)
            costs.append(float(cost))
        is_part = np.array(
            [[c in item for item in items] for c in column_of], dtype=bool
        )
        return cls(is_part.reshape(len(column_of), len(items)), np.array(costs))

    @property
    def alone(self) -> np.ndarray:
        """What each feature costs if it is the only one, of shape (n_features,)."""
        return self.is_part @ self.prices

    def of_paths(self, tree: Any) -> np.ndarray:
        """Return what the features on the way to each node cost, of shape (n_nodes,)."""
        return path_prices(tree.weights, tree.subtree_size, self.is_part, self.prices)


def check_costs(cost_matrix: Any, classes: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Return a matrix of costs; that of None costs 1 for each error."""
    n = len(classes)
    shown = cost_matrix.tolist() if isinstance(cost_matrix, np.ndarray) else cost_matrix
    try:
        costs = np.asarray(
            1.0 - np.eye(n) if cost_matrix is None else cost_matrix, np.float64
        )
    except (TypeError, ValueError):
        costs = np.empty(0)
    if costs.shape != (n, n):
        raise ValueError(
            f"matrix={shown!r}: allowed are {n} rows of {n} numbers, a row for each of "
            f"{classes.tolist()}."
        )
    if not np.isfinite(costs).all() or costs.min(initial=0.0) < 0.0:
        raise ValueError(f"matrix={shown!r}: allowed are finite costs of at least 0.")
    if n > 1 and not (costs - np.diag(np.diag(costs))).any():
        raise ValueError(f"matrix={shown!r}: at least one error has to cost something.")
    return tuple(map(tuple, costs.tolist()))

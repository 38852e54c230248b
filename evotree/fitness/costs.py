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
    """Return what the features of the splits above each node cost, each item once."""
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

    is_part: (
        np.ndarray
    )  # of shape (n_features, n_items): which columns and groups a feature needs
    prices: np.ndarray  # of shape (n_items,), at least 0

    @classmethod
    def of(
        cls, feature_costs: Any, names: Sequence[str], column_of: Sequence[int]
    ) -> "FeatureCosts":
        """Return the prices that users give."""
        if isinstance(feature_costs, Mapping):
            given = list(feature_costs.items())
        else:
            prices = np.asarray(feature_costs, dtype=object)
            if prices.shape != (len(names),):
                allowed = (
                    f"{len(names)} numbers, one for each column of X, and mappings"
                )
                raise ValueError(
                    f"features has shape {prices.shape}: allowed are {allowed}."
                )
            given = list(enumerate(prices.tolist()))
        items, costs = [], []
        for key, cost in given:
            if not isinstance(cost, Real) or not math.isfinite(cost) or cost < 0.0:
                raise ValueError(
                    f"features[{key!r}]={cost!r}: allowed are finite numbers from 0."
                )
            members = key if isinstance(key, tuple) else (key,)
            item = columns_asked(members, names, "features")
            if not item or item in items:
                allowed = "columns, and groups of at least one column, each once"
                raise ValueError(f"features names {key!r}: allowed are {allowed}.")
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
        allowed = f"{n} rows of {n} numbers, a row for each of {classes.tolist()}"
        raise ValueError(f"matrix={shown!r}: allowed are {allowed}.")
    if not np.isfinite(costs).all() or costs.min(initial=0.0) < 0.0:
        raise ValueError(f"matrix={shown!r}: allowed are finite costs of at least 0.")
    if n > 1 and not (costs - np.diag(np.diag(costs))).any():
        raise ValueError(f"matrix={shown!r}: at least one error has to cost something.")
    return tuple(map(tuple, costs.tolist()))

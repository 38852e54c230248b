"""The linear models of a tree's leaves as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from evotree.description.named import NamedTree, named_tree


def coefficient_table(tree: Any, feature_names: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the linear models of the leaves of a tree as a table.

    Parameters
    ----------
    tree, feature_names
        As for `export_text`.

    Returns
    -------
    pandas.DataFrame
        One row for each leaf: ``leaf``, its number as ``apply`` gives it, ``n_node_samples`` where
        that is known, ``intercept``, ``lowest`` and ``highest``, the bounds of its predictions, and
        the coefficient of each feature that some leaf uses, in the order of the features. Of
        several outputs each has the rows of the leaves, with its name as ``output`` in front.

    """
    named = named_tree(tree, feature_names)
    named = named if named.scores is None else named.scores
    if not named.targets:
        return _of_output(named)
    tables = [_of_output(one) for one in named.each]
    for name, table in zip(named.targets, tables, strict=True):
        table.insert(0, "output", name)
    return pd.concat(tables, ignore_index=True).fillna(0.0)


def _of_output(named: NamedTree) -> pd.DataFrame:
    """Return the table of one output."""
    tree, models = named.tree, named.tree.models
    if models is None:
        raise ValueError("tree has no linear models in its leaves.")
    leaves = np.flatnonzero(tree.is_leaf)
    columns = {"leaf": leaves}
    if tree.n_node_samples is not None:
        columns["n_node_samples"] = tree.n_node_samples[leaves]
    columns |= {
        "intercept": models.intercepts[leaves],
        "lowest": models.lowest[leaves],
        "highest": models.highest[leaves],
    }
    used = np.flatnonzero(models.coefficients.any(axis=0))
    names = [named.features[j] for j in used]
    coefficients = pd.DataFrame(models.coefficients[np.ix_(leaves, used)], columns=names)
    return pd.concat([pd.DataFrame(columns), coefficients], axis=1)

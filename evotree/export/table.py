"""Trees over the columns of a table in another form: what a model file is exported as.

A model reads a table's columns, the tree numbers that are made of them: a missing number becomes
the median, a level of a category a number of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evotree.export.forest import c_forest, python_forest
from evotree.export.functions import c_source, python_source
from evotree.export.graphviz import export_graphviz
from evotree.export.named import NamedTree, named_tree
from evotree.export.sql import sql_expression, sql_vote
from evotree.export.text import export_rules
from evotree.tables.columns import Column, feature_names
from evotree.tree import ObliqueTree


def export_for_table(
    to: str,
    trees: Sequence[ObliqueTree],
    columns: Sequence[Column],
    class_names: Sequence[Any] | np.ndarray | None,
) -> str:
    """Return a tree, or the vote of several, over the columns of a table as rules or code.

    The SQL expression reads the table's own columns: it holds the encoding of categories and fills
    in what is missing, where missing is NULL, not an empty text. Categories are compared as text.
    The functions in Python and C take the numbers that the tree reads, and say in comments how they
    are made of the columns.
    """
    members = [
        replace(named_tree(tree, feature_names(columns), class_names), columns=tuple(columns))
        for tree in trees
    ]
    if len(members) > 1:
        return _vote(to, members)
    (named,) = members
    if to == "rules":
        return export_rules(named)
    if to == "dot":
        return export_graphviz(named)
    if to == "python":
        return python_source(named, "predict")
    if to == "c":
        return c_source(named, "predict")
    if to == "sql":
        return sql_expression(named)
    raise ValueError(f"to={to!r}: allowed are 'rules', 'dot', 'python', 'c' and 'sql'.")


def _vote(to: str, members: Sequence[NamedTree]) -> str:
    """Return the vote of several trees in another form."""
    if to == "rules":
        each = map(export_rules, members)
        return "\n".join(
            f"tree {at} of {len(members)}\n{rules}" for at, rules in enumerate(each, 1)
        )
    if to == "python":
        return python_forest(members, "predict", probability=False)
    if to == "c":
        return c_forest(members, "predict", probability=False)
    if to == "sql":
        return sql_vote(members)
    raise ValueError(f"to={to!r}: allowed for a forest are 'rules', 'python', 'c' and 'sql'.")

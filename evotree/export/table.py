"""A tree over the columns of a table in another form: what a model file is exported as.

A model reads a table's columns, the tree numbers that are made of them: a missing number becomes
the median, a level of a category a number of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evotree.export.functions import c_source, python_source
from evotree.export.graphviz import export_graphviz
from evotree.export.named import named_tree
from evotree.export.sql import sql_expression
from evotree.export.text import export_rules
from evotree.tables.columns import Column, feature_names
from evotree.tree import ObliqueTree


def export_for_table(
    to: str,
    tree: ObliqueTree,
    columns: Sequence[Column],
    class_names: Sequence[Any] | np.ndarray | None,
) -> str:
    """Return a tree over the columns of a table as rules, a drawing or code.

    The SQL expression reads the table's own columns: it holds the encoding of categories and fills
    in what is missing, where missing is NULL, not an empty text. Categories are compared as text.
    The functions in Python and C take the numbers that the tree reads, and say in comments how they
    are made of the columns.

    Parameters
    ----------
    to : {"rules", "dot", "python", "c", "sql"}
        The form.
    tree : ObliqueTree
        The tree, over the features that the columns make.
    columns : sequence of NumericColumn or CategoricalColumn
        The columns, in the order of the features.
    class_names : sequence or None
        One label for each class; None where the leaves hold numbers.

    Returns
    -------
    str
        Lines that end in a newline.

    Raises
    ------
    ValueError
        If `to` is another word, or names cannot be written in that form.
    """
    named = named_tree(tree, feature_names(columns), class_names)
    named = replace(named, columns=tuple(columns))
    if to == "rules":
        return export_rules(tree, named.features, class_names)
    if to == "dot":
        return export_graphviz(tree, named.features, class_names)
    if to == "python":
        return python_source(named, "predict")
    if to == "c":
        return c_source(named, "predict")
    if to == "sql":
        return sql_expression(named)
    raise ValueError(f"to={to!r}: allowed are 'rules', 'dot', 'python', 'c' and 'sql'.")

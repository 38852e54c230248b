"""A tree over the columns of a table in another form: what a model file is exported as.

A model reads a table's columns, the tree numbers that are made of them: a missing number becomes
the mean, a level of a category a number of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evotree.export.graphviz import export_graphviz
from evotree.export.named import named_tree
from evotree.export.source import c_source, python_source
from evotree.export.sql import sql_expression, sql_name, sql_number, sql_text
from evotree.export.text import export_rules
from evotree.tables.columns import MISSING, Column, NumericColumn
from evotree.tree import ObliqueTree


def export_for_table(
    to: str,
    tree: ObliqueTree,
    columns: Sequence[Column],
    class_names: Sequence[Any] | np.ndarray,
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
    class_names : sequence
        One label for each class.

    Returns
    -------
    str
        Lines that end in a newline.

    Raises
    ------
    ValueError
        If `to` is another word, or names cannot be written in that form.
    """
    features = [name for column in columns for name in column.feature_names]
    named = named_tree(tree, features, class_names)
    if to == "rules":
        return export_rules(tree, features, class_names)
    if to == "dot":
        return export_graphviz(tree, features, class_names)
    if to == "python":
        return python_source(named, "predict", _notes(columns))
    if to == "c":
        return c_source(named, "predict", _notes(columns))
    if to == "sql":
        return sql_expression(named, _operands(columns), ())
    raise ValueError(f"to={to!r}: allowed are 'rules', 'dot', 'python', 'c' and 'sql'.")


def _notes(columns: Sequence[Column]) -> list[str]:
    """Say on a line for each feature how it is made."""
    notes: list[str] = []
    for column in columns:
        if isinstance(column, NumericColumn):
            notes.append(f"{column.name!r}, or {column.mean!r} where that is missing")
        else:
            for level in column.levels:
                missing = " or missing" if level == MISSING else ""
                notes.append(f"1 where {column.name!r} is {level!r}{missing}; else 0")
    return notes


def _operands(columns: Sequence[Column]) -> list[str]:
    """Return an expression of SQL for each feature."""
    operands: list[str] = []
    for column in columns:
        name = sql_name(column.name)
        if isinstance(column, NumericColumn):
            operands.append(f"COALESCE({name}, {sql_number(column.mean)})")
        else:
            for level in column.levels:
                # COALESCE would be shorter, but take the column's type from the comparison.
                missing = f" OR {name} IS NULL" if level == MISSING else ""
                equal = f"{name} = {sql_text(level)}{missing}"
                operands.append(f"CASE WHEN {equal} THEN 1.0e0 ELSE 0.0e0 END")
    return operands

"""A finished tree in other forms: to read, to draw, to keep, and to run elsewhere.

In: an `ObliqueTree`, or a fitted estimator around one. Out: indented rules, a list of rules,
plain data for JSON, source code in Python, C and SQL, an ONNX model, or a table of the coefficients
of linear leaves.
"""

from collections.abc import Callable, Mapping
from typing import Any

from evotree.export.code import export_c, export_python, export_sql
from evotree.export.onnx import to_onnx
from evotree.plain import tree_from_dict, tree_to_dict
from evotree.texts import coefficient_table, export_rules, export_text

FORMS: Mapping[str, Callable[..., Any]] = {
    "rules": export_rules,
    "python": export_python,
    "c": export_c,
    "onnx": to_onnx,
    "sql": export_sql,
}
"""The forms of a model, by the names that the command line has for them."""

__all__ = [
    "FORMS",
    "coefficient_table",
    "export_c",
    "export_python",
    "export_rules",
    "export_sql",
    "export_text",
    "to_onnx",
    "tree_from_dict",
    "tree_to_dict",
]

"""A tree as a drawing for Graphviz, in its language DOT.

The package `graphviz` is not needed: ``dot -Tsvg`` draws the text, and so do many editors.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evotree.description.named import named_tree
from evotree.description.text import Wording, missing_lines


def export_graphviz(
    tree: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    decimals: int | None = None,
    max_terms: int | None = 6,
    output_names: Sequence[str] | None = None,
) -> str:
    r"""Return a tree as a ``digraph`` in DOT, the language of Graphviz.

    The edge ``yes`` leads to where a row goes for which the split holds. Splits are written as by
    `export_text`, and so is the linear model of a leaf, a term a line. Each node has the number
    that ``apply`` gives and its training rows; leaves name their class shares and have the colours
    of their classes.

    Parameters
    ----------
    tree, feature_names, class_names, decimals
        As for `export_text`; signs of names that cannot be printed become blanks.
    max_terms : int, at least 1, or None, default=6
        As for `export_text`.
    output_names : sequence of str, optional
        As for `export_text`.

    Examples
    --------
    >>> from evotree import ObliqueTreeClassifier
    >>> model = ObliqueTreeClassifier("axis").fit([[0.0, 0.0], [2.0, 0.0]], ["no", "yes"])
    >>> for line in export_graphviz(model, ["length", "width"]).splitlines()[5:8]:
    ...     print(line.strip())
    0 [label="[0] 2 rows\nlength\n<= 1", fillcolor="#f5f5f5"]
    0 -> 1 [label=" yes "]
    0 -> 2 [label=" no "]
    """
    named = named_tree(tree, feature_names, class_names, output_names)
    words = Wording(named, decimals, max_terms, _escaped, " ")
    missing = "\\n".join(map(_escaped, missing_lines(named)))
    below = (
        f', labelloc=b, fontname="Helvetica", fontsize=10, label="{missing}"'
        if missing
        else ""
    )
    lines = [
        "digraph tree {",
        f"    graph [ordering=out{below}]",
        '    node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=11, '
        'color="#333333", margin="0.2,0.08"]',
        '    edge [fontname="Helvetica", fontsize=10, color="#333333"]',
        "",
    ]
    for k in range(len(named.tree)):
        rows = named.rows(k)
        body = (
            words.split_lines(named.split(k))
            if named.is_split(k)
            else words.leaf_lines(k)
        )
        label = "\\n".join([f"[{k}] {rows}" if rows else f"[{k}]", *body])
        color = "#f5f5f5" if named.is_split(k) else "#ffffff"
        if named.classes is not None and not named.is_split(
            k
        ):  # pale, of a hue of the class
            color = (
                f"{(0.6 + named.winners[k] / len(named.classes)) % 1.0:.3f} 0.200 1.000"
            )
        lines.append(f'    {k} [label="{label}", fillcolor="{color}"]')
        if named.is_split(k):
            lines.append(f'    {k} -> {named.tree.left(k)} [label=" yes "]')
            lines.append(f'    {k} -> {named.tree.right(k)} [label=" no "]')
    return "\n".join([*lines, "}"]) + "\n"


def _escaped(name: Any) -> str:
    r"""Return a name as a label shows it."""
    text = "".join(sign if sign.isprintable() else " " for sign in str(name))
    return text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')

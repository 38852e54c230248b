"""A tree as a drawing for Graphviz, in its language DOT.

The package `graphviz` is not needed: ``dot -Tsvg`` draws the text, and so do many editors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evotree.export.named import NamedTree, check_whole, influence, named_tree


def export_graphviz(
    tree: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    decimals: int = 2,
    max_terms: int | None = 5,
    spreads: Sequence[float] | np.ndarray | None = None,
) -> str:
    r"""Return a tree as a graph in DOT, the language of Graphviz.

    The edge ``yes`` leads to where a row goes for which the test holds. A test is scaled so that
    its largest weight is 1 or -1, which changes no decision. Leaves have the colours of their
    classes.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator
        The tree; of an estimator its ``tree_``, with the names of its features and classes.
    feature_names : sequence of str, optional
        One name for each feature; by default those of the estimator, else ``x0``, ``x1``, ... Any
        text is allowed; line breaks and other signs that cannot be printed become blanks.
    class_names : sequence, optional
        One name for each class; by default those of the estimator, else 0, 1, ... A tree with one
        output and no class names is drawn with its values.
    decimals : int, at least 0, default=2
        Digits after the decimal point; a number that would round to 0 shows one digit that is not.
    max_terms : int, at least 1, or None, default=5
        Number of terms of a test that are shown, the most influential ones; None for all.
    spreads : sequence of float, optional
        A standard deviation for each feature: influence is then |weight| times spread, else
        |weight|.

    Returns
    -------
    str
        A ``digraph``, to be written to a file in UTF-8.

    Raises
    ------
    ValueError
        If the number of names or spreads does not fit the tree, or `decimals` or `max_terms` is out
        of its range.

    Examples
    --------
    >>> from evotree.tree import ObliqueTree
    >>> tree = ObliqueTree(
    ...     weights=np.array([[0.5, -2.0], [0.0, 0.0], [0.0, 0.0]]),
    ...     thresholds=np.array([1.5, 0.0, 0.0]),
    ...     subtree_size=np.array([3, 1, 1], dtype=np.int32),
    ...     values=np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]),
    ... )
    >>> for line in export_graphviz(tree, ["length", "width"]).splitlines()[5:8]:
    ...     print(line.strip())
    0 [label="- width\n+ 0.25 length\n<= 0.75", fillcolor="#f5f5f5"]
    0 -> 1 [label=" yes "]
    0 -> 2 [label=" no "]
    """
    check_whole("decimals", decimals, 0)
    if max_terms is not None:
        check_whole("max_terms", max_terms, 1)
    named = named_tree(tree, feature_names, class_names)
    tree, weight_influence = named.tree, influence(named.tree, spreads)
    winners = named.winners()
    lines = [
        "digraph tree {",
        "    graph [ordering=out]",
        '    node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=11, '
        'color="#333333", margin="0.2,0.08"]',
        '    edge [fontname="Helvetica", fontsize=10, color="#333333"]',
        "",
    ]
    for k in range(tree.n_nodes):
        if tree.subtree_size[k] == 1:
            label, color = _leaf(named, k, winners[k], decimals), _color(named, winners[k])
        else:
            order = np.argsort(-weight_influence[k], kind="stable")
            label, color = _test(named, k, order, decimals, max_terms), "#f5f5f5"
        lines.append(f'    {k} [label="{label}", fillcolor="{color}"]')
        if tree.subtree_size[k] > 1:
            lines.append(f'    {k} -> {tree.left(k)} [label=" yes "]')
            lines.append(f'    {k} -> {tree.right(k)} [label=" no "]')
    return "\n".join([*lines, "}"]) + "\n"


def _escaped(name: Any) -> str:
    r"""Return a name as a label shows it.

    A label ends at a quotation mark, reads ``\n``, ``\N`` and the like as more than their letters,
    and entities as those of HTML.
    """
    text = "".join(sign if sign.isprintable() else " " for sign in str(name))
    return text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float, decimals: int) -> str:
    """Return a number with so many decimals, or with one digit if they all are 0."""
    text = f"{value + 0.0:.{decimals}f}"
    if float(text) != 0.0:
        return text
    return f"{value:.1g}" if value else text.removeprefix("-")


def _test(named: NamedTree, k: int, order: np.ndarray, decimals: int, max_terms: int | None) -> str:
    """Return the label of a test, one term a line."""
    weights, threshold = named.tree.weights[k], float(named.tree.thresholds[k])
    largest = float(np.abs(weights).max()) or 1.0
    if not np.isfinite(threshold / largest):
        largest = 1.0
    terms = [j for j in order if weights[j] != 0.0]
    lines: list[str] = []
    for j in terms[:max_terms]:
        size = abs(float(weights[j])) / largest
        factor = "" if size == 1.0 else f"{_number(size, decimals)} "
        sign = "- " if weights[j] < 0.0 else "+ " if lines else ""
        lines.append(f"{sign}{factor}{_escaped(named.features[j])}")
    if max_terms is not None and len(terms) > max_terms:
        lines.append(f"... (+{len(terms) - max_terms} more)")
    return "\\n".join([*(lines or ["0"]), f"<= {_number(threshold / largest, decimals)}"])


def _leaf(named: NamedTree, k: int, winner: int, decimals: int) -> str:
    """Return the label of a leaf."""
    values = named.tree.values[k]
    if named.classes is None:
        return _number(float(values[0]), decimals)
    return f"{_escaped(named.classes[winner])}\\n{float(values[winner]):.{decimals}f}"


def _color(named: NamedTree, winner: int) -> str:
    """Return a pale colour of a class, as hue, saturation and value."""
    if named.classes is None:
        return "#ffffff"
    return f"{(0.6 + winner / len(named.classes)) % 1.0:.3f} 0.200 1.000"

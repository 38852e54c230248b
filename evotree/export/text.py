"""A tree as text that one can read: indented rules, or a list of rules, one a leaf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from evotree.export.named import (
    LEAST_WIDTH,
    LINE_WIDTH,
    NamedTree,
    check_whole,
    fold,
    influence,
    named_tree,
    printable,
)

#: Weights and their features, the most influential first.
Terms: TypeAlias = tuple[tuple[float, int], ...]
Condition: TypeAlias = tuple[Terms, str, float]

_OPPOSITES = {"<=": ">", ">=": "<"}


def export_text(
    tree: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    decimals: int = 3,
    spreads: Sequence[float] | np.ndarray | None = None,
) -> str:
    """Return a tree as indented rules.

    A row goes to the first branch below a rule where the rule holds, and to ``else`` where it does
    not. The terms of a rule are ordered by their influence, the largest first; weights of 0 are
    left out. A rule is scaled so that the weight of its first term is 1, which changes no decision:
    the other weights and the threshold are then in units of that feature.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator
        The tree; of an estimator its ``tree_``, with the names of its features and classes.
    feature_names : sequence of str, optional
        One name for each feature; by default those of the estimator, else ``x0``, ``x1``, ...
    class_names : sequence, optional
        One name for each class; by default those of the estimator, else 0, 1, ... A tree with one
        output and no class names is shown with its values.
    decimals : int, at least 0, default=3
        Digits after the decimal point; numbers below 1 show as many significant digits instead,
        since weights over features of large units are small.
    spreads : sequence of float, optional
        A standard deviation for each feature: influence is then |weight| times spread, else
        |weight|.

    Returns
    -------
    str
        Lines that end in a newline.

    Raises
    ------
    ValueError
        If the number of names or spreads does not fit the tree, or `decimals` is not a whole number
        of at least 0.

    Examples
    --------
    >>> from evotree.tree import ObliqueTree
    >>> tree = ObliqueTree(
    ...     weights=np.array([[0.5, -2.0], [0.0, 0.0], [0.0, 0.0]]),
    ...     thresholds=np.array([1.5, 0.0, 0.0]),
    ...     subtree_size=np.array([3, 1, 1], dtype=np.int32),
    ...     values=np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]),
    ... )
    >>> print(export_text(tree, ["length", "width"], ["no", "yes"]), end="")
    |--- width - 0.250 * length >= -0.750
    |   |--- class: no (share 1.00)
    |--- else
    |   |--- class: yes (share 0.75)
    """
    check_whole("decimals", decimals, 0)
    named = named_tree(tree, feature_names, class_names)
    tree, weight_influence = named.tree, influence(named.tree, spreads)
    lines: list[str] = []
    # Waiting places, the next one last: a node and its depth, or the "else" before a node.
    waiting: list[tuple[int, int, bool]] = [(0, 0, False)]
    while waiting:
        k, depth, is_else = waiting.pop()
        indent = "|   " * depth
        if is_else:
            lines.append(f"{indent}|--- else")
        elif tree.subtree_size[k] == 1:
            lines.append(f"{indent}|--- {_leaf(named, k, decimals)}")
        else:
            rule = _sum(named, _scaled(named, k, weight_influence[k]), decimals)
            folded = fold(rule, max(LINE_WIDTH - len(indent), LEAST_WIDTH) - 5)
            lines.append(f"{indent}|--- {folded[0]}")
            lines += [f"{indent}|    {line}" for line in folded[1:]]
            waiting.append((tree.right(k), depth + 1, False))
            waiting.append((k, depth, True))
            waiting.append((tree.left(k), depth + 1, False))
    return "\n".join(lines) + "\n"


def export_rules(
    tree: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    decimals: int = 3,
    spreads: Sequence[float] | np.ndarray | None = None,
) -> str:
    """Return a tree as a list of rules, one for each leaf.

    Each row meets the conditions of exactly one rule, so they may be read in any order. Conditions
    are written as by `export_text`. Where a path has several bounds on one sum, only the tightest
    is named.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator
        As for `export_text`.
    feature_names : sequence of str, optional
        As for `export_text`.
    class_names : sequence, optional
        As for `export_text`.
    decimals : int, at least 0, default=3
        As for `export_text`.
    spreads : sequence of float, optional
        As for `export_text`.

    Returns
    -------
    str
        Blocks of the lines ``IF``, ``AND`` and ``THEN`` with a blank line between them.

    Raises
    ------
    ValueError
        As for `export_text`.

    Examples
    --------
    >>> from evotree.tree import ObliqueTree
    >>> tree = ObliqueTree(
    ...     weights=np.array([[0.5, -2.0], [0.0, 0.0], [0.0, 0.0]]),
    ...     thresholds=np.array([1.5, 0.0, 0.0]),
    ...     subtree_size=np.array([3, 1, 1], dtype=np.int32),
    ...     values=np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]),
    ... )
    >>> print(export_rules(tree, ["length", "width"], ["no", "yes"]), end="")
    IF   width - 0.250 * length >= -0.750
    THEN class: no (share 1.00)
    <BLANKLINE>
    IF   width - 0.250 * length < -0.750
    THEN class: yes (share 0.75)
    """
    check_whole("decimals", decimals, 0)
    named = named_tree(tree, feature_names, class_names)
    tree, weight_influence = named.tree, influence(named.tree, spreads)
    blocks: list[str] = []
    path: list[Condition] = []
    # Waiting nodes, the next one last, each with its depth and the condition that leads to it.
    waiting: list[tuple[int, int, Condition | None]] = [(0, 0, None)]
    while waiting:
        k, depth, condition = waiting.pop()
        if condition is not None:
            path[depth - 1 :] = [condition]
        if tree.subtree_size[k] == 1:
            blocks.append(_block(named, path, k, decimals))
        else:
            terms, relation, threshold = _scaled(named, k, weight_influence[k])
            opposite = (terms, _OPPOSITES[relation], threshold)
            waiting.append((tree.right(k), depth + 1, opposite))
            waiting.append((tree.left(k), depth + 1, (terms, relation, threshold)))
    return "\n".join(blocks)


def _block(named: NamedTree, path: list[Condition], leaf: int, decimals: int) -> str:
    """Return the rule of a leaf, of each sum the tightest bound from each side."""
    tightest: dict[tuple[Terms, bool], tuple[str, float]] = {}
    for terms, relation, threshold in path:
        is_upper = relation.startswith("<")
        known = tightest.get((terms, is_upper))
        # Of x < 1 and x <= 1, the first is the tighter one; of x > 1 and x >= 1 likewise.
        bound = (threshold if is_upper else -threshold, relation.endswith("="))
        if known is None or bound < (known[1] if is_upper else -known[1], known[0].endswith("=")):
            tightest[terms, is_upper] = (relation, threshold)
    lines: list[str] = []
    for (terms, _), (relation, threshold) in tightest.items():
        folded = fold(_sum(named, (terms, relation, threshold), decimals), LINE_WIDTH - 5)
        lines += [f"{'AND ' if lines else 'IF  '} {folded[0]}"]
        lines += [f"     {line}" for line in folded[1:]]
    return "\n".join([*(lines or ["IF   anything"]), f"THEN {_leaf(named, leaf, decimals)}"]) + "\n"


def _number(value: float, decimals: int) -> str:
    """Return a number of at least 1 with fixed decimals, a smaller one with as many digits."""
    if value == 0.0 or abs(value) >= 1.0:
        return f"{value:.{decimals}f}"
    return f"{value:#.{max(decimals, 1)}g}"


def _scaled(named: NamedTree, k: int, weight_influence: np.ndarray) -> Condition:
    """Return the rule of a node, the most influential term first and its weight 1."""
    weights, threshold = named.tree.weights[k], float(named.tree.thresholds[k])
    order = np.argsort(-weight_influence, kind="stable")
    terms = tuple((float(weights[j]), int(j)) for j in order if weights[j] != 0.0)
    if not terms:
        return terms, "<=", threshold
    first = terms[0][0]
    scaled = tuple((weight / first, j) for weight, j in terms)
    numbers = [threshold / first, *(weight for weight, _ in scaled)]
    # Extreme weights, which division would take to infinity or to 0, stay as they are.
    if not np.isfinite(numbers).all() or not all(weight for weight, _ in scaled):
        return terms, "<=", threshold
    return scaled, "<=" if first > 0.0 else ">=", numbers[0]


def _sum(named: NamedTree, condition: Condition, decimals: int) -> list[str]:
    """Return a condition in pieces, one for each term."""
    terms, relation, threshold = condition
    pieces: list[str] = []
    for weight, j in terms:
        name = printable(named.features[j])
        factor = "" if abs(weight) == 1.0 else f"{_number(abs(weight), decimals)} * "
        sign = "-" if weight < 0.0 else "+"
        pieces.append(f"{sign} {factor}{name}" if pieces else f"{sign.strip('+')}{factor}{name}")
    pieces = pieces or ["0"]
    pieces[-1] += f" {relation} {_number(threshold + 0.0, decimals)}"
    return pieces


def _leaf(named: NamedTree, k: int, decimals: int) -> str:
    """Return what a leaf predicts."""
    values = named.tree.values[k]
    if named.classes is None:
        return "value: " + _number(float(values[0]), decimals)
    c = int(values.argmax())
    share = float(values[c])
    # Rounding must not call a leaf pure that is not.
    text = f"{share:.2f}" if share == 1.0 or share < 0.995 else "above 0.99"
    return f"class: {printable(named.classes[c])} (share {text})"

"""A tree as text that one can read: indented rules, or a list of rules, one a leaf."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from evotree.export.named import (
    LEAST_WIDTH,
    LINE_WIDTH,
    ONE_WAY,
    OPPOSITES,
    LinearModel,
    NamedTree,
    Split,
    check_shown,
    exact,
    fold,
    named_tree,
    number,
    printable,
)
from evotree.tree import ObliqueTree, node_depths

#: Limits of the texts, which of a chain of nodes grow with the square of its length.
MAX_CHARACTERS = 10_000_000
MAX_CONDITIONS = 1_000_000


def export_text(
    tree: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    decimals: int | None = None,
    max_terms: int | None = None,
    output_names: Sequence[str] | None = None,
) -> str:
    """Return a tree as indented rules.

    A row goes to the first branch below a split where the split holds, and to ``else`` where it
    does not. The terms of a split are ordered by their influence, the absolute weight times the
    spread of the feature, the largest first; weights of 0 are left out. A split is scaled so that
    the weight of its first term is 1, which changes no decision: the other weights and the
    threshold are then in units of that feature. Nodes have the numbers that ``apply`` and
    ``decision_path`` give, and leaves name their training rows and class shares. A row counts once,
    whatever its weight; where weights differ, the weighted share of the class of a leaf is named
    too. A split of a single category is written as ``colour is red`` or ``colour is not red``. The
    last line says what stands for missing cells of the columns that the tree uses, where the
    training rows had some: ``missing: size = 1.1, colour = missing``, the latter being a category
    of its own. The linear model of a leaf is written as
    ``predict 3.2 + 0.51 * rooms - 0.11 * age, within [5, 50]``: the sum, its terms ordered as those
    of a split are, and the bounds that predictions do not leave. Of several outputs each is named:
    ``predict height = 1.2, width = 3``.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator
        The tree; of an estimator its ``tree_``, with the names of its features and classes.
    feature_names : sequence of str, optional
        One name for each feature; by default those of the estimator, else ``x0``, ``x1``, ...
    class_names : sequence, optional
        One name for each class; by default those of the estimator, else 0, 1, ... A tree with one
        output and no class names is shown with its values.
    decimals : int, at least 0, or None, default=None
        Digits after the decimal point; numbers below 1 show as many significant digits instead,
        since weights over features of large units are small. None shows means and numbers of at
        most 12 significant digits as they are, and others with 3 decimals: of a tree whose splits
        are rounded (`evotree.round_tree`), what is printed is what predicts.
    max_terms : int, at least 1, or None, default=None
        Number of terms of a split, or of the model of a leaf, that are shown, the most influential
        ones; None for all.
    output_names : sequence of str, optional
        One name for each of several outputs; by default those of the tree, which are the columns of
        the targets that it was fitted to, else ``y0``, ``y1``, ...

    Returns
    -------
    str
        Lines that end in a newline.

    Raises
    ------
    ValueError
        If the number of names does not fit the tree, `decimals` or `max_terms` is out of
        its range, or the text would have more than 10 million characters, as that of a chain of
        some thousand nodes has.

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
    |--- [0] width - 0.25 * length >= -0.75
    |   |--- [1] class: no (no: 1.00)
    |--- else
    |   |--- [2] class: yes (yes: 0.75, no: 0.25)
    """
    check_shown(decimals, max_terms)
    named = named_tree(tree, feature_names, class_names, output_names)
    return _bounded(_indented(named, decimals, max_terms))


def _indented(named: NamedTree, decimals: int | None, max_terms: int | None) -> Iterator[str]:
    """Yield the lines of `export_text`."""
    tree = named.tree
    if named.shares_rows:
        yield f"# {ONE_WAY}"
    # Waiting places, the next one last: a node and its depth, or the "else" before a node.
    waiting: list[tuple[int, int, bool]] = [(0, 0, False)]
    while waiting:
        k, depth, is_else = waiting.pop()
        indent = "|   " * depth
        if is_else:
            yield f"{indent}|--- else"
            continue
        is_leaf = tree.subtree_size[k] == 1
        if is_leaf:
            pieces = _leaf(named, k, decimals, max_terms)
        else:
            pieces = split_pieces(named, named.split(k), decimals, max_terms)
        pieces[0] = f"[{k}] {pieces[0]}"
        folded = fold(pieces, max(LINE_WIDTH - len(indent), LEAST_WIDTH) - 5)
        yield f"{indent}|--- {folded[0]}"
        yield from (f"{indent}|    {line}" for line in folded[1:])
        if not is_leaf:
            waiting.append((tree.right(k), depth + 1, False))
            waiting.append((k, depth, True))
            waiting.append((tree.left(k), depth + 1, False))
    yield from missing_lines(named)


def missing_lines(named: NamedTree, width: int = LINE_WIDTH) -> list[str]:
    """Return what stands for missing cells in lines; none where the training rows had none."""
    fills = [f"{printable(name)} = {value}," for name, value in named.fills()]
    if not fills:
        return []
    folded = fold([f"missing: {fills[0]}", *fills[1:]], width)
    return [*folded[:-1], folded[-1].removesuffix(",")]


def _bounded(lines: Iterable[str]) -> str:
    """Join lines, and refuse more than a reader or the memory can take."""
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > MAX_CHARACTERS:
            raise ValueError(
                f"the tree's text has more than {MAX_CHARACTERS} characters: export_graphviz and "
                "the exports to code write any tree."
            )
        kept.append(line)
    return "\n".join(kept) + "\n"


def export_rules(
    tree: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    decimals: int | None = None,
    max_terms: int | None = None,
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
    decimals : int, at least 0, or None, default=None
        As for `export_text`.
    max_terms : int, at least 1, or None, default=None
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
    IF   width - 0.25 * length >= -0.75
    THEN [1] class: no (no: 1.00)
    <BLANKLINE>
    IF   width - 0.25 * length < -0.75
    THEN [2] class: yes (yes: 0.75, no: 0.25)
    """
    check_shown(decimals, max_terms)
    named = named_tree(tree, feature_names, class_names)
    _check_paths(named.tree)
    return _bounded(_blocks(named, decimals, max_terms))


def _check_paths(tree: ObliqueTree) -> None:
    """Refuse a tree whose leaves have too many splits above them to be listed one by one."""
    n_conditions = int(node_depths(tree.subtree_size)[tree.is_leaf].sum(dtype=np.int64))
    if n_conditions > MAX_CONDITIONS:
        raise ValueError(
            f"the paths to the tree's leaves have {n_conditions} conditions: rules list up to "
            f"{MAX_CONDITIONS}. export_graphviz and the exports to code write any tree."
        )


def _blocks(named: NamedTree, decimals: int | None, max_terms: int | None) -> Iterator[str]:
    """Yield the rules of `export_rules`, with a blank line between them."""
    tree = named.tree
    if named.shares_rows:
        yield from (f"# {ONE_WAY}", "")
    path: list[Split] = []
    # Waiting nodes, the next one last, each with its depth and the condition that leads to it.
    waiting: list[tuple[int, int, Split | None]] = [(0, 0, None)]
    while waiting:
        k, depth, condition = waiting.pop()
        if condition is not None:
            path[depth - 1 :] = [condition]
        if tree.subtree_size[k] == 1:
            yield from _block(named, path, k, decimals, max_terms)
            if waiting:
                yield ""
        else:
            split = named.split(k)
            opposite = split._replace(relation=OPPOSITES[split.relation])
            waiting.append((tree.right(k), depth + 1, opposite))
            waiting.append((tree.left(k), depth + 1, split))
    if missing := missing_lines(named):
        yield from ("", *missing)


def _block(
    named: NamedTree, path: list[Split], leaf: int, decimals: int | None, max_terms: int | None
) -> list[str]:
    """Return the rule of a leaf in lines, of each sum the tightest bound from each side."""
    tightest: dict[tuple[Any, bool], tuple[str, float]] = {}
    for terms, relation, threshold in path:
        is_upper = relation.startswith("<")
        known = tightest.get((terms, is_upper))
        # Of x < 1 and x <= 1, the first is the tighter one; of x > 1 and x >= 1 likewise.
        bound = (threshold if is_upper else -threshold, relation.endswith("="))
        if known is None or bound < (known[1] if is_upper else -known[1], known[0].endswith("=")):
            tightest[terms, is_upper] = (relation, threshold)
    lines: list[str] = []
    for (terms, _), (relation, threshold) in tightest.items():
        pieces = split_pieces(named, Split(terms, relation, threshold), decimals, max_terms)
        folded = fold(pieces, LINE_WIDTH - 5)
        lines += [f"{'AND ' if lines else 'IF  '} {folded[0]}"]
        lines += [f"     {line}" for line in folded[1:]]
    pieces = _leaf(named, leaf, decimals, max_terms)
    first, *others = fold([f"[{leaf}] {pieces[0]}", *pieces[1:]], LINE_WIDTH - 5)
    return [*(lines or ["IF   anything"]), f"THEN {first}", *(f"     {line}" for line in others)]


def split_pieces(
    named: NamedTree, split: Split, decimals: int | None, max_terms: int | None = None
) -> list[str]:
    """Return an inequality in pieces, one for each term, as names on a terminal."""
    if (answer := named.answer(split)) is not None:
        return [printable(answer)]
    pieces = sum_pieces(named, [], split.terms, decimals, max_terms) or ["0"]
    pieces[-1] += f" {split.relation} {number(split.threshold, decimals)}"
    return pieces


def model_pieces(
    named: NamedTree,
    model: LinearModel,
    decimals: int | None,
    max_terms: int | None = None,
    begin: str = "predict ",
) -> list[str]:
    """Return the linear model of a leaf in pieces, one for each term, as names on a terminal."""
    first = f"{begin}{number(model.intercept, decimals)}"
    pieces = sum_pieces(named, [first], model.terms, decimals, max_terms)
    bounds = number(model.lowest, decimals), number(model.highest, decimals)
    pieces[-1] += ","
    return [*pieces, f"within [{', '.join(bounds)}]"]


def output_pieces(
    named: NamedTree, k: int, decimals: int | None, max_terms: int | None = None
) -> list[str]:
    """Return what leaf `k` predicts of several outputs in pieces, as names on a terminal."""
    models = [one.model(k) for one in named.each]
    comma = ";" if any(models) else ","  # there are commas in models
    pieces: list[str] = []
    for name, one, model in zip(named.targets, named.each, models, strict=True):
        begin = f"{printable(name)} = "
        if pieces:
            pieces[-1] += comma
        if model is None:
            pieces.append(f"{begin}{exact(one.value(k), decimals)}")
        else:
            pieces += model_pieces(one, model, decimals, max_terms, begin)
    pieces[0] = f"predict {pieces[0]}"
    return pieces


def sum_pieces(
    named: NamedTree,
    before: list[str],
    terms: Sequence[tuple[float, int]],
    decimals: int | None,
    max_terms: int | None,
    times: str = " * ",
    written: Callable[[str], str] = printable,
) -> list[str]:
    """Return the pieces of a sum, one for each term after those before it."""
    pieces = list(before)
    for weight, j in terms[:max_terms]:
        factor = "" if abs(weight) == 1.0 else f"{number(abs(weight), decimals)}{times}"
        sign = "-" if weight < 0.0 else "+"
        term = f"{factor}{written(named.features[j])}"
        pieces.append(f"{sign} {term}" if pieces else f"{sign.strip('+')}{term}")
    if max_terms is not None and len(terms) > max_terms:
        pieces.append(f"(+{len(terms) - max_terms} more)")
    return pieces


def _leaf(named: NamedTree, k: int, decimals: int | None, max_terms: int | None) -> list[str]:
    """Return what a leaf predicts, its rows and its class shares, in pieces."""
    rows, model = named.rows(k), None if named.targets else named.model(k)
    if named.classes is None:
        if named.targets:
            pieces = output_pieces(named, k, decimals, max_terms)
        elif model is not None:
            pieces = model_pieces(named, model, decimals, max_terms)
        else:
            pieces = [f"value: {exact(named.value(k), decimals)}"]
        pieces[-1] += f" ({rows})" if rows else ""
        return pieces
    shares, weighted = (
        ", ".join(f"{printable(name)}: {share}" for name, share in each)
        for each in (named.shares(k), named.weighted(k))
    )
    winner = printable(named.classes[named.tree.labels[k]])
    cost = "" if named.costs is None else f"costs {number(float(named.costs[k]), 2)}"
    return [f"class: {winner} ({'; '.join(filter(None, (rows, shares, weighted, cost)))})"]

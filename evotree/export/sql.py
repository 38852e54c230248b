"""A tree, or the vote of a forest, as an expression of SQL.

The expression of a tree is one CASE whose branches are read from top to bottom, with no CASE inside
another but those that encode columns and that bound linear models: SQLite's parser takes about
twenty of those, SQL Server ten. That of a forest is a subquery, in which each tree is a row of a
table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from evotree.export.named import (
    LINE_WIDTH,
    ONE_WAY,
    Label,
    LinearModel,
    NamedTree,
    clauses,
    fold,
    is_forest,
    named_members,
    named_tree,
    plain_label,
)
from evotree.tables.columns import Column, NumericColumn


def export_sql(
    tree: Any,
    table: str | None = None,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
) -> str:
    """Return a tree as an expression over the columns of a table.

    It goes where SQL takes an expression: ``SELECT CASE ... END AS prediction FROM flowers``. That
    of an estimator reads the columns that it was fitted to and encodes them itself, where missing
    is NULL, not an empty text; categories are compared as text. That of a tree, or with names that
    are given, reads a column for each feature, and has the prediction NULL for a row in which one
    that the tree reads is NULL. Numbers may be texts that SQLite reads as numbers.

    Written in standard SQL and tested with SQLite. Names are in double quotation marks, numbers
    have an exponent, which makes them floating-point ones. In text a backslash is itself (MySQL:
    ``sql_mode`` ANSI_QUOTES and NO_BACKSLASH_ESCAPES).

    Where a row lies on a hyperplane to within rounding errors it may go another way than in
    ``predict``: see `export_python`. The same holds where a database reckons in decimals or reads
    a number's last digit wrong, as SQLite does with some below 1e-80 or above 1e80. Sums have to be
    finite.
    SQLite takes sums of up to 990 terms or so.

    The vote of a forest is an expression as well, a subquery in parentheses. Its table ``trees``
    has the leaf of each tree, or what it predicts, and ``shares`` the class shares of all leaves,
    by the numbers that ``apply`` returns. Databases add in an order of their own: a number may
    differ from that of ``predict`` by rounding errors, and a label where two classes have the same
    sum to within them.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator
        The tree; of an estimator its ``tree_``, with the names of its features and classes. Of a
        forest the vote is exported.
    table : str, optional
        Name of the table, to be written before each column. Without it SQLite takes the name of a
        column that does not exist for a text, and says nothing.
    feature_names : sequence of str, optional
        Names of columns that hold the features, one for each, all different; by default the columns
        of the estimator are encoded, and those of a tree are ``x0``, ``x1``, ...
    class_names : sequence, optional
        One label for each class: strings, finite numbers or truth values; by default those of the
        estimator, else 0, 1, ... The expression of a tree with one output and no class names has
        its values.

    Returns
    -------
    str
        An expression, on several lines; of several outputs one for each, named by ``AS`` and parted
        by commas, a list of columns for ``SELECT``.

    Raises
    ------
    ValueError
        If the number of names does not fit the tree, two columns have one name, a name or label has
        a NUL, or a label is of another kind.

    Examples
    --------
    >>> from evotree.tree import ObliqueTree
    >>> tree = ObliqueTree(
    ...     weights=np.array([[0.5, -2.0], [0.0, 0.0], [0.0, 0.0]]),
    ...     thresholds=np.array([1.5, 0.0, 0.0]),
    ...     subtree_size=np.array([3, 1, 1], dtype=np.int32),
    ...     values=np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]),
    ... )
    >>> print(export_sql(tree, None, ["length", "width"], ["no", "yes"]), end="")
    CASE
        WHEN "length" IS NULL OR "width" IS NULL
            THEN NULL
        WHEN 0.5e0 * "length" - 2.0e0 * "width" <= 1.5e0
            THEN 'no'
        ELSE 'yes'
    END
    """
    if is_forest(tree):
        return sql_vote(named_members(tree, feature_names, class_names), table)
    return sql_expression(named_tree(tree, feature_names, class_names), table)


def sql_name(name: str, table: str | None = None) -> str:
    """Return the name of a column, after that of its table if there is one."""
    if table is not None:
        return f"{sql_name(table)}.{sql_name(name)}"
    return '"' + _without_nul(name).replace('"', '""') + '"'


def sql_text(text: str) -> str:
    """Return text as SQL writes it."""
    return "'" + _without_nul(text).replace("'", "''") + "'"


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError(f"the name {text!r} has a NUL, which SQL does not allow.")
    return text


def sql_number(value: float) -> str:
    """Return a number with an exponent: without one it would be a decimal in standard SQL."""
    text = repr(float(value))
    return text if "e" in text else text + "e0"


def sql_expression(named: NamedTree, table: str | None = None) -> str:
    """Return the expression of `export_sql`.

    A branch names only the splits that lead to smaller subtrees: whoever is in a smaller one has
    been taken by a branch above. So it has at most as many splits as the binary logarithm of the
    number of leaves.
    """
    if named.targets:
        pairs = zip(named.each, named.targets, strict=True)
        columns = [f"{_expression(one, table).rstrip()} AS {sql_name(name)}" for one, name in pairs]
        return ",\n".join(columns) + "\n"
    return (f"-- {ONE_WAY}\n" if named.shares_rows else "") + _expression(named, table)


def sql_vote(trees: Sequence[NamedTree], table: str | None = None) -> str:
    """Return the expression of `export_sql` for the trees of a forest."""
    operands, needed = _operands(trees, table)
    vote = _vote_of_numbers if trees[0].classes is None else _vote_of_classes
    lines = vote(trees, operands)
    if needed:
        head = f"CASE\n{_branch([needed], 'NULL')}    ELSE "
        return "\n".join([f"{head}(", *lines, ")\nEND\n"])
    return "\n".join(["(", *lines, ")\n"])


def _vote_of_numbers(trees: Sequence[NamedTree], operands: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the mean of what trees predict."""
    values = [_cases(one, operands, _outputs(one, operands)) for one in trees]
    yield "WITH trees (prediction) AS (VALUES"
    yield ",\n".join(f"({value})" for value in values)
    yield ")"
    yield "SELECT AVG(prediction) FROM trees"


def _vote_of_classes(trees: Sequence[NamedTree], operands: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the class of which the leaves that trees reach have the largest share."""
    labels = [_literal(plain_label(label, c)) for c, label in enumerate(trees[0].classes or ())]
    sums = [f"p{c}" for c in range(len(labels))]
    nodes = [[str(k) for k in range(len(one.tree))] for one in trees]
    yield f"WITH shares (tree, leaf, {', '.join(sums)}) AS (VALUES"
    yield ",\n".join(
        f"    ({at}, {k}, {', '.join(map(sql_number, one.tree.values[k]))})"
        for at, one in enumerate(trees)
        for k in np.flatnonzero(one.tree.is_leaf).tolist()
    )
    yield "),"
    yield "trees (tree, leaf) AS (VALUES"
    pairs = enumerate(zip(trees, nodes, strict=True))
    yield ",\n".join(f"({at}, {_cases(one, operands, numbers)})" for at, (one, numbers) in pairs)
    yield "),"
    yield f"vote ({', '.join(sums)}) AS ("
    yield f"    SELECT {', '.join(f'SUM({p})' for p in sums)}"
    yield "    FROM trees JOIN shares ON shares.tree = trees.tree AND shares.leaf = trees.leaf"
    yield ")"
    branches = [
        f"WHEN {' AND '.join(f'{p} >= {other}' for other in sums[c + 1 :])} THEN {labels[c]}"
        for c, p in enumerate(sums[:-1])
    ]
    if not branches:
        yield f"SELECT {labels[0]} FROM vote"
        return
    yield "\n".join(["SELECT CASE", *(f"    {one}" for one in branches)])
    yield f"    ELSE {labels[-1]}"
    yield "END FROM vote"


def _expression(named: NamedTree, table: str | None) -> str:
    """Return the expression of one output."""
    operands, needed = _operands([named], table)
    return _cases(named, operands, _outputs(named, operands), needed) + "\n"


def _operands(trees: Sequence[NamedTree], table: str | None) -> tuple[list[str], list[str]]:
    """Return an expression for each feature, and the condition that one that is read is NULL.

    The condition comes in pieces, of which there are none where columns are encoded.
    """
    names, columns = list(trees[0].features), trees[0].columns
    if columns is not None:
        names = [column.name for column in columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"feature_names has {twice!r} twice: columns have names of their own.")
    operands = [sql_name(name, table) for name in names]
    if columns is not None:
        pairs = zip(columns, operands, strict=True)
        return [operand for column, name in pairs for operand in _encoded(column, name)], []
    used = sorted({j for one in trees for j in one.used_features()})
    return operands, [f"{'OR ' if at else ''}{operands[j]} IS NULL" for at, j in enumerate(used)]


def _outputs(named: NamedTree, operands: Sequence[str]) -> list[str]:
    """Return what each node predicts."""
    outputs = [_literal(output) for output in named.outputs()]
    for k in np.flatnonzero(named.tree.is_leaf).tolist():
        if (model := named.model(k)) is not None:
            outputs[k] = _bounded(model, _sum(named, k, operands))
    return outputs


def _cases(
    named: NamedTree,
    operands: Sequence[str],
    outputs: Sequence[str],
    needed: list[str] | None = None,
) -> str:
    """Return the CASE of a tree, NULL under a condition; the output itself of one leaf."""
    branches = [_branch([needed], "NULL")] if needed else []
    splits: list[list[str]] = []
    for k, level, left_first in clauses(named.tree):
        del splits[level:]
        if named.tree.subtree_size[k] > 1:
            splits.append(_split(named, k, operands, "<=" if left_first else ">"))
        elif splits:
            branches.append(_branch(splits, outputs[k]))
        elif branches:
            branches.append(f"    ELSE {outputs[k]}\n")
        else:
            return outputs[k]
    return "CASE\n" + "".join(branches) + "END"


def _encoded(column: Column, name: str) -> list[str]:
    """Return an expression for each feature that is made of a column."""
    indicator = f"CASE WHEN {name} IS NULL THEN 1.0e0 ELSE 0.0e0 END"
    if isinstance(column, NumericColumn):
        filled = f"COALESCE({name}, {sql_number(column.fill)})"
        return [filled, indicator] if column.indicator else [filled]
    return [
        indicator
        if level is None
        else f"CASE WHEN {name} = {sql_text(level)} THEN 1.0e0 ELSE 0.0e0 END"
        for level in column.levels
    ]


def _branch(splits: list[list[str]], output: str) -> str:
    """Return a branch, every split on a line of its own or more."""
    lines: list[str] = []
    for pieces in splits:
        first, *others = fold(pieces, LINE_WIDTH - 12)
        lines.append(f"        AND {first}" if lines else f"    WHEN {first}")
        lines += [f"            {line}" for line in others]
    return "\n".join([*lines, f"        THEN {output}"]) + "\n"


def _split(named: NamedTree, k: int, operands: Sequence[str], relation: str) -> list[str]:
    """Return a split in pieces, one for each term."""
    pieces = _sum(named, k, operands) or ["0.0e0"]
    pieces[-1] += f" {relation} {sql_number(named.tree.thresholds[k])}"
    return pieces


def _bounded(model: LinearModel, pieces: list[str]) -> str:
    """Return an expression for a sum within the bounds of a model."""
    *others, last = pieces
    branches = [["ELSE", *pieces]]
    for relation, bound in ((">", sql_number(model.highest)), ("<", sql_number(model.lowest))):
        branches.insert(0, ["WHEN", *others, f"{last} {relation} {bound}", f"THEN {bound}"])
    lines = [f"\n{16 * ' '}".join(fold(branch, LINE_WIDTH - 16)) for branch in branches]
    return f"\n{12 * ' '}".join(["CASE", *lines]) + "\n        END"


def _sum(named: NamedTree, k: int, operands: Sequence[str]) -> list[str]:
    """Return the terms of a split, or the intercept and terms of a leaf, with their signs."""
    is_leaf = named.tree.subtree_size[k] == 1
    model = named.model(k) if is_leaf else None
    pieces = [] if model is None else [sql_number(model.intercept)]
    for weight, j in named.terms(k):
        # A factor of 1 stays: it makes SQLite read the texts of a column as numbers.
        product = f"{sql_number(abs(weight))} * {operands[j]}"
        sign = "-" if weight < 0.0 else "+"
        pieces.append(f"{sign} {product}" if pieces else f"{sign.strip('+')}{product}")
    return pieces


def _literal(label: Label) -> str:
    if isinstance(label, str):
        return sql_text(label)
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    return sql_number(label) if isinstance(label, float) else str(label)

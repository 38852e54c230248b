"""A tree, or the vote of a forest, as an expression of SQL.

The expression of a tree is one CASE whose branches are read from top to bottom, with no CASE inside
another but those that encode columns and that bound linear models: SQLite's parser takes about
twenty of those, SQL Server ten. That of a forest is a subquery, in which each tree is a row of a
table.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evotree.description.named import (
    LINE_WIDTH,
    ONE_WAY,
    NamedTree,
    clauses,
    fold,
    is_forest,
    named_trees,
    summed,
    used_features,
)
from evotree.tables.columns import Column, NumericColumn

NAME = '"'


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

    Written in standard SQL and tested with SQLite, which takes sums of up to 990 terms or so. Names
    are in double quotation marks, numbers have an exponent, which makes them floating-point ones.
    In text a backslash is itself (MySQL: ``sql_mode`` ANSI_QUOTES and NO_BACKSLASH_ESCAPES). Where
    a row lies on a hyperplane to within rounding errors it may go another way than in ``predict``
    (see `export_python`), and where a database reckons in decimals or reads a number's last digit
    wrong, as SQLite does with some below 1e-80 or above 1e80. Sums have to be finite.

    The vote of a forest is a subquery in parentheses. Databases add in an order of their own: a
    number may differ from that of ``predict`` by rounding errors, and a label where two classes
    have the same sum to within them.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator
        As for `export_python`; of a forest the vote is exported.
    table : str, optional
        Name of the table, to be written before each column. Without it SQLite takes the name of a
        column that does not exist for a text, and says nothing.
    feature_names : sequence of str, optional
        Names of columns that hold the features, one for each, all different; by default the columns
        of the estimator are encoded, and those of a tree are ``x0``, ``x1``, ...
    class_names : sequence, optional
        As for `export_python`.

    Returns
    -------
    str
        An expression, on several lines; of several outputs one for each, named by ``AS`` and parted
        by commas, a list of columns for ``SELECT``.

    Examples
    --------
    >>> from evotree import ObliqueTreeClassifier
    >>> model = ObliqueTreeClassifier("axis").fit([[0.0, 0.0], [2.0, 0.0]], ["no", "yes"])
    >>> print(export_sql(model, None, ["length", "width"]), end="")
    CASE
        WHEN "length" IS NULL
            THEN NULL
        WHEN 1.0e0 * "length" <= 1.0e0
            THEN 'no'
        ELSE 'yes'
    END
    """
    members = named_trees(tree, feature_names, class_names)
    operands, needed = _operands(members, table)
    named = members[0]
    lines: list[str] = []
    if len(members) > 1 or is_forest(tree):
        lines = _vote(members, operands)
    elif named.scores is not None:
        cases = [_cases(output, operands) for output in named.scores.each]
        cases = cases if named.scores.targets else ["0.0e0", *cases]
        names = [f"s{c}" for c in range(len(cases))]
        labels = list(map(_literal, named.labels))
        head = f"WITH scores ({', '.join(names)}) AS (VALUES ("
        lines = [head, ",\n".join(cases), "))", *_largest(names, labels, "scores")]
    if lines:  # a subquery
        case = f"CASE\n{_branch([needed], 'NULL')}    ELSE (" if needed else "("
        return "\n".join([case, *lines, ")\nEND\n" if needed else ")\n"])
    note = f"-- {ONE_WAY}\n" if named.shares_rows else ""
    if not named.targets:
        return f"{note}{_cases(named, operands, needed=needed)}\n"
    columns = []
    for output, name in zip(named.each, named.targets, strict=True):
        operands, needed = _operands([output], table)
        columns.append(
            f"{_cases(output, operands, needed=needed)} AS {_quoted(name, NAME)}"
        )
    return ",\n".join(columns) + "\n"


def _quoted(text: str, sign: str = "'") -> str:
    """Return a text, or with the sign `NAME` a name, in quotation marks."""
    if "\0" in text:
        raise ValueError(f"the name {text!r} has a NUL, which SQL does not allow.")
    return f"{sign}{text.replace(sign, 2 * sign)}{sign}"


def _number(value: float) -> str:
    """Return a number with an exponent: without one it would be a decimal in standard SQL."""
    text = repr(float(value))
    return text if "e" in text else text + "e0"


def _vote(trees: Sequence[NamedTree], operands: Sequence[str]) -> list[str]:
    """Return the lines of the mean of trees, or of the class of the largest share in the leaves."""
    if trees[0].classes is None:
        cases = ",\n".join(f"({_cases(one, operands)})" for one in trees)
        return [
            "WITH trees (prediction) AS (VALUES",
            cases,
            ")",
            "SELECT AVG(prediction) FROM trees",
        ]
    labels = [_literal(label) for label in trees[0].labels]
    sums = [f"p{c}" for c in range(len(labels))]
    shares = ",\n".join(
        f"    ({at}, {k}, {', '.join(map(_number, one.tree.values[k]))})"
        for at, one in enumerate(trees)
        for k in np.flatnonzero(one.tree.is_leaf).tolist()
    )
    leaves = ",\n".join(
        f"({at}, {_cases(one, operands, str)})" for at, one in enumerate(trees)
    )
    vote = f"""WITH shares (tree, leaf, {", ".join(sums)}) AS (VALUES
{shares}
),
trees (tree, leaf) AS (VALUES
{leaves}
),
vote ({", ".join(sums)}) AS (
    SELECT {", ".join(f"SUM({p})" for p in sums)}
    FROM trees JOIN shares ON shares.tree = trees.tree AND shares.leaf = trees.leaf
)"""
    return [vote, *_largest(sums, labels, "vote")]


def _largest(sums: Sequence[str], labels: Sequence[str], table: str) -> list[str]:
    """Return the lines that select the label of the largest column, the first of equals."""
    branches = [
        f"    WHEN {' AND '.join(f'{p} >= {other}' for other in sums[c + 1 :])} THEN {labels[c]}"
        for c, p in enumerate(sums[:-1])
    ]
    if not branches:
        return [f"SELECT {labels[0]} FROM {table}"]
    return ["SELECT CASE", *branches, f"    ELSE {labels[-1]}", f"END FROM {table}"]


def _operands(
    trees: Sequence[NamedTree], table: str | None
) -> tuple[list[str], list[str]]:
    """Return an expression for each feature, and the condition that one that is read is NULL."""
    names = list(trees[0].features)
    columns = trees[0].columns
    if columns is not None:
        names = [column.name for column in columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"feature_names has {twice!r} twice: columns have names of their own."
        )
    place = "" if table is None else f"{_quoted(table, NAME)}."
    operands = [place + _quoted(name, NAME) for name in names]
    if columns is not None:
        pairs = zip(columns, operands, strict=True)
        return [
            operand for column, name in pairs for operand in _encoded(column, name)
        ], []
    used = enumerate(used_features(trees))
    return operands, [f"{'OR ' if at else ''}{operands[j]} IS NULL" for at, j in used]


def _cases(
    named: NamedTree,
    operands: Sequence[str],
    output: Callable[[int], str] | None = None,
    needed: list[str] | None = None,
) -> str:
    """Return the CASE of a tree, NULL under a condition; the output itself of one leaf.

    A branch names only the splits that lead to smaller subtrees: whoever is in a smaller one has
    been taken by a branch above. So it has at most as many splits as the binary logarithm of the
    number of leaves.
    """
    branches = [_branch([needed], "NULL")] if needed else []
    splits: list[list[str]] = []
    for k, level, left_first in clauses(named.tree):
        del splits[level:]
        if named.is_split(k):
            pieces = summed(named.terms(k), _product(operands)) or ["0.0e0"]
            relation = "<=" if left_first else ">"
            pieces[-1] += f" {relation} {_number(named.tree.thresholds[k])}"
            splits.append(pieces)
            continue
        said = _predicted(named, k, operands) if output is None else output(k)
        if splits:
            branches.append(_branch(splits, said))
        elif branches:
            branches.append(f"    ELSE {said}\n")
        else:
            return said
    return "CASE\n" + "".join(branches) + "END"


def _product(operands: Sequence[str]) -> Callable[[float, int], str]:
    """Return how terms are written; a factor of 1 makes SQLite read a column's texts as numbers."""
    return lambda weight, j: f"{_number(weight)} * {operands[j]}"


def _predicted(named: NamedTree, k: int, operands: Sequence[str]) -> str:
    """Return what a leaf predicts: a label, a number, or a sum within bounds."""
    if named.classes is not None:
        return _literal(named.labels[named.winners[k]])
    model = named.model(k)
    if not model.terms:
        return _number(model.intercept)
    pieces = summed(named.terms(k), _product(operands), [_number(model.intercept)])
    *others, last = pieces
    lowest, highest = _number(model.lowest), _number(model.highest)
    # A sum that overflows to both sides, which SQL takes for NULL, is the upper bound.
    branches = [
        ["WHEN", *others, f"{last} < {lowest}", f"THEN {lowest}"],
        ["WHEN", *others, f"{last} <= {highest}", "THEN", *pieces],
        ["ELSE", highest],
    ]
    lines = [f"\n{16 * ' '}".join(fold(branch, LINE_WIDTH - 16)) for branch in branches]
    return f"\n{12 * ' '}".join(["CASE", *lines]) + "\n        END"


def _encoded(column: Column, name: str) -> list[str]:
    """Return an expression for each feature that is made of a column."""
    indicator = f"CASE WHEN {name} IS NULL THEN 1.0e0 ELSE 0.0e0 END"
    if isinstance(column, NumericColumn):
        filled = f"COALESCE({name}, {_number(column.fill)})"
        return [filled, indicator] if column.indicator else [filled]
    return [
        indicator
        if level is None
        else f"CASE WHEN {name} = {_quoted(level)} THEN 1.0e0 ELSE 0.0e0 END"
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


def _literal(label: Any) -> str:
    if isinstance(label, str):
        return _quoted(label)
    if isinstance(label, bool):
        return str(label).upper()
    return _number(label) if isinstance(label, float) else str(label)

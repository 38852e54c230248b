"""A tree, or the vote of a forest, as source code that runs on its own: in Python or in C.

A tree is splits and returns, nothing else: no loop, no table, no library; save for probabilities,
which take an exponential function, and loops over the leaves. The linear model of a leaf is a sum,
which is bounded where it is returned. Sums are written in the order of the features, and every
number so that it reads back as the same one. Of a forest each tree is a function, that of a
classifier returns the row of a table of class shares, one for each leaf of all trees; the last
function adds what the trees say in their order, as `predict` does, and divides by their number.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from evotree.description.named import (
    LEAST_WIDTH,
    LINE_WIDTH,
    ONE_WAY,
    NamedTree,
    clauses,
    fold,
    is_forest,
    named_trees,
    summed,
)
from evotree.soft_sides import LEAD, SoftSides
from evotree.tables.columns import Column, NumericColumn

_C_ADVICE = "// Compile with -ffp-contract=off, so that every product and every sum is rounded."
# Of C11; those with an underscore and a capital letter are no names either.
_C_KEYWORD = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|"
    "inline|int|long|register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|"
    "union|unsigned|void|volatile|while"
)


class _Language(NamedTuple):
    """How a language writes a note, a statement's end, a split and its opposite, and bounds."""

    note: str
    end: str
    when: str
    unless: str
    close: str
    bounded: str


_PYTHON = _Language(
    "# ", "", "if {}:", "if not {}:", "", "{low} if s < {low} else {high} if s > {high} else s"
)
_C = _Language(
    "// ", ";", "if ({}) {{", "if (!({})) {{", "}", "s < {low} ? {low} : s > {high} ? {high} : s"
)


def export_python(
    tree: Any,
    name: str = "predict",
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    probability: bool = False,
) -> str:
    """Return a tree as a Python function that needs nothing, no import either.

    The function takes one row, a sequence of floats in the order of the features, and returns what
    ``predict`` returns for it: the label of a class, a number, or a list of several outputs. The
    features of an estimator are
    those that its ``encode`` returns; comments say how they are made of its columns. Numbers of
    single precision are to be made Python's own first (``row.tolist()``), else NumPy reckons in
    single precision.

    ``predict`` may add the products of a node in another order, as the processor does it fastest.
    So a row may go another way where it lies on a hyperplane to within the rounding errors of that
    sum, about its number of terms times 1e-16 of their absolute sum; nowhere else. Missing values
    (NaN), which encoded rows do not have, go to the right.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator
        The tree; of an estimator its ``tree_``, with the names of its features and classes. Of a
        forest the vote is exported, each tree as a function of its own.
    name : str, default="predict"
        Name of the function.
    feature_names : sequence of str, optional
        One name for each feature, for comments; by default those of the estimator, else ``x0``,
        ``x1``, ...
    class_names : sequence, optional
        One label for each class: strings, finite numbers or truth values; by default those of the
        estimator, else 0, 1, ... The function of a tree with one output and no class names returns
        its values.
    probability : bool, default=False
        Whether the function returns what ``predict_proba`` does, a list of probabilities. `tree` is
        then a classifier fitted with ``probability="soft"``; the code imports `math.exp`, and has a
        second function, ``<name>_class``, which returns the index of the class.

    Returns
    -------
    str
        Source code, to be written to a file in UTF-8. However deep the tree is, its splits nest no
        deeper than the binary logarithm of the number of leaves.

    Raises
    ------
    ValueError
        If `name` is no name of a function, the number of names does not fit the tree, a label is of
        another kind, or there are no soft sides to take probabilities from.

    Examples
    --------
    >>> from evotree.tree import ObliqueTree
    >>> tree = ObliqueTree(
    ...     weights=np.array([[0.5, -2.0], [0.0, 0.0], [0.0, 0.0]]),
    ...     thresholds=np.array([1.5, 0.0, 0.0]),
    ...     subtree_size=np.array([3, 1, 1], dtype=np.int32),
    ...     values=np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]),
    ... )
    >>> print(export_python(tree, feature_names=["length", "width"]), end="")
    def predict(x):
        # x holds 2 floats:
        # x[0] is 'length'
        # x[1] is 'width'
        if 0.5 * x[0] - 2.0 * x[1] <= 1.5:
            return 0
        return 1
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"name={name!r}: allowed is the name of a function in Python.")
    members = named_trees(tree, feature_names, class_names)
    if len(members) > 1 or is_forest(tree):
        return _python_vote(members, name, probability)
    return _python_probabilities(members[0], name) if probability else _python(members[0], name)


def export_c(
    tree: Any,
    name: str = "predict",
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    probability: bool = False,
) -> str:
    """Return a tree as a C function that needs nothing, no header either.

    The function takes one row, an array of doubles in the order of the features. Of a classifier it
    returns the index of the class, which ``<name>_classes[index]`` is the label of, as text; of a
    regressor it returns the number. Several outputs are written into a second array of doubles,
    ``void <name>(const double *x, double *y)``.

    Where a row lies on a hyperplane to within rounding errors it may go another way than in
    ``predict``, and missing values (NaN) go to the right: see `export_python`. With
    ``-ffp-contract=off`` (gcc, clang) or ``/fp:precise`` (MSVC), C and Python agree to the last
    bit; compilers that may fuse a multiplication with an addition round otherwise.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator
        As for `export_python`.
    name : str, default="predict"
        Name of the function.
    feature_names : sequence of str, optional
        As for `export_python`.
    class_names : sequence, optional
        As for `export_python`; not with a NUL, which ends a string in C.
    probability : bool, default=False
        Whether the function writes what ``predict_proba`` returns into a second array of doubles,
        one for each class, and returns nothing. As for `export_python`; the code includes
        ``math.h``.

    Returns
    -------
    str
        Source code in C99, which C++ reads as well, to be written to a file in UTF-8. Labels are in
        UTF-8. Splits nest as in `export_python`.

    Raises
    ------
    ValueError
        If `name` is no name of a function, the number of names does not fit the tree, a label is of
        another kind, or there are no soft sides to take probabilities from.

    Examples
    --------
    >>> from evotree.tree import ObliqueTree
    >>> tree = ObliqueTree(
    ...     weights=np.array([[0.5, -2.0], [0.0, 0.0], [0.0, 0.0]]),
    ...     thresholds=np.array([1.5, 0.0, 0.0]),
    ...     subtree_size=np.array([3, 1, 1], dtype=np.int32),
    ...     values=np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]),
    ... )
    >>> print(export_c(tree, feature_names=["length", "width"], class_names=["no", "yes"]), end="")
    // Compile with -ffp-contract=off, so that every product and every sum is rounded.
    const char *const predict_classes[2] = {
        "no",
        "yes",
    };
    <BLANKLINE>
    int predict(const double *x)
    {
        // x holds 2 doubles:
        // x[0] is 'length'
        // x[1] is 'width'
        if (0.5 * x[0] - 2.0 * x[1] <= 1.5) {
            return 0;
        }
        return 1;
    }
    """
    is_name = isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    if not is_name or re.match(r"_[A-Z_]", name) or _C_KEYWORD.fullmatch(name):
        raise ValueError(f"name={name!r}: allowed is the name of a function in C.")
    members = named_trees(tree, feature_names, class_names)
    if len(members) > 1 or is_forest(tree):
        return _c_vote(members, name, probability)
    return _c_probabilities(members[0], name) if probability else _c(members[0], name)


# ---- splits and returns --------------------------------------------------------------------------


def _body(
    named: NamedTree, language: _Language, outputs: Sequence[str] | None, several: str
) -> Iterator[str]:
    """Yield the splits and returns of a tree: of `outputs` by node, or else of its numbers."""
    open_splits = 0
    for k, level, left_first in clauses(named.tree):
        closing = range(open_splits, level, -1) if language.close else ()
        yield from ("    " * depth + language.close for depth in closing)
        indent, open_splits = "    " * (level + 1), level + named.is_split(k)
        room = max(LINE_WIDTH - len(indent) - 10, LEAST_WIDTH)
        if named.is_split(k):
            bound = f" <= {float(named.tree.thresholds[k])!r}"
            first, *sums = _sums(summed(named.terms(k), _product) or ["0.0"], room - len(bound))
            split = language.when if left_first else language.unless
            statements = [first, *sums] if sums else []
            yield from (f"{indent}s = {line}{language.end}" for line in statements)
            yield indent + split.format(("s" if sums else first) + bound)
        elif outputs is not None:
            yield f"{indent}return {outputs[k]}{language.end}"
        else:
            leaf = _leaf(named, k, language, several, room)
            yield from (f"{indent}{line}{language.end}" for line in leaf)


def _leaf(named: NamedTree, k: int, language: _Language, several: str, room: int) -> Iterator[str]:
    """Yield the statements that return the numbers of a leaf."""
    for j, one in enumerate(named.each):
        model = one.model(k)
        output = repr(model.intercept)
        if model.terms:
            sums = _sums(summed(one.terms(k), _product, [output]), room)
            yield from (f"s = {line}" for line in sums)
            output = language.bounded.format(low=repr(model.lowest), high=repr(model.highest))
        yield f"y[{j}] = {output}" if named.targets else f"return {output}"
    if named.targets:
        yield several


def _product(weight: float, j: int) -> str:
    """Return a term of a sum."""
    return f"x[{j}]" if weight == 1.0 else f"{weight!r} * x[{j}]"


def _sums(pieces: list[str], width: int) -> list[str]:
    """Return a sum in steps, which add in the order of the pieces, each at most of some width.

    Parsers have a limit to the length of an expression.
    """
    first, *others = fold(pieces, width)
    return [first, *(f"s {line}" for line in others)]


def _notes(named: NamedTree, numbers: str, members: Sequence[NamedTree] = ()) -> list[str]:
    """Return what a row is, and what each number of it that the trees read is."""
    about = [repr(feature) for feature in named.features]
    if named.columns is not None:
        about = [note for column in named.columns for note in _encoding(column)]
    used = sorted({j for one in members or (named,) for j in one.used_features()})
    return [
        *([ONE_WAY] if named.shares_rows else []),
        f"x holds {len(named.features)} {numbers}:",
        *(f"x[{j}] is {about[j]}" for j in used),
        *(f"y[{j}] is {target!r}" for j, target in enumerate(named.targets)),
    ]


def _encoding(column: Column) -> list[str]:
    """Say of each feature of a column how it is made."""
    name = repr(column.name)
    if isinstance(column, NumericColumn):
        notes = [f"{name}, or {column.fill!r} where that is missing"]
        return [*notes, f"1 where {name} is missing; else 0"] if column.indicator else notes
    return [
        f"1 where {name} is {'missing' if level is None else repr(level)}; else 0"
        for level in column.levels
    ]


def _python(
    named: NamedTree, name: str, outputs: Sequence[str] | None = None, noted: bool = True
) -> str:
    """Return the function in Python of a tree, or one that returns `outputs` by node."""
    if named.classes is not None and outputs is None:
        outputs = [repr(named.labels[c]) for c in named.winners]
    lines = [f"    # {note}" for note in _notes(named, "floats")] if noted else []
    lines += [f"    y = [0.0] * {len(named.targets)}"] if named.targets else []
    return (
        "\n".join([f"def {name}(x):", *lines, *_body(named, _PYTHON, outputs, "return y")]) + "\n"
    )


def _c(
    named: NamedTree, name: str, outputs: Sequence[str] | None = None, noted: bool = True
) -> str:
    """Return the function in C of a tree, or one that returns `outputs` by node."""
    lines = [_C_ADVICE] if noted else []
    if named.classes is not None and outputs is None:
        outputs = [str(c) for c in named.winners]
        lines += _c_labels(named, name)
    body = list(_body(named, _C, outputs, "return"))
    head = f"{'double' if outputs is None else 'int'} {name}(const double *x)"
    lines += [f"void {name}(const double *x, double *y)" if named.targets else head, "{"]
    if noted:
        lines += [f"    // {note}" for note in _notes(named, "doubles")]
    if any(line.lstrip().startswith("s = ") for line in body):
        lines.append("    double s;")
    if not named.used_features():
        lines.append("    (void)x;")
    return "\n".join([*lines, *body, "}"]) + "\n"


def _c_labels(named: NamedTree, name: str) -> list[str]:
    """Return the lines of the array of class labels, ``<name>_classes``."""
    labels = [f"    {_c_string(str(label), at)}," for at, label in enumerate(named.labels)]
    return [f"const char *const {name}_classes[{len(labels)}] = {{", *labels, "};", ""]


def _c_string(text: str, at: int) -> str:
    r"""Return text as a string of C: what is not printable ASCII as bytes of UTF-8, in octal."""
    if "\0" in text:
        raise ValueError(f"class_names[{at}] is {text!r}: a string in C holds no NUL.")
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"class_names[{at}] is {text!r}: it cannot be written in UTF-8.") from None
    # A question mark might begin a trigraph.
    signs = (
        f"\\{byte:03o}"
        if byte < 32 or byte > 126
        else f"\\{chr(byte)}"
        if byte in b'"\\?'
        else chr(byte)
        for byte in data
    )
    return '"' + "".join(signs) + '"'


# ---- probabilities -------------------------------------------------------------------------------


def _soft_sides(named: NamedTree) -> SoftSides:
    """Return the soft sides of a tree, or say that there are none."""
    if named.sides is None:
        raise ValueError(
            'probability=True: allowed for a classifier that was fitted with probability="soft".'
        )
    sides: SoftSides = named.sides.validate(named.tree)
    return sides


def _reaching(named: NamedTree, sides: SoftSides, right: str) -> Iterator[str]:
    """Yield the assignments, alike in both languages, that find how probably nodes are reached.

    `right` is the expression for the probability of the right side by its log-odds ``s``.
    """
    tree = named.tree
    yield "n[0] = 1.0"
    for k in np.flatnonzero(~tree.is_leaf).tolist():
        terms = summed(named.terms(k), _product) or ["0.0"]
        sums = _sums(terms, LINE_WIDTH - 16)
        yield from (f"s = {line}" for line in sums)
        bound, slope = float(tree.thresholds[k]), float(sides.slopes[k])
        yield f"s = {slope!r} * (s - {bound!r}) + {float(sides.intercepts[k])!r}"
        yield f"n[{tree.right(k)}] = n[{k}] * ({right})"
        yield f"n[{k + 1}] = n[{k}] - n[{tree.right(k)}]"


def _raised(named: NamedTree, name: str) -> str:
    """Return the name of the function for the class that is raised: that of the highest share.

    It is the predicted one, but where labels were chosen for another objective.
    """
    tree = named.tree
    is_highest = (tree.labels == tree.values.argmax(axis=1))[tree.is_leaf].all()
    return f"{name}_class" if is_highest else f"{name}_highest"


def _python_probabilities(named: NamedTree, name: str) -> str:
    """Return a function in Python for probabilities, and the one for classes that it calls."""
    tree, sides = named.tree, _soft_sides(named)
    classes = _python(named, f"{name}_class", [str(c) for c in named.winners])
    raised = _raised(named, name)
    if raised != f"{name}_class":
        classes += "\n\n" + _python(
            named, raised, [str(c) for c in tree.values.argmax(axis=1)], noted=False
        )
    right = "1.0 / (1.0 + exp(-s)) if s > -700.0 else 0.0"  # exp overflows above
    lines = ["from math import exp", "", "", classes, "", f"def {name}(x):"]
    lines += [f"    # {note}" for note in _notes(named, "floats")]
    lines.append("    # n[k] is the probability of reaching node k, p[c] that of class c.")
    lines.append(f"    n = [0.0] * {len(tree)}")
    lines += [f"    {line}" for line in _reaching(named, sides, right)]
    lines.append("    leaves = (")
    for k in np.flatnonzero(tree.is_leaf).tolist():
        lines.append(f"        ({k}, {sides.shares[k].tolist()!r}),")
    return (
        "\n".join(lines)
        + f"""
    )
    p = [0.0] * {tree.values.shape[1]}
    for k, shares in leaves:
        for c, share in enumerate(shares):
            p[c] += n[k] * share
    label = {raised}(x)
    others = [{LEAD!r} + share for c, share in enumerate(p) if c != label]
    p[label] = max([p[label], *others])
    total = sum(p)
    return [share / total for share in p]
"""
    )


def _c_probabilities(named: NamedTree, name: str) -> str:
    """Return a function in C that writes probabilities, and the one of classes that it calls."""
    tree, sides = named.tree, _soft_sides(named)
    leaves, n_classes = np.flatnonzero(tree.is_leaf).tolist(), tree.values.shape[1]
    classes, raised = _c(named, f"{name}_class"), _raised(named, name)
    if raised != f"{name}_class":
        code = _c(named, raised, [str(c) for c in tree.values.argmax(axis=1)], noted=False)
        classes += f"\nstatic {code}"
    lines = ["#include <math.h>", "", classes, f"void {name}(const double *x, double *p)", "{"]
    lines.append("    // n[k] is the probability of reaching node k, p[c] that of class c.")
    numbers = ", ".join(map(str, leaves))
    lines.append(f"    static const int leaves[{len(leaves)}] = {{{numbers}}};")
    lines += _c_table(sides.shares[leaves].tolist(), n_classes)
    lines.append(f"    double n[{len(tree)}], s, total = 0.0;")
    lines.append(f"    int c, i, label = {raised}(x);")
    lines += [f"    {line};" for line in _reaching(named, sides, "1.0 / (1.0 + exp(-s))")]
    return (
        "\n".join(lines)
        + f"""
    for (c = 0; c < {n_classes}; c++) {{
        p[c] = 0.0;
        for (i = 0; i < {len(leaves)}; i++) {{
            p[c] += n[leaves[i]] * shares[i][c];
        }}
    }}
    s = p[label];
    for (c = 0; c < {n_classes}; c++) {{
        if (c != label && p[c] + {LEAD!r} > s) {{
            s = p[c] + {LEAD!r};
        }}
    }}
    p[label] = s;
    for (c = 0; c < {n_classes}; c++) {{
        total += p[c];
    }}
    for (c = 0; c < {n_classes}; c++) {{
        p[c] /= total;
    }}
}}
"""
    )


def _c_table(rows: Sequence[Sequence[float]], n_classes: int) -> list[str]:
    """Return the lines of a table of class shares in C."""
    lines = [f"        {{{', '.join(map(repr, row))}}}," for row in rows]
    return [f"    static const double shares[{len(rows)}][{n_classes}] = {{", *lines, "    };"]


# ---- the vote of a forest ------------------------------------------------------------------------


def _rows_of_leaves(
    members: Sequence[NamedTree], probability: bool
) -> tuple[list[list[str] | None], list[list[float]]]:
    """Return the row of each leaf in a table of class shares, by tree and node, and the table."""
    if members[0].classes is None:
        if probability:
            raise ValueError("probability=True: allowed for a forest of classes.")
        return [None] * len(members), []
    rows: list[list[str] | None] = []
    shares: list[list[float]] = []
    for member in members:
        before = np.cumsum(member.tree.is_leaf) - 1 + len(shares)
        rows.append([str(row) for row in before])
        shares += member.tree.values[member.tree.is_leaf].tolist()
    return rows, shares


def _python_vote(members: Sequence[NamedTree], name: str, probability: bool) -> str:
    """Return the code of `export_python` for a forest."""
    rows, shares = _rows_of_leaves(members, probability)
    names = [f"{name}_tree_{at}" for at in range(len(members))]
    parts = [_python(*one, noted=False) for one in zip(members, names, rows, strict=True)]
    lines = [f"def {name}(x):"]
    lines += [f"    # {note}" for note in _notes(members[0], "floats", members)]
    lines.append(f"    trees = ({', '.join(names)},)")
    if members[0].classes is None:
        total = f"""
    total = 0.0
    for tree in trees:
        total += tree(x)
    return total / {len(names)}.0
"""
    else:
        lines += ["    shares = (", *(f"        {tuple(row)!r}," for row in shares), "    )"]
        labels = tuple(members[0].labels)
        total = f"""
    p = [0.0] * {len(labels)}
    for tree in trees:
        for c, share in enumerate(shares[tree(x)]):
            p[c] += share
    p = [share / {len(names)}.0 for share in p]
    return {"p" if probability else f"{labels!r}[p.index(max(p))]"}
"""
    return "\n\n".join([*parts, "\n".join(lines) + total])


def _c_vote(members: Sequence[NamedTree], name: str, probability: bool) -> str:
    """Return the code of `export_c` for a forest."""
    rows, shares = _rows_of_leaves(members, probability)
    names = [f"{name}_tree_{at}" for at in range(len(members))]
    codes = [_c(*one, noted=False) for one in zip(members, names, rows, strict=True)]
    n_trees, n_classes = len(members), len(members[0].labels)
    lines = [_C_ADVICE, *(f"static {code}" for code in codes)]
    if n_classes and not probability:
        lines += _c_labels(members[0], name)
    kind = "void" if probability else "int" if n_classes else "double"
    lines += [f"{kind} {name}(const double *x{', double *p' if probability else ''})", "{"]
    lines += [f"    // {note}" for note in _notes(members[0], "doubles", members)]
    of_tree = "int" if n_classes else "double"
    lines.append(f"    static {of_tree} (*const trees[{n_trees}])(const double *) = {{")
    lines += [*(f"        {tree}," for tree in names), "    };"]
    if not n_classes:
        return (
            "\n".join(lines)
            + f"""
    double s = 0.0;
    int t;
    for (t = 0; t < {n_trees}; t++) {{
        s += trees[t](x);
    }}
    return s / {n_trees}.0;
}}
"""
        )
    lines += _c_table(shares, n_classes)
    lines += [] if probability else [f"    double p[{n_classes}];"]
    lines.append(f"    int c, t{'' if probability else ', best = 0'};")
    best = "" if probability else "\n        best = p[c] > p[best] ? c : best;"
    returned = "" if probability else "    return best;\n"
    return (
        "\n".join(lines)
        + f"""
    for (c = 0; c < {n_classes}; c++) {{
        p[c] = 0.0;
    }}
    for (t = 0; t < {n_trees}; t++) {{
        const double *row = shares[trees[t](x)];
        for (c = 0; c < {n_classes}; c++) {{
            p[c] += row[c];
        }}
    }}
    for (c = 0; c < {n_classes}; c++) {{
        p[c] /= {n_trees}.0;{best}
    }}
{returned}}}
"""
    )

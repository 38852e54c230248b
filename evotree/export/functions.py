"""The functions in Python and C that `evotree.export.source` writes.

Both are splits and returns, nothing else: no loop, no table, no library; save for probabilities,
which take an exponential function, and loops over the leaves. The linear model of a leaf is a sum,
which is bounded where it is returned. Sums are written in the order of the features, and every
number so that it reads back as the same one.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evotree.export.named import (
    LEAST_WIDTH,
    LINE_WIDTH,
    ONE_WAY,
    NamedTree,
    clauses,
    fold,
)
from evotree.soft_sides import LEAD, SoftSides
from evotree.tables.columns import Column, NumericColumn

C_ADVICE = "// Compile with -ffp-contract=off, so that every product and every sum is rounded."
# Of C11; those with an underscore and a capital letter are no names either.
_C_KEYWORD = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|"
    "inline|int|long|register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|"
    "union|unsigned|void|volatile|while"
)


def python_source(named: NamedTree, name: str, noted: bool = True) -> str:
    """Return the function in Python of `evotree.export.source.export_python`."""
    check_python_name(name)
    outputs = [[repr(output) for output in one.outputs()] for one in named.each]
    lines = [f"def {name}(x):"]
    if noted:
        lines += [f"    # {note}" for note in notes(named, "floats")]
    for k, level, left_first in clauses(named.tree):
        indent = "    " * (level + 1)
        if named.tree.subtree_size[k] == 1:
            lines += _python_leaf(named, k, outputs, indent)
            continue
        *sums, split = _split(named, k, LINE_WIDTH - len(indent) - 8)
        lines += [f"{indent}s = {line}" for line in sums]
        lines.append(f"{indent}if {split}:" if left_first else f"{indent}if not {split}:")
    return "\n".join(lines) + "\n"


def _python_leaf(
    named: NamedTree, k: int, outputs: Sequence[Sequence[str]], indent: str
) -> Iterator[str]:
    """Yield the lines that return what a leaf predicts; several outputs are a list."""
    returned = []
    for j, one in enumerate(named.each):
        output, model = outputs[j][k], one.model(k)
        if model is not None:
            sums = _sums(_pieces(one, k), max(LINE_WIDTH - len(indent), LEAST_WIDTH) - 6)
            yield from (f"{indent}s = {line}" for line in sums)
            low, high = model.lowest, model.highest
            output = f"{low!r} if s < {low!r} else {high!r} if s > {high!r} else s"
            if named.targets:
                yield f"{indent}y{j} = {output}"
                output = f"y{j}"
        returned.append(output)
    result = f"[{', '.join(returned)}]" if named.targets else returned[0]
    yield f"{indent}return {result}"


def c_source(named: NamedTree, name: str, noted: bool = True) -> str:
    """Return the function in C of `evotree.export.source.export_c`."""
    check_c_name(name)
    body = list(_c_body(named))
    lines = []
    if noted:
        lines = [C_ADVICE]
    if named.classes is not None:
        named.outputs()  # refuses labels that are no plain ones
        lines += c_labels(named.classes, name)
    kind = "double" if named.classes is None else "int"
    head = f"{kind} {name}(const double *x)"
    if named.targets:
        head = f"void {name}(const double *x, double *y)"
    lines += [head, "{"]
    if noted:
        lines += [f"    // {note}" for note in notes(named, "doubles")]
    if any(line.lstrip().startswith("s = ") for line in body):
        lines.append("    double s;")
    if not named.used_features():
        lines.append("    (void)x;")
    return "\n".join([*lines, *body, "}"]) + "\n"


def check_python_name(name: Any) -> None:
    """Refuse what is no name of a function in Python, by a ValueError."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"name={name!r}: allowed is the name of a function in Python.")


def check_c_name(name: Any) -> None:
    """Refuse what is no name of a function in C, by a ValueError."""
    if (
        not isinstance(name, str)
        or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
        or re.match(r"_[A-Z_]", name)
        or _C_KEYWORD.fullmatch(name)
    ):
        raise ValueError(f"name={name!r}: allowed is the name of a function in C.")


def c_labels(classes: Sequence[Any], name: str) -> list[str]:
    """Return the lines of the array of class labels, ``<name>_classes``."""
    labels = [f"    {_c_string(str(label), at)}," for at, label in enumerate(classes)]
    return [f"const char *const {name}_classes[{len(labels)}] = {{", *labels, "};", ""]


def _c_body(named: NamedTree) -> Iterator[str]:
    """Yield the lines of the splits and returns, with a brace for each split's end."""
    is_class = named.classes is not None
    winners = named.winners()
    open_splits = 0
    for k, level, left_first in clauses(named.tree):
        for depth in range(open_splits, level, -1):
            yield "    " * depth + "}"
        indent, open_splits = "    " * (level + 1), level
        if named.tree.subtree_size[k] == 1:
            if is_class:
                yield f"{indent}return {winners[k]};"
            else:
                yield from _c_leaf(named, k, indent)
            continue
        *sums, split = _split(named, k, LINE_WIDTH - len(indent) - 10)
        yield from (f"{indent}s = {line};" for line in sums)
        yield f"{indent}if ({split}) {{" if left_first else f"{indent}if (!({split})) {{"
        open_splits += 1


def _c_leaf(named: NamedTree, k: int, indent: str) -> Iterator[str]:
    """Yield the lines that return the number of a leaf, or write those of several outputs."""
    for j, one in enumerate(named.each):
        output, model = repr(one.value(k)), one.model(k)
        if model is not None:
            sums = _sums(_pieces(one, k), max(LINE_WIDTH - len(indent), LEAST_WIDTH) - 7)
            yield from (f"{indent}s = {line};" for line in sums)
            low, high = model.lowest, model.highest
            output = f"s < {low!r} ? {low!r} : s > {high!r} ? {high!r} : s"
        yield f"{indent}y[{j}] = {output};" if named.targets else f"{indent}return {output};"
    if named.targets:
        yield f"{indent}return;"


def notes(named: NamedTree, numbers: str, used: Sequence[int] | None = None) -> list[str]:
    """Return what a row is, and what each number of it that the tree reads is."""
    about = [repr(feature) for feature in named.features]
    if named.columns is not None:
        about = [note for column in named.columns for note in _encoding(column)]
    return [
        *([ONE_WAY] if named.shares_rows else []),
        f"x holds {len(named.features)} {numbers}:",
        *(f"x[{j}] is {about[j]}" for j in (named.used_features() if used is None else used)),
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


def _pieces(named: NamedTree, k: int) -> list[str]:
    """Return the terms of a split, or the intercept and terms of a leaf, with their signs."""
    is_leaf = named.tree.subtree_size[k] == 1
    model = named.model(k) if is_leaf else None
    pieces = [] if model is None else [repr(model.intercept)]
    for weight, j in named.terms(k):
        product = f"x[{j}]" if abs(weight) == 1.0 else f"{abs(weight)!r} * x[{j}]"
        sign = "-" if weight < 0.0 else "+"
        pieces.append(f"{sign} {product}" if pieces else f"{sign.strip('+')}{product}")
    return pieces or ["0.0"]


def _split(named: NamedTree, k: int, width: int) -> list[str]:
    """Return a split, the sums that it needs before it, each on a line of at most some width."""
    bound = f" <= {float(named.tree.thresholds[k])!r}"
    sums = _sums(_pieces(named, k), max(width, LEAST_WIDTH) - len(bound))
    return [sums[0] + bound] if len(sums) == 1 else [*sums, "s" + bound]


def _sums(pieces: list[str], width: int) -> list[str]:
    """Return a sum in steps, which add in the order of the pieces, each at most of some width.

    Parsers have a limit to the length of an expression.
    """
    first, *others = fold(pieces, width)
    return [first, *(f"s {line}" for line in others)]


def _by_index(named: NamedTree) -> NamedTree:
    """Return a tree whose classes are called by their index."""
    return replace(named, classes=tuple(range(named.tree.values.shape[1])))


def _soft_sides(named: NamedTree) -> SoftSides:
    """Return the soft sides of a tree, or say that there are none."""
    if named.sides is None:
        raise ValueError(
            'probability=True: allowed for a classifier that was fitted with probability="soft".'
        )
    return named.sides.validate(named.tree)


def _reaching(named: NamedTree, right: str) -> Iterator[str]:
    """Yield the assignments, alike in both languages, that find how probably nodes are reached.

    `right` is the expression for the probability of the right side by its log-odds ``s``.
    """
    tree, sides = named.tree, _soft_sides(named)
    yield "n[0] = 1.0"
    for k in np.flatnonzero(~tree.is_leaf).tolist():
        first, *others = fold(_pieces(named, k), LINE_WIDTH - 16)
        yield f"s = {first}"
        yield from (f"s = s {line}" for line in others)
        bound, slope = float(tree.thresholds[k]), float(sides.slopes[k])
        yield f"s = {slope!r} * (s - {bound!r}) + {float(sides.intercepts[k])!r}"
        yield f"n[{tree.right(k)}] = n[{k}] * ({right})"
        yield f"n[{k + 1}] = n[{k}] - n[{tree.right(k)}]"


def python_probabilities(named: NamedTree, name: str) -> str:
    """Return a function in Python for probabilities, and the one for classes that it calls."""
    classes = python_source(_by_index(named), f"{name}_class")
    lines = ["from math import exp", "", "", classes, "", *_python_probabilities(named, name)]
    return "\n".join(lines) + "\n"


def _python_probabilities(named: NamedTree, name: str) -> Iterator[str]:
    """Yield the lines of the function that returns probabilities."""
    tree, sides = named.tree, _soft_sides(named)
    yield f"def {name}(x):"
    yield from (f"    # {note}" for note in notes(named, "floats"))
    yield "    # n[k] is the probability of reaching node k, p[c] that of class c."
    yield f"    n = [0.0] * {len(tree)}"
    right = "1.0 / (1.0 + exp(-s)) if s > -700.0 else 0.0"  # exp overflows above
    yield from (f"    {line}" for line in _reaching(named, right))
    yield f"    p = [0.0] * {tree.values.shape[1]}"
    yield "    for k, shares in ("
    for k in np.flatnonzero(tree.is_leaf).tolist():
        yield f"        ({k}, {sides.shares[k].tolist()!r}),"
    yield "    ):"
    yield "        for c, share in enumerate(shares):"
    yield "            p[c] += n[k] * share"
    yield f"    label = {name}_class(x)"
    yield f"    others = [{LEAD!r} + one for c, one in enumerate(p) if c != label]"
    yield "    p[label] = max([p[label], *others])"
    yield "    total = sum(p)"
    yield "    return [one / total for one in p]"


def c_probabilities(named: NamedTree, name: str) -> str:
    """Return a function in C that writes probabilities, and the one of classes that it calls."""
    classes = c_source(named, f"{name}_class")
    return "\n".join(["#include <math.h>", "", classes, *_c_probabilities(named, name)]) + "\n"


def _c_probabilities(named: NamedTree, name: str) -> Iterator[str]:
    """Yield the lines of the function that writes probabilities."""
    tree, sides = named.tree, _soft_sides(named)
    leaves = np.flatnonzero(tree.is_leaf).tolist()
    n_classes = tree.values.shape[1]
    yield f"void {name}(const double *x, double *p)"
    yield "{"
    yield "    // n[k] is the probability of reaching node k, p[c] that of class c."
    yield f"    static const int leaves[{len(leaves)}] = {{{', '.join(map(str, leaves))}}};"
    yield f"    static const double shares[{len(leaves)}][{n_classes}] = {{"
    for k in leaves:
        yield f"        {{{', '.join(map(repr, sides.shares[k].tolist()))}}},"
    yield "    };"
    yield f"    double n[{len(tree)}], s, total = 0.0;"
    yield f"    int c, i, label = {name}_class(x);"
    yield from (f"    {line};" for line in _reaching(named, "1.0 / (1.0 + exp(-s))"))
    yield from f"""    for (c = 0; c < {n_classes}; c++) {{
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
}}""".splitlines()


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

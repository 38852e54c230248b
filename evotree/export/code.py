"""A tree, or the vote of a forest, as source code that runs on its own: in Python or in C.

A tree is splits and returns, without a loop, a table or a library; probabilities take exponential
functions, and loops over the leaves. Sums are in the order of the features, and numbers read back
as the same ones. Of a forest each tree is a function, that of a classifier
returns the row of a table of class shares, one for each leaf of all trees; the last function adds
what the trees say in their order, as `predict` does, and divides by their number.
"""

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
    used_features,
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
    """How a language writes a function."""

    numbers: str
    note: str
    end: str  # of a statement
    when: str  # a split, its opposite, and the end of its branch
    unless: str
    close: str
    bounded: str  # the sum of a leaf
    several: str  # how a function with several outputs ends
    right: str  # the probability of the right side, by its log-odds


_PYTHON = _Language(
    "floats", "# ", "", "if {}:", "if not {}:", "",
    "{low} if s < {low} else {high} if s > {high} else s", "return y",
    "1.0 / (1.0 + exp(-s)) if s > -700.0 else 0.0",  # exp overflows above
)  # fmt: skip
_C = _Language(
    "doubles", "// ", ";", "if ({}) {{", "if (!({})) {{", "}",
    "s < {low} ? {low} : s > {high} ? {high} : s", "return", "1.0 / (1.0 + exp(-s))",
)  # fmt: skip


def export_python(
    tree: Any,
    name: str = "predict",
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    probability: bool = False,
) -> str:
    """Return a tree as a Python function that needs nothing, no import either, in UTF-8.

    The function takes one row, a sequence of floats in the order of the features (those that
    ``encode`` of an estimator returns; comments say how they are made), and returns what
    ``predict`` does: a label, a number, or a list of several outputs. Numbers of single precision
    are to be made Python's own first (``row.tolist()``), else NumPy reckons in single precision.

    ``predict`` may add the products of a node in another order, so a row may go another way where
    it lies on a hyperplane to within the rounding errors of that sum, about its number of terms
    times 1e-16 of their absolute sum. Missing values (NaN) go to the right. However deep the tree
    is, its splits nest no deeper than the binary logarithm of the number of leaves.

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
        then a classifier fitted with ``probability="soft"``, or a forest; the code imports
        `math.exp`, and ``<name>_class`` returns the index of the class.

    Examples
    --------
    >>> from evotree import ObliqueTreeClassifier
    >>> model = ObliqueTreeClassifier("axis").fit([[0.0, 0.0], [2.0, 0.0]], ["no", "yes"])
    >>> print(export_python(model, feature_names=["length", "width"]), end="")
    def predict(x):
        # x holds 2 floats:
        # x[0] is 'length'
        if x[0] <= 1.0:
            return 'no'
        return 'yes'
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"name={name!r}: allowed is the name of a function in Python.")
    return _export(tree, name, feature_names, class_names, probability, _PYTHON)


def export_c(
    tree: Any,
    name: str = "predict",
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    probability: bool = False,
) -> str:
    """Return a tree as a C function that needs nothing, no header either, in UTF-8.

    The function takes one row, an array of doubles in the order of the features. Of a classifier it
    returns the index of the class, which ``<name>_classes[index]`` is the label of, as text in
    UTF-8; of a regressor it returns the number. Several outputs are written into a second array of
    doubles, ``void <name>(const double *x, double *y)``.

    C++ reads it as well. Rows on hyperplanes, missing values and depths are as for `export_python`.
    With ``-ffp-contract=off`` (gcc, clang) or ``/fp:precise`` (MSVC), C and Python agree to the
    last bit; compilers that may fuse a multiplication with an addition round otherwise.

    Parameters
    ----------
    tree, name, feature_names
        As for `export_python`.
    class_names : sequence, optional
        As for `export_python`; not with a NUL, which ends a string in C.
    probability : bool, default=False
        Whether the function writes what ``predict_proba`` returns into a second array of doubles,
        one for each class, and returns nothing. As for `export_python`; the code includes
        ``math.h``.

    Examples
    --------
    >>> from evotree import ObliqueTreeRegressor
    >>> model = ObliqueTreeRegressor("axis").fit([[0.0, 0.0], [2.0, 0.0]], [0.25, 4.0])
    >>> print(export_c(model, feature_names=["length", "width"]), end="")
    // Compile with -ffp-contract=off, so that every product and every sum is rounded.
    double predict(const double *x)
    {
        // x holds 2 doubles:
        // x[0] is 'length'
        if (x[0] <= 1.0) {
            return 0.25;
        }
        return 4.0;
    }
    """
    is_name = isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    if not is_name or re.match(r"_[A-Z_]", name) or _C_KEYWORD.fullmatch(name):
        raise ValueError(f"name={name!r}: allowed is the name of a function in C.")
    return _export(tree, name, feature_names, class_names, probability, _C)


def _export(
    tree: Any, name: str, features: Any, classes: Any, probability: bool, language: _Language
) -> str:
    """Return the code of a tree or of the vote of a forest."""
    members = named_trees(tree, features, classes)
    if len(members) > 1 or is_forest(tree):
        return _vote(members, name, probability, language)
    if members[0].scores is not None:
        return _by_scores(members[0], members[0].scores, name, probability, language)
    return (_probabilities if probability else _function)(members[0], name, language)


# ---- splits and returns --------------------------------------------------------------------------


def _function(
    named: NamedTree,
    name: str,
    language: _Language,
    outputs: Sequence[str] | None = None,
    noted: bool = True,
) -> str:
    """Return the function of a tree, or one that returns `outputs` by node."""
    head = [_C_ADVICE] if noted and language is _C else []
    kind = "double" if outputs is None else "int"
    if named.classes is not None and outputs is None:
        outputs = [repr(named.labels[c]) for c in named.winners]
        if language is _C:
            kind, outputs = "int", [str(c) for c in named.winners]
            head += _c_labels(named, name)
    notes = [f"    {language.note}{note}" for note in _notes([named], language) if noted]
    body = list(_body(named, language, outputs))
    if language is _PYTHON:
        notes += [f"    y = [0.0] * {len(named.targets)}"] if named.targets else []
        return "\n".join([f"def {name}(x):", *notes, *body]) + "\n"
    head.append(f"{kind} {name}(const double *x)")
    if named.targets:
        head[-1] = f"void {name}(const double *x, double *y)"
    if any(line.lstrip().startswith("s = ") for line in body):
        notes.append("    double s;")
    if not used_features([named]):
        notes.append("    (void)x;")
    return "\n".join([*head, "{", *notes, *body, "}"]) + "\n"


def _body(named: NamedTree, language: _Language, outputs: Sequence[str] | None) -> Iterator[str]:
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
            leaf = _leaf(named, k, language, room)
            yield from (f"{indent}{line}{language.end}" for line in leaf)


def _leaf(named: NamedTree, k: int, language: _Language, room: int) -> Iterator[str]:
    """Yield the statements that return the numbers of a leaf."""
    for j, output in enumerate(named.each):
        model = output.model(k)
        value = repr(model.intercept)
        if model.terms:
            sums = _sums(summed(output.terms(k), _product, [value]), room)
            yield from (f"s = {line}" for line in sums)
            value = language.bounded.format(low=repr(model.lowest), high=repr(model.highest))
        yield f"y[{j}] = {value}" if named.targets else f"return {value}"
    if named.targets:
        yield language.several


def _product(weight: float, j: int) -> str:
    """Return a term of a sum."""
    return f"x[{j}]" if weight == 1.0 else f"{weight!r} * x[{j}]"


def _sums(pieces: list[str], width: int) -> list[str]:
    """Return a sum in steps in the order of its pieces: parsers limit the length of expressions."""
    first, *others = fold(pieces, width)
    return [first, *(f"s {line}" for line in others)]


def _notes(members: Sequence[NamedTree], language: _Language) -> list[str]:
    """Return what a row is, and what each number of it that the trees read is."""
    named = members[0]
    about = [repr(feature) for feature in named.features]
    if named.columns is not None:
        about = [note for column in named.columns for note in _encoding(column)]
    return [
        *([ONE_WAY] if named.shares_rows else []),
        f"x holds {len(named.features)} {language.numbers}:",
        *(f"x[{j}] is {about[j]}" for j in used_features(members)),
        *(f"y[{j}] is {target!r}" for j, target in enumerate(named.targets)),
    ]


def _encoding(column: Column) -> list[str]:
    """Say of each feature of a column how it is made."""
    name = repr(column.name)
    if isinstance(column, NumericColumn):
        notes = [f"{name}, or {column.fill!r} where that is missing"]
        return [*notes, f"1 where {name} is missing; else 0"] if column.indicator else notes
    levels = ("missing" if level is None else repr(level) for level in column.levels)
    return [f"1 where {name} is {level}; else 0" for level in levels]


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
    escaped = (f"\\{chr(byte)}" if byte in b'"\\?' else chr(byte) for byte in data)
    pairs = zip(data, escaped, strict=True)
    return '"' + "".join(c if 32 <= byte <= 126 else f"\\{byte:03o}" for byte, c in pairs) + '"'


# ---- probabilities -------------------------------------------------------------------------------


def _probabilities(named: NamedTree, name: str, language: _Language) -> str:
    """Return a function for probabilities, and the one for classes that it calls."""
    if named.sides is None:
        fitted = 'a classifier that was fitted with probability="soft"'
        raise ValueError(f"probability=True: allowed for {fitted}.")
    tree, sides = named.tree, named.sides.validate(named.tree)
    leaves, n_classes = np.flatnonzero(tree.is_leaf).tolist(), tree.values.shape[1]
    # Raised is the class of the highest share: the predicted one, but for another objective.
    label, highest = f"{name}_class", tree.values.argmax(axis=1)
    winners = None if language is _C else [str(c) for c in named.winners]
    classes = _function(named, label, language, winners)
    if not (tree.labels == highest)[tree.is_leaf].all():
        label = f"{name}_highest"
        other = _function(named, label, language, [str(c) for c in highest], noted=False)
        classes += f"\nstatic {other}" if language is _C else f"\n\n{other}"
    note = f"    {language.note}n[k] is the probability of reaching node k, p[c] that of class c."
    reaching = [f"    {line}{language.end}" for line in _reaching(named, sides, language.right)]
    if language is _PYTHON:
        lines = ["from math import exp", "", "", classes, "", f"def {name}(x):"]
        lines += [f"    # {note}" for note in _notes([named], language)]
        lines += [note, f"    n = [0.0] * {len(tree)}", *reaching, "    leaves = ("]
        lines += [f"        ({k}, {sides.shares[k].tolist()!r})," for k in leaves]
        return (
            "\n".join(lines)
            + f"""
    )
    p = [0.0] * {n_classes}
    for k, shares in leaves:
        for c, share in enumerate(shares):
            p[c] += n[k] * share
    label = {label}(x)
    others = [{LEAD!r} + share for c, share in enumerate(p) if c != label]
    p[label] = max([p[label], *others])
    total = sum(p)
    return [share / total for share in p]
"""
        )
    lines = ["#include <math.h>", "", classes, f"void {name}(const double *x, double *p)", "{"]
    numbers = ", ".join(map(str, leaves))
    lines += [note, f"    static const int leaves[{len(leaves)}] = {{{numbers}}};"]
    lines += _c_table(sides.shares[leaves].tolist(), n_classes)
    lines += [f"    double n[{len(tree)}], s, total = 0.0;", f"    int c, i, label = {label}(x);"]
    return (
        "\n".join([*lines, *reaching])
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


def _by_scores(
    named: NamedTree, scores: NamedTree, name: str, probability: bool, language: _Language
) -> str:
    """Return the functions of the scores of classes, and of the class or the probabilities."""
    n_classes, of_scores = len(named.labels), f"{name}_scores"
    code = _function(scores, of_scores, language)
    if language is _PYTHON:
        said = f"{of_scores}(x)" if scores.targets else f"[0.0, {of_scores}(x)]"
        lines = [f"def {name}(x):", f"    y = {said}"]
        if probability:
            code = f"from math import exp\n\n\n{code}"
            lines += ["    p = [exp(score - max(y)) for score in y]", "    total = sum(p)"]
            lines.append("    return [share / total for share in p]")
        else:
            lines.append(f"    return {tuple(named.labels)!r}[y.index(max(y))]")
        return "\n\n".join([code, "\n".join(lines) + "\n"])
    call = f"{of_scores}(x, y)" if scores.targets else f"y[1] = {of_scores}(x)"
    head = (
        f"void {name}(const double *x, double *p)"
        if probability
        else f"int {name}(const double *x)"
    )
    best = f"""{{
    double y[{n_classes}] = {{0.0}}{", total = 0.0" if probability else ""};
    int c, best = 0;
    {call};
    for (c = 1; c < {n_classes}; c++) {{
        best = y[c] > y[best] ? c : best;
    }}
"""
    last = "    return best;\n}\n"
    if probability:
        last = f"""    for (c = 0; c < {n_classes}; c++) {{
        p[c] = exp(y[c] - y[best]);
        total += p[c];
    }}
    for (c = 0; c < {n_classes}; c++) {{
        p[c] /= total;
    }}
}}
"""
        code = f"#include <math.h>\n\n{code}"
    else:
        code += "\n" + "\n".join(_c_labels(named, name)).rstrip("\n") + "\n"
    return f"{code}\n{head}\n{best}{last}"


def _reaching(named: NamedTree, sides: SoftSides, right: str) -> Iterator[str]:
    """Yield the assignments that find how probably nodes are reached."""
    tree = named.tree
    yield "n[0] = 1.0"
    for k in np.flatnonzero(~tree.is_leaf).tolist():
        sums = _sums(summed(named.terms(k), _product) or ["0.0"], LINE_WIDTH - 16)
        yield from (f"s = {line}" for line in sums)
        bound, slope = float(tree.thresholds[k]), float(sides.slopes[k])
        yield f"s = {slope!r} * (s - {bound!r}) + {float(sides.intercepts[k])!r}"
        yield f"n[{tree.right(k)}] = n[{k}] * ({right})"
        yield f"n[{k + 1}] = n[{k}] - n[{tree.right(k)}]"


def _c_table(rows: Sequence[Sequence[float]], n_classes: int) -> list[str]:
    """Return the lines of a table of class shares in C."""
    lines = [f"        {{{', '.join(map(repr, row))}}}," for row in rows]
    return [f"    static const double shares[{len(rows)}][{n_classes}] = {{", *lines, "    };"]


# ---- the vote of a forest ------------------------------------------------------------------------


def _vote(members: Sequence[NamedTree], name: str, probability: bool, language: _Language) -> str:
    """Return the functions of the trees of a forest, and the one of their vote."""
    if probability and members[0].classes is None:
        raise ValueError("probability=True: allowed for a forest of classes.")
    return (_c_vote if language is _C else _python_vote)(members, name, probability)


def _functions(
    members: Sequence[NamedTree], name: str, language: _Language
) -> tuple[list[str], list[str], list[list[float]]]:
    """Return the names and the functions of trees, and the class shares of all their leaves."""
    shares: list[list[float]] = []
    names, codes = [f"{name}_tree_{at}" for at in range(len(members))], []
    for member, of_tree in zip(members, names, strict=True):
        rows = None
        if member.classes is not None:
            rows = [str(row) for row in np.cumsum(member.tree.is_leaf) - 1 + len(shares)]
            shares += member.tree.values[member.tree.is_leaf].tolist()
        codes.append(_function(member, of_tree, language, rows, noted=False))
    return names, codes, shares


def _python_vote(members: Sequence[NamedTree], name: str, probability: bool) -> str:
    """Return the code of a forest in Python."""
    names, codes, shares = _functions(members, name, _PYTHON)
    lines = [f"def {name}(x):", *(f"    # {note}" for note in _notes(members, _PYTHON))]
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
    return "\n\n".join([*codes, "\n".join(lines) + total])


def _c_vote(members: Sequence[NamedTree], name: str, probability: bool) -> str:
    """Return the code of a forest in C."""
    names, codes, shares = _functions(members, name, _C)
    n_trees, n_classes = len(names), len(members[0].labels)
    lines = [_C_ADVICE, *(f"static {code}" for code in codes)]
    if n_classes and not probability:
        lines += _c_labels(members[0], name)
    kind = "void" if probability else "int" if n_classes else "double"
    of_tree = "int" if n_classes else "double"
    lines += [f"{kind} {name}(const double *x{', double *p' if probability else ''})", "{"]
    lines += [f"    // {note}" for note in _notes(members, _C)]
    lines.append(f"    static {of_tree} (*const trees[{n_trees}])(const double *) = {{")
    lines += [*(f"        {tree}," for tree in names), "    };"]
    if not n_classes:
        total = f"""
    double s = 0.0;
    int t;
    for (t = 0; t < {n_trees}; t++) {{
        s += trees[t](x);
    }}
    return s / {n_trees}.0;
}}
"""
    else:
        lines += _c_table(shares, n_classes)
        lines += [] if probability else [f"    double p[{n_classes}];"]
        lines.append(f"    int c, t{'' if probability else ', best = 0'};")
        best = "" if probability else "\n        best = p[c] > p[best] ? c : best;"
        returned = "" if probability else "    return best;\n"
        total = f"""
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
    return "\n".join(lines) + total

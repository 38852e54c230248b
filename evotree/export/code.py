"""A tree, or the vote of a forest, as code that runs on its own: in Python, in C, or in SQL.

In Python and C a tree is splits and returns, without a loop, a table or a library; probabilities
take exponential functions. Sums are in the order of the features, and numbers read back as the same
ones. Of a forest each tree is a function, which returns the row of its leaf in a table of class
shares; the last function adds what the trees say in their order, as `predict` does, and divides by
their number.
"""

import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from string import Template
from types import SimpleNamespace
from typing import Any

import numpy as np

from evotree.fitted import Fitted, clauses, is_forest, members_of, used_features
from evotree.schema import (
    LOG,
    TEXTS,
    TRUTH,
    Bend,
    CategoricalColumn,
    Column,
    NumericColumn,
    Schema,
)
from evotree.tables.columns import value_of
from evotree.tree import LEAD, SoftSides
from evotree.words import LEAST_WIDTH, LINE_WIDTH, fold, hung, summed

_C_ADVICE = (
    "// Compile with -ffp-contract=off, so that every product and every sum is rounded."
)
# Of C11; those with an underscore and a capital letter are no names either.
_C_KEYWORD = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|"
    "inline|int|long|register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|"
    "union|unsigned|void|volatile|while"
)


# How a language writes a function; parts with a dollar are templates of `_answer`.
_PYTHON = SimpleNamespace(
    numbers="floats",
    note="# ",
    end="",  # of a statement
    when="if {}:",  # a split, its opposite, and the end of its branch
    unless="if not {}:",
    close="",
    # The sum of a leaf within its bounds; a NaN, of terms that overflow to both sides, is `high`.
    bounded="{low} if s < {low} else s if s <= {high} else {high}",
    several="return y",  # how a function with several outputs ends
    # The probability of the right side, by its log-odds; exp overflows above 700.
    right="1.0 / (1.0 + exp(-s)) if s > -700.0 else 0.0",
    begin="",  # of all code
    math="from math import {}\n\n\n",  # makes exp and log known
    local="",  # begins a function for this file alone
    between="\n\n",  # of two parts
    hinge="max({0}, 0.0)",  # a number, or 0 where it is less; NaN stays so
    logarithm="log(max({0}, {1}))",  # of a number that is no less than another one
    # Refuses rows of another length, which C does not know.
    check="""if len(x) != {0}:
    raise ValueError(f"x has {{len(x)}} numbers: allowed are {0}.")""",
    array="{} = [0.0] * {}",  # makes an array
    score="score = s",  # keeps a sum
    row="({},),",  # of a table of shares
    # What makes an array ``p``: the shares of trees, or of classes of which that of the leaf is
    # lifted above the others, or exponents of scores; shares that add up to 1; and the largest.
    vote="""shares = (
$table
)
for tree in ($trees,):
    for c, share in enumerate(shares[tree(x)]):
        p[c] += share
p = [share / $n_trees.0 for share in p]""",
    raised="""highest = $of_leaf(x)
others = [$lead + share for c, share in enumerate(p) if c != highest]
p[highest] = max([p[highest], *others])""",
    exponents="p = [exp(score - max(p)) for score in p]",
    normal="""total = sum(p)
p = [share / total for share in p]""",
    largest="return $labels[p.index(max(p))]",
)
_C = SimpleNamespace(
    numbers="doubles",
    note="// ",
    end=";",
    when="if ({}) {{",
    unless="if (!({})) {{",
    close="}",
    bounded="s < {low} ? {low} : s <= {high} ? s : {high}",
    several="return",
    right="1.0 / (1.0 + exp(-s))",
    begin=f"{_C_ADVICE}\n",
    math="#include <math.h>\n\n",
    local="static ",
    between="\n",
    hinge="({0} <= 0.0 ? 0.0 : {0})",
    logarithm="log({0} <= {1} ? {1} : {0})",
    check="",
    array="double {}[{}]",
    score="const double score = s",
    row="{{{}}},",
    vote="""static const double shares[][$n] = {
$table
};
static int (*const trees[])(const double *) = {$trees};
for (int c = 0; c < $n; c++) {
    p[c] = 0.0;
}
for (int t = 0; t < $n_trees; t++) {
    const double *row = shares[trees[t](x)];
    for (int c = 0; c < $n; c++) {
        p[c] += row[c];
    }
}
for (int c = 0; c < $n; c++) {
    p[c] /= $n_trees.0;
}""",
    raised="""int highest = $of_leaf(x);
s = p[highest];
for (int c = 0; c < $n; c++) {
    if (c != highest && p[c] + $lead > s) {
        s = p[c] + $lead;
    }
}
p[highest] = s;""",
    exponents="""double most = p[0];
for (int c = 1; c < $n; c++) {
    most = p[c] > most ? p[c] : most;
}
for (int c = 0; c < $n; c++) {
    p[c] = exp(p[c] - most);
}""",
    normal="""double total = 0.0;
for (int c = 0; c < $n; c++) {
    total += p[c];
}
for (int c = 0; c < $n; c++) {
    p[c] /= total;
}""",
    largest="""int best = 0;
for (int c = 1; c < $n; c++) {
    best = p[c] > p[best] ? c : best;
}
return best;""",
)


def export_python(
    tree: Any,
    name: str = "predict",
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    probability: bool = False,
) -> str:
    """Return a tree as a Python function that needs nothing, no import either, in UTF-8.

    Logarithms, log-linear leaves and probabilities alone import functions of `math`.

    The function takes one row, a sequence of floats in the order of the features (those that
    ``encode`` of an estimator returns, less bends such as ``age above 52``, which it computes
    itself, logarithms by `math.log`; comments say how they are made), and returns what
    ``predict`` does: a label, a number, or a list of several outputs. Numbers of single precision
    are to be made Python's own first (``row.tolist()``), else NumPy reckons in single precision.
    A row of another length is a ValueError.

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
        then a classifier fitted with ``probability="soft"`` or with logistic leaves, or a forest.

    Examples
    --------
    >>> from evotree import ObliqueTreeClassifier
    >>> model = ObliqueTreeClassifier("axis").fit([[0.0, 0.0], [2.0, 0.0]], ["no", "yes"])
    >>> print(export_python(model, feature_names=["length", "width"]), end="")
    def predict(x):
        # x holds 2 floats:
        # x[0] is 'length'
        if len(x) != 2:
            raise ValueError(f"x has {len(x)} numbers: allowed are 2.")
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

    The function takes one row, an array of doubles as for `export_python`; of logarithms, and of
    log-linear leaves, the code includes ``math.h``. Of a classifier it returns the index of the
    class, which ``<name>_classes[index]`` is the label of, as text in UTF-8; of a regressor it
    returns the number. Several outputs are written into a second array of doubles,
    ``void <name>(const double *x, double *y)``.

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
    tree: Any,
    name: str,
    features: Any,
    classes: Any,
    probability: bool,
    language: SimpleNamespace,
) -> str:
    """Return the code of a tree or of the vote of a forest."""
    members = members_of(tree, features, classes)
    fitted = members[0]
    if len(members) > 1 or is_forest(tree):
        parts = _vote(members, name, probability, language)
    elif fitted.scores is not None:
        parts = _by_scores(fitted, fitted.scores, name, probability, language)
    elif probability:
        parts = _mixed(fitted, name, language)
    else:
        parts = [_of_leaves(fitted, name, language)]
    if language is _C and fitted.classes is not None and not probability:
        parts.insert(0, _c_labels(fitted, name))
    code = language.between.join(parts)
    # What the notes say is not run.
    run = re.sub(rf"^ *{language.note}.*", "", code, flags=re.M)
    used = sorted(set(re.findall(r"\b(exp|log)\(", run)))
    math = language.math.format(", ".join(used)) if used else ""
    return language.begin + math + code


def _written(
    language: SimpleNamespace,
    kind: str,
    name: str,
    head: Iterable[str],
    body: Iterable[str],
) -> str:
    """Return a function; in C of a kind, such as ``void y``, which writes into an array ``y``."""
    begin, end = [f"def {name}(x):"], ""
    if language is _C:
        returned, _, array = kind.partition(" ")
        outputs = f", double *{array}" if array else ""
        begin, end = [f"{returned} {name}(const double *x{outputs})", "{"], "}\n"
    return "\n".join([*begin, *(f"    {line}" for line in (*head, *body)), end])


# ---- splits and returns --------------------------------------------------------------------------


def _of_leaves(fitted: Fitted, name: str, language: SimpleNamespace) -> str:
    """Return the function of what leaves predict, in C the position of a label."""
    outputs = None
    if fitted.classes is not None:
        labels = range(len(fitted.labels)) if language is _C else fitted.labels
        outputs = [repr(labels[c]) for c in fitted.winners]
    head = _head([fitted], language)
    return _function(fitted, name, language, head, outputs)


def _function(
    fitted: Fitted,
    name: str,
    language: SimpleNamespace,
    head: Iterable[str] = (),
    outputs: Sequence[str] | None = None,
) -> str:
    """Return the function of the numbers of a tree, or one that returns `outputs` by node."""
    body = list(_body(fitted, language, outputs))
    kind = "void y" if fitted.targets else "double" if outputs is None else "int"
    if language is _PYTHON and fitted.targets:
        body.insert(0, f"y = [0.0] * {len(fitted.targets)}")
    if language is _C:
        is_summed = any(line.lstrip().startswith("s = ") for line in body)
        is_read = bool(used_features([fitted]))
        body[:0] = ["double s;"] * is_summed + ["(void)x;"] * (not is_read)
    return _written(language, kind, name, head, body)


def _body(
    fitted: Fitted, language: SimpleNamespace, outputs: Sequence[str] | None
) -> Iterator[str]:
    """Yield the splits and returns of a tree: of `outputs` by node, or else of its numbers."""
    open_splits = 0
    product = _products(fitted, language)
    if fitted.added is not None:  # all leaves add to it
        model = fitted.score_of_targets.model(0)
        terms = fitted.score_of_targets.terms(0)
        sums = _sums(summed(terms, product, [repr(model.intercept)]), LINE_WIDTH - 14)
        for line in (*(f"s = {one}" for one in sums), language.score):
            yield line + language.end
    for k, level, left_first in clauses(fitted.tree):
        closing = range(open_splits - 1, level - 1, -1) if language.close else ()
        yield from ("    " * depth + language.close for depth in closing)
        indent, open_splits = "    " * level, level + fitted.is_split(k)
        room = max(LINE_WIDTH - len(indent) - 14, LEAST_WIDTH)
        if fitted.is_split(k):
            bound = f" <= {float(fitted.tree.thresholds[k])!r}"
            first, *sums = _sums(
                summed(fitted.terms(k), product) or ["0.0"], room - len(bound)
            )
            split = language.when if left_first else language.unless
            steps = [first, *sums] if sums else []
            yield from (f"{indent}s = {line}{language.end}" for line in steps)
            yield indent + split.format(("s" if sums else first) + bound)
        elif outputs is not None:
            yield f"{indent}return {outputs[k]}{language.end}"
        else:
            yield from (
                f"{indent}{line}{language.end}"
                for line in _leaf(fitted, k, language, product, room)
            )


def _leaf(
    fitted: Fitted,
    k: int,
    language: SimpleNamespace,
    product: Callable[[float, int], str],
    room: int,
) -> Iterator[str]:
    """Yield the statements that return the numbers of a leaf."""
    for j, output in enumerate(fitted.each):
        model = output.model(k)
        value = repr(model.intercept)
        if model.terms:
            before, terms = [value], output.terms(k)
            if fitted.added is not None:
                own = fitted.added.model(k).intercept
                sign = "-" if own < 0.0 else "+"
                before, terms = ["score", f"{sign} {abs(own)!r}"], fitted.added.terms(k)
            sums = _sums(summed(terms, product, before), room)
            yield from (f"s = {line}" for line in sums)
            value = language.bounded.format(
                low=repr(model.lowest), high=repr(model.highest)
            )
            value = f"exp({value})" if model.is_log else value
        yield f"y[{j}] = {value}" if fitted.targets else f"return {value}"
    if fitted.targets:
        yield language.several


def _products(fitted: Fitted, language: SimpleNamespace) -> Callable[[float, int], str]:
    """Return how terms of sums are written."""
    place = {j: f"x[{at}]" for at, j in enumerate(fitted.schema.read_by_code)}

    def operand(j: int) -> str:
        if j in place:
            return place[j]
        base, bend = fitted.schema.bends[j]
        knot = repr(bend.knot)
        if bend.kind == LOG:
            return language.logarithm.format(place[base], knot)
        return language.hinge.format(" - ".join((place[base], knot)[:: bend.sign]))

    def product(weight: float, j: int) -> str:
        return operand(j) if weight == 1.0 else f"{weight!r} * {operand(j)}"

    return product


def _sums(pieces: list[str], width: int) -> list[str]:
    """Return a sum in steps in the order of its pieces: parsers limit the length of expressions."""
    first, *others = fold(pieces, width)
    return [first, *(f"s {line}" for line in others)]


def _head(members: Sequence[Fitted], language: SimpleNamespace) -> list[str]:
    """Return how a function begins: what its row is, what trees read of it, and a check of it."""
    fitted = members[0]
    about = (
        [note for column in fitted.schema for note in _notes_of_column(column)]
        if fitted.schema.is_table
        else list(map(repr, fitted.features))
    )
    read = {fitted.schema.bends.get(j, (j,))[0] for j in used_features(members)}
    used = [at for at, j in enumerate(fitted.schema.read_by_code) if j in read]
    n = len(fitted.schema.read_by_code)
    notes = [
        f"x holds {n} {language.numbers}:",
        *(f"x[{at}] is {about[at]}" for at in used),
        *(f"y[{j}] is {target!r}" for j, target in enumerate(fitted.targets)),
    ]
    check = language.check.format(n).splitlines()
    return [*(f"{language.note}{note}" for note in notes), *check]


def _notes_of_column(column: Column) -> list[str]:
    """Say of each feature of a column how it is made."""
    name = repr(column.name)
    if isinstance(column, NumericColumn):
        notes = [f"{name}, or {column.fill!r} where that is missing"]
        missing = f"1 where {name} is missing; else 0"
        return [*notes, missing] if column.indicator else notes
    levels = ("missing" if level is None else repr(level) for level in column.levels)
    return [f"1 where {name} is {level}; else 0" for level in levels]


def _c_labels(fitted: Fitted, name: str) -> str:
    """Return the array of class labels, ``<name>_classes``."""
    labels = [
        f"    {_c_string(str(label), at)}," for at, label in enumerate(fitted.labels)
    ]
    head = f"const char *const {name}_classes[{len(labels)}] = {{"
    return "\n".join([head, *labels, "};\n"])


def _c_string(text: str, at: int) -> str:
    r"""Return text as a string of C: what is not printable ASCII as bytes of UTF-8, in octal."""
    if re.search("[\0\ud800-\udfff]", text):
        raise ValueError(
            f"class_names[{at}] is {text!r}: a string in C holds no NUL, and nothing that cannot "
            "be written in UTF-8."
        )
    # A question mark might begin a trigraph.
    escaped = re.sub(rb'["\\?]', rb"\\\g<0>", text.encode("utf-8"))
    signs = (chr(c) if 32 <= c <= 126 else f"\\{c:03o}" for c in escaped)
    return f'"{"".join(signs)}"'


# ---- sums of shares and scores -------------------------------------------------------------------


def _answer(
    fitted: Fitted,
    name: str,
    head: Iterable[str],
    steps: Iterable[str],
    probability: bool,
    language: SimpleNamespace,
    **names: Any,
) -> str:
    """Return the function of a class or of probabilities, by steps that make an array ``p``."""
    n = len(fitted.labels)
    is_written = probability and language is _C  # into the array of the caller
    ends = [] if is_written else ["return p"] if probability else [language.largest]
    array = language.array.format("p", n) + language.end
    text = Template("\n".join([*([] if is_written else [array]), *steps, *ends]))
    body = text.substitute(names, n=n, labels=tuple(fitted.labels), lead=LEAD)
    kind = "void p" if probability else "int"
    return _written(language, kind, name, head, body.splitlines())


def _mixed(fitted: Fitted, name: str, language: SimpleNamespace) -> list[str]:
    """Return a function for the probabilities of soft sides, and the one for leaves it calls."""
    if fitted.sides is None:
        raise ValueError(
            "probability=True: allowed for a classifier that was fitted with "
            'probability="soft".'
        )
    # Raised is the most frequent class: the predicted one, but for another objective.
    majority = list(map(str, fitted.tree.majority))
    of_leaf = f"{name}_leaf"
    head = [
        *_head([fitted], language),
        f"{language.note}n[k] is the probability of reaching node k, p[c] that of class c.",
    ]
    lines = [
        language.array.format("n", len(fitted.tree)),
        *(["double s"] if language is _C else []),
        *_reaching(fitted, fitted.sides.validate(fitted.tree), language),
    ]
    steps = [f"{line}{language.end}" for line in lines]
    return [
        language.local + _function(fitted, of_leaf, language, outputs=majority),
        _answer(
            fitted,
            name,
            head,
            [*steps, language.raised, language.normal],
            True,
            language,
            of_leaf=of_leaf,
        ),
    ]


def _reaching(
    fitted: Fitted, sides: SoftSides, language: SimpleNamespace
) -> Iterator[str]:
    """Yield the assignments that find how probably nodes are reached, and so the classes."""
    tree = fitted.tree
    width = LINE_WIDTH - 16
    product = _products(fitted, language)
    yield "n[0] = 1.0"
    for k in np.flatnonzero(~tree.is_leaf).tolist():
        sums = _sums(summed(fitted.terms(k), product) or ["0.0"], width)
        yield from (f"s = {line}" for line in sums)
        bound, slope = float(tree.thresholds[k]), float(sides.slopes[k])
        yield f"s = {slope!r} * (s - {bound!r}) + {float(sides.intercepts[k])!r}"
        yield f"n[{tree.right(k)}] = n[{k}] * ({language.right})"
        yield f"n[{k + 1}] = n[{k}] - n[{tree.right(k)}]"
    for c, shares in enumerate(sides.shares.T.tolist()):
        leaves = [(shares[k], k) for k in np.flatnonzero(tree.is_leaf).tolist()]
        sums = _sums(summed(leaves, lambda share, k: f"{share!r} * n[{k}]"), width)
        yield from (f"s = {line}" for line in sums)
        yield f"p[{c}] = s"


def _by_scores(
    fitted: Fitted,
    scores: Fitted,
    name: str,
    probability: bool,
    language: SimpleNamespace,
) -> list[str]:
    """Return the functions of the scores of classes, and of the class or the probabilities."""
    of_scores = f"{name}_scores"
    steps = [f"p = {of_scores}(x)" if scores.targets else f"p[1] = {of_scores}(x)"]
    if language is _C:
        steps = [f"p[0] = 0.0;\np[1] = {of_scores}(x);"]
        if scores.targets:
            steps = [f"{of_scores}(x, p);"]
    if probability:
        steps += [language.exponents, language.normal]
    return [
        _function(scores, of_scores, language, _head([scores], language)),
        _answer(fitted, name, [], steps, probability, language),
    ]


def _vote(
    members: Sequence[Fitted], name: str, probability: bool, language: SimpleNamespace
) -> list[str]:
    """Return the functions of the trees of a forest, and the one of their vote."""
    fitted = members[0]
    if probability and not fitted.labels:
        raise ValueError("probability=True: allowed for a forest of classes.")
    names = [f"{name}_tree_{at}" for at in range(len(members))]
    head = _head(members, language)
    parts: list[str] = []
    shares: list[
        list[float]
    ] = []  # of the leaves of all trees, whose places trees of classes say
    for member, of_tree in zip(members, names, strict=True):
        rows = list(map(str, np.cumsum(member.tree.is_leaf) - 1 + len(shares)))
        outputs = rows if fitted.labels else None
        parts.append(
            language.local + _function(member, of_tree, language, outputs=outputs)
        )
        shares += member.tree.values[member.tree.is_leaf].tolist()
    if not fitted.labels:
        lines = [
            "double s = 0.0" if language is _C else "s = 0.0",
            *(f"s += {of_tree}(x)" for of_tree in names),
            f"return s / {len(names)}.0",
        ]
        body = [f"{line}{language.end}" for line in lines]
        return [*parts, _written(language, "double", name, head, body)]
    table = (f"    {language.row.format(', '.join(map(repr, one)))}" for one in shares)
    vote = _answer(
        fitted,
        name,
        head,
        [language.vote],
        probability,
        language,
        n_trees=len(names),
        trees=", ".join(names),
        table="\n".join(table),
    )
    return [*parts, vote]


# ---- SQL -----------------------------------------------------------------------------------------

# The expression of a tree is one CASE whose branches are read from top to bottom, with no CASE
# inside another but those that encode columns, bound linear models and raise a class: SQLite's
# parser takes about twenty of those, SQL Server ten. That of a forest is a subquery, in which each
# tree is a row of a table; so is that of soft sides, whose tables are the sides of all splits, the
# shares that these mix, and the shares where the class of the leaf is raised.

SQL_NAME = '"'
_PREDICTION = "prediction"


def export_sql(
    tree: Any,
    table: str | Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    probability: bool = False,
    statement: bool = False,
) -> str:
    """Return a tree as an expression over the columns of a table, or as a whole statement.

    It goes where SQL takes an expression: ``SELECT CASE ... END AS prediction FROM flowers``. That
    of an estimator reads the columns that it was fitted to and encodes them itself, where missing
    is NULL, or NaN in a number, not an empty text; categories are compared as text. That of a tree,
    or with names that are given, reads a column for each feature, and has the prediction NULL for a
    row in which one that the tree reads is NULL. Numbers may be texts that SQLite reads as numbers.

    Written in standard SQL and tested with SQLite, which takes sums of up to 990 terms or so. Names
    are in double quotation marks, numbers have an exponent, which makes them floating-point ones.
    Logarithms are those of ``LN``.
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
    table : str or sequence of str, optional
        Name of the table, to be written before each column, or those of its schema and of itself,
        such as ``("sales", "orders")``. Without it SQLite takes the name of a
        column that does not exist for a text, and says nothing.
    feature_names : sequence of str, optional
        Names of columns that hold the features, one for each, all different; by default the columns
        of the estimator are encoded, and those of a tree are ``x0``, ``x1``, ...
    class_names : sequence, optional
        As for `export_python`.
    probability : bool, default=False
        Whether the probabilities of `predict_proba` are returned, a column for each class by its
        label; soft sides and scores need ``EXP``.
    statement : bool, default=False
        Whether a whole statement is returned, ``SELECT *, ... AS "prediction" FROM "table"``, with
        the prediction and, if asked for, the probabilities; it needs `table`.

    Returns
    -------
    str
        An expression, on several lines; of several outputs, and probabilities, one for each, named
        by ``AS`` and parted by commas, a list of columns for ``SELECT``.

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
    if statement and table is None:
        raise ValueError("statement=True: table=None; allowed is the name of a table.")
    members = members_of(tree, feature_names, class_names)
    fitted = members[0]
    if probability and not fitted.labels:
        raise ValueError("probability=True: allowed for classes.")
    is_vote = len(members) > 1 or is_forest(tree)
    operands = _sql_operands(fitted.schema, table)
    columns: list[tuple[str, str]] = []
    if statement or not probability:
        names = fitted.targets or [_PREDICTION]
        columns += zip(names, _sql_predictions(members, operands, is_vote), strict=True)
    if probability:
        shares = _sql_probabilities(members, operands, is_vote)
        columns += zip(map(str, fitted.labels), shares, strict=True)
    filled = [(name, _sql_of_row(members, operands, one)) for name, one in columns]
    if not statement and not probability and not fitted.targets:
        return f"{filled[0][1]}\n"
    listed = ",\n".join(
        f"{one} AS {_sql_quoted(name, SQL_NAME)}" for name, one in filled
    )
    if statement:
        listed = f"SELECT *,\n{listed}\nFROM {_sql_column(table)};"
    return f"{listed}\n"


def _sql_predictions(
    members: Sequence[Fitted], operands: Sequence[str], is_vote: bool
) -> list[str]:
    """Return an expression of what is predicted, of several outputs one for each."""
    fitted = members[0]
    if fitted.classes is not None and (is_vote or fitted.scores is not None):
        names, tables, last = _sql_tables(members, operands)
        label = _sql_largest(names, list(map(_sql_literal, fitted.labels)))
        return [f"({tables}\nSELECT {label} FROM {last})"]
    if is_vote:
        numbers = ",\n".join(f"({_sql_cases(one, operands)})" for one in members)
        trees = f"WITH trees (prediction) AS (VALUES\n{numbers}\n)"
        return [f"({trees}\nSELECT AVG(prediction) FROM trees)"]
    return [_sql_cases(one, operands) for one in fitted.each]


def _sql_probabilities(
    members: Sequence[Fitted], operands: Sequence[str], is_vote: bool
) -> list[str]:
    """Return an expression of the probability of each class."""
    fitted = members[0]
    if not is_vote and fitted.scores is None and fitted.sides is None:
        said = [list(map(_sql_number, one)) for one in fitted.tree.values.T]
        return [_sql_cases(fitted, operands, one.__getitem__) for one in said]
    names, tables, last = _sql_tables(members, operands)
    # Of the other tables the columns are shares, which add up to the number of trees or so.
    shares = [f"{one} / ({' + '.join(names)})" for one in names]
    if last == "scores":
        odds = [[f"EXP({other} - {one})" for other in names] for one in names]
        shares = [f"1.0e0 / ({' + '.join(one)})" for one in odds]
    return [f"({tables}\nSELECT {one} FROM {last})" for one in shares]


def _sql_tables(
    members: Sequence[Fitted], operands: Sequence[str]
) -> tuple[list[str], str, str]:
    """Return columns by class, the tables that they are of, and the name of the last of these.

    They are the scores of a tree on scores, the shares that soft sides mix, else the sums of the
    shares of a forest.
    """
    fitted = members[0]
    columns = [f"p{c}" for c in range(len(fitted.labels))]
    listed = ", ".join(columns)
    if fitted.scores is not None:
        # Of two classes one score is 0.
        cases = [] if fitted.scores.targets else ["0.0e0"]
        cases += [_sql_cases(one, operands) for one in fitted.scores.each]
        values = ",\n".join(cases)
        return columns, f"WITH scores ({listed}) AS (VALUES (\n{values}\n))", "scores"
    if fitted.sides is not None:
        return columns, _sql_mixed(fitted, fitted.sides, operands, columns), "raised"
    shares = ",\n".join(
        f"    ({at}, {k}, {', '.join(map(_sql_number, one.tree.values[k]))})"
        for at, one in enumerate(members)
        for k in np.flatnonzero(one.tree.is_leaf).tolist()
    )
    leaves = ",\n".join(
        f"({at}, {_sql_cases(one, operands, str)})" for at, one in enumerate(members)
    )
    tables = f"""WITH shares (tree, leaf, {listed}) AS (VALUES
{shares}
),
trees (tree, leaf) AS (VALUES
{leaves}
),
vote ({listed}) AS (
    SELECT {", ".join(f"SUM({p})" for p in columns)}
    FROM trees JOIN shares ON shares.tree = trees.tree AND shares.leaf = trees.leaf
)"""
    return columns, tables, "vote"


def _sql_mixed(
    fitted: Fitted, sides: SoftSides, operands: Sequence[str], columns: Sequence[str]
) -> str:
    """Return tables of the shares that soft sides mix, and where that of class ``c`` is raised.

    ``c`` is the most frequent class of the leaf that a row reaches.
    """
    tree, product = fitted.tree, _sql_product(operands)
    made: dict[str, str] = {}  # the probability of each right side, and the class
    reached = {0: ""}  # the factors of the probability of reaching a node
    for k in np.flatnonzero(~tree.is_leaf).tolist():
        total = " ".join(summed(fitted.terms(k), product) or ["0.0e0"])
        bound, slope, start = map(
            _sql_number, (tree.thresholds[k], sides.slopes[k], sides.intercepts[k])
        )
        odds = f"{slope} * ({total} - ({bound})) + {start}"
        made[f"r{k}"] = f"1.0e0 / (1.0e0 + EXP(-({odds})))"
        reached[tree.left(k)] = f"{reached[k]} * (1.0e0 - r{k})"
        reached[tree.right(k)] = f"{reached[k]} * r{k}"
    made["c"] = _sql_cases(fitted, operands, lambda k: str(tree.majority[k]))
    leaves = np.flatnonzero(tree.is_leaf).tolist()
    mixed = ",\n".join(
        " + ".join(f"{_sql_number(shares[k])}{reached[k]}" for k in leaves)
        for shares in sides.shares.T
    )
    raised = []
    for c, own in enumerate(columns):
        least = [f"{one} + {_sql_number(LEAD)}" for one in columns if one != own]
        most = _sql_largest([own, *least], [own, *least])
        raised.append(f"CASE WHEN c = {c} THEN {most} ELSE {own} END")
    listed = ", ".join(columns)
    of_row = ",\n".join(made.values())
    of_class = ",\n".join(raised)
    return f"""WITH sides ({", ".join(made)}) AS (VALUES (
{of_row}
)),
shares ({listed}, c) AS (SELECT
{mixed},
c
FROM sides),
raised ({listed}) AS (SELECT
{of_class}
FROM shares)"""


def _sql_of_row(
    members: Sequence[Fitted], operands: Sequence[str], expression: str
) -> str:
    """Return an expression that is NULL where a feature that is read is NULL; tables fill it."""
    used = [] if members[0].schema.is_table else used_features(members)
    if not used:
        return expression
    first, *others = (f"{operands[j]} IS NULL" for j in used)
    null = _sql_branch([[first, *(f"OR {other}" for other in others)]], "NULL")
    if expression.startswith("CASE\n"):
        return "CASE\n" + null + expression.removeprefix("CASE\n")
    return f"CASE\n{null}    ELSE {expression}\nEND"


def _sql_quoted(text: str, sign: str = "'") -> str:
    """Return a text, or with the sign `SQL_NAME` a name, in quotation marks."""
    if "\0" in text:
        raise ValueError(f"the name {text!r} has a NUL, which SQL does not allow.")
    return f"{sign}{text.replace(sign, 2 * sign)}{sign}"


def _sql_number(value: float) -> str:
    """Return a number with an exponent: without one it would be a decimal in standard SQL."""
    text = repr(float(value))
    return text if "e" in text else text + "e0"


def _sql_largest(values: Sequence[str], said: Sequence[str]) -> str:
    """Return what is said of the largest of some values, the first of equals."""
    *others, last = said
    branches = [
        f"    WHEN {' AND '.join(f'{value} >= {other}' for other in values[at + 1 :])} THEN {one}\n"
        for at, (value, one) in enumerate(zip(values, others, strict=False))
    ]
    return f"CASE\n{''.join(branches)}    ELSE {last}\nEND" if branches else last


def _sql_column(table: str | Sequence[str] | None, *names: str) -> str:
    """Return a column of a table, or its table; that of a schema has several names."""
    place = (table,) if isinstance(table, str) else tuple(table or ())
    return ".".join(_sql_quoted(one, SQL_NAME) for one in (*place, *names))


def _sql_operands(schema: Schema, table: str | Sequence[str] | None) -> list[str]:
    """Return an expression for each feature."""
    names = schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"feature_names has {twice!r} twice: columns have names of their own."
        )
    operands = [_sql_column(table, name) for name in names]
    if not schema.is_table:
        return operands
    return sum(map(_sql_encoded, schema, operands), [])


def _sql_cases(
    fitted: Fitted,
    operands: Sequence[str],
    output: Callable[[int], str] | None = None,
) -> str:
    """Return the CASE of a tree; the output itself of one leaf.

    A branch names only the splits that lead to smaller subtrees: whoever is in a smaller one has
    been taken by a branch above. So it has at most as many splits as the binary logarithm of the
    number of leaves.
    """
    branches: list[str] = []
    splits: list[list[str]] = []
    said = ""
    for k, level, left_first in clauses(fitted.tree):
        del splits[level:]
        if fitted.is_split(k):
            pieces = summed(fitted.terms(k), _sql_product(operands)) or ["0.0e0"]
            pieces[-1] += " <= " if left_first else " > "
            pieces[-1] += _sql_number(fitted.tree.thresholds[k])
            splits.append(pieces)
            continue
        said = _sql_predicted(fitted, k, operands) if output is None else output(k)
        if splits:
            branches.append(_sql_branch(splits, said))
    # The leaf outside of all splits comes last.
    return f"CASE\n{''.join(branches)}    ELSE {said}\nEND" if branches else said


def _sql_product(operands: Sequence[str]) -> Callable[[float, int], str]:
    """Return how terms are written; a factor of 1 makes SQLite read a column's texts as numbers."""
    return lambda weight, j: (
        operands[j]
        if weight == 1.0 and operands[j].endswith("THEN 1.0e0 ELSE 0.0e0 END")
        else f"{_sql_number(weight)} * {operands[j]}"
    )


def _sql_predicted(fitted: Fitted, k: int, operands: Sequence[str]) -> str:
    """Return what a leaf predicts: a label, a number, or a sum within bounds."""
    if fitted.classes is not None:
        return _sql_literal(fitted.labels[fitted.winners[k]])
    model = fitted.model(k)
    if not model.terms:
        return _sql_number(model.intercept)
    pieces = summed(
        fitted.terms(k), _sql_product(operands), [_sql_number(model.intercept)]
    )
    *others, last = pieces
    lowest, highest = _sql_number(model.lowest), _sql_number(model.highest)
    # A sum that overflows to both sides, which SQL takes for NULL, is the upper bound.
    branches = [
        ["WHEN", *others, f"{last} < {lowest}", f"THEN {lowest}"],
        ["WHEN", *others, f"{last} <= {highest}", "THEN", *pieces],
        ["ELSE", highest],
    ]
    lines = [f"\n{16 * ' '}".join(fold(branch, LINE_WIDTH - 16)) for branch in branches]
    case = f"\n{12 * ' '}".join(["CASE", *lines]) + "\n        END"
    return f"EXP({case})" if model.is_log else case


def _sql_encoded(column: Column, name: str) -> list[str]:
    """Return an expression for each feature that is made of a column."""
    if column.holds == TRUTH:
        # Strict databases make no other numbers of truth values.
        name = f"CAST({name} AS INTEGER)"
    double = f"CAST({name} AS DOUBLE PRECISION)"
    number = double if column.holds == TRUTH else name
    # Some databases take NaN, which frames have for missing, for the greatest number of all.
    known = double if isinstance(column, CategoricalColumn) else f"1.0e0 * {number}"
    is_known = f"{known} <= 1e308"
    if column.holds in (TEXTS, TRUTH):
        is_known = f"{name} IS NOT NULL"
    indicator = f"CASE WHEN {is_known} THEN 0.0e0 ELSE 1.0e0 END"
    if isinstance(column, NumericColumn):
        filled = (
            f"CASE WHEN {is_known} THEN {number} ELSE {_sql_number(column.fill)} END"
        )
        bends = [_sql_bent(bend, filled) for bend in column.bends]
        return [filled, *bends, *([indicator] if column.indicator else [])]
    return [
        indicator
        if level is None
        else f"CASE WHEN {_sql_is(column, name, level)} THEN 1.0e0 ELSE 0.0e0 END"
        for level in column.levels
    ]


def _sql_bent(bend: Bend, number: str) -> str:
    """Return a bend of a number; a factor of 1 as for products."""
    knot, number = _sql_number(bend.knot), f"1.0e0 * {number}"
    if bend.kind == LOG:
        return f"LN(CASE WHEN {number} > {knot} THEN {number} ELSE {knot} END)"
    more, less = (number, knot)[:: bend.sign]
    return f"CASE WHEN {more} > {less} THEN {more} - {less} ELSE 0.0e0 END"


def _sql_is(column: CategoricalColumn, name: str, level: str) -> str:
    """Return the question whether a column has a level."""
    value = value_of(level)
    if column.holds == TEXTS or not isinstance(value, int | float):
        return f"{name} = {_sql_quoted(level)}"
    if column.holds == TRUTH:
        return f"{name} = {value:d}"
    # A column without a type, as expressions are to SQLite, may hold the number as a text.
    return f"CAST({name} AS DOUBLE PRECISION) = {_sql_number(value)}"


def _sql_branch(splits: list[list[str]], output: str) -> str:
    """Return a branch, every split on a line of its own or more."""
    lines: list[str] = []
    for pieces in splits:
        head = "        AND " if lines else "    WHEN "
        lines += hung(pieces, head, 12 * " ", LINE_WIDTH - 12)
    return "\n".join([*lines, f"        THEN {output}"]) + "\n"


def _sql_literal(label: Any) -> str:
    if isinstance(label, str):
        return _sql_quoted(label)
    if isinstance(label, bool):
        return str(label).upper()
    return _sql_number(label) if isinstance(label, float) else str(label)

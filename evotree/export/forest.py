"""The vote of a forest as source code that runs on its own: Python or C.

Each tree is a function, as `evotree.export.functions` writes it. That of a classifier returns the
row of a table of class shares, one row for each leaf of all trees. The last function adds what the
trees say in their order, as `predict` does, and divides by their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from evotree.export.functions import (
    C_ADVICE,
    c_labels,
    c_source,
    check_c_name,
    check_python_name,
    notes,
    python_source,
)
from evotree.export.named import NamedTree, plain_label


class _Vote:
    """The trees of a forest as functions of numbers, and the shares that these numbers stand for.

    Attributes
    ----------
    trees : list of NamedTree
        Their values are numbers: rows of `shares`, or predictions where there are no classes.
    classes : list of str, int, float or bool, or None
        Plain labels.
    shares : list of list of float
        Class shares of the leaves of all trees.
    first : NamedTree
        The first tree with all features that some tree reads, for notes.
    """

    def __init__(self, named: Sequence[NamedTree]) -> None:
        classes = named[0].classes
        self.shares: list[list[float]] = []
        self.classes = None
        self.trees = list(named)
        if classes is not None:
            self.classes = [plain_label(label, at) for at, label in enumerate(classes)]
            self.trees = [self._by_row(one) for one in named]
        self.used = sorted({j for one in named for j in one.used_features()})
        self.first = named[0]

    def _by_row(self, named: NamedTree) -> NamedTree:
        """Return a tree whose leaves are rows of the table, which grows by them."""
        leaves = np.flatnonzero(named.tree.is_leaf)
        rows = np.zeros((len(named.tree), 1))
        rows[leaves, 0] = np.arange(len(leaves)) + len(self.shares)
        self.shares += named.tree.values[leaves].tolist()
        return replace(named, tree=named.tree.predicting(rows), classes=None)


def python_forest(members: Sequence[NamedTree], name: str, probability: bool) -> str:
    """Return the code of `evotree.export.export_python` for a forest."""
    check_python_name(name)
    vote = _vote(members, probability)
    names = [f"{name}_tree_{at}" for at in range(len(vote.trees))]
    parts = [python_source(*one, noted=False) for one in zip(vote.trees, names, strict=True)]
    return "\n\n".join([*parts, "\n".join(_python_vote(vote, name, names, probability)) + "\n"])


def _python_vote(vote: _Vote, name: str, names: list[str], probability: bool) -> Iterator[str]:
    """Yield the lines of the function that adds up what the trees say."""
    trees = f"({', '.join(names)},)"
    yield f"def {name}(x):"
    yield from (f"    # {note}" for note in notes(vote.first, "floats", vote.used))
    if vote.classes is None:
        yield "    total = 0.0"
        yield f"    for tree in {trees}:"
        yield "        total += tree(x)"
        yield f"    return total / {len(names)}.0"
        return
    yield "    shares = ("
    yield from (f"        {tuple(row)!r}," for row in vote.shares)
    yield "    )"
    yield f"    p = [0.0] * {len(vote.classes)}"
    yield f"    for tree in {trees}:"
    yield "        for c, share in enumerate(shares[int(tree(x))]):"
    yield "            p[c] += share"
    yield f"    p = [one / {len(names)}.0 for one in p]"
    yield "    return p" if probability else f"    return {tuple(vote.classes)!r}[p.index(max(p))]"


def c_forest(members: Sequence[NamedTree], name: str, probability: bool) -> str:
    """Return the code of `evotree.export.export_c` for a forest."""
    check_c_name(name)
    vote = _vote(members, probability)
    names = [f"{name}_tree_{at}" for at in range(len(vote.trees))]
    of_trees = [c_source(*one, noted=False) for one in zip(vote.trees, names, strict=True)]
    parts = [C_ADVICE, *(f"static {code}" for code in of_trees)]
    if vote.classes is not None and not probability:
        parts.append("\n".join(c_labels(vote.classes, name)))
    return "\n".join([*parts, "\n".join(_c_vote(vote, name, names, probability)) + "\n"])


def _c_vote(vote: _Vote, name: str, names: list[str], probability: bool) -> Iterator[str]:
    """Yield the lines of the function that adds up what the trees say."""
    n_trees, n_classes = len(names), len(vote.classes or ())
    kind = "double" if vote.classes is None else "void" if probability else "int"
    yield f"{kind} {name}(const double *x{', double *p' if probability else ''})"
    yield "{"
    yield from (f"    // {note}" for note in notes(vote.first, "doubles", vote.used))
    yield f"    static double (*const trees[{n_trees}])(const double *) = {{"
    yield from (f"        {one}," for one in names)
    yield "    };"
    if vote.classes is None:
        yield f"""    double s = 0.0;
    int t;
    for (t = 0; t < {n_trees}; t++) {{
        s += trees[t](x);
    }}
    return s / {n_trees}.0;
}}"""
        return
    yield f"    static const double shares[{len(vote.shares)}][{n_classes}] = {{"
    yield from (f"        {{{', '.join(map(repr, row))}}}," for row in vote.shares)
    yield "    };"
    yield from ["    int c, t;"] if probability else [f"    double p[{n_classes}];"]
    yield from [] if probability else ["    int c, t, best = 0;"]
    yield f"""    for (c = 0; c < {n_classes}; c++) {{
        p[c] = 0.0;
    }}
    for (t = 0; t < {n_trees}; t++) {{
        const double *row = shares[(int)trees[t](x)];
        for (c = 0; c < {n_classes}; c++) {{
            p[c] += row[c];
        }}
    }}
    for (c = 0; c < {n_classes}; c++) {{
        p[c] /= {n_trees}.0;"""
    if not probability:
        yield "        best = p[c] > p[best] ? c : best;"
    yield "    }"
    yield "}" if probability else "    return best;\n}"


def _vote(members: Sequence[NamedTree], probability: bool) -> _Vote:
    """Return the trees of a forest and their shares."""
    vote = _Vote(members)
    if probability and vote.classes is None:
        raise ValueError("probability=True: allowed for a forest of classes.")
    return vote

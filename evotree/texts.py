"""A tree written for readers, as rules and as tables; rules read back."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from html import escape
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from evotree.fitted import Fitted, Inequality, LinearModel, fitted_of, walk
from evotree.leaf_models import LARGEST_SCORE
from evotree.schema import LARGEST, quoted
from evotree.words import (
    LEAST_WIDTH,
    LINE_WIDTH,
    check_whole,
    did_you_mean,
    fold,
    hung,
    number,
    operand,
    parts_of_text,
    printable,
    summed,
    told_apart,
)

#: Limit of the texts, which of a chain of nodes grow with the square of its length.
MAX_CONDITIONS = 1_000_000
# Notebooks show no more leaves, and terms of a split or line.
SHOWN_LEAVES = 256
SHOWN_TERMS = 10
_LEAST_INFLUENCE = 0.02
_DIGITS_OF_POINTS = 9  # more are those of a difference of two decimal numbers


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
    does not. Terms are ordered by their influence, the absolute weight times the spread of the
    feature; weights of 0 are left out. A split is scaled so that the weight of its first term is 1,
    which changes no decision. Where weights differ a thousandfold, because their units do, a line
    ``# income 61 %, age 39 %`` names the shares of the terms in the influence, several below 2 % as
    one. A split of a single category is written as ``colour is red`` or ``colour is not red``.
    Beside numbers, names that read as more than a name, or as a number, are in brackets: ``age + 12
    * (skin is missing) <= 40``, ``(6) <= 0.5``. Nodes have the numbers that ``apply`` gives, and
    leaves name their training rows and the shares of these that have each class. A row counts once,
    whatever its weight; where weights of rows or classes differ, ``by weight Yes: 0.50`` is the
    share of the weight that the class of the leaf has, which decides. Leaves of a search by scores
    have actions, and no shares. The linear model of a leaf is written as ``predict 3.2 + 0.51 *
    rooms - 0.11 * age, within [5, 50]``, with the bounds that predictions do not leave; of a
    feature whose mean is further than ten spreads from 0 the term is of what it is above a number
    near that, as ``12 * (year - 2005)``. Several outputs are named: ``predict height = 1.2, width =
    3``. A line says what stands for missing cells of the columns that the tree uses, where the
    training rows had some; the last lines which signs hold, and what the tree was chosen before
    (`evotree.front.TreeChoice`).

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
        since weights over features of large units are small. None shows numbers of at most 12
        significant digits as they are, and others with 3 decimals. So splits and models that are
        rounded (`evotree.round_tree`) are printed as they predict; means of leaves, in as many
        digits as tell them apart, and what stands for missing cells, are rounded for readers.
    max_terms : int, at least 1, or None, default=None
        Number of terms of a split, or of the model of a leaf, that are shown, the most influential
        ones; None for all.
    output_names : sequence of str, optional
        One name for each of several outputs; by default those of the tree, which are the columns of
        the targets that it was fitted to, else ``y0``, ``y1``, ...

    Raises
    ------
    ValueError
        If an argument does not fit the tree, or its nodes stand below more than a million splits
        in all, as those of a chain of some thousand nodes do.

    Examples
    --------
    >>> from evotree import ObliqueTreeClassifier
    >>> model = ObliqueTreeClassifier("axis").fit([[0.0, 0.0], [2.0, 0.0]], ["no", "yes"])
    >>> print(export_text(model, ["length", "width"]), end="")
    |--- [0] length <= 1
    |   |--- [1] class: no (1 row; no: 1.00)
    |--- else
    |   |--- [2] class: yes (1 row; yes: 1.00)
    """
    fitted = fitted_of(tree, feature_names, class_names, output_names)
    _check_depths(fitted)
    return "\n".join(_indented(Wording(fitted, decimals, max_terms))) + "\n"


def notebook_html(tree: Any) -> str:
    """Return what a notebook shows of a tree: its rules, as they are printed."""
    shown = getattr(tree, "tree_", tree)
    is_short = shown.n_leaves <= SHOWN_LEAVES
    text = export_text(tree, max_terms=SHOWN_TERMS) if is_short else repr(shown)
    return f"<pre>{escape(text)}</pre>"


def _indented(words: Wording) -> Iterator[str]:
    """Yield the lines of `export_text`."""
    fitted = words.fitted
    for k, depth, is_right in walk(fitted.tree):
        if is_right:
            yield f"{'|   ' * (depth - 1)}|--- else"
        indent = "|   " * depth
        width = max(LINE_WIDTH - len(indent), LEAST_WIDTH)
        yield from hung(words.node(k), f"{indent}|--- ", f"{indent}|    ", width - 5)
        below = f"{indent}|    # "
        if fitted.is_split(k) or not (fitted.scores or fitted.added):
            yield from hung(words.influences(k), below, below, width - 7)
    yield from score_lines(words)
    yield from missing_lines(fitted)
    yield from note_lines(fitted)


def score_lines(words: Wording) -> Iterator[str]:
    """Yield the lines of the score that a tree stands on, and how both predict."""
    for pieces in words.score():
        yield from hung(pieces, "", "    ", LINE_WIDTH - 4)


def note_lines(fitted: Fitted, width: int = LINE_WIDTH) -> list[str]:
    """Return which signs a tree keeps, and what it was chosen before, as comments."""
    choice = printable(fitted.choice_text or "").split("; ")
    notes = printable(fitted.signs_text or "").split(), parts_of_text(choice, ";")
    return [
        line
        for pieces in notes
        if any(pieces)
        for line in hung(pieces, "# ", "# ", width - 2)
    ]


def missing_lines(fitted: Fitted, width: int = LINE_WIDTH) -> list[str]:
    """Return what stands for missing cells in lines; none where the training rows had none."""
    fills = [
        f"{operand(name, printable(name))} = {value}" for name, value in fitted.fills()
    ]
    begin = [f"missing: {fill}" for fill in fills[:1]]
    return fold(parts_of_text([*begin, *fills[1:]], ","), width)


def _check_depths(fitted: Fitted) -> None:
    """Refuse a tree whose text is more than a reader or the memory can take."""
    n_conditions = sum(depth for _, depth, _ in walk(fitted.tree))
    if n_conditions > MAX_CONDITIONS:
        raise ValueError(
            f"the nodes of the tree stand below {n_conditions} splits in all: texts have up to "
            f"{MAX_CONDITIONS}; the exports to code write any tree."
        )


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
    tree, feature_names, class_names, decimals, max_terms
        As for `export_text`.

    Examples
    --------
    >>> from evotree import ObliqueTreeClassifier
    >>> model = ObliqueTreeClassifier("axis").fit([[0.0, 0.0], [2.0, 0.0]], ["no", "yes"])
    >>> print(export_rules(model, ["length", "width"]), end="")
    IF   length <= 1
    THEN [1] class: no (1 row; no: 1.00)
    <BLANKLINE>
    IF   length > 1
    THEN [2] class: yes (1 row; yes: 1.00)
    """
    fitted = fitted_of(tree, feature_names, class_names)
    _check_depths(fitted)
    rules = _rules(Wording(fitted, decimals, max_terms))
    score = "\n".join(score_lines(Wording(fitted, decimals, max_terms)))
    missing = "\n".join(missing_lines(fitted))
    return "\n\n".join(filter(None, [*rules, score, missing])) + "\n"


def _rules(words: Wording) -> Iterator[str]:
    """Yield the rules of `export_rules`, of each sum the tightest bound from each side."""
    fitted = words.fitted
    path: list[Inequality] = []
    for k, depth, is_right in walk(fitted.tree):
        if is_right:
            path[depth - 1 :] = [path[depth - 1].opposite]
        if fitted.is_split(k):
            path[depth:] = [fitted.split(k)]
            continue
        of_sum: dict[tuple[Any, str], list[Inequality]] = {}
        for split in path[:depth]:
            of_sum.setdefault((split.terms, split.relation[0]), []).append(split)
        tightest = (min(splits, key=_tightness) for splits in of_sum.values())
        parts = list(map(words.split, tightest)) or [["anything"]]
        heads = ["IF  ", *["AND "] * (len(parts) - 1), "THEN"]
        lines = [
            line
            for head, pieces in zip(heads, [*parts, words.node(k)], strict=True)
            for line in hung(pieces, f"{head} ", "     ", LINE_WIDTH - 5)
        ]
        yield "\n".join(lines)


def _tightness(split: Inequality) -> tuple[float, bool]:
    """Return what is least for the tightest of some bounds from one side on one sum."""
    # Of x < 1 and x <= 1, the first is the tighter one; of x > 1 and x >= 1 likewise.
    sign = 1.0 if split.relation.startswith("<") else -1.0
    return sign * split.threshold, split.relation.endswith("=")


@dataclass(frozen=True)
class Wording:
    """What the nodes of a tree say, in pieces or lines, with so many digits and terms.

    Names are written so that they do no harm where they are shown: on a terminal by default. Signs
    may be those of print, which belong beside letters.
    """

    fitted: Fitted
    decimals: int | None = None
    max_terms: int | None = None
    written: Callable[[Any], str] = printable
    times: str = " * "
    is_printed: bool = False

    def __post_init__(self) -> None:
        for name, least in (("decimals", 0), ("max_terms", 1)):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least)

    def _signs(self, text: str) -> str:
        """Return what has no names in it with its signs."""
        printed = text.replace("-", "−").replace("<=", "≤").replace(">=", "≥")
        return printed if self.is_printed else text

    def _number(self, value: float) -> str:
        return self._signs(number(value, self.decimals))

    def _operand(self, name: Any) -> str:
        return operand(name, self.written(name))

    def sum(
        self,
        terms: Sequence[tuple[float, int]],
        before: Sequence[str] = (),
        centres: Mapping[int, float] = MappingProxyType({}),
    ) -> list[str]:
        """Return the pieces of a sum, one for each term after those before it.

        Of features with a centre the term is of what they are above it.
        """

        def product(weight: float, j: int) -> str:
            factor = "" if weight == 1.0 else f"{self._number(weight)}{self.times}"
            name = self._operand(self.fitted.features[j])
            if j in centres:
                sign = self._signs("-" if centres[j] > 0.0 else "+")
                name = f"({name} {sign} {number(abs(centres[j]))})"
            return f"{factor}{name}"

        pieces = summed(terms[: self.max_terms], product, before)
        pieces = [self._signs(piece[:1]) + piece[1:] for piece in pieces]
        if self.max_terms is not None and len(terms) > self.max_terms:
            pieces.append(f"(+{len(terms) - self.max_terms} more)")
        return pieces

    def split(self, split: Inequality) -> list[str]:
        """Return an inequality in pieces, one for each term, the last one with the threshold."""
        *pieces, last = self.split_lines(split)
        return [*pieces[:-1], f"{pieces[-1]} {last}"] if pieces else [last]

    def split_lines(self, split: Inequality) -> list[str]:
        """Return an inequality in lines, one for each term, and one for the threshold."""
        if (answer := self.fitted.answer(split)) is not None:
            return [self.written(answer)]
        bound = f"{self._signs(split.relation)} {self._number(split.threshold)}"
        return [*(self.sum(split.terms) or ["0"]), bound]

    def influences(self, k: int) -> list[str]:
        """Return the shares of the terms of a split in its influence, where weights say nothing.

        Several that are small share one.
        """
        shares = self.fitted.influence_shares(k)
        n_large = sum(share >= _LEAST_INFLUENCE for share in shares)
        n_shown = len(shares) if len(shares) - n_large < 2 else n_large
        pieces = [
            f"{self._operand(self.fitted.features[j])} {round(100.0 * share) or '<1'} %"
            for share, (_, j) in zip(shares, self.fitted.by_influence(k), strict=False)
        ][: min(n_shown, self.max_terms or n_shown)]
        if n_shown < len(shares) and self.max_terms is None:
            rest = round(100.0 * sum(shares[n_shown:])) or "<1"
            pieces.append(f"{len(shares) - n_shown} others {rest} %")
        return parts_of_text(pieces, ",")

    def model(self, model: LinearModel, before_bounds: str) -> list[str]:
        """Return the numbers that a leaf predicts in pieces, one for each term, then its bounds."""
        if not model.terms:
            if self.decimals is not None:
                return [self._number(model.intercept)]
            tree = self.fitted.tree
            others = tree.values[tree.is_leaf, 0].tolist()
            return [self._signs(told_apart(model.intercept, others))]
        ends = [model.lowest, model.highest]
        centres = self.fitted.centres
        # In decimals: what was rounded stays so.
        intercept = Decimal(repr(model.intercept))
        for weight, j in model.terms:
            intercept += Decimal(repr(weight)) * Decimal(repr(centres.get(j, 0.0)))
        pieces = self.sum(model.terms, [self._number(float(intercept))], centres)
        if model.is_log:
            pieces = [f"exp({pieces[0]}", *pieces[1:]]
            pieces[-1] += ")"
            ends = [math.exp(end) for end in ends]
        if model.is_bounded:
            pieces[-1] += before_bounds
            pieces.append(f"within [{', '.join(map(self._number, ends))}]")
        return pieces

    def outputs(self, k: int, before_bounds: str = "") -> list[list[str]]:
        """Return the pieces of each output at leaf `k`; of several they begin with its name.

        On a score of targets they are what the leaf adds.
        """
        if self.fitted.added is not None and self.fitted.model(k).terms:
            model = self.fitted.added.model(k)
            intercept = model.intercept
            sign = self._signs("-" if intercept < 0.0 else "+")
            own = [f"{sign} {self._number(abs(intercept))}"] if intercept else []
            words = replace(self, fitted=self.fitted.added)
            return [words.sum(model.terms, ["score", *own])]
        models = [
            replace(self, fitted=one).model(one.model(k), before_bounds)
            for one in self.fitted.each
        ]
        for name, pieces in zip(self.fitted.targets, models, strict=False):
            pieces[0] = f"{self._operand(name)} = {pieces[0]}"
        return models

    def shares(self, k: int, most: int = 6) -> list[list[str]]:
        """Return the class shares of a node, and that of its class by weight if it differs.

        There are none of numbers, and of a tree whose leaves hold actions.
        """
        if self.fitted.classes is None or self.fitted.holds_actions:
            return []
        return [
            [f"{self.written(name)}: {share}" for name, share in shares]
            for shares in self.fitted.shares(k, most)
        ]

    def leaf_lines(self, k: int, most: int = 6) -> list[str]:
        """Return what leaf `k` predicts in lines: class, shares and costs, or the terms of sums."""
        if self.fitted.classes is None:
            return sum(self.outputs(k), [])
        if self.fitted.scores is not None:
            return self.predicted(k)
        return [*self.predicted(k), *sum(self.shares(k, most), []), *self.costs(k)]

    def costs(self, k: int) -> list[str]:
        """Return what a row costs that ends at leaf `k`, where trees were evolved for costs."""
        costs = self.fitted.costs
        return [] if costs is None else [f"costs {number(float(costs[k]), 2)}"]

    def sentence(self, k: int) -> list[str]:
        """Return the numbers that leaf `k` predicts in pieces of one sentence."""
        outputs = self.outputs(k, before_bounds=",")
        # The sum of a model has a comma before its bounds.
        between = ";" if any(len(pieces) > 1 for pieces in outputs) else ","
        for pieces in outputs[:-1]:
            pieces[-1] += between
        return sum(outputs, [])

    def predicted(self, k: int) -> list[str]:
        """Return what leaf `k` predicts in pieces of a sentence; on a score its points."""
        fitted = self.fitted
        if fitted.scores is not None:
            return self.points(k)
        if fitted.classes is not None:
            return [f"class: {self.written(fitted.classes[fitted.winners[k]])}"]
        begin = "predict " if fitted.targets or fitted.model(k).terms else "value: "
        if fitted.is_risk:
            begin = "risk "
        first, *others = self.sentence(k)
        return [begin + first, *others]

    def points(self, k: int) -> list[str]:
        """Return what leaf `k` adds to the score, of each class where there are several."""
        fitted = self.fitted
        assert fitted.classes is not None
        if not fitted.is_split(0):
            return ["class: that of the largest score"]
        points = fitted.tree.models.points
        added = np.round(points[k] - points[0], _DIGITS_OF_POINTS).tolist()
        shown = [f"{'+' if one >= 0.0 else ''}{self._number(one)}" for one in added]
        if len(shown) == 2:
            return [f"points: {shown[1]}"]
        names = map(self.written, fitted.classes)
        pieces = [f"{name} {one}" for name, one in zip(names, shown, strict=True)]
        return parts_of_text([f"points: {pieces[0]}", *pieces[1:]], ",")

    def score(self) -> list[list[str]]:
        """Return the sums of a score in pieces, and how they predict; nothing without a score."""
        fitted = self.fitted
        if fitted.added is not None:
            score = fitted.score_of_targets
            whole = score.model(0)
            bounds = ", ".join(map(self._number, (whole.lowest, whole.highest)))
            words = replace(self, fitted=score)
            free = whole._replace(lowest=-LARGEST_SCORE, highest=LARGEST_SCORE)
            first, *others = words.model(free, "")
            return [
                [f"all predictions are within [{bounds}]"],
                [f"score = {first}", *others],
            ]
        if fitted.scores is None or fitted.classes is None:
            return []
        leaf = int(np.flatnonzero(fitted.tree.is_leaf)[0])
        names = [self._operand(name) for name in fitted.scores.targets] or ["score"]
        begin = fitted.tree.models.points[0][-len(names) :]
        sums = []
        for name, base, one in zip(names, begin, fitted.scores.each, strict=True):
            model = one.model(leaf)._replace(intercept=float(base))
            first, *others = replace(self, fitted=fitted.scores).model(model, "")
            sums.append([f"{name} = {first}", *others])
        rule = "class: that of the largest score with its points"
        if not fitted.is_split(0):
            return sums
        if len(names) == 1:
            first, second = map(self.written, fitted.classes)
            rule = f"class: {second} if score + points > 0, else {first}"
        return [[rule], *sums]

    def leaf(self, k: int) -> list[str]:
        """Return in pieces what leaf `k` predicts, and its rows, their class shares and costs."""
        known = [self.fitted.rows(k), *map(", ".join, self.shares(k)), *self.costs(k)]
        told = "; ".join(filter(None, known))
        *pieces, last = self.predicted(k)
        return [*pieces, f"{last} ({told})" if told else last]

    def node(self, k: int) -> list[str]:
        """Return the number of a node and its split, or what it predicts, in pieces."""
        is_split = self.fitted.is_split(k)
        first, *others = self.split(self.fitted.split(k)) if is_split else self.leaf(k)
        return [f"[{k}] {first}", *others]


def numbered(texts: Sequence[str], first: int = 1) -> str:
    """Return the texts of the trees of a forest, each under its number; of one tree its text."""
    if len(texts) == 1:
        return texts[0]
    return "\n".join(
        f"tree {at} of {len(texts)}\n{text}" for at, text in enumerate(texts, first)
    )


def coefficient_table(
    tree: Any, feature_names: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return the linear models of the leaves of a tree as a table.

    Parameters
    ----------
    tree, feature_names
        As for `export_text`.

    Returns
    -------
    pandas.DataFrame
        One row for each leaf: ``leaf``, its number as ``apply`` gives it, ``n_node_samples`` where
        that is known, ``intercept``, ``lowest`` and ``highest``, the bounds of its predictions, and
        the coefficient of each feature that some leaf uses, in the order of the features; a feature
        that is called like another column is in quotation marks. Those of log-linear models are of
        the logarithm of what is predicted. Of several outputs each has the
        rows of the leaves, with its name as ``output`` in front. The scores of classes have no
        bounds.
    """
    fitted = fitted_of(tree, feature_names)
    is_bounded = fitted.scores is None
    fitted = fitted.scores or fitted
    leaves = np.flatnonzero(fitted.tree.is_leaf)
    n_rows = fitted.tree.n_node_samples
    tables = []
    for output, one in zip(fitted.targets or (None,), fitted.each, strict=True):
        if one.tree.models is None:
            raise ValueError("tree has no linear models in its leaves.")
        models = one.tree.models.take(leaves)
        columns = {
            "output": output,
            "leaf": leaves,
            "n_node_samples": None if n_rows is None else n_rows[leaves],
            "intercept": models.intercepts,
            "lowest": models.lowest if is_bounded else None,
            "highest": models.highest if is_bounded else None,
        }
        known = {name: part for name, part in columns.items() if part is not None}
        used = np.flatnonzero(models.coefficients.any(axis=0))
        # A feature may be called as one of the other columns.
        names = [
            repr(name) if name in known else name
            for name in (one.features[j] for j in used)
        ]
        coefficients = pd.DataFrame(models.coefficients[:, used], columns=names)
        tables.append(pd.concat([pd.DataFrame(known), coefficients], axis=1))
    return pd.concat(tables, ignore_index=True).fillna(0.0)


# ---- rules read back -----------------------------------------------------------------------------

# As `export_text` prints a tree, by this package or by hand.

# Reading takes time and memory in proportion to the text, whatever that is. Names may hold what
# sums are made of: where a term may end at two places, the split is refused.

MAX_CHARACTERS = 10_000_000
MAX_NAMED_CHARACTERS = (
    1000  # of a split that cannot be read, in which names are looked for
)
MAX_DIGITS = 400  # on each side of a decimal point; the largest double has 309

_NODE = re.compile(r"(?P<indent>(?:\|   )*)\|--- (?P<rule>.*)")
_DIGITS = rf"[0-9]{{1,{MAX_DIGITS}}}"
_NUMBER = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?[0-9]{{1,9}})?"
_BOUND = re.compile(rf"[+-]?{_NUMBER}")
# What a term begins with: a sign, and a weight.
_HEAD = re.compile(rf" ?([+-]?) ?(?:([+-]?{_NUMBER}) \* )?")
_ALLOWED = "a tree as export_text prints it"

# Weights of features, and threshold.
_Reading: TypeAlias = tuple[dict[int, float], float]


def splits_of_text(
    text: str,
    feature_names: Sequence[str],
    parameter: str = "text",
    others: Mapping[str, int] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights, thresholds and sizes of the subtrees of a tree that is written as rules.

    Numbers of nodes may be left out, and what leaves say is not read. `others` has names, such as
    those of `Schema.others`, for a feature's being 0.
    """
    rules = [one for one in _nodes_of_text(text, parameter) if one[1] != "else"]
    names = _Names(feature_names, parameter, others or {})
    sizes = np.ones(len(rules), dtype=np.int32)
    depths = [depth for depth, _ in rules]
    for k in range(len(rules) - 2, -1, -1):
        if depths[k + 1] == depths[k] + 1:
            right = k + 1 + int(sizes[k + 1])
            if depths[right : right + 1] != [depths[k] + 1]:
                raise ValueError(
                    f"{parameter} lacks a branch of {quoted(rules[k][1])}: allowed is {_ALLOWED}."
                )
            sizes[k] += sizes[k + 1] + sizes[right]
    n_nodes = int(sizes[0]) if depths[:1] == [0] else 0
    if n_nodes != len(rules) or not rules:
        where = f"goes on at {quoted(rules[n_nodes][1])}" if rules else "is empty"
        raise ValueError(
            f"{parameter} is not one tree but {where}: allowed is {_ALLOWED}."
        )
    readings: list[_Reading] = [
        names.split(rule) if size > 1 else ({}, 0.0)
        for (_, rule), size in zip(rules, sizes, strict=True)
    ]
    weights = np.zeros((len(readings), len(names.plain)))
    for k, (own, _) in enumerate(readings):
        weights[k, list(own)] = list(own.values())
    thresholds = np.array([threshold for _, threshold in readings])
    return weights, thresholds, sizes


def split_of_text(
    text: str, feature_names: Sequence[str], parameter: str
) -> tuple[dict[int, float], float]:
    """Return weights and threshold of a split that is written as a rule, on one line or more."""
    return _Names(feature_names, parameter, {}).split(" ".join(text.split()))


def _nodes_of_text(text: str, parameter: str) -> list[tuple[int, str]]:
    """Return the depths of nodes and of ``else`` in a text, and what they say, unfolded."""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"{parameter} has {len(text)} characters: allowed are {MAX_CHARACTERS}."
        )
    pieces: list[tuple[int, list[str]]] = []
    for line in filter(
        str.strip, re.split("^missing: ", text, flags=re.M)[0].splitlines()
    ):
        if (found := _NODE.fullmatch(line.rstrip())) is not None:
            rule = re.sub(r"^\[\d+\] ", "", found["rule"])
            pieces.append((len(found["indent"]) // 4, [rule]))
        elif line.startswith("|") and pieces:  # a folded line, or shares of influence
            more = line.lstrip("| ").rstrip()
            if not more.startswith("# "):
                pieces[-1][1].append(more)
        elif not line.startswith("#"):
            raise ValueError(
                f"{parameter} has the line {quoted(line)}: allowed is {_ALLOWED}."
            )
    return [(depth, " ".join(parts)) for depth, parts in pieces]


class _Names:
    """What a text calls the features, and how it writes splits of them."""

    def __init__(
        self, feature_names: Sequence[str], parameter: str, others: Mapping[str, int]
    ) -> None:
        self.parameter = parameter
        self.plain: dict[str, int] = {}
        # Splits that say of a feature that it is 1, or that it is not.
        self.answers: dict[str, list[_Reading]] = {}
        self.operands: dict[str, list[int]] = {}  # features, as sums name them
        for j, name in enumerate(feature_names):
            shown = printable(name)
            if shown in self.plain:
                raise ValueError(
                    f"{parameter} cannot be read: {quoted(feature_names[self.plain[shown]])} and "
                    f"{quoted(name)} are written alike; allowed are names that differ as they "
                    "are printed."
                )
            self.plain[shown] = j
            self._ask(shown, ({j: -1.0}, -0.5), ({j: 1.0}, 0.5))
            # By hand names are written without brackets.
            for form in filter(None, {shown, operand(shown, shown)}):
                self.operands.setdefault(form, []).append(j)
        self.longest = max(map(len, self.operands), default=0)
        for name, j in others.items():
            self._ask(printable(name), ({j: 1.0}, 0.5), ({j: -1.0}, -0.5))

    def _ask(self, shown: str, yes: _Reading, no: _Reading) -> None:
        """Learn the question that a name is, and its negations."""
        self.answers.setdefault(shown, []).append(yes)
        for end in (found.start() for found in re.finditer("(?<= is )", shown)):
            negated = f"{shown[:end]}not {shown[end:]}"
            self.answers.setdefault(negated, []).append(no)

    def split(self, rule: str) -> _Reading:
        """Return the hyperplane of an inequality, or of a question of one category."""
        readings = [*self.answers.get(rule, []), *self._inequality(rule)]
        if len(readings) != 1 or not any(readings[0][0].values()):
            raise ValueError(
                f"{self.parameter} has the split {quoted(rule)}{self._meant(rule)}: allowed are "
                f"sums such as 'a + 2 * b <= 3', with numbers of up to {MAX_DIGITS} digits, of the "
                f"features {', '.join(map(quoted, list(self.plain)[:20]))}; names that could be "
                "read in several ways are in brackets, as export_text has them."
            )
        weights, threshold = readings[0]
        sizes = [abs(weight) for weight in weights.values() if weight]
        if not all(1.0 / LARGEST <= size <= LARGEST for size in sizes) or not (
            abs(threshold) <= LARGEST
        ):
            raise ValueError(
                f"{self.parameter} has the split {quoted(rule)}: allowed are numbers up to "
                f"{LARGEST:g}, and weights from {1.0 / LARGEST:g}; use other units."
            )
        return readings[0]

    def _meant(self, rule: str) -> str:
        """Return which name may be meant by one in a rule that is none."""
        for part in re.split(r" [+-] | [<>]=? |^- | \* ", rule[:MAX_NAMED_CHARACTERS]):
            if part not in self.operands and not _BOUND.fullmatch(part):
                return did_you_mean(part, self.plain)
        return ""

    def _inequality(self, rule: str) -> list[_Reading]:
        """Return the reading of an inequality, if it has one."""
        total, relation, bound = ["", "", "", *rule.rsplit(" ", 2)][-3:]
        if relation not in ("<=", ">=", "<", ">") or not _BOUND.fullmatch(bound):
            return []
        weights, threshold = self._sum(total), float(bound)
        if relation.startswith(">"):
            weights = {j: 0.0 - weight for j, weight in weights.items()}
            threshold = 0.0 - threshold
        if "=" not in relation:
            threshold = float(np.nextafter(threshold, -np.inf))
        return [(weights, threshold)] if weights else []

    def _sum(self, total: str) -> dict[int, float]:
        """Return the weights of a sum; none where it is none, or its names are not clear."""
        ends = [found.start() for found in re.finditer(r"(?!^)(?= [+-] )|\Z", total)]
        weights: dict[int, float] = {}
        begin = 0
        while begin < len(total):
            head: Any = _HEAD.match(total, begin)
            first = head.end()
            at = bisect_right(ends, first)
            # Ends are at least two signs apart.
            known = [
                (end, j)
                for end in ends[at : at + self.longest // 2 + 1]
                for j in self.operands.get(total[first:end], ())
            ]
            if len(known) != 1:
                return {}
            ((begin, j),) = known
            weight = float(f"{head[1]}1") * float(head[2] or 1.0)
            weights[j] = weights.get(j, 0.0) + weight
        return weights

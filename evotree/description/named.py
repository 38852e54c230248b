"""A tree with names for its features and classes: what every written or drawn form starts from.

All forms for readers show a split as the same inequality (`NamedTree.split`), the numbers of a leaf
as the same sum (`NamedTree.model`), numbers, names and sums as the functions here write them, and
nodes under the numbers that `apply` gives.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError

from evotree.leaf_models import LARGEST_SCORE
from evotree.tables.columns import (
    MISSING,
    Bend,
    Column,
    NumericColumn,
    answers_of,
    bends_of,
    column_of_feature,
)

LINE_WIDTH = 100
# Units of weights that differ by more times than this cannot be compared.
_COMPARABLE_RATIO = 1000.0
LEAST_WIDTH = 40

# A double that was never rounded to a decimal number nearly always has more.
_EXACT_DIGITS = 12

_EXPONENT = re.compile(r"(?<=\d)[eE](?=[+-]?\d)")
_READS_AS_MORE = re.compile(r"^[ +-]| (?:is|above|below|[-+*<>]|[<>]=) | \Z|^\Z")


def number(value: float, decimals: int | None = None) -> str:
    """Return a number as all forms for readers show it; a rounded one as it is by default."""
    if decimals is None:
        if float(f"{value:.{_EXACT_DIGITS}g}") == value:
            return repr(value + 0.0).removesuffix(".0")
        decimals = 3
    if value == 0.0 or abs(value) >= 1.0:
        return f"{value + 0.0:.{decimals}f}"
    return f"{value:#.{max(decimals, 1)}g}"


def share_text(share: float) -> str:
    """Return a share in two digits, where no rounding calls a leaf pure that is not."""
    if 0.995 <= share < 1.0:
        return ">0.99"
    return "<0.01" if 0.0 < share < 0.005 else f"{share:.2f}"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number of things in words."""
    return f"{n} {noun if n == 1 else plural or f'{noun}s'}"


def rows_text(n: float) -> str:
    """Return a number of rows in words."""
    if n == 1.0:
        return "1 row"
    return f"{n:.0f} rows" if n.is_integer() else f"weight {n:.4g}"


def check_whole(name: str, value: Any, least: int) -> None:
    """Check that a parameter is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(
            f"{name}={value!r}: allowed is a whole number of at least {least}."
        )


def printable(name: Any) -> str:
    """Return a name for a terminal: what would move the cursor or change colours is escaped."""
    return "".join(
        sign
        if sign.isprintable()
        else sign.encode("unicode_escape", "replace").decode()
        for sign in str(name)
    )


def operand(name: Any, shown: str) -> str:
    """Return a name as it is shown beside numbers: in brackets where it reads as more than a name.

    So do ``skin is missing``, of which sums have a multiple; ``2 * x`` beside ``x``; and ``6``.
    """
    text = str(name)
    is_more = _READS_AS_MORE.search(text) is not None or _reads_as_number(text)
    return f"({shown})" if is_more else shown


def _reads_as_number(name: str) -> bool:
    """Return whether a name is a number, or digits and signs without a letter, as ``10-20``."""
    try:
        float(name)
    except ValueError:
        signs = _EXPONENT.sub("", name)
        return any(map(str.isnumeric, signs)) and not any(map(str.isalpha, signs))
    return True


def fold(pieces: Sequence[str], width: int) -> list[str]:
    """Return pieces set into lines with blanks between them; a longer one has its own line."""
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + 1 + len(piece) <= width:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return lines


def hung(pieces: Sequence[str], head: str, below: str, width: int) -> list[str]:
    """Return folded pieces, the first line after a head, those below it after another."""
    first, *others = fold(pieces, width)
    return [f"{head}{first}", *(f"{below}{line}" for line in others)]


def summed(
    terms: Iterable[tuple[float, int]],
    product: Callable[[float, int], str],
    before: Sequence[str] = (),
) -> list[str]:
    """Return the pieces of a sum, one for each term after those before it, with their signs."""
    pieces = list(before)
    for weight, j in terms:
        sign, term = "-" if weight < 0.0 else "+", product(abs(weight), j)
        pieces.append(f"{sign} {term}" if pieces else f"{sign.strip('+')}{term}")
    return pieces


def walk(tree: Any) -> Iterator[tuple[int, int, bool]]:
    """Yield the nodes in prefix order, with their depths and whether they are right children."""
    depths = [0] * len(tree)
    is_right = [False] * len(tree)
    for k, size in enumerate(tree.subtree_size.tolist()):
        if size > 1:
            right = tree.right(k)
            depths[k + 1] = depths[right] = depths[k] + 1
            is_right[right] = True
        yield k, depths[k], is_right[k]


def clauses(tree: Any) -> Iterator[tuple[int, int, bool]]:
    """Yield the nodes in an order that nests little, however deep the tree is.

    Below each split comes the smaller one of its two subtrees, and then, outside of the split, the
    larger one: whoever is in the smaller one has left by then. A subtree inside has at most half
    the leaves, so the splits nest no deeper than the binary logarithm of the number of leaves.
    """
    waiting = [(0, 0)]
    while waiting:
        k, level = waiting.pop()
        if tree.subtree_size[k] == 1:
            yield k, level, True
            continue
        left, right = tree.left(k), tree.right(k)
        left_first = bool(tree.subtree_size[left] <= tree.subtree_size[right])
        yield k, level, left_first
        inside, outside = (left, right) if left_first else (right, left)
        waiting += [(outside, level), (inside, level + 1)]


ONE_WAY = "A row with a missing value goes one way here; the estimator averages both branches."
"""What exports of a tree of C4.5 say."""

_OPPOSITES = {"<=": ">", ">=": "<"}
_RELATIONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


class Split(NamedTuple):
    """The inequality of an internal node, by which a row goes to the left child.

    The terms are weights other than 0 and their features, the most influential first, with a weight
    of 1; the threshold is in units of that feature.
    """

    terms: tuple[tuple[float, int], ...]
    relation: str
    threshold: float

    @property
    def opposite(self) -> Split:
        """The inequality by which a row goes to the right child."""
        return self._replace(relation=_OPPOSITES[self.relation])


class LinearModel(NamedTuple):
    """What a leaf predicts for one output: a sum within bounds, or a number, which has no terms."""

    intercept: float
    terms: tuple[tuple[float, int], ...]
    lowest: float
    highest: float
    is_log: bool = False  # the sum is the logarithm of what is predicted

    @property
    def is_bounded(self) -> bool:
        """Whether the bounds are real ones; those of scores of classes bound nothing."""
        return self.lowest > -LARGEST_SCORE or self.highest < LARGEST_SCORE


@dataclass(frozen=True, eq=False)
class NamedTree:
    """An `ObliqueTree` and its names."""

    tree: Any
    features: tuple[str, ...]
    classes: tuple[Any, ...] | None  # None where the leaves hold numbers
    # The spread of each feature, 1 where it is not known.
    spread: np.ndarray
    # What the features are made of, where it is known.
    columns: tuple[Column, ...] | None = None
    # The mean cost of a row at each node, where the tree was evolved for costs.
    costs: np.ndarray | None = None
    # `SoftSides`, where probabilities are more than the shares of leaves.
    sides: Any = None
    # Names of several outputs; empty for one, and for classes.
    targets: tuple[str, ...] = ()
    shares_rows: bool = False  # whether rows with missing values go down both branches
    choice: str | None = None  # what a fit chose the tree before
    leaf_notes: Mapping[int, str] | None = None  # what is known of leaves besides
    leaf_curves: Mapping[int, Any] | None = None  # survival of their training rows
    has_exposures: bool = False  # whether what differs between rows is no weight

    @cached_property
    def bends(self) -> dict[int, tuple[int, Bend]]:
        """The feature that each bend follows from, and the bend."""
        return bends_of(self.columns or ())

    @cached_property
    def plain(self) -> list[int]:
        """The features that are no bends: what code reads, which computes these."""
        return [j for j in range(len(self.features)) if j not in self.bends]

    @cached_property
    def each(self) -> tuple[NamedTree, ...]:
        """The same tree for each of several outputs alone; otherwise itself."""
        if not self.targets:
            return (self,)
        return tuple(
            replace(self, tree=self.tree.of_output(j), targets=())
            for j in range(len(self.targets))
        )

    @cached_property
    def scores(self) -> NamedTree | None:
        """The tree of the scores of classes, where leaves have logistic models.

        Of two classes it has one output, the log-odds of the second class.
        """
        tree = self.tree
        classes = self.classes
        if tree.models is None or classes is None:
            return None
        if len(classes) == 2:
            return replace(self, tree=tree.of_output(1), classes=None, sides=None)
        return replace(
            self,
            classes=None,
            sides=None,
            targets=tuple(f"score of {label}" for label in classes),
        )

    @cached_property
    def factors(self) -> np.ndarray:
        """Weights of splits and coefficients of leaves, of shape (n_nodes, n_features)."""
        tree = self.tree
        if tree.models is None:
            return tree.weights
        return np.where(
            tree.is_leaf[:, np.newaxis], tree.models.coefficients, tree.weights
        )

    def is_split(self, k: int) -> bool:
        """Return whether node `k` has children."""
        return bool(self.tree.subtree_size[k] > 1)

    def terms(self, k: int) -> list[tuple[float, int]]:
        """Return the factors of node `k` that are not 0 with their features, in order."""
        factors = self.factors[k]
        return [(float(factors[j]), int(j)) for j in np.flatnonzero(factors)]

    def influence(self, k: int) -> np.ndarray:
        """Return |factor| times spread for each feature at node `k`."""
        with np.errstate(over="ignore"):
            return np.abs(self.factors[k]) * self.spread

    def by_influence(self, k: int) -> tuple[tuple[float, int], ...]:
        """Return the terms of node `k`, the most influential first."""
        influence = self.influence(k)
        return tuple(
            sorted(self.terms(k), key=lambda one: (-influence[one[1]], -abs(one[0])))
        )

    def influence_shares(self, k: int) -> tuple[float, ...]:
        """Return the shares of the terms of a split in their influence, or nothing.

        Only where weights cannot tell which term is the larger one: units differ a thousandfold.
        """
        terms = self.by_influence(k)
        sizes = [abs(weight) for weight, _ in terms]
        total = self.influence(k).sum()
        if (
            self.tree.spread is None
            or max(sizes, default=0.0) < _COMPARABLE_RATIO * min(sizes, default=0.0)
            or not 0.0 < total < np.inf
        ):
            return ()
        return tuple(float(self.influence(k)[j] / total) for _, j in terms)

    def split(self, k: int) -> Split:
        """Return the inequality of internal node `k` as all forms for readers show it."""
        terms = self.by_influence(k)
        threshold = float(self.tree.thresholds[k])
        if terms:
            first = terms[0][0]
            scaled = tuple((weight / first, j) for weight, j in terms)
            numbers = [threshold / first, *(weight for weight, _ in scaled)]
            if np.isfinite(numbers).all() and all(weight for weight, _ in scaled):
                return Split(scaled, "<=" if first > 0.0 else ">=", numbers[0] + 0.0)
        # Extreme weights, which division would take to infinity or to 0, stay as they are.
        return Split(terms, "<=", threshold)

    def model(self, k: int) -> LinearModel:
        """Return what node `k` predicts where there are no classes."""
        models = self.tree.models
        if models is None:
            value = float(self.tree.values[k, 0])
            return LinearModel(value, (), value, value)
        intercept, lowest, highest = (
            float(array[k])
            for array in (models.intercepts, models.lowest, models.highest)
        )
        is_log = models.is_log
        if models.coefficients[k].any():
            return LinearModel(intercept, self.by_influence(k), lowest, highest, is_log)
        value = float(np.clip(intercept, lowest, highest))
        return LinearModel(math.exp(value) if is_log else value, (), lowest, highest)

    @property
    def is_weighted(self) -> bool:
        """Whether the training rows had weights that differ; exposures of times are none."""
        return self.tree.row_counts is not None and self.leaf_notes is None

    def rows(self, k: int) -> str | None:
        """Return how many training rows reach a node, in words; None where it is not known.

        Of a leaf also what else is known of them.
        """
        if self.leaf_notes is not None and k in self.leaf_notes:
            return self.leaf_notes[k]
        if self.tree.n_node_samples is None:
            return None
        text = rows_text(float(self.tree.n_node_samples[k]))
        if not self.is_weighted or self.classes is not None:
            return text
        return f"{text}, {'by exposure' if self.has_exposures else 'weighted'}"

    def note(self, k: int) -> str:
        """Return what all drawn forms write beside a node: its number, and its rows if known."""
        return " ".join(filter(None, (f"[{k}]", self.rows(k))))

    @cached_property
    def row_shares(self) -> np.ndarray:
        """Class shares of the training rows of the nodes, each row counting once."""
        counts = self.tree.row_counts
        if counts is None or self.classes is None:
            return self.tree.values
        n_rows = counts.sum(axis=1, keepdims=True, dtype=np.float64)
        return np.where(
            n_rows > 0.0, counts / np.maximum(n_rows, 1.0), self.tree.values
        )

    @cached_property
    def winners(self) -> list[int]:
        """The class that stands for each node where it is shown, by position.

        It is what the node predicts; where leaves have models, so that rows of one leaf differ, the
        most frequent class of its rows.
        """
        tree = self.tree
        return list(map(int, tree.labels if tree.models is None else tree.majority))

    def class_order(self, k: int) -> list[int]:
        """Return the classes of a node as they are shown: its label, then the largest first."""
        label = self.winners[k]
        order = [
            int(c)
            for c in np.argsort(-self.tree.values[k], kind="stable")
            if self.row_shares[k, c] > 0.0
        ]
        return [label, *(c for c in order if c != label)]

    @cached_property
    def holds_actions(self) -> bool:
        """Whether leaves hold what was chosen for them, as actions, and no shares of classes.

        No root of counted rows is of one class where its leaves are of different ones.
        """
        values = self.tree.values
        chosen = values[self.tree.is_leaf].argmax(axis=1)
        return bool((values.max(axis=1) == 1.0).all() and (chosen != chosen[0]).any())

    def shares(
        self, k: int, most: int = 6
    ) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Return the classes of a node and the shares of its rows, in `class_order`, as text."""
        assert self.classes is not None
        values = self.row_shares[k]
        order = self.class_order(k)
        n_shown = len(order) if len(order) <= most else most - 1
        shares = [
            (str(self.classes[c]), share_text(float(values[c])))
            for c in order[:n_shown]
        ]
        label, share = shares[0]
        weighted = share_text(float(self.tree.values[k, order[0]]))
        if n_shown < len(order):
            shares.append(("others", share_text(float(values[order[n_shown:]].sum()))))
        return shares, [(f"by weight {label}", weighted)] if weighted != share else []

    @cached_property
    def indicators(self) -> dict[int, tuple[str, str]]:
        """What features of 0 and 1 say by being 1, and by being 0."""
        return answers_of(self.columns or ())

    def answer(self, split: Split) -> str | None:
        """Return a split of one feature of 0 and 1 in words; None for other splits."""
        if len(split.terms) != 1 or split.terms[0][0] != 1.0:
            return None
        holds = [_RELATIONS[split.relation](x, split.threshold) for x in (1.0, 0.0)]
        known = self.indicators.get(split.terms[0][1])
        return (
            None if known is None or holds[0] == holds[1] else known[holds.index(True)]
        )

    def fills(self) -> list[tuple[str, str]]:
        """Return what stands for missing cells of the columns that the tree uses."""
        if not self.columns:
            return []
        of = column_of_feature(self.columns)
        used = sorted({of[j] for j in used_features([self])})
        return [
            (
                column.name,
                number(column.fill) if isinstance(column, NumericColumn) else MISSING,
            )
            for column in (self.columns[at] for at in used)
            if MISSING in column.feature_levels
        ]

    @cached_property
    def labels(self) -> list[str | int | float | bool]:
        """The classes as labels that code can hold; none where there are no classes."""
        labels = [
            label.item() if isinstance(label, np.generic) else label
            for label in (self.classes or ())
        ]
        for at, label in enumerate(labels):
            is_finite = not isinstance(label, float) or math.isfinite(label)
            if not isinstance(label, str | int | float) or not is_finite:
                raise ValueError(
                    f"class_names[{at}] is {label!r}: allowed in code are strings, "
                    "finite numbers and truth values."
                )
        # A subclass of strings may write itself in another way.
        return [str(label) if isinstance(label, str) else label for label in labels]


def used_features(members: Iterable[NamedTree]) -> list[int]:
    """Return the features that some node of some tree has a factor for, in order."""
    is_used = [(member.factors != 0.0).any(axis=0) for member in members]
    return np.flatnonzero(np.any(is_used, axis=0)).tolist()


def named_tree(
    source: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    output_names: Sequence[str] | None = None,
    parameter: str = "tree",
) -> NamedTree:
    """Return a tree with the names that are given, those its estimator knows, or made ones."""
    members = getattr(source, "named", (source,))
    if len(members) == 1 and isinstance(members[0], NamedTree):
        return members[0]
    if is_forest(source) or len(members) > 1:
        raise ValueError(
            f"tree is a {type(source).__name__}: a forest is exported by export_python, "
            "export_c, export_sql and to_onnx; other forms are of one tree, such as "
            "estimators_[0] of the forest."
        )
    tree = tree_of(source, parameter).validate()
    n_features = tree.n_features
    n_outputs = tree.values.shape[1]
    # Names that are given are names of encoded features.
    columns = getattr(source, "columns_", None) if feature_names is None else None
    has_costs = getattr(getattr(source, "objective_", None), "kind", None) == "cost"
    if feature_names is None:
        feature_names = getattr(
            source, "feature_names_", [f"x{j}" for j in range(n_features)]
        )
    if class_names is None:
        class_names = getattr(source, "classes_", None)
    output_names = tree.output_names if output_names is None else output_names
    if output_names is not None:
        check_length("output_names", output_names, n_outputs, "outputs")
        if class_names is not None:
            raise ValueError(
                "class_names: allowed is None for a tree of several outputs."
            )
    elif class_names is None and n_outputs > 1:
        class_names = range(n_outputs)
    check_length("feature_names", feature_names, n_features, "features")
    if class_names is not None:
        check_length("class_names", class_names, n_outputs, "classes")
        if tree.models is not None and not tree.models.of_classes:
            raise ValueError(
                "class_names: allowed is None where leaves have linear models."
            )
    return NamedTree(
        tree,
        tuple(str(name) for name in feature_names),
        None if class_names is None else tuple(class_names),
        tree.known_spread,
        columns,
        source.expected_costs() if has_costs else None,
        getattr(source, "probabilities_", None),
        () if output_names is None or n_outputs == 1 else tuple(map(str, output_names)),
        getattr(source, "shares_rows_", False),
        _choice_text(source, tree),
        getattr(source, "leaf_notes_", None),
        getattr(source, "leaf_curves_", None),
        getattr(source, "_has_exposures", False),
    )


def _choice_text(source: Any, tree: Any) -> str | None:
    """Return what the fit of an estimator chose, and whether it is this tree."""
    choice = getattr(source, "choice_", None)
    if choice is None:
        return None
    how = "chosen" if tree == source._chosen else "in place of what was chosen"
    return f"{how}: {choice!r}"


def named_trees(
    source: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
) -> list[NamedTree]:
    """Return the trees of a forest with their names, or the one tree of anything else."""
    members = (
        source.estimators_ if is_forest(source) else getattr(source, "named", (source,))
    )
    return [named_tree(member, feature_names, class_names) for member in members]


def is_forest(estimator: Any) -> bool:
    """Return whether an estimator is a forest of this package."""
    return hasattr(estimator, "trees_") and not hasattr(estimator, "tree_")


def tree_of(
    source: Any, parameter: str = "tree", wrong: type[Exception] = ValueError
) -> Any:
    """Return the tree itself, or that of a fitted estimator; `wrong` says that there is none."""
    tree = getattr(source, "tree_", source)
    kind = type(source).__name__
    if hasattr(tree, "subtree_size"):
        return tree
    if not getattr(source, "__sklearn_is_fitted__", lambda: True)():
        raise NotFittedError(f"{parameter}: this {kind} is not fitted; call fit first.")
    advice = "; of a pipeline pass its last step, such as pipeline[-1]"
    raise wrong(
        f"{parameter} is of the type {kind}: allowed are an ObliqueTree and a fitted estimator "
        f"that has one as tree_{advice if hasattr(source, 'steps') else ''}."
    )


def check_length(
    name: str, given: Sequence[Any] | np.ndarray, n: int, things: str
) -> None:
    """Check that a parameter has one entry for each of so many things."""
    if isinstance(given, str):
        raise ValueError(f"{name}={given!r}: allowed is a sequence of {n} names.")
    if len(given) != n:
        raise ValueError(f"{name} has {len(given)} entries: the tree has {n} {things}.")

"""A fitted model: one tree, and all that is known of it once the training rows are gone.

Estimators, fronts, model files, pages, printers and editors take one `Fitted`. All forms for
readers show a split as the same inequality (`Fitted.split`), the numbers of a leaf as the same sum
(`Fitted.model`), and nodes under the numbers that `apply` gives.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError

from evotree.leaf_models import LARGEST_SCORE, SharedModels, check_arrays
from evotree.schema import MISSING, NumericColumn, Schema
from evotree.tables.frames import level_of_user
from evotree.words import check_length, number, rows_text, share_text

if TYPE_CHECKING:  # trees print themselves by what stands on this
    from evotree.tree import ObliqueTree, SoftSides

_COMPARABLE_RATIO = 1000.0
"""Units of weights that differ by more times than this cannot be compared."""

_FAR_SPREADS = 10.0
"""A mean that is further than so many spreads from 0."""


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


_OPPOSITES = {"<=": ">", ">=": "<"}
_RELATIONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


COST = "cost"
"""The name of the objective of costs."""

_MEASURES = {
    COST: "mean cost a row",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1",
    "f1_macro": "mean F1 of the classes",
    "mcc": "Matthews' correlation",
    "log_loss": "share of the log loss saved",
    "brier": "share of the Brier loss saved",
    "roc_auc": "AUC",
    "absolute_error": "share of the absolute error saved",
    "quantile": "share of the pinball loss saved",
    "poisson": "share of the deviance saved",
}


class Inequality(NamedTuple):
    """The inequality of an internal node, by which a row goes to the left child.

    The terms are weights other than 0 and their features, the most influential first, with a weight
    of 1; the threshold is in units of that feature.
    """

    terms: tuple[tuple[float, int], ...]
    relation: str
    threshold: float

    @property
    def opposite(self) -> Inequality:
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
class FitArguments:
    """What `fit` was given beside rows and targets, as whatever scores, edits or refits needs it.

    Attributes
    ----------
    has_weights : bool
        Whether rows had weights that differ.
    has_exposures : bool
        Whether events were counted at exposures: what is predicted is a rate.
    has_groups : bool
        Whether rows belonged together.
    objective : str
        Name of what trees were evolved for; empty for the accuracy, and for the squared error.
    penalties : tuple of float, or None
        The penalties for a node and for a term, given or chosen; None where nothing was penalized.
    signs : mapping of str to int
        1 for columns that the prediction may not fall with, -1 for those that it may not rise with.
    cost_matrix : tuple of tuple of float, or None
        ``cost_matrix[a][b]`` is what it costs to predict class b where class a is true.
    cost_of_columns : tuple of tuple of tuple of str and float
        Columns that are paid together, and what knowing them costs.
    """

    has_weights: bool = False
    has_exposures: bool = False
    has_groups: bool = False
    objective: str = ""
    penalties: tuple[float, float] | None = None
    signs: Mapping[str, int] = field(default_factory=dict)
    cost_matrix: tuple[tuple[float, ...], ...] | None = None
    cost_of_columns: tuple[tuple[tuple[str, ...], float], ...] = ()


@dataclass(frozen=True, eq=False)
class Fitted:
    """A tree over raw features and what is known of it; it never changes.

    Attributes
    ----------
    tree : ObliqueTree
        The tree.
    schema : Schema
        What its features are made of.
    classes : ndarray of shape (n_classes,), or None
        Class labels; None where leaves hold numbers.
    sides : SoftSides or None
        What probabilities are of; None for the shares of leaves.
    training : TrainingRows or None
        Means, spreads and ranges of the training rows, where they are known.
    deviations : ndarray of shape (n_nodes,) or (n_nodes, n_outputs), or None
        Standard deviations of the residuals of the training rows of each leaf.
    output_scale : ndarray of shape (n_outputs,), or None
        Units of the outputs, their standard deviations over the training rows.
    costs : ndarray of shape (n_nodes,), or None
        What a row costs that ends at each node, in the mean; for trees evolved for costs.
    notes : mapping of int to str, or None
        What is said of leaves of times to an event in the place of their rows.
    curves : mapping of int to StepFunction, or None
        Survival of the training rows of these leaves.
    hazard : StepFunction or None
        The cumulative hazard of all training rows, where leaves predict risks.
    choice : TreeChoice or str, or None
        What the fit compared, and chose; of a model of a file its text.
    chosen : ObliqueTree or None
        The tree that was chosen; `tree` may be another one, such as one that was edited.
    by_hand : mapping of int to object
        What leaves were made to predict, by their positions.
    output_names : tuple of str, or None
        Names of several outputs in the place of those of the tree.
    arguments : FitArguments
        What `fit` was given.
    """

    tree: ObliqueTree
    schema: Schema
    classes: np.ndarray | None = None
    sides: SoftSides | None = None
    training: TrainingRows | None = None
    deviations: np.ndarray | None = None
    output_scale: np.ndarray | None = None
    costs: np.ndarray | None = None
    notes: Mapping[int, str] | None = None
    curves: Mapping[int, Any] | None = None
    hazard: Any = None
    choice: Any = None
    chosen: ObliqueTree | None = None
    by_hand: Mapping[int, Any] = field(default_factory=dict)
    output_names: tuple[str, ...] | None = None
    arguments: FitArguments = FitArguments()

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: what follows from them need not be pickled."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Names of several outputs; empty for one, and for classes."""
        names = (
            self.tree.output_names if self.output_names is None else self.output_names
        )
        if names is None or self.tree.values.shape[1] == 1:
            return ()
        return tuple(map(str, names))

    @cached_property
    def spread(self) -> np.ndarray:
        """The spread of each feature, 1 where it is not known."""
        return self.tree.known_spread

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.schema.features

    @property
    def choice_text(self) -> str | None:
        """What the tree was chosen before, or that another one was."""
        if self.choice is None or isinstance(self.choice, str):
            return self.choice
        how = "chosen" if self.tree == self.chosen else "in place of what was chosen"
        return f"{how}: {self.choice!r}"

    @property
    def measure(self) -> str:
        """What trees were evolved for, in words: the name of what `told` returns."""
        plain = "R²" if self.classes is None else "accuracy"
        objective = self.arguments.objective
        return _MEASURES.get(objective, objective or plain)

    @property
    def is_of_costs(self) -> bool:
        """Whether trees were evolved for costs, so that the less is the better."""
        return self.arguments.cost_matrix is not None

    def told(self, quality: Any) -> Any:
        """Return the quality of trees as people know it: of costs the mean cost a row."""
        if self.arguments.cost_matrix is None:
            return quality
        matrix = np.array(self.arguments.cost_matrix)
        of_errors = matrix.sum(axis=1) - matrix.diagonal()
        unit = self.tree.values[0] @ of_errors / max(len(matrix) - 1, 1)
        return (1.0 - quality) * (unit or 1.0)

    @property
    def signs_text(self) -> str | None:
        """What `monotonic_cst` promises, in a line; None without."""
        signs = self.arguments.signs
        if not signs:
            return None
        of = (
            "the prediction"
            if self.classes is None
            else f"the share of {self.classes[-1]}"
        )
        named = [
            (how, [name for name, one in signs.items() if one == sign])
            for how, sign in (("falls", 1), ("rises", -1))
        ]
        parts = [
            f"never {how} with {', '.join(names)}" for how, names in named if names
        ]
        columns = (one for one in self.schema if one.name in signs)
        is_free = any(MISSING in one.feature_levels for one in columns)
        return f"{of} {'; '.join(parts)}{'; missing cells are free' * is_free}"

    @property
    def is_risk(self) -> bool:
        """Whether leaves predict the risk of an event."""
        return self.notes is not None

    def check_beside(
        self,
        method: str,
        exposure: Any = None,
        sample_weight: Any = True,
        groups: Any = True,
    ) -> None:
        """Check that a method of rows is given what `fit` was given beside them.

        Exposures have to be there where leaves predict rates, or else events would be taken for
        rates; of times to an event they follow from the times. Where weights or groups are left
        out, a warning says so.
        """
        if exposure is not None and (self.is_risk or not self.arguments.has_exposures):
            reason = (
                "it follows from the times" if self.is_risk else "fit was given none"
            )
            raise ValueError(
                f"{method}: exposure was given; allowed is None, since {reason}."
            )
        if self.arguments.has_exposures and exposure is None and not self.is_risk:
            raise ValueError(
                f"{method}: exposure=None, but the model was fitted with exposures and predicts "
                "rates; allowed is what the events of these rows were counted at."
            )
        had = self.arguments.has_weights, self.arguments.has_groups
        given = {"sample_weight": sample_weight, "groups": groups}
        for (name, values), was_given in zip(given.items(), had, strict=True):
            if was_given and values is None:
                warnings.warn(
                    f"{method}: the model was fitted with {name}, and these rows have none; "
                    "each counts as one.",
                    stacklevel=level_of_user(),
                )

    @cached_property
    def each(self) -> tuple[Fitted, ...]:
        """The same tree for each of several outputs alone; otherwise itself."""
        if not self.targets:
            return (self,)
        return tuple(
            replace(self, tree=self.tree.of_output(j), output_names=None)
            for j in range(len(self.targets))
        )

    def of_output(self, output: int | str | None) -> Fitted:
        """Return the tree of one of several outputs, by position or name; None is for one alone."""
        names = self.targets
        if not names and output is None:
            return self
        at = names.index(output) if output in names else output
        if isinstance(at, Integral) and 0 <= int(at) < len(names):
            return self.each[int(at)]
        allowed = (
            f"{', '.join(map(repr, names))}, and positions from 0 to {len(names) - 1}"
        )
        raise ValueError(
            f"output={output!r}: allowed are "
            f"{allowed if names else 'None alone, as the tree has one'}."
        )

    @cached_property
    def scores(self) -> Fitted | None:
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
            output_names=tuple(f"score of {label}" for label in classes),
        )

    @cached_property
    def added(self) -> Fitted | None:
        """The tree of what leaves add to a score of targets; None where it stands on none."""
        tree = self.tree
        if not isinstance(tree.models, SharedModels) or tree.n_leaves == 1:
            return None
        return replace(self, tree=tree.with_models(tree.models.added))

    @cached_property
    def score_of_targets(self) -> Fitted:
        """The score of targets that a tree stands on, as a tree of one leaf."""
        tree = self.tree
        leaf = tree.replaced(
            weights=np.zeros((1, tree.n_features)),
            thresholds=np.zeros(1),
            subtree_size=np.ones(1, dtype=np.int32),
            values=tree.values[:1],
            models=tree.models.score,
            weighted_n_node_samples=None,
            labels=None,
            row_counts=None,
        )
        return replace(self, tree=leaf)

    @property
    def is_on_score(self) -> bool:
        """Whether leaves add to a score."""
        has_score = self.scores is not None or self.added is not None
        return has_score and self.tree.n_leaves > 1

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
        """Return the absolute factor times the spread of each feature at node `k`."""
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

    def split(self, k: int) -> Inequality:
        """Return the inequality of internal node `k` as all forms for readers show it."""
        terms = self.by_influence(k)
        threshold = float(self.tree.thresholds[k])
        if terms:
            first = terms[0][0]
            scaled = tuple((weight / first, j) for weight, j in terms)
            numbers = [threshold / first, *(weight for weight, _ in scaled)]
            if np.isfinite(numbers).all() and all(weight for weight, _ in scaled):
                return Inequality(
                    scaled, "<=" if first > 0.0 else ">=", numbers[0] + 0.0
                )
        # Extreme weights, which division would take to infinity or to 0, stay as they are.
        return Inequality(terms, "<=", threshold)

    @cached_property
    def centres(self) -> dict[int, float]:
        """Round numbers near the mean of the features that are never near 0, by position.

        Lines are written by what is above them: a constant says nothing for a year or a latitude
        of 0.
        """
        if self.training is None:
            return {}
        means, spreads = self.training.means[0], self.spread
        is_far = (np.abs(means) > _FAR_SPREADS * spreads) & (spreads > 0.0)
        return {
            j: round(float(means[j]), -math.floor(math.log10(spreads[j])))
            for j in np.flatnonzero(is_far).tolist()
            if self.schema.levels[j] is None
        }

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
        return self.tree.row_counts is not None and not self.is_risk

    def rows(self, k: int) -> str | None:
        """Return how many training rows reach a node, in words; None where it is not known.

        Of a leaf also what else is known of them.
        """
        if self.notes is not None and k in self.notes:
            return self.notes[k]
        if self.tree.n_node_samples is None:
            return None
        n = float(self.tree.n_node_samples[k])
        if n == 0.0:
            return "never reached"
        text = rows_text(n, "state" if self.holds_actions else "row")
        if not self.is_weighted or self.classes is not None:
            return text
        unit = "by exposure" if self.arguments.has_exposures else "weighted"
        return f"{text}, {unit}"

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

    def answer(self, split: Inequality) -> str | None:
        """Return a split of one feature of 0 and 1 in words; None for other splits."""
        if len(split.terms) != 1 or split.terms[0][0] != 1.0:
            return None
        holds = [_RELATIONS[split.relation](x, split.threshold) for x in (1.0, 0.0)]
        known = self.schema.answers.get(split.terms[0][1])
        return (
            None if known is None or holds[0] == holds[1] else known[holds.index(True)]
        )

    def fills(self) -> list[tuple[str, str]]:
        """Return what stands for missing cells of the columns that the tree uses."""
        column_of = self.schema.column_of
        used = sorted({int(column_of[j]) for j in used_features([self])})
        return [
            (
                column.name,
                number(column.fill) if isinstance(column, NumericColumn) else MISSING,
            )
            for column in (self.schema[c] for c in used)
            if MISSING in column.feature_levels
        ]

    @cached_property
    def labels(self) -> list[str | int | float | bool]:
        """The classes as labels that code can hold; none where there are no classes."""
        labels = [
            label.item() if isinstance(label, np.generic) else label
            for label in ([] if self.classes is None else self.classes)
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


def used_features(members: Iterable[Fitted]) -> list[int]:
    """Return the features that some node of some tree has a factor for, in order."""
    is_used = [(member.factors != 0.0).any(axis=0) for member in members]
    return np.flatnonzero(np.any(is_used, axis=0)).tolist()


def fitted_of(
    source: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    output_names: Sequence[str] | None = None,
    parameter: str = "tree",
) -> Fitted:
    """Return what is known of a tree, an estimator or a model, with any names that are given.

    Names of features are ``x0``, ``x1`` where nobody knows them; those that are given are names of
    encoded features, of which no table is known.
    """
    members = _own_members(source)
    if len(members) > 1 or is_forest(source):
        raise ValueError(
            f"tree is a {type(source).__name__}: a forest is exported by export_python, "
            "export_c, export_sql and to_onnx; other forms are of one tree, such as "
            "estimators_[0] of the forest."
        )
    if members:
        (fitted,) = members
        tree = fitted.tree
    else:
        tree = tree_of(source, parameter).validate()
        fitted = Fitted(
            tree,
            Schema.of_features(f"x{j}" for j in range(tree.n_features)),
            classes=getattr(source, "classes_", None),
        )
    n_outputs = tree.values.shape[1]
    if feature_names is not None:
        check_length("feature_names", feature_names, tree.n_features, "features")
        fitted = replace(fitted, schema=Schema.of_features(feature_names))
    if output_names is not None:
        check_length("output_names", output_names, n_outputs, "outputs")
        fitted = replace(fitted, output_names=tuple(output_names))
    has_outputs = output_names is not None or tree.output_names is not None
    if class_names is None and fitted.classes is None and not has_outputs:
        class_names = range(n_outputs) if n_outputs > 1 else None
    if class_names is not None:
        if has_outputs:
            raise ValueError(
                "class_names: allowed is None for a tree of several outputs."
            )
        check_length("class_names", class_names, n_outputs, "classes")
        if tree.models is not None and not tree.models.of_classes:
            raise ValueError(
                "class_names: allowed is None where leaves have linear models."
            )
        labels = np.empty(n_outputs, dtype=object)
        labels[:] = list(class_names)
        fitted = replace(fitted, classes=labels)
    return fitted


def members_of(
    source: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
) -> list[Fitted]:
    """Return the trees of a forest, or the one tree of anything else, as `fitted_of` does."""
    return [
        fitted_of(member, feature_names, class_names)
        for member in _own_members(source) or (source,)
    ]


def _own_members(source: Any) -> tuple[Fitted, ...]:
    """Return the fitted trees of a model or an estimator; none where it knows its tree alone."""
    if isinstance(source, Fitted):
        return (source,)
    if is_forest(source):
        return tuple(member.fitted_ for member in source.estimators_)
    members: tuple[Fitted, ...] = getattr(source, "members", ())
    own = getattr(source, "fitted_", None)
    return members if own is None else (own,)


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


@dataclass(frozen=True, eq=False, repr=False)
class TrainingRows:
    """A summary of the training rows at the nodes of a tree, weighted.

    Attributes
    ----------
    means : ndarray of shape (n_nodes, n_features), float64
        Means of the features over the rows that reach each node; of a node that none reaches, those
        of its parent.
    spreads : ndarray of shape (n_nodes,), float64
        Standard deviations of the projections ``weights[k] @ x`` over the rows that reach each
        internal node, above 0; 1 at leaves.
    lowest, highest : ndarray of shape (n_features,), float64
        The range of each feature over all rows.
    """

    means: np.ndarray
    spreads: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray

    def __repr__(self) -> str:
        n_nodes, n_features = self.means.shape
        return f"TrainingRows(n_nodes={n_nodes}, n_features={n_features})"

    def validate(self, tree: ObliqueTree) -> TrainingRows:
        """Return the summary if its arrays fit a tree, else say which does not."""
        n_nodes, n_features = tree.weights.shape
        check_arrays(
            vars(self),
            ((n_nodes, n_features), (n_nodes,), (n_features,), (n_features,)),
        )
        if self.spreads.min() <= 0.0:
            raise ValueError("spreads has values that are not above 0.")
        return self


def summarize(
    tree: ObliqueTree, X: np.ndarray, sample_weight: np.ndarray
) -> TrainingRows:
    """Return the summary of the training rows of a tree."""
    leaves = tree.apply(X)
    order = np.argsort(leaves, kind="stable")
    rows, weight = X[order], sample_weight[order]
    nodes = np.arange(len(tree))
    # In prefix order the rows of a node stand together.
    begin, end = np.searchsorted(leaves[order], [nodes, nodes + tree.subtree_size])
    means, spreads = np.zeros(tree.weights.shape), uncorrelated_spreads(tree)
    with np.errstate(over="ignore", invalid="ignore"):
        for k, (first, last) in enumerate(zip(begin, end, strict=True)):
            own, shares = rows[first:last], weight[first:last]
            total = shares.sum()
            if total > 0.0:
                means[k] = shares @ own / total
            if tree.subtree_size[k] == 1:
                continue
            means[[tree.left(k), tree.right(k)]] = means[k]  # where no row goes there
            away = own @ tree.weights[k] - means[k] @ tree.weights[k]
            spread = np.sqrt(shares @ np.square(away) / (total or 1.0))
            # Of one row, or of rows with equal projections, there is no spread to speak of.
            if np.isfinite(spread) and spread > 1e-12 * spreads[k]:
                spreads[k] = spread
    return TrainingRows(means, spreads, X.min(axis=0), X.max(axis=0))


def uncorrelated_spreads(tree: ObliqueTree) -> np.ndarray:
    """Return what the spreads of the projections would be if the features were not correlated."""
    with np.errstate(over="ignore"):
        spreads = np.sqrt(np.square(tree.weights * tree.known_spread).sum(axis=1))
    return np.where((spreads > 0.0) & np.isfinite(spreads), spreads, 1.0)

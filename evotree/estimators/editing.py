"""Edits of a fitted tree by hand: each makes a new model, whose leaves the rows fill again."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from evotree.configuration import CONSTANT, LINEAR, SCORE
from evotree.engine.config import evolution_of
from evotree.engine.finish import Finisher, scores_on
from evotree.engine.problem import PARAMETERS, Penalties
from evotree.engine.toolbox import feature_bound
from evotree.estimators.rows import Beside
from evotree.fitness.base import PenalizedAccuracy, costs_of_rows
from evotree.front import FrontTree
from evotree.leaf_models import ScoreModels, SharedModels
from evotree.operators.constraints import Held
from evotree.operators.losses import quality_on
from evotree.operators.pruning import kept_nodes, prune_tree
from evotree.schema import LARGEST, columns_asked, is_number
from evotree.texts import split_of_text
from evotree.tree import ObliqueTree, node_weights


class Editor:
    """Edits of the tree of a fitted model, which stays as it is; see ``model.edit``.

    Each method returns a new model, whose ``edit_cost_`` has, on the rows given, accuracy or R²,
    the quality after the penalties for nodes and terms, complexity, and where trees were evolved
    for costs the mean cost a row, before and after the edit, and how many rows reach another leaf
    and are predicted otherwise. Nodes are positions in the arrays of ``tree_``, as printed. Leaves,
    probabilities, explanations and deviations are those that a fit makes of these rows; all nodes
    need some.
    """

    def __init__(self, model: Any, X: Any, y: Any, beside: Beside) -> None:
        check_is_fitted(model)
        model.fitted_.check_beside("edit", beside.exposure, beside.sample_weight)
        self.model = model
        self.tree = model.tree_
        self._finisher = finisher_of(model, X, y, beside)

    def __repr__(self) -> str:
        splits, leaves = (
            ", ".join(map(str, np.flatnonzero(self.tree.is_leaf == is_leaf))) or "none"
            for is_leaf in (False, True)
        )
        n_rows = self._finisher.rows.n_rows
        return (
            f"Editor of {type(self.model).__name__}, {n_rows} rows: splits {splits}; "
            f"leaves {leaves}"
        )

    def prune(self, node: int) -> Any:
        """Return a model in which a split, with all below it, is a leaf."""
        marks = np.arange(len(self.tree)) == self._node("prune", node)
        kept, _ = kept_nodes(self.tree.subtree_size, marks)
        return self._refilled(f"prune({node})", prune_tree(self.tree, marks), kept)

    def set_threshold(self, node: int, value: float) -> Any:
        """Return a model in which a split has another threshold, for the sum that is printed."""
        k = self._node("set_threshold", node)
        shown = self.model.fitted_.split(k)
        threshold = float(self.tree.thresholds[k])
        if _checked_number("value", value) != shown.threshold:
            weight, j = shown.terms[0]
            threshold = value * float(self.tree.weights[k, j] / weight)
        return self._with_split(
            f"set_threshold({node}, {value!r})", k, self.tree.weights[k], threshold
        )

    def set_split(self, node: int, split: str) -> Any:
        """Return a model in which a split is another one, written as `export_text` prints it.

        Such as ``"savings - 12 * instalment >= 3000"``, a sum of features that
        ``feature_names_`` has, or ``"work is self-employed"``. Rows for which it holds go to the
        first branch.
        """
        k = self._node("set_split", node)
        if not isinstance(split, str):
            raise ValueError(
                f"split={split!r}: allowed are texts such as 'a + 2 * b <= 3'."
            )
        weights, threshold = split_of_text(split, self.model.feature_names_, "split")
        normal = np.zeros(self.tree.n_features)
        normal[list(weights)] = list(weights.values())
        return self._with_split(f"set_split({node}, {split!r})", k, normal, threshold)

    def drop_term(self, node: int, feature: str | int) -> Any:
        """Return a model in which a split lacks a term, for which the mean of its rows stands."""
        k = self._node("drop_term", node)
        (j,) = columns_asked([feature], self.model.feature_names_, "feature")
        weights = self.tree.weights[k].copy()
        used = np.flatnonzero(weights)
        if j not in used or len(used) == 1:
            names = ", ".join(repr(self.model.feature_names_[at]) for at in used)
            allowed = (
                f"one of {names}" if len(used) > 1 else f"none of {names}, the only one"
            )
            raise ValueError(
                f"feature={feature!r}: of the split {node} allowed is {allowed}."
            )
        mean = self.model.fitted_.training.means[k, j]
        threshold = float(self.tree.thresholds[k] - weights[j] * mean)
        weights[j] = 0.0
        return self._with_split(
            f"drop_term({node}, {feature!r})", k, weights, threshold
        )

    def swap(self, node: int) -> Any:
        """Return a model that predicts the same, in which the sides of a split change places."""
        k = self._node("swap", node)
        tree, nodes = self.tree, np.arange(len(self.tree))
        right, end = tree.right(k), k + tree.subtree_size[k]
        kept = np.r_[
            nodes[: k + 1], nodes[right:end], nodes[k + 1 : right], nodes[end:]
        ]
        weights, thresholds, sizes = (array[kept] for array in tree.splits)
        weights[k] = 0.0 - weights[k]
        # A row on the hyperplane was on the left, and has to be on the right.
        thresholds[k] = np.nextafter(-thresholds[k], -np.inf) + 0.0
        models = None if tree.models is None else tree.models.take(kept)
        swapped = ObliqueTree(
            weights, thresholds, sizes, tree.values[kept], tree.spread, models=models
        )
        return self._refilled(f"swap({node})", swapped, kept)

    def relabel(self, leaf: int, value: Any) -> Any:
        """Return a model in which a leaf predicts another class, or a number; None ends that.

        Probabilities and the records of rows stay. Later edits keep what leaves predict by hand.
        """
        k = self._node("relabel", leaf, is_leaf=True)
        edit = f"relabel({leaf}, {value!r})"
        objective = self.model.objective_
        models = self.tree.models
        if models is not None and models.of_classes:  # which have no label of their own
            raise ValueError(f"{edit}: allowed are leaves that stand on no score.")
        if objective is not None and objective.constraint is not None:
            raise ValueError(f"{edit}: allowed are trees without monotonic_cst.")
        code: Any = value
        if value is not None and is_classifier(self.model):
            classes = self.model.classes_.tolist()
            if value not in classes:
                raise ValueError(
                    f"value={value!r}: allowed are None and the classes {classes}."
                )
            code = classes.index(value)
        elif value is not None:
            n_outputs = self.tree.values.shape[1]
            numbers = np.atleast_1d(np.array(value, dtype=object))
            if numbers.shape != (n_outputs,):
                raise ValueError(
                    f"value={value!r}: allowed are None and numbers, {n_outputs}."
                )
            code = np.array([_checked_number("value", one) for one in numbers])
        return self._refilled(edit, self.tree, np.arange(len(self.tree)), {k: code})

    # ---- what edits are made of ------------------------------------------------------------------

    def _node(self, edit: str, node: Any, is_leaf: bool = False) -> int:
        """Return a node that is a split, or a leaf."""
        allowed = np.flatnonzero(self.tree.is_leaf == is_leaf).tolist()
        if (
            isinstance(node, bool)
            or not isinstance(node, Integral)
            or node not in allowed
        ):
            name, kinds = ("leaf", "leaves") if is_leaf else ("node", "splits")
            raise ValueError(
                f"{edit}: {name}={node!r}; allowed are {kinds} of tree_: "
                f"{', '.join(map(str, allowed)) or 'there are none'}."
            )
        return int(node)

    def _with_split(
        self, edit: str, k: int, normal: np.ndarray, threshold: float
    ) -> Any:
        """Return a model with another hyperplane at a node."""
        nodes = np.arange(len(self.tree))
        tree = self.tree.replaced(
            weights=np.where(nodes[:, np.newaxis] == k, normal, self.tree.weights),
            thresholds=np.where(nodes == k, threshold, self.tree.thresholds),
        )
        return self._refilled(edit, tree, nodes)

    def _refilled(
        self, edit: str, tree: ObliqueTree, kept: np.ndarray, relabelled: Any = None
    ) -> Any:
        """Return a copy of the model with other splits, and what the edit cost.

        The leaves are those that a fit makes, but for what some were made to predict by hand.
        """
        model = self.model
        tree = refill(edit, model, self._finisher, tree)
        before = model.fitted_.by_hand
        by_hand = {
            k: before[at] for k, at in enumerate(kept.tolist()) if at in before
        } | (relabelled or {})
        after = {
            k: value
            for k, value in by_hand.items()
            if value is not None and tree.is_leaf[k]
        }
        tree = _relabelled(tree, after)
        rows, old = self._finisher.rows, self.tree
        worth_before, _ = self._worth(old, before)
        worth, edited = self._worth(tree, after)
        n_moved, n_changed = _differences(rows, old, tree, kept)
        cost: dict[str, Any] = {}
        for name, value in worth_before.items():
            cost |= {f"{name}_before": value, name: worth[name]}
        cost |= {"n_moved": n_moved, "n_changed": n_changed}
        made = copy(model)
        fitted = model._fitted_of(tree, self._finisher.problem.dataset)
        made.fitted_ = replace(model._with_labels(fitted, edited), by_hand=after)
        made.pareto_front_ = model.pareto_front_.choosing(tree)
        made.edit_cost_ = pd.Series(cost, name=edit, dtype=object)
        return made

    def _worth(
        self, tree: ObliqueTree, by_hand: Mapping[int, Any]
    ) -> tuple[dict[str, Any], FrontTree]:
        """Return what a tree is worth on the rows, and the tree with its quality."""
        model, rows = self.model, self._finisher.rows
        if not by_hand:
            quality = scores_on(rows, tree)[0]
        elif rows.n_classes and rows.objective is not None and not tree.models:
            # It reads what the rows say, not what was set by hand.
            quality = np.nan
        else:
            quality = quality_on(rows, tree)
        judged = FrontTree.of(tree, quality, "edited")
        fitness: Any = PenalizedAccuracy(model.size_penalty_, model.term_penalty_)
        worth = {
            "complexity": tree.complexity,
            "score": model._score_of(rows, tree),
            "objective": float(fitness(judged)[0]),
        }
        fitted = replace(model.fitted_, tree=tree)
        if fitted.is_of_costs:
            paid = costs_of_rows(fitted, rows.raw, rows.y)
            worth["cost"] = float(np.average(paid, weights=rows.sample_weight))
        return worth, judged


def _checked_number(name: str, value: Any) -> float:
    """Return a number that rows may have, too."""
    if isinstance(value, bool) or not is_number(value):
        raise ValueError(
            f"{name}={value!r}: allowed are numbers of magnitudes up to {LARGEST:g}."
        )
    return float(value)


def finisher_of(model: Any, X: Any, y: Any, beside: Beside) -> Finisher:
    """Return what finishes trees for rows, encoded as those that a model was fitted to."""
    model.encode(X)  # refuses other columns
    twin = copy(model)
    if model._refit_evolution is not None:
        twin.evolution = model._refit_evolution
    dataset = twin._make_dataset(
        X, y, beside, evolution_of(model).scaling, model.fitted_.schema
    )
    if dataset.n_classes:
        name, had, has = "classes_", model.classes_.tolist(), dataset.classes.tolist()
    else:
        name, had, has = "n_outputs_", [model.n_outputs_], [dataset.n_outputs]
    if had != has:
        raise ValueError(
            f"y has {name}={has}: allowed are rows with those of the fit, {had}."
        )
    return Finisher(
        twin._problem(dataset), Penalties(model.size_penalty_, model.term_penalty_)
    )


def refill(edit: str, model: Any, finisher: Finisher, tree: ObliqueTree) -> ObliqueTree:
    """Return splits with the leaves that a fit makes of rows, or say why there are none."""
    rows = finisher.rows
    bound = feature_bound(model.max_split_terms, tree.n_features)
    reached = node_weights(tree.apply(rows.raw), rows.sample_weight, tree.subtree_size)
    if empty := np.flatnonzero(reached == 0.0).tolist():
        raise ValueError(
            f"{edit}: no row reaches the nodes {empty}; allowed are splits with rows on both "
            "sides; prune what is below first."
        )
    if bound is not None and np.count_nonzero(tree.weights, axis=1).max() > bound:
        raise ValueError(f"{edit}: max_split_terms allows {bound} terms of a split.")
    if broken := [PARAMETERS[type(one).__name__] for one in finisher.broken(tree)]:
        raise ValueError(f"{edit} breaks {broken[0]}: allowed are trees that keep it.")
    return finisher.refilled(tree, model._strength if tree.models else None)


def _relabelled(tree: ObliqueTree, values: Mapping[int, Any]) -> ObliqueTree:
    """Return a tree some of whose leaves predict other classes, by position, or numbers."""
    if not values:
        return tree
    leaves = list(values)
    given = np.array(list(values.values()))
    if given.ndim == 1:
        labels = tree.labels.copy()
        labels[leaves] = given
        return tree if (labels == tree.labels).all() else tree.labelled(labels)
    numbers = tree.values.copy()
    numbers[leaves] = given
    if tree.models is None:
        return tree.replaced(values=numbers)
    each = [type(models)(*map(np.copy, models)) for models in tree.models.each]
    for j, models in enumerate(each):
        models.coefficients[leaves] = 0.0
        for array in (models.intercepts, models.lowest, models.highest):
            array[leaves] = models.as_scores(given[:, j])
    return tree.replaced(values=numbers, models=tree.models.with_each(each))


def _differences(
    rows: Any, before: ObliqueTree, after: ObliqueTree, kept: np.ndarray
) -> tuple[int, int]:
    """Return how many rows reach another leaf, and how many are predicted otherwise."""
    predict = "predict_label" if rows.n_classes else "predict_value"
    first, second = (getattr(tree, predict)(rows.raw) for tree in (before, after))
    is_moved = is_other = (first != second).reshape(len(first), -1).any(axis=1)
    if len(after) == len(kept):  # else leaves that have to be equal were joined
        is_moved = kept[after.apply(rows.raw)] != before.apply(rows.raw)
    return int(rows.multiplicity @ is_moved), int(rows.multiplicity @ is_other)


def refit(model: Any, X: Any, y: Any, beside: Beside, hold: Any) -> Any:
    """Return a model of a search that goes on from the tree of another one."""
    check_is_fitted(model)
    model.fitted_.check_beside(
        "refit", beside.exposure, beside.sample_weight, beside.groups
    )
    start = model.tree_
    of_edits = replace(beside, groups=None, cv=None)
    if hold is None and X is not None:
        for held in finisher_of(model, X, y, of_edits).constraints:
            if isinstance(held, Held):
                hold = held.places_in(start)
    shapes = model.fitted_.schema.shapes or None  # the start has terms of these
    evolution = replace(
        evolution_of(model),
        start=start.replaced(models=None),
        hold=hold,
        shapes=shapes,
    )
    found = clone(model).set_params(
        evolution=evolution,
        size_penalty=model.size_penalty_,
        term_penalty=model.term_penalty_,
    )
    if (
        getattr(model, "leaves", None) == SCORE
    ):  # which comes with the tree that is kept
        found.set_params(leaves=CONSTANT if is_classifier(model) else LINEAR)
    found.fit(X, y, **beside.given)
    editor = Editor(found, X, y, of_edits)
    if isinstance(
        start.models, (ScoreModels, SharedModels)
    ):  # what was found stands on the same score
        splits = found.tree_.with_models(start.models)
        found = editor._refilled("refit", splits, np.arange(len(splits)))
        editor = Editor(found, X, y, of_edits)
    kept = editor._refilled("refit", start, np.arange(len(start)))
    cost = kept.edit_cost_
    best = kept if cost.objective > cost.objective_before else found
    best.edit_cost_ = None
    # Start, penalties and kind of leaves were those of this search alone.
    best.set_params(**clone(model).get_params(deep=False))
    best._refit_evolution = evolution
    best._last = None  # of other parameters
    return best

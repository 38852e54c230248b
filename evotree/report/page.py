"""The page of a report: one file of HTML with data, script and styles that asks for nothing else.

What it shows is one dictionary that JSON can hold, and how well a tree or forest predicts the rows
of the report, beside the tree of one leaf. Only the columns that some tree uses are there, and
features are counted among those that these columns make.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
from sklearn.metrics import confusion_matrix
from sklearn.utils.validation import check_is_fitted

from evotree._version import __version__
from evotree.engine.evolution import ORIGIN, to_frame
from evotree.files import PathLike, write_whole
from evotree.fitness.base import costs_of_rows, prices_of
from evotree.fitness.probabilities import brier_losses, ranking_losses
from evotree.fitted import (
    Fitted,
    TrainingRows,
    is_forest,
    members_of,
    summarize,
    uncorrelated_spreads,
    used_features,
)
from evotree.front import TreeChoice
from evotree.importances import importances
from evotree.leaf_models import class_probabilities
from evotree.plotting.shapes import column_lines
from evotree.plotting.style import class_colors
from evotree.schema import (
    MISSING,
    NumericColumn,
    Schema,
    quoted,
    text_of,
)
from evotree.survival import Times, concordance
from evotree.tables.columns import (
    encode_in_order,
    levels_of,
    numbers_of,
    positions_of,
)
from evotree.tables.frames import by_row
from evotree.texts import Wording, export_rules, numbered
from evotree.tree import (
    ObliqueTree,
    mean_of_trees,
    node_weights,
)
from evotree.words import operand

MAX_PAGE_ROWS = 1000
# The rows of the page have no more cells, if that leaves 20 of them.
MAX_CELLS = 40_000
# Of a front whose trees have more nodes, every second tree is shown, or third, and so on.
MAX_FRONT_NODES = 4000
MAX_SURVIVAL_STEPS = 100
N_CALIBRATION_BINS = 10
N_LINE_POINTS = 49
MAX_CONFUSED = 12  # classes whose confusion matrix is shown
# Least shares of votes for the class, of each group of rows.
BANDS = (1.0, 0.9, 0.75, 0.5, 0.0)

Rows: TypeAlias = np.ndarray | None
Figures: TypeAlias = dict[str, float | None]


@dataclass(frozen=True, eq=False)
class Subject:
    """A model to report on.

    Attributes
    ----------
    fitted : Fitted
        The tree; of a forest the first one.
    target : str
        What is predicted.
    front : sequence of Fitted
        Other trees to choose from, by rising complexity; may be empty.
    history : pandas.DataFrame or None
        The records of the generations, as `evotree.to_frame` makes them.
    facts : mapping of str to str
        What else is known of the training, to be shown as it is.
    members : sequence of Fitted
        The trees of a forest; empty where the model is one tree.
    """

    fitted: Fitted
    target: str = "the target"
    front: Sequence[Fitted] = ()
    history: pd.DataFrame | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    members: Sequence[Fitted] = ()

    @classmethod
    def of(cls, model: Any, target: str | None = None) -> Self:
        """Return what a fitted estimator of this package knows of itself."""
        history = getattr(model, "history_", None)
        front = getattr(model, "pareto_front_", None)
        return cls(
            model.fitted_,
            target or "the target",
            front=() if front is None else front.models,
            history=to_frame(history) if history else None,
            facts=_facts(model),
            members=members_of(model) if is_forest(model) else (),
        )

    @property
    def trees(self) -> tuple[list[Fitted], int]:
        """The trees to choose from, by rising complexity, and the position of the model's own."""
        own = self.fitted
        others = [one for one in self.front if one.tree != own.tree]
        at = sum(one.tree.complexity <= own.tree.complexity for one in others)
        return [*others[:at], own, *others[at:]], at


def _facts(estimator: Any) -> dict[str, str]:
    """Return what a fit has chosen and how it ended, as text."""
    found = {"estimator": type(estimator).__name__}
    if hasattr(estimator, "oob_score_"):
        name = "accuracy" if hasattr(estimator, "classes_") else "R²"
        found["out of bag"] = f"{name} {estimator.oob_score_:.4f}"
    if (choice := getattr(estimator, "choice_", None)) is not None:
        found["chosen"] = repr(choice)
    for name in ("size_penalty", "term_penalty"):
        if hasattr(estimator, f"{name}_"):
            found[name.replace("_", " ")] = f"{getattr(estimator, f'{name}_'):.4g}"
    if hasattr(estimator, "n_generations_"):
        found["generations"] = str(estimator.n_generations_)
        found["stopped by"] = str(estimator.stop_reason_).replace("_", " ")
        found["seconds"] = ", ".join(
            f"{name} {took:.3g}"
            for name, took in estimator.seconds_.items()
            if took >= 0.05
        )
    return found


def collect(subject: Subject, cells: pd.DataFrame | None, y: Any) -> dict[str, Any]:
    """Return all that a page shows."""
    fitted, schema = subject.fitted, subject.fitted.schema
    rows = None if cells is None else encode_in_order(schema, cells)
    truth = None if y is None else _truth(y, subject.fitted, rows)
    training = _training(subject.fitted, rows)
    shown, own = _shown(subject)
    # Features of all columns that some tree uses are kept, and counted among these.
    column_of = schema.column_of
    used_columns = np.unique(column_of[used_features(shown)]).tolist()
    kept = np.flatnonzero(np.isin(column_of, used_columns))
    trees = [
        _tree(one, subject, rows, truth, bool(subject.members) or at == own, kept)
        for at, one in enumerate(shown)
    ]
    # A bend is outside of its range where the number is.
    is_bend = np.isin(np.arange(len(column_of)), list(schema.bends))
    classes = (
        None if fitted.classes is None else [text_of(label) for label in fitted.classes]
    )
    drawn = _drawn(0 if cells is None else len(cells), len(used_columns))
    columns, of_rows = _columns_of_page(schema, used_columns, cells, drawn)
    shown_rows = {
        "total": len(drawn) if cells is None else len(cells),
        "numbers": drawn.tolist(),
        "cells": of_rows,
        # Of times there is no number to stand beside a risk.
        "y": None
        if truth is None or isinstance(truth, Times)
        else truth[drawn].tolist(),
    }
    return {
        "version": __version__,
        "target": "the risk" if fitted.is_risk else subject.target,
        "classes": classes,
        "colors": None if classes is None else class_colors(len(classes)),
        "columns": columns,
        "features": [fitted.features[j] for j in kept.tolist()],
        "operands": [
            operand(fitted.features[j], fitted.features[j]) for j in kept.tolist()
        ],
        "centres": [fitted.centres.get(j) for j in kept.tolist()],
        "negations": [
            fitted.schema.answers.get(j, (None, None))[1] for j in kept.tolist()
        ],
        "measure": fitted.measure,
        "costs": fitted.arguments.cost_matrix,
        "signs": fitted.signs_text,
        "weighted": fitted.is_weighted,
        "risk": fitted.is_risk,
        "spread": _with_few_digits(fitted.spread[kept]),
        "means": _with_few_digits(training.means[0, kept]),
        "lowest": _with_few_digits(np.where(is_bend, -np.inf, training.lowest)[kept]),
        "highest": _with_few_digits(np.where(is_bend, np.inf, training.highest)[kept]),
        "trees": trees,
        "own": own,
        "forest": _forest(subject, kept, rows, truth) if subject.members else None,
        "rows": None if cells is None else shown_rows,
        "history": None if subject.history is None else _history(subject.history),
        "facts": dict(subject.facts),
        # The page counts trees from 0, as `estimators_` does.
        "rules": numbered(
            [export_rules(one) for one in subject.members or [subject.fitted]],
            first=0,
        ),
        "notes": _notes_of_page(subject, rows, truth, len(trees)),
    }


def _truth(y: Any, fitted: Fitted, rows: Rows) -> np.ndarray | Times:
    """Return targets as floats, positions of their classes, compared as written, or times."""
    classes = fitted.classes
    times = Times.read(y) if fitted.is_risk else None
    kind = None if classes is None else object
    values = np.asarray(y, dtype=kind) if times is None else times.time
    n = 0 if rows is None else len(rows)
    if rows is None or values.shape != (n,):
        raise ValueError(
            f"y has shape {values.shape}: allowed is ({n},), one for each row of X."
        )
    if times is not None:
        return times
    if classes is None:
        numbers = numbers_of(pd.Series(values)).to_numpy()
        if not np.isfinite(numbers).all():
            raise ValueError("y has values that are not finite numbers.")
        return numbers
    codes = positions_of(classes.tolist(), values)
    if (strange := values[codes < 0]).size:
        shown = "a missing value" if pd.isna(strange[0]) else quoted(strange[0])
        raise ValueError(f"y has {shown}: allowed are the classes of the model.")
    return codes


def _training(fitted: Fitted, rows: Rows) -> TrainingRows:
    """Return the summary of the training rows, or what comes nearest to it."""
    tree = fitted.tree
    if fitted.training is not None:
        return fitted.training
    if rows is not None:
        return summarize(tree, rows, np.ones(len(rows)))
    anything = np.full(tree.n_features, np.inf)
    return TrainingRows(
        means=np.zeros(tree.weights.shape),
        spreads=uncorrelated_spreads(tree),
        lowest=-anything,
        highest=anything,
    )


def _shown(subject: Subject) -> tuple[Sequence[Fitted], int]:
    """Return the trees to choose from, every n-th as room allows, and where the model's own is."""
    if subject.members:
        return subject.members, 0
    trees, own = subject.trees
    step = -(-sum(len(one.tree) for one in trees) // MAX_FRONT_NODES)
    shown = range(own % step, len(trees), step)
    return [trees[at] for at in shown], shown.index(own)


def _tree(
    fitted: Fitted,
    subject: Subject,
    rows: Rows,
    truth: Any,
    own: bool,
    kept: np.ndarray,
) -> dict[str, Any]:
    """Return one of the trees to choose from, its features counted among those that are kept."""
    training = _training(fitted, rows)
    tree: ObliqueTree = fitted.tree
    member: Any = next((one.tree for one in subject.front if one.tree == tree), None)
    nodes = [_node(fitted, k, training, own, kept) for k in range(len(tree))]
    has_range = np.isfinite(training.lowest).all()
    if own and not subject.members and has_range:
        _add_shapes(nodes, replace(fitted, training=training), kept)
    if fitted.costs is not None:
        asked = prices_of(fitted)[1]
        for node, cost, price in zip(nodes, fitted.costs, asked, strict=True):
            node |= {"cost": _with_few_digits(cost), "asked": float(price)}
    words = Wording(fitted, times=" ", is_printed=True)
    for k in np.flatnonzero(tree.is_leaf).tolist() if fitted.is_on_score else ():
        nodes[k]["points"] = " ".join(words.predicted(k))
    return {
        "nodes": nodes,
        "score": list(map(" ".join, words.score())) if fitted.is_on_score else [],
        "size": tree.subtree_size.tolist(),
        "soft": fitted.sides is not None,
        "leaves": tree.n_leaves,
        "terms": tree.n_terms,
        "complexity": tree.complexity,
        "depth": tree.depth,
        "quality": None
        if member is None
        else _with_few_digits(fitted.told(member.quality)),
        "heldOut": fitted.choice.judged_text(tree.n_leaves, tree.n_terms)
        if isinstance(fitted.choice, TreeChoice)  # a file has its text alone
        else None,
        "origin": None if member is None else str(member.origin),
        "importances": _most_important(importances(tree), fitted.schema, kept),
        "measures": None
        if rows is None or truth is None
        else measures(fitted, rows, truth),
    }


def _add_shapes(nodes: list[dict[str, Any]], fitted: Fitted, kept: np.ndarray) -> None:
    """Give each node with bent columns the lines of its columns, as `plot_shapes` draws them."""
    used_columns = np.unique(fitted.schema.column_of[kept]).tolist()
    scored = fitted.scores or fitted
    bent = list(fitted.schema.bends)
    is_bent = np.any([one.factors[:, bent] for one in scored.each], axis=(0, 2))
    for k in np.flatnonzero(is_bent).tolist():
        nodes[k]["shapes"] = [
            {
                "column": used_columns.index(c),
                "cells": _with_few_digits(cells, 5)
                if isinstance(fitted.schema[c], NumericColumn)
                else [MISSING if level is None else level for level in cells],
                "adds": _with_few_digits(values.T, 4),
            }
            for c, cells, values in column_lines(scored, k, N_LINE_POINTS)
        ]


def _forest(
    subject: Subject, kept: np.ndarray, rows: Rows, truth: Any
) -> dict[str, Any]:
    """Return what there is to say of a forest as a whole."""
    trees = [one.tree for one in subject.members]
    shares = np.sum([importances(tree) for tree in trees], axis=0)
    return {
        "nodes": sum(len(tree) for tree in trees),
        "leaves": sum(tree.n_leaves for tree in trees),
        "terms": sum(tree.n_terms for tree in trees),
        "importances": _most_important(
            shares / (shares.sum() or 1.0), subject.fitted.schema, kept
        ),
        "vote": None
        if rows is None
        else vote_measures(trees, rows, truth, subject.fitted.classes is not None),
    }


def _most_important(
    shares: np.ndarray, schema: Schema, kept: np.ndarray
) -> list[list[Any]]:
    """Return the most important features with their shares, which a column has with its bends."""
    for j, (base, _) in schema.bends.items():
        shares[base] += shares[j]
        shares[j] = 0.0
    of_kept = shares[kept]
    most = np.argsort(-of_kept, kind="stable")[:20].tolist()
    return [[j, _with_few_digits(of_kept[j], 4)] for j in most if of_kept[j] > 0.0]


def _node(
    fitted: Fitted, k: int, training: TrainingRows, own: bool, kept: np.ndarray
) -> dict[str, Any]:
    """Return a node: rows, values, label, and terms, the most influential first.

    Where rows have weights, values are weighted shares of classes, and there are those of rows too.
    Where sides are soft, a split has its slope and intercept, a leaf the shares that are mixed and
    the class that is raised, where that is not its label.
    """
    tree: ObliqueTree = fitted.tree
    samples = tree.n_node_samples
    # Splits of other trees only show their shares, leaves predict by them.
    digits = 3 if fitted.is_split(k) and not own else 6
    values = _with_few_digits(tree.values[k], digits)
    model = fitted.model(k) if fitted.classes is None else None
    if model is not None:
        values = [float(tree.values[k, 0]) if model.terms else model.intercept]
    node: dict[str, Any] = {
        "n": None if samples is None else _with_few_digits(samples[k]),
        "v": values,
        "l": fitted.winners[k],
    }
    if fitted.is_weighted and model is None:
        node["r"] = _with_few_digits(fitted.row_shares[k], digits)
    if fitted.sides is not None:
        node |= _soft(fitted, k, own)
    if fitted.scores is not None and not fitted.is_split(k):
        each = (
            replace(fitted, tree=tree.of_output(c), classes=None)
            for c in range(len(values))
        )
        return node | {"z": [_sum(one, k, training, own, kept) for one in each]}
    if own and k in (fitted.notes or {}):
        node |= _survival(fitted, k)
    has_terms = fitted.is_split(k) or (model is not None and model.terms)
    return node | _sum(fitted, k, training, own, kept) if has_terms else node


def _soft(fitted: Fitted, k: int, own: bool) -> dict[str, Any]:
    """Return what a node of a tree with soft sides has: exact numbers in the model's own tree."""
    sides = fitted.sides
    assert sides is not None
    digits = 17 if own else 7
    if fitted.is_split(k):
        return {
            "slope": _with_few_digits(sides.slopes[k], digits),
            "intercept": _with_few_digits(sides.intercepts[k], digits),
        }
    most_frequent = int(fitted.tree.majority[k])
    is_label = most_frequent == fitted.winners[k]
    return {
        "shares": _with_few_digits(sides.shares[k], digits),
        **({} if is_label else {"m": most_frequent}),
    }


def _survival(fitted: Fitted, k: int) -> dict[str, Any]:
    """Return what a leaf of times says in words, and its curve where the model has it."""
    assert fitted.notes is not None
    found: dict[str, Any] = {"note": fitted.notes[k]}
    if fitted.curves is not None:
        x, y = fitted.curves[k].x, fitted.curves[k].y
        shown = np.unique(
            np.linspace(0, len(x) - 1, MAX_SURVIVAL_STEPS).round().astype(int)
        )
        found["curve"] = [_with_few_digits(x[shown], 4), _with_few_digits(y[shown], 3)]
    return found


def _sum(
    fitted: Fitted, k: int, training: TrainingRows, own: bool, kept: np.ndarray
) -> dict[str, Any]:
    """Return the terms, the most influential first, and ends of a split or a leaf's model."""
    terms = fitted.by_influence(k)
    features = [j for _, j in terms]
    found: dict[str, Any] = {
        "f": np.searchsorted(kept, features).tolist(),
        "w": [weight for weight, _ in terms],
        "c": _with_few_digits(training.means[k, features], 7 if own else 4),
    }
    if fitted.is_split(k):
        return found | {
            "t": float(fitted.tree.thresholds[k]),
            "s": _with_few_digits(training.spreads[k]),
        }
    model = fitted.model(k)
    return found | {
        "b": model.intercept,
        "lo": model.lowest,
        "hi": model.highest,
        "bounded": model.is_bounded,
        "log": model.is_log,
    }


def _columns_of_page(
    schema: Schema, used: Sequence[int], cells: pd.DataFrame | None, drawn: np.ndarray
) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """Return how each column is typed and which features it makes, and the cells of some rows."""
    found, of_rows = [], []
    first = 0
    for at in used:
        column = schema[at]
        some = None if cells is None else cells.iloc[drawn, at]
        one: dict[str, Any] = {"name": column.name, "first": first}
        first += len(column.feature_levels)
        if isinstance(column, NumericColumn):
            one |= {
                "fill": column.fill,
                "indicator": column.indicator,
                "bends": [asdict(bend) for bend in column.bends],
            }
            if some is not None:
                numbers = numbers_of(some, column.holds).astype(object)
                of_rows.append(numbers.where(some.notna(), None).tolist())
        else:
            one |= {
                "options": [MISSING if x is None else x for x in column.levels],
                "missing": column.levels.index(None) if None in column.levels else None,
            }
            if some is not None:
                places, levels = levels_of(some, column)
                place = {x: p for p, x in enumerate(column.levels)} | {None: None}
                at_option = [place.get(level, -1) for level in levels]
                of_rows.append([at_option[p] for p in places])
        found.append(one)
    return found, of_rows


def _drawn(n_rows: int, n_columns: int) -> np.ndarray:
    """Return the positions of some rows, drawn at random where there are many."""
    n_drawn = min(n_rows, MAX_PAGE_ROWS, max(20, MAX_CELLS // max(n_columns, 1)))
    return np.sort(np.random.default_rng(0).choice(n_rows, n_drawn, replace=False))


def _history(records: pd.DataFrame) -> dict[str, Any]:
    """Return the curves of a run, by their names."""
    curves = ("fitness", "quality", "size", "terms", "complexity")
    names = [f"{curve}_{field}" for curve in curves for field in ("best", "mean")]
    prefix = f"{ORIGIN}_"
    return {
        "gen": _with_few_digits(records["gen"])
        if "gen" in records
        else list(range(len(records))),
        "curves": {
            name: _with_few_digits(records[name], 5)
            for name in names
            if name in records
        },
        "origins": {
            name.removeprefix(prefix): _with_few_digits(records[name], 4)
            for name in map(str, records)
            if name.startswith(prefix)
        },
    }


def _notes_of_page(subject: Subject, rows: Rows, truth: Any, n_shown: int) -> list[str]:
    """Return what the reader has to know of the page: what is left out, and why."""
    n_trees = len(subject.trees[0])
    is_tree = not subject.members
    begin = "zero" if rows is None else "the means of the rows given"
    notes = {
        "No rows were given: there is no table of rows, and nothing is measured.": rows
        is None,
        "No targets were given: nothing is measured.": rows is not None
        and truth is None,
        "The tree that is drawn, with its figures, is one of the forest, which you choose; the "
        "table of rows has what the forest predicts.": not is_tree,
        "The model has no Pareto front: there is one tree to look at.": (
            is_tree and not subject.front
        ),
        f"{n_shown} of the {n_trees} trees of the front are shown, evenly spaced.": (
            is_tree and subject.front and n_shown < n_trees
        ),
        "The model keeps no record of an evolution.": is_tree
        and subject.history is None,
        "The model keeps no summary of its training rows: contributions are measured from "
        f"{begin}.": subject.fitted.training is None,
    }
    return [note for note, is_told in notes.items() if is_told]


def _with_few_digits(values: Any, digits: int = 7) -> Any:
    """Return numbers with a few significant digits, None for those that are not finite."""
    if np.ndim(values):
        return [
            _with_few_digits(value, digits)
            for value in np.asarray(values, dtype=np.float64).tolist()
        ]
    value = float(f"{float(values):.{digits}g}")
    if not np.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


# ---- figures of rows -----------------------------------------------------------------------------


def measures(fitted: Fitted, rows: np.ndarray, y: np.ndarray | Times) -> dict[str, Any]:
    """Return how well a tree predicts some rows; of times there is no loss of a node."""
    tree = fitted.tree
    leaves = tree.apply(rows)
    reached = node_weights(leaves, np.ones(len(rows)), tree.subtree_size)
    measured: dict[str, Any] = {"reached": reached.astype(int).tolist()}
    if isinstance(y, Times):
        score = concordance(y, tree.predict_value(rows)[:, 0])
        return measured | {"figures": [["concordance", score, 0.5]]}
    values = class_probabilities(tree, fitted.sides, rows)
    of_one_leaf = np.broadcast_to(tree.values[0], values.shape)
    losses = (y - values[:, 0]) ** 2
    labels = of_label = None
    if fitted.classes is not None:
        labels = tree.predict_label(rows)
        losses = tree.label_losses(rows, y)
        of_label = np.full(len(y), fitted.winners[0])
        n_classes = len(fitted.classes)
        measured["calibration"] = calibration(y, labels, values)
        if n_classes <= MAX_CONFUSED:
            found = confusion_matrix(y, labels, labels=range(n_classes))
            measured["confusion"] = found.tolist()
    lost = node_weights(leaves, losses, tree.subtree_size)
    figures = _compared(y, [(values, labels), (of_one_leaf, of_label)])
    if fitted.is_of_costs:
        base = np.array(fitted.arguments.cost_matrix)[y, fitted.winners[0]].mean()
        paid = costs_of_rows(fitted, rows, y).mean()
        figures.insert(0, [fitted.measure, float(paid), float(base)])
    return measured | {
        "figures": figures,
        "lost": [float(f"{loss:.6g}") for loss in lost],
    }


def vote_measures(
    trees: Sequence[ObliqueTree],
    rows: np.ndarray,
    y: np.ndarray | None,
    is_classes: bool,
) -> dict[str, Any]:
    """Return how far the trees of a forest agree, and how well their vote predicts."""
    vote = mean_of_trees(trees, rows)
    each = np.stack([tree.predict_value(rows) for tree in trees])
    apart = each[:, :, 0] - vote[:, 0]
    measured: dict[str, Any] = {"agreement": np.sqrt((apart**2).mean(axis=1)).tolist()}
    if is_classes:
        labels = vote.argmax(axis=1)
        agrees = each.argmax(axis=2) == labels
        band = np.argmax(agrees.mean(axis=0)[:, np.newaxis] >= BANDS, axis=1)
        is_right = None if y is None else labels == y
        measured = {
            "agreement": agrees.mean(axis=1).tolist(),
            "bands": [
                [
                    BANDS[at],
                    int((band == at).sum()),
                    None if is_right is None else int(is_right[band == at].sum()),
                ]
                for at in np.unique(band).tolist()
            ],
        }
    if y is not None:
        root = np.mean([tree.values[0] for tree in trees], axis=0)
        predictions = [
            (values, values.argmax(axis=1) if is_classes else None)
            for values in (vote, np.broadcast_to(root, vote.shape), *each)
        ]
        measured["figures"] = [
            # Where one figure is not known, that of a constant target, none is.
            [name, own, None if own is None else float(np.mean(of_trees)), other]
            for name, own, other, *of_trees in _compared(y, predictions)
        ]
    return measured


def _compared(
    y: np.ndarray, predictions: Sequence[tuple[np.ndarray, np.ndarray | None]]
) -> list[list[Any]]:
    """Return the figures of several predictions, each with its name first."""
    each = [_figures(y, values, labels) for values, labels in predictions]
    return [[name, *(figures[name] for figures in each)] for name in each[0]]


def _figures(y: np.ndarray, values: np.ndarray, labels: np.ndarray | None) -> Figures:
    """Return figures of predicted numbers, or of predicted classes and their probabilities."""
    if labels is None:
        errors = y - values[:, 0]
        whole = float(((y - y.mean()) ** 2).sum())
        return {
            "R²": 1.0 - float((errors**2).sum()) / whole if whole > 0.0 else None,
            "RMSE": float(np.sqrt((errors**2).mean())),
            "mean absolute error": float(np.abs(errors).mean()),
        }
    is_right = labels == y
    own = np.clip(values[np.arange(len(y)), y], 1e-15, 1.0)
    weight = np.ones(len(y))
    brier = brier_losses(values, y, weight).mean()
    return {
        "accuracy": float(is_right.mean()),
        "balanced accuracy": float(
            np.mean([is_right[y == c].mean() for c in np.unique(y)])
        ),
        "log loss": float(-np.log(own).mean()),
        # As scikit-learn's: of two classes that of the second alone.
        "Brier score": float(brier) / (2.0 if values.shape[1] == 2 else 1.0),
        # Of more classes each against the others, by their rows.
        "AUC": 1.0 - float(ranking_losses(values, y, weight).mean())
        if np.ptp(y) > 0
        else None,
    }


def calibration(
    y: np.ndarray, labels: np.ndarray, shares: np.ndarray
) -> list[list[float]]:
    """Return how often what is given a probability is so."""
    given, is_so = shares[np.arange(len(y)), labels], labels == y
    if shares.shape[1] == 2:
        given, is_so = shares[:, 1], y == 1
    bins = np.minimum((given * N_CALIBRATION_BINS).astype(int), N_CALIBRATION_BINS - 1)
    groups = pd.DataFrame({"given": given, "so": is_so}).groupby(bins)
    return [
        [float(part.given.mean()), float(part.so.mean()), len(part)]
        for _, part in groups
    ]


# ---- the file ------------------------------------------------------------------------------------

# What would end the element of the data, or the line of a script.
_UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


@dataclass(eq=False, repr=False)
class Report:
    """A page about a model, of `evotree.report.page.collect`. A notebook shows it."""

    data: dict[str, Any]

    @property
    def html(self) -> str:
        """The page: one document of HTML with everything that it needs."""
        folder = files("evotree.report") / "templates"
        paths = {
            "style": "report.css",
            "model": "model.js",
            "script": "report.js",
            "d3": "d3/d3.min.js",
            "licence": "d3/LICENSE",
        }
        parts = {
            name: (folder / path).read_text("utf-8") for name, path in paths.items()
        }
        page = Template((folder / "report.html").read_text("utf-8"))
        data = json.dumps(self.data, separators=(",", ":"), allow_nan=False)
        return page.substitute(
            parts,
            title=escape(f"Report: {self.data['target']}"),
            data=data.translate(_UNSAFE),
        )

    def save(self, path: PathLike) -> Path:
        """Write the page to a file."""
        content = self.html.encode("utf-8", "xmlcharrefreplace")
        write_whole(path, lambda file: file.write(content))
        return Path(path)

    def __repr__(self) -> str:
        n_rows = self.data["rows"]["total"] if self.data["rows"] else 0
        return (
            f"Report({len(self.data['trees'])} trees, {n_rows} rows); "
            "save(path) writes it"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the page in a frame, which sees nothing outside of it."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="Report" '
            'style="width:100%;height:900px;border:1px solid #8884"></iframe>'
        )


def report(model: Any, X: Any = None, y: Any = None) -> Report:
    """Return a page about a model, one file of HTML that needs no network.

    It draws the tree and those of the Pareto front, follows single rows through them, and shows
    figures, importances and the records of the search. Of a forest it shows how the trees vote and
    how far they agree, and each tree. A notebook shows the page; ``save(path)`` writes it.

    Parameters
    ----------
    model : fitted estimator of a tree or forest, or Subject
        The model; a `Subject` is what is known of one.
    X : array-like of shape (n_samples, n_features), optional
        Rows to follow and to measure on, best such as `fit` has not seen. The page holds a sample
        of them, at most 1,000; figures are of all. Those of a `Subject` are a DataFrame of just its
        columns, in their order.
    y : array-like of shape (n_samples,), optional
        Their labels or targets; times as `EvoTreeSurvival.fit` takes them.
    """
    if isinstance(model, Subject):
        return Report(collect(model, X, y))
    check_is_fitted(model)
    subject = Subject.of(model, getattr(y, "name", None))
    if targets := subject.fitted.targets:
        raise ValueError(
            f"report: the tree has {len(targets)} outputs; a page shows one."
        )
    if (
        y is not None
        and subject.fitted.arguments.has_exposures > subject.fitted.is_risk
    ):
        raise ValueError("report: a page measures no rates; allowed is y=None.")
    cells = None if X is None else model._cells(X)
    return Report(collect(subject, cells, by_row(y, X, "y")))

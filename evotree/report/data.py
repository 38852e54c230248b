"""What the page of a report shows, as one dictionary that JSON can hold.

Only the columns that some tree uses are there, and features are counted among those that these
columns make. Names are cut to a readable length: the page compares none of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evotree import __version__
from evotree.description.named import NamedTree
from evotree.description.text import export_rules, numbered
from evotree.engine.history import ORIGIN
from evotree.export.data import soft_sides_to_dict
from evotree.inspection.importances import importances
from evotree.inspection.training_rows import TrainingRows, summarize, uncorrelated_spreads
from evotree.plotting.curves import cumulated
from evotree.plotting.style import class_colors
from evotree.report.measures import measures, vote_measures
from evotree.report.subject import Subject
from evotree.tables.columns import (
    MISSING,
    CategoricalColumn,
    Column,
    Level,
    NumericColumn,
    column_of_feature,
    encode_in_order,
    numbers_of,
    quoted,
    text_of,
)
from evotree.tree import ObliqueTree

MAX_ROWS = 1000
"""Most rows that the page holds."""
MAX_CELLS = 40_000
"""Most cells of these rows, if that leaves 20 of them."""
MAX_TREES_LENGTH = 600_000
"""Most characters that the trees of the front take; of more, every second one is left out."""
MAX_OPTIONS = 100
"""Most values of a column of categories that are no levels."""
MAX_NAME = 80
"""Most characters of a name."""
MAX_RULES = 200_000
"""Most characters of the rules as text."""


def collect(subject: Subject, cells: pd.DataFrame | None, y: Any) -> dict[str, Any]:
    """Return all that a page shows."""
    named = _with_short_names(subject.named)
    known = subject.named.columns
    columns = known or tuple(NumericColumn(name, 0.0) for name in named.features)
    rows = None if cells is None else encode_in_order(columns, cells)
    truth = None if y is None else _codes_or_numbers(y, subject.named.classes, rows)
    training = _training(subject, rows)
    if subject.members:
        trees, own = [_member(one, rows, truth) for one in subject.members], 0
    else:
        trees, own = _trees(replace(subject, training=training), rows, truth)
    kept = _used_features(trees, columns)
    _renumber(trees, kept)
    classes = None if named.classes is None else [text_of(one) for one in named.classes]
    return {
        "version": __version__,
        "target": short(subject.target),
        "classes": classes,
        "colors": None if classes is None else class_colors(len(classes)),
        "columns": _columns(columns, kept, cells),
        "features": [named.features[j] for j in kept],
        "negations": [named.indicators.get(j, (None, None))[1] for j in kept],
        "weighted": named.is_weighted,
        "spread": _rounded(named.spread[kept]),
        "means": _rounded(training.means[0, kept]),
        "lowest": _rounded(training.lowest[kept]),
        "highest": _rounded(training.highest[kept]),
        "trees": trees,
        "own": own,
        "forest": _forest(subject, kept, rows, truth) if subject.members else None,
        "sides": _sides(named),
        "rows": _sample(columns, kept, cells, truth),
        "history": None if subject.history is None else _history(subject.history),
        "facts": {short(name): short(fact) for name, fact in subject.facts.items()},
        "rules": _rules(subject.members or [replace(subject, named=named)]),
        "notes": _notes(subject, rows, truth, len(trees)),
    }


def short(name: Any) -> str:
    """Return a name as the page shows it, cut where it is longer than anyone reads."""
    text = str(name)
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 1]}…"


def _with_short_names(named: NamedTree) -> NamedTree:
    """Return a tree whose features, columns and classes have names of a readable length."""
    classes = None if named.classes is None else tuple(short(text_of(c)) for c in named.classes)
    columns: list[Column] = []
    for column in named.columns or ():
        shown: Column = replace(column, name=short(column.name))
        if isinstance(shown, CategoricalColumn):
            shown = replace(shown, levels=tuple(map(short, shown.levels)))
        columns.append(shown)
    features = tuple(map(short, named.features))
    return replace(named, features=features, classes=classes, columns=tuple(columns) or None)


def _codes_or_numbers(y: Any, classes: Any, rows: np.ndarray | None) -> np.ndarray:
    """Return targets as floats, or as positions of their classes, which are compared as written."""
    values = np.asarray(y)
    if rows is None or values.shape != (len(rows),):
        n = 0 if rows is None else len(rows)
        raise ValueError(f"y has shape {values.shape}: allowed is ({n},), one for each row of X.")
    if classes is None:
        numbers = numbers_of(pd.Series(values)).to_numpy()
        if not np.isfinite(numbers).all():
            raise ValueError("y has values that are not finite numbers.")
        return numbers
    places = {text_of(label): at for at, label in enumerate(classes)}
    codes, known = pd.factorize(values)
    texts = [text_of(label) for label in known]
    unknown = [text for text in texts if text not in places]
    if unknown or (codes < 0).any():
        shown = quoted(unknown[0]) if unknown else "a missing value"
        raise ValueError(f"y has {shown}: allowed are the classes of the model.")
    found: np.ndarray = np.array([places[text] for text in texts], dtype=np.int64)[codes]
    return found


def _training(subject: Subject, rows: np.ndarray | None) -> TrainingRows:
    """Return the summary of the training rows, or what comes nearest to it."""
    tree = subject.named.tree
    if subject.training is not None:
        return subject.training
    if rows is not None:
        return summarize(tree, rows, np.ones(len(rows)))
    nothing = np.zeros((len(tree), tree.n_features))
    anything = np.full(tree.n_features, np.inf)
    return TrainingRows(nothing, uncorrelated_spreads(tree), -anything, anything)


# ---- trees ---------------------------------------------------------------------------------------


def _trees(
    subject: Subject, rows: np.ndarray | None, truth: np.ndarray | None
) -> tuple[list[dict[str, Any]], int]:
    """Return the trees to choose from that there is room for, and where the model's own is."""
    trees, own = subject.trees
    made = [_tree(tree, subject, rows, truth, own=at == own) for at, tree in enumerate(trees)]
    shown = _thinned([len(json.dumps(one)) for one in made], own)
    return [made[at] for at in shown], shown.index(own)


def _tree(
    tree: ObliqueTree,
    subject: Subject,
    rows: np.ndarray | None,
    truth: np.ndarray | None,
    own: bool,
) -> dict[str, Any]:
    """Return one of the trees to choose from, features still counted among all."""
    named, training = replace(subject.named, tree=tree), subject.training
    assert training is not None
    known = training if own else training.of_other_tree(tree)
    sides = named.sides if own else None
    member = next((one for one in subject.front if one == tree), None)
    found = {
        "nodes": [_node(named, k, known, own) for k in range(len(tree))],
        "size": tree.subtree_size.tolist(),
        "leaves": tree.n_leaves,
        "terms": tree.n_terms,
        "complexity": tree.complexity,
        "depth": tree.depth,
        "quality": None if member is None else _rounded(member.quality),
        "origin": None if member is None else str(member.origin),
        "importances": _most_important(importances(tree)),
        "measures": None,
    }
    if rows is not None and truth is not None:
        is_classes = named.classes is not None
        found["measures"] = measures(tree, rows, truth, sides, is_classes)
    return found


def _member(member: Subject, rows: np.ndarray | None, truth: np.ndarray | None) -> dict[str, Any]:
    """Return one of the trees of a forest, features still counted among all."""
    known = replace(member, training=_training(member, rows))
    return _tree(member.named.tree, known, rows, truth, own=True)


def _forest(
    subject: Subject, kept: np.ndarray, rows: np.ndarray | None, truth: np.ndarray | None
) -> dict[str, Any]:
    """Return what there is to say of a forest as a whole."""
    trees = [one.named.tree for one in subject.members]
    shares = np.sum([importances(tree) for tree in trees], axis=0)
    found: dict[str, Any] = {
        "nodes": sum(len(tree) for tree in trees),
        "leaves": sum(tree.n_leaves for tree in trees),
        "terms": sum(tree.n_terms for tree in trees),
        "importances": _most_important(shares[kept] / (shares.sum() or 1.0)),
        "vote": None,
    }
    if rows is not None:
        found["vote"] = vote_measures(trees, rows, truth, subject.named.classes is not None)
    return found


def _most_important(shares: np.ndarray) -> list[list[Any]]:
    """Return the most important features with their shares."""
    most = [j for j in np.argsort(-shares, kind="stable")[:20].tolist() if shares[j] > 0.0]
    return [[j, _rounded(shares[j], 4)] for j in most]


def _node(named: NamedTree, k: int, training: TrainingRows, own: bool) -> dict[str, Any]:
    """Return a node: rows, values, label, and terms, the most influential first.

    Where rows have weights, values are weighted shares of classes, and there are those of rows too.
    """
    tree, digits = named.tree, 6 if own else 3
    samples, values = tree.n_node_samples, _rounded(tree.values[k], digits)
    model = named.model(k) if named.classes is None else None
    if model is not None:
        values = [float(tree.values[k, 0]) if model.terms else model.intercept]
    node: dict[str, Any] = {
        "n": None if samples is None else _rounded(samples[k]),
        "v": values,
        "l": named.winners[k],
    }
    if named.is_weighted and model is None:
        node["r"] = _rounded(named.row_shares[k], digits)
    if not named.is_split(k) and not (model is not None and model.terms):
        return node
    terms = named.by_influence(k)
    node |= {"f": [j for _, j in terms], "w": [weight for weight, _ in terms]}
    if own:
        # The means at the nodes of other trees are those of all rows.
        node["c"] = _rounded(training.means[k, node["f"]])
    if named.is_split(k):
        return node | {"t": float(tree.thresholds[k]), "s": _rounded(training.spreads[k])}
    assert model is not None
    return node | {"b": model.intercept, "lo": model.lowest, "hi": model.highest}


def _sides(named: NamedTree) -> dict[str, Any] | None:
    """Return what probabilities of the model's own tree are made of."""
    if named.sides is None:
        return None
    labels = named.tree.values.argmax(axis=1).tolist()
    return {**soft_sides_to_dict(named.sides), "labels": labels}


def _thinned(lengths: Sequence[int], own: int) -> list[int]:
    """Return the positions of the trees that there is room for: every n-th, and the model's own."""
    step = 1
    while True:
        kept = [at for at in range(len(lengths)) if at == own or (at - own) % step == 0]
        if sum(lengths[at] for at in kept) <= MAX_TREES_LENGTH or len(kept) == 1:
            return kept
        step *= 2


def _used_features(trees: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> np.ndarray:
    """Return the features of all columns that some tree uses."""
    column_of = np.array(column_of_feature(columns))
    used = {j for tree in trees for node in tree["nodes"] for j in node.get("f", ())}
    return np.flatnonzero(np.isin(column_of, column_of[sorted(used)] if used else []))


def _renumber(trees: Sequence[Mapping[str, Any]], kept: np.ndarray) -> None:
    """Count the features of trees among those that are kept."""
    place = {j: at for at, j in enumerate(kept.tolist())}
    for tree in trees:
        tree["importances"][:] = [[place[j], share] for j, share in tree["importances"]]
        for node in tree["nodes"]:
            if "f" in node:
                node["f"] = [place[j] for j in node["f"]]


# ---- rows ----------------------------------------------------------------------------------------


def _kept_columns(columns: Sequence[Column], kept: np.ndarray) -> list[int]:
    """Return the positions of the columns that the kept features are made of."""
    column_of = column_of_feature(columns)
    return sorted({column_of[j] for j in kept.tolist()})


def _columns(
    columns: Sequence[Column], kept: np.ndarray, cells: pd.DataFrame | None
) -> list[dict[str, Any]]:
    """Return how each column is typed, and which features it makes."""
    found, first = [], 0
    for at in _kept_columns(columns, kept):
        column = columns[at]
        one: dict[str, Any] = {"name": short(column.name), "first": first}
        first += len(column.asked)
        if isinstance(column, NumericColumn):
            one |= {"fill": column.fill, "indicator": column.indicator}
        else:
            options = _options(column, None if cells is None else cells.iloc[:, at])
            one["options"] = [MISSING if option is None else short(option) for option in options]
            one["n_levels"] = len(column.levels)
            one["missing"] = column.levels.index(None) if None in column.levels else None
        found.append(one)
    return found


def _options(column: CategoricalColumn, cells: pd.Series | None) -> list[Level]:
    """Return the levels of a column, and other values that its cells have, the most frequent."""
    if cells is None:
        return list(column.levels)
    codes, known = pd.factorize(cells)
    counts = np.bincount(codes[codes >= 0], minlength=len(known))
    texts = [text_of(known[at]) for at in np.argsort(-counts, kind="stable")]
    others = dict.fromkeys(text for text in texts if text not in column.levels)
    return [*column.levels, *list(others)[:MAX_OPTIONS]]


def _sample(
    columns: Sequence[Column], kept: np.ndarray, cells: pd.DataFrame | None, truth: Any
) -> dict[str, Any] | None:
    """Return some rows, drawn at random where there are many, by columns."""
    if cells is None:
        return None
    used = _kept_columns(columns, kept)
    most = min(MAX_ROWS, max(20, MAX_CELLS // max(len(used), 1)))
    drawn = np.arange(len(cells))
    if len(cells) > most:
        drawn = np.sort(np.random.default_rng(0).choice(len(cells), most, replace=False))
    found = []
    for at in used:
        column, some = columns[at], cells.iloc[drawn, at]
        if isinstance(column, NumericColumn):
            numbers = some.isna(), numbers_of(some)
            found.append([None if absent else one for absent, one in zip(*numbers, strict=True)])
            continue
        place = {text: p for p, text in enumerate(_options(column, cells.iloc[:, at]))}
        codes, known = pd.factorize(some)
        places = [place.get(text_of(value), -1) for value in known]
        found.append([None if code < 0 else places[code] for code in codes])
    return {
        "total": len(cells),
        "numbers": drawn.tolist(),
        "cells": found,
        "y": None if truth is None else truth[drawn].tolist(),
    }


# ---- records -------------------------------------------------------------------------------------


def _history(records: pd.DataFrame) -> dict[str, Any]:
    """Return the curves of a run, by their names."""
    curves = ("fitness", "quality", "size", "terms", "complexity")
    names = [f"{curve}_{field}" for curve in curves for field in ("best", "mean")]
    prefix = f"{ORIGIN}_"
    origins = [name for name in map(str, records) if name.startswith(prefix)]
    found: dict[str, Any] = {
        "gen": _rounded(records["gen"]) if "gen" in records else list(range(len(records))),
        "curves": {name: _rounded(records[name], 5) for name in names if name in records},
        "origins": {name.removeprefix(prefix): _rounded(records[name], 4) for name in origins},
    }
    try:
        refiners = cumulated(records)
    except ValueError:
        refiners = {}
    found["refiners"] = {
        name: {field: _rounded(table[field], 4) for field in table}
        for name, table in refiners.items()
    }
    return found


def _rules(members: Sequence[Subject]) -> str:
    """Return the rules of the model's own tree, or of all of a forest, cut where they are long."""
    # The page counts trees from 0, as `estimators_` does.
    rules = numbered([export_rules(_with_short_names(one.named)) for one in members], first=0)
    if len(rules) <= MAX_RULES:
        return rules
    return f"{rules[:MAX_RULES]}\n... (the first {MAX_RULES:,} characters of {len(rules):,})"


def _notes(
    subject: Subject, rows: np.ndarray | None, truth: np.ndarray | None, n_shown: int
) -> list[str]:
    """Return what the reader has to know of the page: what is left out, and why."""
    notes, n_trees = [], len(subject.trees[0])
    if rows is None:
        notes.append("No rows were given: there is no table of rows, and nothing is measured.")
    elif truth is None:
        notes.append("No targets were given: nothing is measured.")
    if subject.members:
        notes.append(
            "The tree that is drawn, with its figures, is one of the forest, which you choose; the "
            "table of rows has what the forest predicts."
        )
    elif not subject.front:
        notes.append("The model has no Pareto front: there is one tree to look at.")
    elif n_shown < n_trees:
        notes.append(f"{n_shown} of the {n_trees} trees of the front are shown, evenly spaced.")
    if subject.history is None and not subject.members:
        notes.append("The model keeps no record of an evolution.")
    if subject.training is None:
        kind = "the rows given" if rows is not None else "zero"
        notes.append(
            f"The model keeps no summary of its training rows: contributions are measured from "
            f"{'the means of ' if rows is not None else ''}{kind}."
        )
    return notes


def _rounded(values: Any, digits: int = 7) -> Any:
    """Return numbers with a few significant digits, None for those that are not finite."""
    if values is None:
        return None
    if np.ndim(values):
        return [_rounded(value, digits) for value in np.asarray(values, dtype=np.float64).tolist()]
    value = float(f"{float(values):.{digits}g}")
    if not np.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 1e15 else value

"""Models without a fit: random trees over a table of numbers, categories and missing cells."""

from dataclasses import replace

import numpy as np
import pandas as pd

from evotree.front import FrontTree
from evotree.operators.pruning import prune_tree
from evotree.report import Subject
from evotree.tables.columns import encode, fit_columns
from evotree.tree import ObliqueTree, node_weights
from tests import made_up
from tests.exported import soft_sides, with_models

HOSTILE = (
    "</script><script>window.broken=1</script>",
    "\"'><img src=x onerror=window.broken=1>",
    "<!--<script>",
    "x" * 10_000,
    "\u2028${d3}`\\",
)
"""Names that would do something if they were ever read as HTML or as a script."""


def table(n_rows=300, names=("a", "b", "c", "d", "kind")):
    """Return rows of numbers, some missing, and of categories."""
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(n_rows, 4)).round(2) * [1.0, 100.0, 0.01, 1.0]
    numbers[:, 3] = rng.integers(0, 4, n_rows)
    frame = pd.DataFrame(numbers, columns=list(names[:4]))
    frame.loc[rng.random(n_rows) < 0.15, names[1]] = np.nan
    kinds = np.array(["red", "green", "blue", "</script>", None], dtype=object)
    frame[names[4]] = kinds[rng.integers(0, len(kinds), n_rows)]
    return frame


def random_tree(rows, n_outputs, n_splits, seed=0):
    """Return a tree whose splits are near the middle of the rows that reach them."""
    rng = np.random.default_rng(seed)
    weights, thresholds, sizes = [], [], []

    def grow(some, splits):
        at = len(sizes)
        sizes.append(2 * splits + 1)
        weights.append(np.zeros(rows.shape[1]))
        thresholds.append(0.0)
        if splits == 0:
            return
        chosen = rng.choice(rows.shape[1], 3, replace=False)
        weights[at][chosen] = rng.normal(size=3) / (rows[:, chosen].std(axis=0) + 1e-9)
        reached = rows[some] @ weights[at]
        thresholds[at] = float(np.median(reached)) if reached.size else 0.0
        left = int(rng.integers(0, splits))
        grow(some[reached <= thresholds[at]], left)
        grow(some[reached > thresholds[at]], splits - 1 - left)

    grow(np.arange(len(rows)), n_splits)
    is_class, n = n_outputs > 1, len(sizes)
    values = (
        rng.dirichlet(np.ones(n_outputs), n) if is_class else rng.normal(size=(n, 1))
    )
    arrays = np.array(weights), np.array(thresholds), np.array(sizes, np.int32)
    tree = ObliqueTree(*arrays, values, rows.std(axis=0))
    counted = tree.apply(rows), np.ones(len(rows)), tree.subtree_size
    tree.weighted_n_node_samples = node_weights(*counted)
    return tree.validate()


def make_model(kind, frame=None, labels=("no", "yes", "maybe")):
    """Return a model: ``"classes"``, ``"soft"``, ``"numbers"`` or ``"lines"``."""
    frame = table() if frame is None else frame
    schema = fit_columns(frame)
    rows = encode(schema, frame)
    sides = None
    if kind in ("classes", "soft"):
        tree = random_tree(rows, len(labels), 9)
        sides = soft_sides(tree, np.random.default_rng(4)) if kind == "soft" else None
    else:
        tree, labels = random_tree(rows, 1, 9), None
        tree = with_models(tree, np.random.default_rng(3)) if kind == "lines" else tree
    return made_up.model(tree, schema, labels, target="answer", sides=sides)


def edited(tree, k, threshold=None):
    """Return a tree with another threshold at a split, or with a leaf for it."""
    is_it = np.arange(len(tree)) == k
    if threshold is None:
        return prune_tree(tree, is_it)
    return tree.replaced(thresholds=np.where(is_it, threshold, tree.thresholds))


def make_forest(kind):
    """Return a forest of four trees: ``"classes"``, ``"numbers"`` or ``"lines"``."""
    one, frame = make_model(kind), table()
    rows, n_outputs = encode(one.schema, frame), one.tree.values.shape[1]
    trees = [random_tree(rows, n_outputs, n, seed=n) for n in (1, 4, 9)]
    if kind == "lines":
        trees = [with_models(tree, np.random.default_rng(3)) for tree in trees]
    (first,) = one.members
    others = (replace(first, tree=tree) for tree in trees)
    return replace(one, members=(first, *others))


def make_subject(model, frame=None):
    """Return a model with a front of other trees."""
    rows = encode(model.schema, table() if frame is None else frame)
    n_outputs = model.tree.values.shape[1]
    others = [random_tree(rows, n_outputs, n, seed=n) for n in (0, 1, 3, 20)]
    front = [
        FrontTree.of(tree, 0.5 + 0.1 * at, "widths") for at, tree in enumerate(others)
    ]
    front.insert(3, FrontTree.of(model.tree, 0.85, "widths"))
    (fitted,) = model.members
    front = [replace(fitted, tree=tree, sides=None) for tree in front]
    return Subject(fitted, model.target, front)


def truth_of(model, frame):
    """Return targets of which the model predicts most."""
    rng = np.random.default_rng(5)
    predicted = model.predict(frame)
    if model.classes is None:
        return predicted + rng.normal(scale=0.3, size=len(predicted))
    others = rng.choice(model.classes, len(predicted))
    return np.where(rng.random(len(predicted)) < 0.7, predicted, others)

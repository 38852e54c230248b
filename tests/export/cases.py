"""Trees of every kind and size, made up, and rows: what exported code has to predict."""

from functools import cache

import numpy as np

from evotree.leaf_models import LogModels, OutputModels, ScoreModels
from evotree.tree import ObliqueTree
from tests.exported import soft_sides, with_models
from tests.made_up import Case
from tests.reference.pruning import random_sizes
from tests.test_bends import CASES as CASES_OF_BENDS

# What leaves hold, how, whether sides are soft, and the number of trees.
KINDS = [
    ("classes", "constant", "hard", 1),
    ("classes", "constant", "soft", 1),
    ("classes", "constant", "hard", 3),
    ("classes", "linear", "hard", 1),
    ("two classes", "linear", "hard", 1),
    ("numbers", "constant", "hard", 1),
    ("numbers", "constant", "hard", 3),
    ("numbers", "linear", "hard", 1),
    ("numbers", "linear", "hard", 3),
    ("numbers", "log", "hard", 1),
    ("outputs", "constant", "hard", 1),
    ("outputs", "linear", "hard", 1),
]
SIZES = (0, 1, 2, 9, 60)  # numbers of splits
BENDS = ("bends",)


def random_tree(rng, n_splits, n_outputs, d):
    """Return a random tree; half of them have weights of all digits, the others have few."""
    size = np.array(random_sizes(rng, n_splits), dtype=np.int32)
    inner, shape = size > 1, (len(size), d)
    # Sums of few multiples of 1/8 are exact in every order: rows on thresholds are judged too.
    weights, thresholds = (
        rng.integers(-16, 17, shape) / 8.0,
        rng.integers(-16, 17, len(size)) / 8.0,
    )
    if rng.random() < 0.5:
        weights = rng.normal(size=shape) * 10.0 ** rng.integers(-4, 4, d)
        thresholds = rng.normal(size=len(size))
    weights *= inner[:, np.newaxis] & (rng.random(shape) < 0.7)
    values = 10.0 * rng.normal(size=(len(size), n_outputs))
    return ObliqueTree(weights, thresholds * inner, size, values).validate()


def make_case(kind, n_splits):
    """Return trees of a kind, and rows, some of which lie on hyperplanes."""
    said, leaves, sides, n_trees = kind
    rng = np.random.default_rng([KINDS.index(kind), n_splits])
    d, n_outputs = (
        int(rng.integers(1, 7)),
        {"numbers": 1, "two classes": 2}.get(said, 3),
    )
    forest = [random_tree(rng, n_splits, n_outputs, d) for _ in range(n_trees)]
    rows = np.concatenate(
        [rng.integers(-16, 17, (30, d)) / 8.0, 3.0 * rng.normal(size=(30, d))]
    )
    classes = soft = None
    if "classes" in said:
        classes = ("a", 'b"\\', "ü")[:n_outputs]
        forest = [
            t.predicting(rng.dirichlet(np.ones(n_outputs), len(t))) for t in forest
        ]
        if sides == "soft":
            soft = soft_sides(forest[0], rng)
            rows = np.concatenate([rows, 1e6 * rows])  # far from all hyperplanes
        if n_splits > 2 and n_trees == 1 and leaves == "constant":
            # Its labels are those of another objective.
            forest[0] = forest[0].labelled(rng.integers(0, 3, len(forest[0])))
    if said == "outputs":
        names = ("height", "width", "a;b")
        forest = [t.replaced(output_names=names) for t in forest]
    if leaves == "linear" and n_outputs > 1:
        each = [
            [with_models(t.of_output(j), rng).models for j in range(n_outputs)]
            for t in forest
        ]
        if classes is None:
            models = [OutputModels(tuple(m)) for m in each]
        else:
            is_scored = np.arange(n_outputs) >= (n_outputs == 2)
            models = [
                ScoreModels.of(
                    np.column_stack([one.intercepts for one in m]) * is_scored,
                    np.array([one.coefficients[-1] for one in m]) * is_scored[:, None],
                )
                for m in each
            ]
        forest = [t.with_models(m) for t, m in zip(forest, models, strict=True)]
    elif leaves != "constant":
        forest = [with_models(t, rng) for t in forest]
    if leaves == "log":
        forest = [t.with_models(with_rates(t.models)) for t in forest]
    if leaves == "linear" and n_splits == 0:  # sums that overflow, some to both sides
        rows = np.concatenate([rows, 1e306 * rows])
    return Case(tuple(forest), rows, classes, soft)


def with_rates(models):
    """Return models of the logarithm of what is predicted, which is no larger than e."""
    return LogModels(*(0.001 * part for part in models))


@cache
def cases():
    """Return cases of each kind, of all sizes, and of columns that bend."""
    found = {kind: [make_case(kind, n) for n in SIZES] for kind in KINDS}
    return found | {BENDS: CASES_OF_BENDS}


def assert_predicts(case, answer, digits, digits_of_shares):
    """Compare what a language says with what the trees predict."""
    wanted = case.predict()
    found = np.reshape(answer.predicted, wanted.shape)
    if case.classes is None and digits:
        np.testing.assert_allclose(found, wanted, rtol=digits)
    else:
        np.testing.assert_array_equal(found, wanted)
    if answer.probabilities is not None:
        np.testing.assert_allclose(
            answer.probabilities, case.predict_proba(), rtol=0.0, atol=digits_of_shares
        )

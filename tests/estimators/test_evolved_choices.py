"""What evolved estimators choose: from the front, by noise and penalties, by cross-validation."""

import numpy as np
import pytest
from sklearn.datasets import (
    make_classification,
    make_friedman1,
)
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    d2_absolute_error_score,
    f1_score,
    matthews_corrcoef,
    r2_score,
)

from evotree import EvoTreeClassifier, EvoTreeRegressor
from tests.quick_models import brief, by_tree

# ---- the front -----------------------------------------------------------------------------------


CLASSES = make_classification(240, 6, n_informative=4, flip_y=0.15, random_state=1)
TARGETS = make_friedman1(160, 6, noise=0.5, random_state=0)
SEARCHED = {"size_penalty": "auto", "term_penalty": "auto", "regularization": None}


def hits_and_misses(counts):
    """Return the accuracy, and the share of rows of the second class that are missed, negative."""
    missed = counts[counts.argmax(axis=1) == 0, 1].sum()
    return counts.max(axis=1).sum() / counts.sum(), -missed / counts.sum()


FRONTS = {
    "default": (SEARCHED, accuracy_score),
    "noise": ({"regularization__noise": 0.4}, accuracy_score),
    "rounded": ({"precision": 1}, accuracy_score),
    "monotonic": (
        {"monotonic_cst": [1, 0, -1, 0, 0, 0], "precision": 2},
        accuracy_score,
    ),
    "nsga2": ({"variation__algorithm": "nsga2"}, accuracy_score),
    "balanced": (
        {"objective": "balanced_accuracy", "precision": 1},
        balanced_accuracy_score,
    ),
    "f1": ({"objective": "f1"}, f1_score),
    "mcc": ({"objective": "mcc"}, matthews_corrcoef),
    "scores": (
        {"objective": hits_and_misses, "variation__algorithm": "nsga2"},
        accuracy_score,
    ),
    "lines": ({"size_penalty": "auto", "precision": 1}, r2_score),
    "means": ({"leaves": "constant", "precision": 1, "size_penalty": 0.001}, r2_score),
    "median": (
        {"objective": "absolute_error", "precision": 1},
        d2_absolute_error_score,
    ),
}


@pytest.mark.parametrize("is_weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", FRONTS)
def test_the_front_says_what_its_trees_are_worth(name, is_weighted):
    changed, metric = FRONTS[name]
    is_regressor = name in ("lines", "means", "median")
    model = brief(EvoTreeRegressor if is_regressor else EvoTreeClassifier, **changed)
    X, y = TARGETS if is_regressor else CLASSES
    weight = (
        np.random.default_rng(0).choice([1.0, 2.0], len(y))
        if is_weighted
        else np.ones(len(y))
    )
    front = model.fit(X, y, weight).pareto_front_
    for i, member in enumerate(front):
        other = by_tree(model, i)
        expected = metric(y, other.predict(X), sample_weight=weight)
        assert member.quality == pytest.approx(expected, abs=1e-9)
        if name == "scores":
            values = hits_and_misses(member.counted().counts[member.is_leaf])
            assert member.scores == pytest.approx((*values, member.complexity))
    # What was chosen stays, whatever its quality on the training rows is.
    pairs = [(one.complexity, one.quality) for one in front if one is not model.tree_]
    if name != "scores":  # there a member may be good by another score
        assert all((np.diff(pairs, axis=0) > 0).ravel())
    assert front[front.chosen] is model.tree_ is model.select_tree("chosen").tree_


def weak_signal(n_rows=600):
    """Return rows of two classes, of which a split hardly tells anything."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 10))
    return X, rng.random(n_rows) < 1.0 / (
        1.0 + np.exp(-1.3 - 0.35 * X[:, 0] - 0.3 * X[:, 1])
    )


@pytest.mark.parametrize("islands", [None, 2], ids=["one", "two"])
@pytest.mark.parametrize(
    "changed",
    [SEARCHED | {"leaves": "constant"}, {"size_penalty": 0.01}],
    ids=["auto", "given"],
)
def test_where_no_split_pays_the_front_has_larger_trees(changed, islands):
    X, y = weak_signal()
    # Of no column, a split tells nothing.
    y = np.random.default_rng(1).permutation(y) if "leaves" in changed else y
    model = brief(**changed, islands=islands)
    where = "on the rows held out" if "leaves" in changed else "at size_penalty=0.0"
    with pytest.warns(UserWarning, match=f"no split pays {where}.*select_tree"):
        model.fit(X, y)
    assert model.tree_.n_nodes == 1 and model.pareto_front_.chosen == 0
    assert len(model.pareto_front_) >= 5 and model.pareto_front_[-1].n_leaves >= 5
    assert model.select_tree("leaves<=8").score(X, y) > 0.5
    assert model.select_tree("tree").tree_.n_leaves > 1

"""Splits in short decimal numbers: rows stay where they were, and what is printed predicts."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    round_tree,
)
from evotree.dataset import Dataset
from evotree.fitness.node import Node
from evotree.leaf_models import LeafModels
from evotree.operators.initialization.growth import GrowthLimits, grow
from evotree.operators.splitters.base import Split
from evotree.operators.structure.rounding import round_models
from evotree.tree import ObliqueTree
from tests.exported import stump
from tests.quick_models import brief
from tests.strategies import seeds, stream_of


@st.composite
def rows(draw: st.DrawFn) -> np.ndarray:
    """Draw rows with ties, constant columns, large offsets and odd units."""
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.integers(2, 80)), draw(st.integers(1, 6))
    columns = []
    for _ in range(d):
        column = rng.integers(0, draw(st.sampled_from((1, 2, 5, 1000))), n).astype(
            float
        )
        if draw(st.booleans()):
            column = rng.normal(size=n)
        unit, offset = (
            draw(st.sampled_from((1e-7, 1.0, 3e8))),
            draw(st.sampled_from((0, 1, 1e9))),
        )
        columns.append(unit * column + offset)
    return np.column_stack(columns)


def grown(X: np.ndarray, seed: int, depth: int = 3, known: bool = True) -> ObliqueTree:
    """Grow a tree of random splits, some of one feature, each between two of its rows."""
    rng = np.random.default_rng(seed)

    def split(node: Node, stream: np.ndarray) -> Split | None:
        w = rng.normal(size=X.shape[1])
        if rng.random() < 0.4:
            w *= np.arange(w.size) == rng.integers(w.size)
        values = np.unique(node.X @ w)
        if values.size < 2:
            return None
        i = rng.integers(values.size - 1)
        return Split(w, values[i] + rng.random() * (values[i + 1] - values[i]), 0.0)

    dataset = Dataset.from_arrays(X, np.arange(len(X)))
    individual = grow(dataset, split, limits=GrowthLimits(depth), stream=stream_of())
    tree = dataset.to_raw(individual.to_tree())
    return tree.replaced(
        values=rng.dirichlet(np.ones(3), len(tree)),
        spread=X.std(axis=0) if known else None,
    )


def n_digits(value: float) -> int:
    return len(Decimal(repr(float(value))).normalize().as_tuple().digits)


@given(rows(), seeds, st.booleans())
def test_every_row_stays_in_its_leaf(X: np.ndarray, seed: int, known: bool) -> None:
    tree = grown(X, seed, known=known)
    rounded = round_tree(tree, X).validate()
    np.testing.assert_array_equal(rounded.apply(X), tree.apply(X))
    assert rounded.values is tree.values
    if not known:
        spread = np.where(np.ptp(X, axis=0) > 0.0, X.std(axis=0), 0.0)
        np.testing.assert_array_equal(rounded.spread, spread)
    for k in np.flatnonzero(~tree.is_leaf):
        kept = rounded.weights[k].tobytes() == tree.weights[k].tobytes()
        assert kept or 1.0 in np.abs(rounded.weights[k])
        assert (tree.weights[k][rounded.weights[k] != 0.0] != 0.0).all()
        if not kept:
            lead = np.lexsort(
                (-np.abs(tree.weights[k]), -np.abs(tree.weights[k]) * rounded.spread)
            )
            scaled = tree.weights[k] / np.abs(tree.weights[k][lead[0]])
            change = np.abs(rounded.weights[k] - scaled) * rounded.spread
            assert (change <= 0.0301 * rounded.spread[lead[0]]).all()


@given(rows(), seeds)
def test_rows_stay_in_whatever_order_a_sum_is_added_up(
    X: np.ndarray, seed: int
) -> None:
    rounded = round_tree(grown(X, seed), X)
    leaves = rounded.apply(X)
    rng = np.random.default_rng(seed)
    for k in np.flatnonzero((np.abs(rounded.weights) == 1.0).any(axis=1)):
        reached = (k < leaves) & (leaves < k + rounded.subtree_size[k])
        order = rng.permutation(X.shape[1])
        sums = sum(rounded.weights[k, j] * X[reached, j] for j in order)
        is_left = leaves[reached] < rounded.right(k)
        np.testing.assert_array_equal(sums <= rounded.thresholds[k], is_left)


def test_a_threshold_keeps_its_place_between_the_rows() -> None:
    X = np.array([[0.0], [1.9], [3.0], [7.0]])
    assert round_tree(stump([1.0], 2.4512), X).thresholds[0] == 2.5
    assert round_tree(stump([1.0], 2.8), X).thresholds[0] in (2.7, 2.8, 2.9)
    assert round_tree(stump([-0.2], -0.4912), X).thresholds[0] == -2.5
    assert round_tree(stump([2.0], 0.1), X - 2.0).thresholds[0] == 0.0
    far = round_tree(stump([2.0], 2e9 + 4.9), X + 1e9)
    assert (
        1e9 + 1.9 <= far.thresholds[0] < 1e9 + 3.0 and n_digits(far.thresholds[0]) <= 11
    )


def test_what_cannot_be_rounded_stays() -> None:
    X = np.array([[0.0, 1.0], [1.0, 0.0]])
    for tree in (
        stump([0.3, 0.7], 9.0),  # all rows go left
        stump([0.0, 0.0], 1.0),
        stump([1e-300, 1e300], 1.0),
    ):
        rounded = round_tree(tree, X)
        np.testing.assert_array_equal(rounded.weights, tree.weights)
        np.testing.assert_array_equal(rounded.thresholds, tree.thresholds)
    assert round_tree(tree, X, None) is tree


@given(rows(), seeds, st.integers(1, 17))
def test_every_rounded_split_parts_its_rows(
    X: np.ndarray, seed: int, precision: int
) -> None:
    tree = grown(X, seed)
    rounded = round_tree(tree, X, precision).validate()
    reached = rounded.decision_path(X).toarray().sum(axis=0)
    for k in np.flatnonzero(~tree.is_leaf):
        is_changed = rounded.weights[k].tobytes() != tree.weights[k].tobytes()
        if is_changed:
            assert 1.0 in np.abs(rounded.weights[k])
            assert 0 < reached[rounded.left(k)] < reached[k]


@pytest.mark.parametrize("precision", range(1, 7))
def test_numbers_have_the_digits_that_are_asked_for(precision: int) -> None:
    rng = np.random.default_rng(precision)
    X = rng.normal(size=(200, 4)) * [1.0, 30.0, 1e-4, 2.0] + [0.0, 100.0, 0.0, 5.0]
    w = rng.normal(size=4) / X.std(axis=0)
    rounded = round_tree(stump(w.tolist(), float(np.median(X @ w))), X, precision)
    exact = w / np.abs(w[np.abs(rounded.weights[0]) == 1.0])
    numbers = *rounded.weights[0], rounded.thresholds[0]
    assert max(map(n_digits, numbers)) <= precision
    np.testing.assert_allclose(
        rounded.weights[0], exact, rtol=1.01 * 10.0 ** (1 - precision)
    )
    if precision >= 3:
        assert (
            abs(np.mean(X @ rounded.weights[0] <= rounded.thresholds[0]) - 0.5) < 0.02
        )


@pytest.mark.parametrize(
    ("X", "precision", "message"),
    [
        *((np.eye(2), bad, "precision") for bad in (0, 18, 2.0, "all")),
        (np.eye(3), "auto", "rows of 2 features"),
        ([[np.nan, 1.0]], "auto", "NaN"),
    ],
)
def test_what_cannot_be_rounded_is_named(X: Any, precision: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        round_tree(stump([1.0, 2.0]), X, precision)
    if message == "precision":
        with pytest.raises(ValueError, match=message):
            EvoTreeClassifier(precision=precision).fit(X, [0, 1])


def modelled(X: np.ndarray, seed: int, least: int = 2) -> ObliqueTree:
    """Grow a regression tree with bounded linear models, which some rows leave."""
    rng = np.random.default_rng(seed)
    tree = grown(X, seed, depth=least)
    tree = tree.predicting(rng.normal(size=(len(tree), 1)))
    unit = 10.0 ** rng.integers(-6, 7)
    shape = tree.weights.shape
    coefficients = unit * rng.normal(size=shape) / (X.std(axis=0) + 1e-3)
    coefficients[(rng.random(shape) < 0.3) | ~tree.is_leaf[:, np.newaxis]] = 0.0
    intercepts = unit * 10.0 * rng.normal(size=len(tree)) - coefficients @ X.mean(
        axis=0
    )
    sums = X @ coefficients.T + intercepts
    bounds = np.quantile(sums, (0.1, 0.9), axis=0)
    return tree.with_models(LeafModels(intercepts, coefficients, *bounds)).validate()


@given(rows(), seeds)
def test_short_models_predict_nearly_the_same(X: np.ndarray, seed: int) -> None:
    tree = modelled(X, seed)
    rounded = round_tree(tree, X).validate()
    before, after = tree.predict_value(X), rounded.predict_value(X)
    # Sums of features of large offsets have rounding errors of their own.
    of_sums = 1e-13 * (np.abs(tree.models.coefficients) @ np.abs(X).max(axis=0)).max()
    assert np.abs(after - before).max() <= 0.001 * before.std() * (1.0 + 1e-9) + of_sums
    assert (rounded.models.lowest <= tree.models.lowest).all()
    assert (rounded.models.highest >= tree.models.highest).all()
    for name, array in tree.models._asdict().items():
        inner = getattr(rounded.models, name)[~tree.is_leaf]
        np.testing.assert_array_equal(inner, array[~tree.is_leaf])


@given(rows(), seeds, st.integers(1, 6))
def test_models_have_the_digits_that_are_asked_for(
    X: np.ndarray, seed: int, digits: int
) -> None:
    tree = modelled(X, seed)
    rounded = round_models(tree, X, digits).validate()
    assert rounded.weights is tree.weights
    leaves = tree.apply(X)
    before = tree.predict_value(X)[:, 0]
    if not before.std() > 0.0:
        assert rounded is tree
        return
    for k in np.unique(leaves):
        reached = X[leaves == k]
        old, new = (models.coefficients[k] for models in (tree.models, rounded.models))
        for one, other in zip(old, new, strict=True):
            assert n_digits(other) <= digits
            assert abs(other - one) <= 0.5 * 10.0 ** (1 - digits) * abs(one) * (
                1.0 + 1e-9
            )
        steps = np.concatenate([reached - reached.mean(axis=0), np.diag(tree.spread)])
        moved = np.abs(steps @ (new - old)).max()
        last = 10.0 ** (np.floor(np.log10(before.std())) - digits + 1.0)
        of_sums = (
            1e-12 * np.abs(old) @ np.abs(X).max(axis=0) + 1e-14 * np.abs(before).max()
        )
        mean = (tree.models.intercepts[k] + reached @ old).mean()
        kept = (rounded.models.intercepts[k] + reached @ new).mean()
        assert abs(kept - mean) <= max(moved, 0.5 * last) * (1.0 + 1e-6) + of_sums
        room = 2.0 * max(moved, 0.5 * last) * (1.0 + 1e-6) + of_sums
        assert 0.0 <= tree.models.lowest[k] - rounded.models.lowest[k] <= room
        assert 0.0 <= rounded.models.highest[k] - tree.models.highest[k] <= room


@pytest.mark.parametrize("precision", ["auto", 3, None])
def test_fitted_models_are_rounded(precision: Any) -> None:
    X, y = load_diabetes(return_X_y=True, scaled=False)
    quick = {"size_penalty": 0.001, "leaves": "linear", "precision": precision}
    model = brief(EvoTreeRegressor, **quick).fit(X, y)
    assert model.tree_.models.n_terms > 0
    for tree in [model.tree_, *model.pareto_front_, *model.hall_of_fame_]:
        used = np.unique(np.abs(tree.validate().models.coefficients)).tolist()
        longest = max(map(n_digits, used))
        assert longest <= {"auto": 7, 3: 3, None: 17}[precision]
        assert longest > 7 or precision is not None or not any(used)

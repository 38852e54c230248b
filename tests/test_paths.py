"""Explanations of paths against the tree and the rows themselves."""

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from evotree.tree import SoftSides
from tests.quick_models import brief
from tests.random_trees import estimator_of, random_tree


@pytest.fixture(params=range(4))
def explained(request):
    random = np.random.default_rng(request.param)
    X = random.normal(2.0, 2.0, size=(300, 4))
    model = estimator_of(random_tree(random, 4, lines=request.param % 2 == 1), X)
    return model, X, random.normal(2.0, 3.0, size=(20, 4))


def test_contributions_add_up_to_the_distances_and_the_lines(explained):
    model, X, rows = explained
    tree, terms = model.tree_, model.explain(rows).terms
    passed = tree.decision_path(X).toarray().astype(bool)
    leaves = tree.apply(rows)
    for (row, node), step in terms.groupby(["row", "node"]):
        first = step.iloc[0]
        np.testing.assert_allclose(first.centre + step.contribution.sum(), first.total)
        weights = (
            tree.weights[node]
            if node != leaves[row]
            else tree.models.coefficients[node]
        )
        assert len(step) == np.count_nonzero(weights)
        there = X[passed[:, node]] if passed[:, node].any() else None
        if node == leaves[row]:
            assert first.side == "leaf"
            line = tree.models.intercepts[node] + weights @ rows[row]
            np.testing.assert_allclose(first.total, line, atol=1e-9)
            spread = 1.0
        else:
            above = weights @ rows[row] - tree.thresholds[node]
            assert first.side == ("no" if above > 0.0 else "yes")
            printed, *_, bound = re.split(" ([<>]=) ", first.split)
            if " more)" not in printed:  # the text is the sum that distances are of
                named = zip(model.feature_names_, rows[row].tolist(), strict=True)
                total = eval(printed, None, dict(named))
                gap = first.total * first.unit
                assert gap == pytest.approx(total - float(bound), rel=0.01, abs=0.02)
            spread = above / first.total
            if there is not None and len(there) > 1:
                np.testing.assert_allclose(spread, (there @ weights).std())
        if there is not None:
            j = [model.feature_names_.index(name) for name in step.feature]
            away = weights[j] * (rows[row, j] - there.mean(axis=0)[j]) / spread
            np.testing.assert_allclose(step.contribution, away, atol=1e-9)


def test_steps_are_those_of_the_decision_path(explained):
    model, _, rows = explained
    terms, of_rows = model.explain(rows)
    path = model.decision_path(rows)
    n_leaves = 0 if model.tree_.models is None else 1
    for row in range(len(rows)):
        nodes = terms[terms.row == row].drop_duplicates("step")
        expected = path[row].indices[: len(nodes)]
        assert nodes.node.tolist() == sorted(expected.tolist())
        assert len(nodes) >= path[row].nnz - 1 or n_leaves == 0
        assert nodes.step.tolist() == list(range(len(nodes)))
        distances = nodes[nodes.side != "leaf"].total.abs()
        assert of_rows.decision_distance[row] == distances.min()
    assert of_rows.leaf.tolist() == model.apply(rows).tolist()
    assert of_rows.prediction.tolist() == model.predict(rows).tolist()


def test_values_that_no_training_row_came_near_are_named(explained):
    model, X, rows = explained
    outside = model.explain(rows).rows.outside
    for row, names in zip(rows, outside, strict=True):
        is_out = (row < X.min(axis=0)) | (row > X.max(axis=0))
        assert names == tuple(np.array(model.feature_names_)[is_out])
    assert outside.map(len).sum() > 0


@pytest.mark.parametrize("held_out", [False, True])
def test_other_trees_of_the_front_are_centred_on_the_training_rows(held_out):
    X, y = load_iris(return_X_y=True)
    model = brief().fit(X, y)
    model.select_tree("leaves<=2", *((X[::2], y[::2]) if held_out else ()))
    assert len(model.tree_) == 3
    left = model.apply(X) == 1
    np.testing.assert_allclose(model.training_rows_.means[1], X[left].mean(axis=0))
    np.testing.assert_array_equal(model.training_rows_.highest, X.max(axis=0))
    assert model.explain(X).rows.prediction.tolist() == model.predict(X).tolist()


# ---- rows beyond all bounds ----------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["shares", "soft", "lines"])
def test_rows_beyond_all_bounds_are_predicted_and_explained_without_a_word(kind, seed):
    random = np.random.default_rng(seed)
    X = random.uniform(0.0, 4.0, (50, 4))
    rows = random.choice([-1.79e308, -1e308, 0.0, 1e308, 1.79e308], (60, 4))
    tree = random_tree(random, 4, lines=kind == "lines")
    model = estimator_of(tree, X)
    if kind == "soft":
        inner = np.where(tree.is_leaf, 0.0, 1.0)
        sides = SoftSides(inner, inner, tree.values).validate(tree)
        model.fitted_ = replace(model.fitted_, sides=sides)
    with np.errstate(all="raise", under="ignore"):
        predicted = model.predict(rows)
        leaves = model.apply(rows)
        terms, of_rows = model.explain(rows)
        if kind != "lines":
            assert np.isfinite(model.predict_proba(rows)).all()
            np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
    assert tree.is_leaf[leaves].all() and (of_rows.leaf == leaves).all()
    assert terms.notna().all(axis=None) and of_rows.notna().all(axis=None)
    if kind == "lines":
        low, high = tree.models.lowest[leaves], tree.models.highest[leaves]
        assert ((predicted >= low) & (predicted <= high)).all()

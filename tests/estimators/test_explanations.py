"""Explanations of fitted estimators of all kinds."""

from dataclasses import replace

import numpy as np
import pytest

from evotree.leaf_models import OutputModels
from evotree.tree import SoftSides
from tests.random_trees import estimator_of, random_tree


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["shares", "soft", "lines", "outputs", "two", "three"])
def test_rows_beyond_all_bounds_are_predicted_and_explained_without_a_word(kind, seed):
    random = np.random.default_rng(seed)
    X = random.uniform(0.0, 4.0, (50, 4))
    rows = random.choice([-1.79e308, -1e308, 0.0, 1e308, 1.79e308], (60, 4))
    of_numbers = kind in ("lines", "outputs")
    scores = {"two": 2, "three": 3}.get(kind, 0)
    tree = random_tree(random, 4, lines=of_numbers, n_scores=scores)
    model = estimator_of(tree, X)
    if kind == "outputs":
        both = tree.replaced(
            values=np.tile(tree.values, 2),
            models=OutputModels((tree.models, tree.models)),
            output_names=("first", "second"),
        ).validate()
        model.fitted_ = replace(model.fitted_, tree=both)
    if kind == "soft":
        inner = np.where(tree.is_leaf, 0.0, 1.0)
        sides = SoftSides(inner, inner, tree.values).validate(tree)
        model.fitted_ = replace(model.fitted_, sides=sides)
    with np.errstate(all="raise", under="ignore"):
        predicted = model.predict(rows)
        leaves = model.apply(rows)
        terms, of_rows = model.explain(rows, 0 if kind == "outputs" else None)
        if not of_numbers:
            assert np.isfinite(model.predict_proba(rows)).all()
            np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
            assert np.isfinite(model.predict_log_proba(rows)).all() or not scores
    assert tree.is_leaf[leaves].all() and (of_rows.leaf == leaves).all()
    assert terms.notna().all(axis=None) and of_rows.notna().all(axis=None)
    if of_numbers:
        low, high = tree.models.lowest[leaves], tree.models.highest[leaves]
        for column in predicted.reshape(len(rows), -1).T:
            assert ((column >= low) & (column <= high)).all()

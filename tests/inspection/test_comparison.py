"""Where two rows part, and how two models differ, beside sums made by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes, load_wine

from evotree import EvoTreeClassifier, EvoTreeRegressor, ObliqueTreeClassifier
from evotree.inspection.comparison import compare_models, compare_rows
from tests.quick_models import brief

X, Y = load_wine(return_X_y=True, as_frame=True)
MODEL = brief(EvoTreeClassifier, leaves="constant").fit(X, Y)


def test_rows_part_at_the_last_node_that_both_pass():
    paths, tree = MODEL.decision_path(X).toarray().astype(bool), MODEL.tree_
    for a, b in ((0, 1), (0, 70), (100, 170), (60, 0)):
        node, terms, rows = compare_rows(MODEL, X.iloc[a], X.iloc[[b]])
        assert node == np.flatnonzero(paths[a] & paths[b])[-1]
        assert rows.prediction.tolist() == MODEL.predict(X.iloc[[a, b]]).tolist()
        assert rows.leaf.tolist() == MODEL.apply(X.iloc[[a, b]]).tolist()
        if not tree.is_leaf[node]:
            assert (rows.total["a"] > 0.0) != (rows.total["b"] > 0.0)
            spread = MODEL.training_rows_.spreads[node]
            by_hand = (X.iloc[b] - X.iloc[a]) * tree.weights[node] / spread
            np.testing.assert_allclose(terms.difference, by_hand[terms.index])
            assert terms.difference.abs().is_monotonic_decreasing
            assert terms.difference.sum() == pytest.approx(rows.total["b"] - rows.total["a"])


def test_rows_of_one_leaf_are_compared_by_its_line():
    rows, targets = load_diabetes(return_X_y=True, as_frame=True)
    model = brief(EvoTreeRegressor, max_leaf_nodes=2).fit(rows, targets)
    leaves = model.apply(rows)
    a, b = np.flatnonzero(leaves == leaves[0])[:2]
    found = compare_rows(model, rows.iloc[a].to_numpy(), rows.iloc[b].to_numpy())
    assert found.node == leaves[0] and set(found.rows.leaf) == {leaves[0]}
    used = np.flatnonzero(model.tree_.models.coefficients[leaves[0]])
    assert set(found.terms.index) == set(rows.columns[used])


def test_models_are_compared_by_the_rows_that_each_alone_predicts_right():
    stump = ObliqueTreeClassifier("axis", max_depth=1, random_state=0).fit(X, Y)
    models, disagreement, p_value, leaves = compare_models(MODEL, stump, X, Y)
    right = MODEL.predict(X) == Y, stump.predict(X) == Y
    alone = [int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())]
    assert models.better.tolist() == alone
    assert p_value == pytest.approx(stats.binomtest(alone[0], sum(alone)).pvalue)
    assert disagreement == np.mean(MODEL.predict(X) != stump.predict(X))
    assert models.complexity.tolist() == [MODEL.tree_.complexity, stump.tree_.complexity]
    assert leaves.to_numpy().sum() == len(X)
    assert leaves.loc[MODEL.apply(X)[0], stump.apply(X)[0]] >= 1
    same = compare_models(stump, stump, X, Y)
    assert same.p_value == 1.0 and same.disagreement == 0.0
    assert np.count_nonzero(same.leaves) == stump.get_n_leaves()


def test_models_of_targets_are_compared_by_who_is_nearer():
    rows, targets = load_diabetes(return_X_y=True)
    a, b = (
        brief(EvoTreeRegressor, leaves=how).fit(rows, targets) for how in ("linear", "constant")
    )
    found = compare_models(a, b, rows, targets)
    nearer = np.abs(a.predict(rows) - targets) < np.abs(b.predict(rows) - targets)
    assert found.models.better["a"] == nearer.sum()
    with pytest.raises(ValueError, match="b: allowed are models of classes"):
        compare_models(MODEL, brief(EvoTreeRegressor).fit(X, Y * 1.0), X, Y)
    with pytest.raises(ValueError, match=r"y has shape \(3,\): allowed is \(178,\)"):
        compare_models(MODEL, MODEL, X, Y[:3])


def test_series_of_mixed_rows_are_read():
    frame = pd.DataFrame({"colour": pd.Categorical(["red", "blue"] * 30), "n": np.arange(60.0)})
    model = brief(EvoTreeClassifier, leaves="constant").fit(frame, frame.colour == "red")
    found = compare_rows(model, frame.iloc[0], frame.iloc[1])
    assert found.node == 0 and len(found.terms) >= 1

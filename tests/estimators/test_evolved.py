"""The evolved estimators: accuracy, predictions, rows of all kinds, and what stays of a fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import (
    load_iris,
    make_classification,
)

from evotree import EvoTreeClassifier, EvoTreeRegressor, parallel, to_frame
from tests.quick_models import FIXED, brief

STILL = FIXED.set_params(noise=0.0)  # the fitness is measured on the rows alone


def test_predictions_follow_from_the_tree():
    X, y = load_iris(return_X_y=True)
    model = brief(regularization=STILL, patience=None, probability="leaf").fit(X, y)
    leaves, tree = model.apply(X), model.tree_
    narrow = X.astype(np.float32)
    np.testing.assert_array_equal(
        model.apply(narrow), model.apply(narrow.astype(np.float64))
    )
    shares = pd.crosstab(leaves, y, normalize="index").loc[leaves]
    found = np.exp(model.predict_log_proba(X))
    np.testing.assert_allclose(found, shares)
    assert (model.decision_path(X) != tree.decision_path(X)).nnz == 0
    assert model.get_n_leaves() == tree.n_leaves and model.get_depth() == tree.depth
    assert model.n_generations_ == 4 and model.stop_reason_ == "max_generations"
    phases = {"compiling", "choosing hyperparameters", "making first trees", "evolving"}
    assert set(model.seconds_) == phases and min(model.seconds_.values()) >= 0.0
    assert to_frame(model.history_)["quality_best"].iloc[-1] == pytest.approx(
        model.score(X, y)
    )


@pytest.mark.parametrize("kind", [EvoTreeClassifier, EvoTreeRegressor])
def test_threads_do_not_change_the_tree(kind, monkeypatch):
    """Also where trees are refined, rows are jittered, and the penalty is chosen."""
    monkeypatch.setattr(parallel, "_LEAST_NUMBERS", 0)
    X, y = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
    y = y if kind is EvoTreeClassifier else X[:, 0] * X[:, 1] + 0.1 * y
    one, two = (
        brief(kind, n_jobs=n, size_penalty="auto", refinement__probability=0.3).fit(
            X, y
        )
        for n in (1, 2)
    )
    tried = one.history_.chapters["refinement"].select("sparse_tried")
    assert len(one.tree_) > 3 and sum(tried) > 3
    assert one.tree_ == two.tree_
    np.testing.assert_array_equal(one.tree_.values, two.tree_.values)


def test_progress_bar_shows_the_tree(capsys):
    X, y = load_iris(return_X_y=True)
    brief(verbose=1).fit(X, y)
    assert "nodes=" in capsys.readouterr().err
    brief().fit(X, y)  # nobody watches
    brief(verbose=0).fit(X, y)
    assert capsys.readouterr().err == ""


# ---- what stays of a fit -------------------------------------------------------------------------

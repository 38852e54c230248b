"""The study of constraints: its rows, what it measures, its report."""

import numpy as np
import pandas as pd
import pytest

from evotree.experiments.protocols import Task
from experiments.studies import constraints


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a regression data set of known signs, with gaps."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 4)), columns=["cement", "water", "age", "slag"])
    target = table["cement"] - table["water"] + 0.1 * rng.normal(size=80)
    table.loc[:9, "slag"] = np.nan
    table.assign(target=target).to_csv(tmp_path / "concrete.csv", index=False)
    return tmp_path


def test_columns_have_the_signs_of_their_data_set(folder):
    task = Task("concrete", constraints.CART, 1, 0)
    parts = constraints.NamedProtocol(n_folds=5).take_parts(task, folder)
    assert len(parts.y_train) == 64 and not parts.X_train.isna().any(axis=None)
    model = constraints.Constrained("CART", is_monotonic=True).fit(parts.X_train, parts.y_train)
    signs = dict(zip(parts.X_train.columns, model.signs_, strict=True))
    assert signs["concrete/cement"] == signs["concrete/age"] == 1
    assert signs["concrete/water"] == -1
    assert signs["concrete/slag"] == signs["concrete/slag is missing"] == 0
    assert constraints.share_broken(model, parts.X_test, parts.y_test, "predict") == 0.0
    assert model.score(parts.X_test, parts.y_test) > 0.0


class Known:
    """Predicts what the first column says, or its contrary."""

    signs_ = np.array([1, 0])

    def __init__(self, slope):
        self.best_estimator_, self.slope = self, slope

    def predict(self, X):
        return self.slope * X[:, 0] + X[:, 1]


@pytest.mark.parametrize(("slope", "share"), [(1.0, 0.0), (-1.0, 1.0), (0.0, 0.0)])
def test_pairs_show_what_is_broken(slope, share):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)))
    assert constraints.share_broken(Known(slope), X, None, "predict") == share
    assert np.isnan(constraints.share_broken(Known(slope), X, None, "predict_proba"))

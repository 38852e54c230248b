"""The study of probabilities: what is scored of one fit, and the report."""

import numpy as np
import pytest
from sklearn.datasets import load_wine

from evotree.experiments.probabilities import auc, brier
from evotree.experiments.studies import probabilities as study
from tests.quick_models import brief


def test_one_fit_gives_the_scores_of_all_its_probabilities():
    X, y = load_wine(return_X_y=True)
    soft, leaf = brief().fit(X, y), brief(probability="leaf").fit(X, y)
    assert study.of_shares(brier, soft, X, y) == brier(leaf, X, y)
    mixed = soft.probabilities_.mix(soft.tree_, X)
    expected = np.square(mixed - (y[:, None] == soft.classes_)).sum(axis=1).mean()
    assert study.of_mixture(brier, soft, X, y) == pytest.approx(expected)
    assert study.of_shares(brier, soft, X, y) != brier(soft, X, y)
    assert study.of_shares(study.accuracy, soft, X, y) == soft.score(X, y)
    assert np.isnan(study.of_mixture(auc, leaf, X, y))


def test_calibrated_trees_know_all_classes():
    X, y = load_wine(return_X_y=True)
    found = study.IsotonicTree().fit(X, y).predict_proba(X)
    assert found.shape == (178, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_no_data_set_is_in_both_parts():
    assert set(study.TUNED_ON) <= set(study.DATASETS)
    assert not set(study.TUNED_ON) & set(study.CONFIRMED_ON)

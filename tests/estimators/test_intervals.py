"""Standard deviations by leaf, and conformal intervals: what they are, and how often they cover."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from evotree import EvoTreeRegressor, ObliqueTreeRegressor, Quantile, TAORegressor
from evotree.dataset import Dataset
from evotree.estimators.base import conformal_width, leaf_deviations
from tests.quick_models import BRIEF, by_tree, evolved, name_of
from tests.strategies import seeds

KINDS = [
    evolved(EvoTreeRegressor, **BRIEF, leaves="constant"),
    evolved(EvoTreeRegressor, **BRIEF, leaves="linear"),
    evolved(EvoTreeRegressor, **BRIEF, objective=Quantile(0.8)),
    ObliqueTreeRegressor("axis", max_depth=3),
    ObliqueTreeRegressor("axis", max_depth=3, leaves="linear"),
    TAORegressor(depth=3, random_state=0),
    TAORegressor(depth=3, leaves="linear", random_state=0),
]
every_kind = pytest.mark.parametrize("model", KINDS, ids=name_of)


def noisy(n, seed, uneven=True):
    """Return rows whose targets have a noise that is six times as strong on one side."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    scale = np.where(X[:, 0] > 0.0, 0.6, 0.1) if uneven else 0.3
    return X, 3.0 * (X[:, 0] > 0.0) + X[:, 1] + scale * rng.standard_normal(n)


# ---- deviations ----------------------------------------------------------------------------------


@every_kind
def test_deviations_are_those_of_the_residuals_of_each_leaf(model):
    X, y = noisy(200, 0)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 2.0], 200)
    fitted = clone(model).fit(X, y, weight)
    predicted, std = fitted.predict(X, return_std=True)
    leaves, tree = fitted.apply(X), fitted.tree_
    share = weight / 0.5  # multiples of the least weight say how often a row occurs
    terms = {k: 1 for k in np.unique(leaves)}
    if tree.models is not None:
        terms = {k: 1 + np.count_nonzero(tree.models.coefficients[k]) for k in terms}
    pooled = share @ (y - predicted) ** 2 / (share.sum() - sum(terms.values()))
    for k, n_terms in terms.items():
        own = leaves == k
        freedom = max(0.0, share[own].sum() - n_terms)
        error = share[own] @ (y - predicted)[own] ** 2
        expected = np.sqrt((error + 5.0 * pooled) / (freedom + 5.0))
        np.testing.assert_allclose(std[own], expected, rtol=1e-9)
        assert fitted.residual_std_[k] == pytest.approx(expected)
    assert not fitted.residual_std_[~tree.is_leaf].any()


def test_other_trees_of_the_front_have_deviations_too():
    X, y = noisy(200, 0)
    fitted = clone(KINDS[0]).fit(X, y)
    dataset = Dataset.from_arrays(X, y, task="regression")
    assert len(fitted.pareto_front_) > 1
    for at, tree in enumerate(fitted.pareto_front_):
        predicted, std = by_tree(fitted, at).predict(X, return_std=True)
        np.testing.assert_array_equal(predicted, by_tree(fitted, at).predict(X))
        np.testing.assert_allclose(std, leaf_deviations(tree, dataset)[tree.apply(X)])
    fitted.select_tree("complexity<=99").calibrate(X, y).select_tree("complexity<=99")
    # The same tree is calibrated still.
    assert np.isfinite(fitted.predict_interval(X)).all()
    fitted.select_tree("leaves<=2")
    assert fitted.residual_std_.shape == (len(fitted.tree_),)
    with pytest.raises(NotFittedError, match="not calibrated"):
        fitted.predict_interval(X)


# ---- the width -----------------------------------------------------------------------------------


@given(st.integers(1, 60), st.floats(0.01, 0.99), seeds)
def test_a_further_score_is_below_the_width_with_the_probability(n, coverage, seed):
    """Of n + 1 exchangeable scores each is as likely the last: count those that are covered."""
    scores = np.random.default_rng(seed).exponential(size=n + 1)
    if coverage > n / (n + 1) + 1e-9:
        with pytest.raises(
            ValueError, match=f"coverage=.*: {n} rows of calibration allow 0"
        ):
            conformal_width(np.sort(scores[1:]), coverage)
        return
    covered = [
        scores[i] <= conformal_width(np.sort(np.delete(scores, i)), coverage)
        for i in range(n + 1)
    ]
    assert coverage - 1e-9 <= np.mean(covered) <= coverage + 1.0 / (n + 1) + 1e-9


# ---- calls ---------------------------------------------------------------------------------------


@every_kind
def test_calibration_is_asked_for_and_kept(model):
    X, y = noisy(120, 0)
    with pytest.raises(NotFittedError):
        clone(model).calibrate(X, y)
    fitted = clone(model).fit(X, y)
    with pytest.raises(NotFittedError, match="predict_interval: .* call calibrate"):
        fitted.predict_interval(X)
    assert fitted.calibrate(*noisy(50, 1)) is fitted
    told = fitted.predict_interval(X)
    np.testing.assert_array_equal(
        told, pickle.loads(pickle.dumps(fitted)).predict_interval(X)
    )
    middle = fitted.predict(X)
    assert (told[0] < middle).all() and (middle < told[1]).all()
    with pytest.raises(NotFittedError, match="not calibrated"):
        fitted.fit(X, y).predict_interval(X)


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1.0, float("nan"), 0.99])
def test_bad_calls_are_named(coverage):
    X, y = noisy(120, 0)
    fitted = clone(KINDS[3]).fit(X, y).calibrate(X[:19], y[:19])
    named = (
        "coverage=.*: (allowed are numbers between 0 and 1|19 rows .* allow 0.95 at mo)"
    )
    with pytest.raises(ValueError, match=named):
        fitted.predict_interval(X, coverage)


@pytest.mark.parametrize(
    ("n", "coverage", "k"), [(9, 0.9, 9), (99, 0.9, 90), (19, 0.95, 19)]
)
def test_whole_positions_are_not_rounded_up(n, coverage, k):
    assert conformal_width(np.arange(1.0, n + 1), coverage) == k

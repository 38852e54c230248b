"""Counts of events at exposures: rates are what trees predict, and rows stay rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance

from evotree import EvoTreeClassifier, EvoTreeRegressor
from evotree.dataset import EXPOSURE, Dataset
from evotree.engine.choice import Candidate, Table, Trial
from evotree.engine.scores import LOG, rate_models
from evotree.fitness.linear_leaves import rates_of, rows_of_counts
from evotree.fitness.objectives import compose
from evotree.fitness.probabilities import HALVINGS, Strength, path_of_models
from evotree.operators.structure.splice import make_individual
from tests.quick_models import BRIEF, FREE, evolved
from tests.reference.scores import l1_objective, l1_regression
from tests.strategies import seeds


def counts_of(n=200, seed=0):
    """Draw rows whose rate is 4 above 0 and 1 below, exposures, and counts of events."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(2)
    exposure = rng.choice([0.25, 1.0, 4.0], n)
    rate = np.where(X[:, 0] > 0.0, 4.0, 1.0)
    return X, rng.poisson(rate * exposure).astype(float), exposure


def brief(**parameters):
    return evolved(EvoTreeRegressor, **{"objective": "poisson"} | BRIEF | parameters)


@st.composite
def counted_rows(draw):
    """Draw few distinct rows, with counts and exposures of many sizes."""
    n = draw(st.integers(4, 40))
    rng = np.random.default_rng(draw(seeds))
    X = rng.integers(0, 4, (n, 2)).astype(float)
    y = rng.poisson(2.0, n).astype(float)
    y[0] = 1.0
    return X, y, 2.0 ** rng.integers(-6, 7, n), rng.integers(1, 4, n).astype(float)


def rates_of_leaves(tree, X, events, exposure, weight):
    """Return the rate of each leaf as a loop over rows has it."""
    leaves = tree.apply(X)
    return {
        leaf: (weight * events)[leaves == leaf].sum()
        / (weight * exposure)[leaves == leaf].sum()
        for leaf in set(leaves.tolist())
    }


@given(counted_rows())
@settings(max_examples=25)
def test_a_leaf_predicts_events_by_exposure(rows):
    X, y, exposure, weight = rows
    model = brief(max_generations=1)
    model.fit(X, y, sample_weight=weight, exposure=exposure)
    for leaf, rate in rates_of_leaves(model.tree_, X, y, exposure, weight).items():
        # No rate is 0.
        expected = pytest.approx(rate, rel=1e-9, abs=2e-9 * (y / exposure).max())
        assert model.tree_.values[leaf, 0] == expected


@given(counted_rows(), seeds, st.floats(0.05, 0.95))
@settings(max_examples=50)
def test_a_row_in_two_parts_changes_nothing(rows, seed, share):
    """Splits as before have the rates and the gains as before, whatever row is divided."""
    X, y, exposure, weight = rows
    rng = np.random.default_rng(seed)
    at = rng.integers(len(X))
    part = np.floor(share * y[at])
    again = np.append(np.arange(len(X)), at)
    parted_y, parted_exposure = y[again], exposure[again]
    parted_y[[at, -1]] = part, y[at] - part
    parted_exposure[[at, -1]] = share * exposure[at], (1.0 - share) * exposure[at]
    splits = np.array([[1.0, 0.5], [0.0, 0.0], [0.0, 0.0]]), np.array([2.2, 0.0, 0.0])
    found = []
    for counts, exposures, of in (
        (y, exposure, np.arange(len(X))),
        (parted_y, parted_exposure, again),
    ):
        data = Dataset.from_arrays(
            X[of],
            counts,
            weight[of],
            task="regression",
            extras={EXPOSURE: exposures},
        )
        data = data.evolved_for(compose("poisson", data))
        scaled = splits[0] * data.scale, splits[1] - splits[0] @ data.mean
        tree = make_individual(data, *scaled, np.array([3, 1, 1], dtype=np.int32))
        losses = data.bound_objective.errors(tree) * data.bound_objective.whole_loss(
            data
        )
        losses *= data.target_scale * data.weight_unit
        rates = data.target_mean + data.target_scale * data.bound_objective.values(tree)
        is_leaf = tree.subtree_size == 1
        found.append((rates, losses[0] - losses[is_leaf].sum()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9, atol=1e-9)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-6, abs=1e-6 * y.sum())


@given(counted_rows())
@settings(max_examples=50)
def test_losses_are_deviances_of_the_counts(rows):
    X, y, exposure, weight = rows
    data = Dataset.from_arrays(
        X, y, weight, task="regression", extras={EXPOSURE: exposure}
    )
    objective = compose("poisson", data).bind(data)
    expected = np.sum(weight * y) / np.sum(weight * exposure) * exposure
    deviance = mean_poisson_deviance(y, expected, sample_weight=weight)
    whole = objective.whole_loss(data) * data.target_scale * data.weight_unit
    assert whole == pytest.approx(0.5 * deviance * weight.sum(), rel=1e-6, abs=1e-9)


def test_least_rows_of_leaves_are_rows_whatever_their_exposures():
    X, y, exposure = counts_of()
    exposure = np.where(X[:, 0] > 1.0, 1000.0, exposure)
    model = brief(min_samples_leaf=30).fit(X, y, exposure=exposure)
    assert np.unique(model.apply(X), return_counts=True)[1].min() >= 30


def test_equal_exposures_are_none():
    X, y, _ = counts_of()
    plain = brief().fit(X, y)
    same = brief().fit(X, y, exposure=np.full(len(X), 8.0))
    assert same.tree_.has_splits_of(plain.tree_)
    np.testing.assert_allclose(8.0 * same.predict(X), plain.predict(X))


@given(seeds)
@settings(max_examples=20)
def test_errors_of_choices_count_rows_whatever_their_exposures(seed):
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.01, 1.0, 100.0], 40)
    losses = {Candidate(at=at): rng.uniform(size=40) for at in range(2)}
    sizes = dict.fromkeys(losses, (1, 1))
    parts = [np.arange(0, 25), np.arange(25, 40)]
    trials = [
        Trial(
            fold,
            None,
            {one: lost[part] for one, lost in losses.items()},
            sizes,
            weights[part],
            has_exposures=True,
        )
        for fold, part in enumerate(parts)
    ]
    one, other = losses
    mean, error = Table.of(trials).gain(one, other)
    gains = weights * (losses[other] - losses[one])
    assert mean == pytest.approx(gains.sum() / weights.sum())
    deviations = gains - mean * weights
    expected = np.sqrt(40 / 39 * (deviations**2).sum()) / weights.sum()
    assert error == pytest.approx(expected)


def test_what_reads_rows_again_takes_their_exposures():
    X, y, exposure = counts_of()
    model = brief().fit(X, y, exposure=exposure)
    edited = model.edit(X, y, exposure=exposure).prune(0)
    assert edited.predict(X[:1])[0] == pytest.approx(y.sum() / exposure.sum())
    again = model.refit(X, y, exposure=exposure)
    assert again.edit_cost_ is None
    leaves = rates_of_leaves(again.tree_, X, y, exposure, np.ones(len(X)))
    assert all(again.tree_.values[k, 0] == pytest.approx(r) for k, r in leaves.items())
    low, high = model.calibrate(X, y, exposure=exposure).predict_interval(X)
    by_hand = model.calibrate(X, y / exposure, exposure=np.ones(len(X)))
    np.testing.assert_allclose((low, high), by_hand.predict_interval(X))
    assert ((low <= y / exposure) & (high >= y / exposure)).mean() >= 0.9


# ---- log-linear leaves ---------------------------------------------------------------------------


@pytest.mark.slow
@given(counted_rows(), st.sampled_from([0.03, 3.0]))
@settings(max_examples=15)
def test_a_log_linear_leaf_is_a_poisson_regression(rows, C):
    X, y, exposure, weight = rows
    data = Dataset.from_arrays(
        X, y, weight, task="regression", extras={EXPOSURE: exposure}
    )
    fitted_to = rows_of_counts(data)
    scores = next(path_of_models(fitted_to, C))
    # The penalty of scikit-learn is by the mean of the losses, ours by their sum.
    alpha = 1.0 / (C * data.sample_weight.sum())
    glm = PoissonRegressor(alpha=alpha, tol=1e-10, max_iter=10_000)
    glm.fit(data.X / data.spread, fitted_to.y, sample_weight=data.sample_weight)
    expected = glm.predict(data.X / data.spread) * data.target_mean
    of_rows = data.X @ scores[:, :-1].T + scores[:, -1]
    np.testing.assert_allclose(rates_of(of_rows, data), expected, rtol=2e-2)


@given(counted_rows(), st.integers(0, HALVINGS), st.sampled_from([2.0, 20.0]))
@settings(max_examples=15)
def test_models_of_rates_are_elastic_nets(rows, halvings, C):
    """In units of columns that have the same spread, by a minimum that SciPy finds."""
    X, y, exposure, weight = rows
    data = Dataset.from_arrays(
        X, y, weight, task="regression", extras={EXPOSURE: exposure}
    )
    strength, share = Strength(C, halvings), 0.5**halvings
    (root,) = rate_models(data, strength=strength)[strength]
    rates, weight = rows_of_counts(data).y, data.sample_weight / data.total_weight
    mean = weight @ data.X
    spread = np.sqrt(weight @ (data.X - mean) ** 2)
    columns = ((data.X - mean) / np.where(spread > 0.0, spread, 1.0)).T
    largest = np.abs(columns @ (weight * (rates - weight @ rates))).max()
    asked = columns, rates, weight, largest / share / C, share, LOG
    own = root[:-1] * spread, root[-1] + root[:-1] @ mean
    least = l1_objective(*asked, *l1_regression(*asked))
    assert l1_objective(*asked, *own) <= least + 1e-3
    assert not root[:-1][spread == 0.0].any()
    used = np.arange(len(root) - 1) != 0
    for one in rate_models(data, used).values():
        assert one[0, 0] == 0.0


def test_log_linear_leaves_never_explode():
    """The logarithm of the rate is a line, of another slope above 0 than below."""
    rng = np.random.default_rng(0)
    X, exposure = rng.normal(size=(800, 3)).round(3), rng.choice([0.5, 2.0], 800)
    y = rng.poisson(np.exp(np.sign(X[:, 0]) * X[:, 1]) * exposure)
    model = evolved(EvoTreeRegressor, objective="poisson", leaves="linear", **FREE)
    fitted = model.fit(X, y, exposure=exposure)
    seen = fitted.predict(X)
    far = fitted.predict(1e6 * X)
    assert np.isfinite(far).all()
    assert far.max() <= seen.max() * (seen.max() / seen.min()) ** 0.5
    assert (far > 0.0).all()


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "exposure", "message"),
    [
        (brief(), np.zeros(20), "exposure has 0 in row 0: allowed are numbers above 0"),
        (brief(), np.full(20, np.nan), "exposure has nan in row 0"),
        (brief(), np.ones(19), r"exposure has shape \(19,\)"),
        (brief(), ["long"] * 20, "exposure: .*allowed are numbers"),
        (brief(objective="squared_error"), np.ones(20), "allowed are 'poisson'"),
        (evolved(EvoTreeClassifier, **BRIEF), np.ones(20), "not go with exposure"),
    ],
)
def test_exposures_that_cannot_be_are_refused(model, exposure, message):
    X = np.arange(20.0)[:, None]
    with pytest.raises(ValueError, match=message):
        model.fit(X, np.arange(20) % 2, exposure=exposure)

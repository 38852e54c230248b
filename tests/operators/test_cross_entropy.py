"""The cross-entropy splitter and the von Mises-Fisher distribution against naive twins."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evotree.fitness.node import Criterion
from evotree.operators.splitters.cross_entropy import (
    column_frame,
    concentration,
    denormalize,
    independent_columns,
    normalize,
    rows_by_class,
    sample_directions,
    score_directions,
)
from tests.reference import cross_entropy as naive
from tests.reference import smooth
from tests.reference.perturbation import allowed_score
from tests.strategies import seeds


def direction(p, seed=0):
    mu = np.random.default_rng(seed).standard_normal(p)
    return mu / np.linalg.norm(mu)


def draw(n, mu, kappa, seed=0):
    return sample_directions(np.random.default_rng([seed, 1]), mu, float(kappa), n)


@pytest.mark.parametrize("kappa", [0.0, 0.5, 600.0, 1e11])
@pytest.mark.parametrize("p", [2, 3, 785, "first axis"])
def test_samples_are_unit_vectors_around_the_mean_direction(p, kappa):
    mu = direction(p) if p != "first axis" else np.array([-1.0, 0.0, 0.0])
    p = len(mu)
    drawn = draw(2000, mu, kappa)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0, atol=1e-12)
    cosine = drawn @ mu
    length = naive.bessel_ratio(kappa, p) if 0.0 < kappa < 1e5 else float(kappa > 0.0)
    error = max(cosine.std() / math.sqrt(2000), 1e-9)
    assert abs(cosine.mean() - length) < 4.0 * error
    # What is orthogonal to the mean direction has no direction of its own.
    rest = drawn - cosine[:, None] * mu
    assert np.linalg.norm(rest.mean(axis=0)) < 4.0 * max(
        rest.std() * math.sqrt(p / 2000), 1e-12
    )


@pytest.mark.parametrize("p", [2, 3, 19, 785])
@pytest.mark.parametrize("kappa", [1e-3, 0.7, 10.0, 90.0, 900.0, 2e4])
def test_concentration_inverts_the_mean_resultant_length(p, kappa):
    # Where the ratio underflows, for p = 785 and small kappa, Banerjee's value is as exact.
    assert concentration(naive.bessel_ratio(kappa, p), p) == pytest.approx(
        kappa, rel=2e-5
    )


CRITERIA = st.sampled_from(("gini", "entropy", "error", "twoing", "squared_error"))
NODES = CRITERIA.flatmap(smooth.nodes)


@given(NODES, seeds)
def test_scores_of_directions_are_those_of_the_definition(node, seed):
    rng = np.random.default_rng(seed)
    rows, order = rows_by_class(node)
    Z = np.vstack(
        [rng.standard_normal((node.X.shape[1], node.X.shape[0])), np.ones(len(node.y))]
    )
    directions = rng.standard_normal((7, Z.shape[0]))
    scores = score_directions(Z, rows, directions)
    name = Criterion(node.criterion).name.lower()
    node = node._replace(y=node.y[order], sample_weight=node.sample_weight[order])
    expected = [allowed_score(node, name, a @ Z <= 0) for a in directions]
    np.testing.assert_allclose(scores, expected, atol=1e-9)


@given(NODES)
def test_column_frame(node):
    found = column_frame(node.X, node.sample_weight)
    np.testing.assert_allclose(
        found, naive.frame(node.X, node.sample_weight), rtol=1e-9
    )


@given(NODES, seeds)
def test_a_denormalized_hyperplane_splits_the_same_rows(node, seed):
    Z, _, frame = normalize(node)
    assume(frame.features.shape[0] > 0)
    direction = np.random.default_rng(seed).standard_normal(Z.shape[0])
    weights, threshold = denormalize(direction, frame, node.X.shape[1])
    assert np.linalg.norm(weights) == pytest.approx(1.0)
    distance = node.X @ weights - threshold
    _, order = rows_by_class(node)
    normalized = direction @ Z
    clear = np.abs(normalized) > 1e-6
    assert ((distance[order] <= 0) == (normalized <= 0))[clear].all()


@given(seeds, st.integers(2, 12), st.integers(1, 14))
def test_reduction_keeps_independent_columns_in_the_order_of_the_ranking(seed, n, d):
    rng = np.random.default_rng(seed)
    rank = rng.integers(1, d + 1)
    columns = rng.integers(-3, 4, (d, rank)) @ rng.standard_normal((rank, n))
    ranking = rng.permutation(d)
    kept = independent_columns(np.vstack([columns, np.ones(n)]), ranking)
    assert kept.tolist() == naive.independent_columns(columns, ranking)

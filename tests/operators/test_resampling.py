"""Rows that are not in the data: between neighbours."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree.operators.initialization.resampling import interpolate
from tests.strategies import datasets, seeds

any_datasets = st.sampled_from(("classification", "regression")).flatmap(
    lambda task: datasets(max_rows=25, task=task)
)


@settings(max_examples=25)
@given(any_datasets, seeds)
def test_rows_lie_between_two_training_rows(dataset, seed):
    X = dataset.X
    drawn = interpolate(X, 30, np.random.default_rng(seed))
    assert drawn.shape == (30, X.shape[1])
    apart = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    for row in drawn:
        to = np.sqrt(((X - row) ** 2).sum(axis=1))
        detour = to[:, None] + to[None] - apart
        assert detour.min() <= 1e-7 * (1.0 + apart.max())


def test_the_two_are_neighbours():
    """Between two far clouds there are no rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) + np.repeat([[0.0], [1000.0]], 30, axis=0)
    drawn = interpolate(X, 3000, rng)
    assert ((np.abs(drawn) < 10.0) | (np.abs(drawn - 1000.0) < 10.0)).all()
    assert len(np.unique(drawn[:, 0])) > 2700

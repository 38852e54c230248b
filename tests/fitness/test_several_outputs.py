"""Several outputs in the engine: one target that stands for them, errors, tables and lines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.metrics import r2_score

from evotree.dataset import Dataset, leading_component
from evotree.fitness.base import leaf_table
from evotree.fitness.linear_leaves import (
    LinearLeafObjective,
    LinesOfOutputs,
    MeansOfOutputs,
)
from evotree.operators.losses import row_losses
from evotree.operators.structure.splice import make_individual
from tests.reference import tao as naive
from tests.reference.pruning import node_losses, random_sizes
from tests.strategies import seeds


def random_tree(dataset, rng, n_splits=4):
    """Return an individual with random splits."""
    size = np.array(random_sizes(rng, n_splits), dtype=np.int32)
    weights = (
        rng.normal(size=(len(size), dataset.X.shape[1])) * (size > 1)[:, np.newaxis]
    )
    return make_individual(
        dataset, weights, 0.3 * rng.normal(size=len(size)) * (size > 1), size
    )


@st.composite
def cases(draw, kinds=(False, True)):
    """Draw rows of several outputs, of whole weights, and a tree over them."""
    rng = np.random.default_rng(draw(seeds))
    n, n_outputs = draw(st.integers(20, 60)), draw(st.integers(2, 4))
    X = rng.normal(size=(n, 3))
    Y = X @ rng.normal(size=(3, n_outputs)) + rng.normal(size=(n, n_outputs))
    Y *= 10.0 ** rng.integers(-3, 4, n_outputs)
    weight = rng.integers(1, 4, n).astype(float)
    dataset = Dataset.from_arrays(X, Y, weight, task="regression")
    lines = draw(st.sampled_from(kinds))
    objective = (
        LinesOfOutputs(lines=LinearLeafObjective()) if lines else MeansOfOutputs()
    )
    dataset = dataset.evolved_for(objective)
    return dataset, random_tree(dataset, rng)


def test_the_target_is_the_first_principal_component():
    rng = np.random.default_rng(0)
    outputs = rng.normal(size=(100, 3)) @ np.diag([3.0, 1.0, 0.5])
    found = leading_component(outputs, np.ones(100))
    scores = PCA(1).fit_transform(outputs)[:, 0]
    assert abs(np.corrcoef(found, scores)[0, 1]) > 0.999
    assert found.mean() == pytest.approx(0.0, abs=1e-12)
    assert found[np.abs(found).argmax()] > 0.0
    # Of four classes as outputs no component parts all pairs by itself.
    found = leading_component(np.repeat(np.eye(4), 5, axis=0), np.ones(20))
    assert len(np.unique(found.round(9))) == 4


def test_rows_stay_apart_where_any_output_differs():
    X = np.zeros((4, 1))
    Y = np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0], [2.0, 2.0]])
    dataset = Dataset.from_arrays(X, Y, task="regression")
    assert sorted(dataset.sample_weight) == [1.0, 1.0, 2.0]
    raw = dataset.target_mean + dataset.target_scale * dataset.outputs
    np.testing.assert_allclose(dataset.sample_weight @ raw, Y.sum(axis=0))


def test_a_single_column_is_one_output_and_the_fingerprint_tells_outputs_apart():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    kinds = Y[:, 0], Y[:, :1], Y, Y.copy(), Y[:, ::-1]
    made = [Dataset.from_arrays(X, targets, task="regression") for targets in kinds]
    assert made[0].outputs is made[1].outputs is None
    one, column, several, same, turned = (dataset.fingerprint for dataset in made)
    assert one == column != several == same != turned


@settings(max_examples=25)
@given(cases([False]))
def test_the_quality_is_the_mean_of_the_shares_of_variance(case):
    dataset, tree = case
    predicted = tree.values[tree.apply(dataset.X)]
    shares = r2_score(dataset.outputs, predicted, sample_weight=dataset.sample_weight)
    assert tree.quality == pytest.approx(shares)
    risk = tree.objective.risk(tree)
    assert tree.quality == pytest.approx(1.0 - risk[tree.subtree_size == 1].sum())


@settings(max_examples=25)
@given(cases([True]))
def test_lines_are_those_of_each_output_alone(case):
    dataset, tree = case
    each = (dataset.of_output(j) for j in range(dataset.n_outputs))
    each = (one.evolved_for(LinearLeafObjective()) for one in each)
    alone = [make_individual(one, *tree.nodes()[:3]) for one in each]
    assert tree.quality == pytest.approx(np.mean([one.quality for one in alone]))
    table = leaf_table(tree, 0)
    np.testing.assert_array_equal(
        table, np.hstack([leaf_table(one, 0) for one in alone])
    )
    assert tree.n_terms - alone[0].n_terms == sum(
        one.objective.n_leaf_terms(one) for one in alone[1:]
    )


@settings(max_examples=25)
@given(cases())
def test_losses_of_rows_and_nodes_are_their_squared_errors(case):
    dataset, tree = case
    leaves, table = tree.apply(dataset.X), leaf_table(tree, 0)
    found = row_losses(tree, dataset)
    wanted = [
        naive.squared_error(table[k], dataset.outputs[i], dataset.X[i])
        for i, k in enumerate(leaves)
    ]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    at_nodes = node_losses(tree, dataset)
    np.testing.assert_allclose(
        at_nodes[tree.is_leaf].sum(), dataset.sample_weight @ found
    )

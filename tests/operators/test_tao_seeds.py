"""Seeds that are optimized before the evolution: how they are cut, and how good they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_wine

from evotree.dataset import Dataset
from evotree.fitness.penalties import PenalizedAccuracy
from evotree.operators.initialization.growth import grow
from evotree.operators.initialization.seeding import init_seed
from evotree.operators.initialization.tao_seeds import init_tao, prune_weakest_links
from evotree.operators.pruning.held_out import critical_alphas
from evotree.operators.pruning.penalized import kept_nodes, node_risk, prune, weakest_links
from evotree.operators.splitters.registry import as_splitter
from evotree.rng import make_streams
from tests.strategies import assert_sound, datasets, seeds, with_random_zeros


def fitness(individual, charge):
    return individual.quality - charge * len(individual)


any_datasets = st.sampled_from(("classification", "regression")).flatmap(
    lambda task: datasets(task=task)
)


@given(any_datasets, seeds, st.sampled_from((0.0, 0.001, 0.03, 0.2)), st.sampled_from((0.0, 0.01)))
def test_small_cuts_end_where_one_would(dataset, seed, charge, term_charge):
    """A tree of equal fitness at once and in steps, none larger than it has to be."""
    criterion = "entropy" if dataset.n_classes else "squared_error"
    splitter = as_splitter("linear" if term_charge else "axis")
    tree = grow(dataset, splitter, criterion, max_depth=8, stream=make_streams(seed, 0, 1)[0])
    tree = with_random_zeros(tree, dataset, seed) if term_charge else tree
    evaluate = PenalizedAccuracy(charge, term_charge)
    best = evaluate(prune(tree.clone(), dataset, charge, term_charge)[0])[0]
    while True:
        before, size = tree.clone(), tree.subtree_size
        if not prune_weakest_links(tree, dataset, charge, term_charge):
            assert tree == before
            break
        assert_sound(tree, dataset)
        assert len(tree) < len(before)
        assert evaluate(tree)[0] >= evaluate(before)[0] - 1e-6
        if len(tree) < 0.75 * len(before) and not term_charge:  # there is nothing in between
            collapse_at = weakest_links(node_risk(before.counts, dataset.n_classes), size)
            alphas = critical_alphas(collapse_at, size)
            sizes = [kept_nodes(size, collapse_at <= alpha)[0].size for alpha in alphas]
            assert not any(len(tree) < n < len(before) for n in sizes)
    assert evaluate(tree)[0] == pytest.approx(best, abs=1e-6)


@given(any_datasets, seeds)
def test_seeds_are_sound_trees_whose_nodes_pay(dataset, seed):
    individual = init_tao(dataset, 0.01, make_streams(seed, 0, 1)[0])
    assert_sound(individual, dataset)
    pruned = prune(individual.clone(), dataset, 0.01)[0]
    assert fitness(pruned, 0.01) == pytest.approx(fitness(individual, 0.01), abs=1e-9)


def test_seeds_differ_and_the_same_stream_gives_the_same():
    dataset = Dataset.from_arrays(*load_wine(return_X_y=True))
    made = [init_tao(dataset, 0.001, stream) for stream in make_streams(3, 0, 8)]
    assert len({one.weights.tobytes() for one in made}) >= 7
    assert init_seed(dataset, 0.001, "tao", make_streams(3, 0, 1)[0]) == made[0]


def test_costs_and_penalties_reach_the_classifiers():
    X, y = load_digits(return_X_y=True)
    dataset = Dataset.from_arrays(X[:600], y[:600])

    def used(C, penalty):
        one = init_tao(dataset, 0.001, make_streams(1, 0, 1)[0], C, penalty)
        return np.mean(one.weights[~one.is_leaf] != 0.0)

    assert used((1.0, 1.0), "l2") > 0.8  # some pixels are blank
    assert used((1.0, 1.0), "l1") < 0.6
    assert used((0.1, 0.1), "l1") < used((1.0, 1.0), "l1")

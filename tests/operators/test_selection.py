"""Linear scaling, universal sampling, proportional selection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from evotree.dataset import Dataset
from evotree.engine.config import Variation
from evotree.engine.evolution import evolve
from evotree.engine.toolbox import make_toolbox
from evotree.fitness.penalties import PenalizedAccuracy, linear_scaling
from evotree.operators.variation.selection import (
    distinct,
    replace_best,
    replace_duplicates,
    sel_proportional,
    universal_sampling,
)
from evotree.rng import make_streams
from tests.reference import naive
from tests.strategies import any_populations, apply_operator, seeds, tasks

fitness_values = st.lists(st.floats(-5, 1).map(lambda v: round(v, 6)), min_size=2, max_size=30)


@given(fitness_values, st.floats(1.1, 3.0))
def test_scaling_agrees_with_its_naive_twin(fitness, pressure):
    scaled = linear_scaling(np.array(fitness), pressure)
    np.testing.assert_allclose(scaled, naive.linear_scaling(fitness, pressure), atol=1e-6)
    assert scaled.min() >= 0.0
    assert scaled.mean() == pytest.approx(1.0, abs=1e-6)
    assert scaled.max() <= pressure + 1e-6


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=20).filter(lambda s: sum(s) > 0.1),
    st.integers(1, 50),
    seeds,
)
def test_universal_sampling_draws_expected_numbers_rounded(share, k, seed):
    share = np.array(share)
    drawn = universal_sampling(share, k, make_streams(seed, 0, 1)[0])
    times = np.bincount(drawn, minlength=len(share))
    expected = k * share / share.sum()
    assert (times >= np.floor(expected - 1e-9)).all()
    assert (times <= np.ceil(expected + 1e-9)).all()


def test_selection_prefers_the_fit_and_shuffles():
    dataset = Dataset.from_arrays(*load_iris(return_X_y=True))
    population = make_toolbox(dataset, random_state=0).population(n=20)
    for rank, individual in enumerate(population):
        individual.fitness.values = (float(rank),)
    times = np.zeros(20)
    first = []
    for stream in make_streams(1, 0, 300):
        population[0].stream = stream
        selected = sel_proportional(population, 20)
        assert len(selected) == 20
        positions = [next(i for i, p in enumerate(population) if p is s) for s in selected]
        first.append(positions[0])
        times += np.bincount(positions, minlength=20)
    assert np.corrcoef(times, np.arange(20))[0, 1] > 0.99
    assert times[-1] / 300 == pytest.approx(2.0, abs=0.1)
    assert len(set(first)) > 10


@given(tasks(max_size=5), seeds)
def test_distinct_tells_the_first_of_each_tree(drawn, seed):
    dataset, population, names = drawn
    population = [*population, population[0].clone(), population[-1]]
    for name, stream in zip(names, make_streams(seed, 0, len(names)), strict=True):
        population += apply_operator(name, *population[:2], dataset, stream)
    naive = [a not in population[:i] for i, a in enumerate(population)]
    assert distinct(population) == naive
    copies = [a.clone() for a in population]
    for a in copies:
        a.replace([array.copy() for array in a.nodes()])
    assert distinct([*population, *copies])[len(population) :] == [False] * len(population)
    assert distinct([]) == []


@given(tasks(max_size=5), seeds)
def test_parents_take_the_places_of_duplicates(drawn, seed):
    dataset, parents, names = drawn
    offspring = [parent.clone() for parent in parents]
    for i, (name, stream) in enumerate(zip(names, make_streams(seed, 0, len(names)), strict=True)):
        children = apply_operator(name, offspring[i % len(offspring)], parents[0], dataset, stream)
        offspring[i % len(offspring)] = children[0]
    survivors = replace_duplicates(parents, offspring)
    assert len(survivors) == len(offspring)
    assert len({id(one) for one in survivors}) == len(survivors)
    assert sum(distinct(survivors)) == min(len(offspring), sum(distinct([*offspring, *parents])))
    assert all(child in survivors for child in offspring)
    assert all(one in offspring or one in parents for one in survivors)


def test_a_generation_of_different_trees():
    dataset = Dataset.from_arrays(*load_iris(return_X_y=True))
    for keep_duplicates in (False, True):
        variation = Variation(
            keep_duplicates=keep_duplicates,
            survival="generational",
            term_mutation_probability=0.0,
        )
        toolbox = make_toolbox(dataset, variation=variation, random_state=0)
        run = evolve(toolbox.population(n=20), toolbox, max_generations=12)
        assert all(distinct(run.population)) is not keep_duplicates


@given(any_populations, st.sampled_from((0.0, 0.001, 0.1)), st.sampled_from((0.0, 0.01)))
def test_trees_of_less_complexity_live_on_beside_the_fittest(drawn, size_penalty, term_penalty):
    _, individuals = drawn
    evaluate = PenalizedAccuracy(size_penalty, term_penalty)
    for one in individuals:
        one.fitness.values = evaluate(one)
    half = len(individuals) // 2
    if half == 0:
        return
    parents, offspring = individuals[:half], individuals[half : 2 * half]
    survivors = replace_best(parents, offspring, size_penalty, term_penalty)
    assert len(survivors) == half
    fitness = [one.fitness for one in survivors]
    assert fitness == sorted(fitness, reverse=True)
    assert fitness[0] == max(one.fitness for one in individuals[: 2 * half])
    if half >= 4:  # one place for each multiple of the penalties
        for factor in (3.0, 10.0, 30.0):
            dear = PenalizedAccuracy(factor * size_penalty, factor * term_penalty)
            best = max(dear(one) for one in individuals[: 2 * half])
            assert max(dear(one) for one in survivors)[0] == pytest.approx(best[0])

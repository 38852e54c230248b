"""NSGA-II against DEAP's own, and what keeps a population mixed: no twins, limits of origins."""

from types import SimpleNamespace

import pytest
from deap import tools
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from evotree import Dataset, evolve, make_toolbox
from evotree.fitness.penalties import FitnessQualityComplexity, QualityAndComplexity
from evotree.operators.variation.nsga import replace_nsga2, sel_crowded, sel_nsga2, standing_of
from evotree.operators.variation.selection import distinct
from evotree.rng import make_streams
from tests.strategies import apply_operator, seeds, tasks


class ThreeFold(FitnessQualityComplexity):
    weights = (1.0, 1.0, 1.0)


def points(objectives):
    """Return what selection sees of individuals: two objectives each."""
    return [SimpleNamespace(fitness=FitnessQualityComplexity(pair)) for pair in objectives]


pairs = st.tuples(st.integers(0, 12).map(lambda q: q / 8), st.integers(1, 12))
few_pairs = st.lists(pairs, min_size=1, max_size=40)


@given(st.lists(pairs, min_size=1, max_size=40, unique=True))
def test_fronts_and_room_are_those_of_deap(objectives):
    individuals = points(objectives)
    standing = standing_of(individuals)
    fronts = tools.sortNondominated(individuals, len(individuals))
    for number, front in enumerate(fronts):
        tools.emo.assignCrowdingDist(front)
        members = {id(individual) for individual in front}
        found = [i for i, individual in enumerate(individuals) if id(individual) in members]
        assert (standing.front[found] == number).all()
        for i in found:
            distance = individuals[i].fitness.crowding_dist
            assert standing.crowding[i] == pytest.approx(distance)
    assert standing.front.max() == len(fronts) - 1


@given(st.lists(pairs, min_size=1, max_size=40, unique=True), st.integers(1, 40))
def test_selection_is_that_of_deap(objectives, k):
    individuals = points(objectives)
    k = min(k, len(individuals))
    selected = sel_nsga2(individuals, k)
    standing = standing_of(individuals)
    place = {id(individual): i for i, individual in enumerate(individuals)}

    def ranks(chosen):
        at = [place[id(individual)] for individual in chosen]
        # Which of those at equal distances comes last is not determined.
        return sorted((standing.front[i], -round(standing.crowding[i], 9)) for i in at)

    assert ranks(selected) == ranks(tools.selNSGA2(individuals, k))
    assert len({id(individual) for individual in selected}) == k


@given(few_pairs)
def test_copies_stand_one_front_lower_each(objectives):
    standing = standing_of(points(objectives))
    unique = list(dict.fromkeys(objectives))
    alone = standing_of(points(unique))
    seen = dict.fromkeys(unique, 0)
    for i, pair in enumerate(objectives):
        assert standing.front[i] == alone.front[unique.index(pair)] + seen[pair]
        assert standing.crowding[i] == alone.crowding[unique.index(pair)]
        seen[pair] += 1


@given(few_pairs, seeds)
def test_parents_are_the_better_of_two(objectives, seed):
    individuals = points(objectives)
    standing = standing_of(individuals)
    runs = []
    for _ in range(2):
        individuals[0].stream = make_streams(seed, 0, 1)[0]
        runs.append([individuals.index(chosen) for chosen in sel_crowded(individuals, 200)])
    assert runs[0] == runs[1]
    if len(objectives) > 20:
        drawn = standing.front[runs[0]].mean()
        assert drawn <= standing.front.mean() + 0.35 * standing.front.std()


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=30))
def test_three_objectives_are_sorted_by_dominance(objectives):
    standing = standing_of([SimpleNamespace(fitness=ThreeFold(values)) for values in objectives])
    for i, values in enumerate(objectives):
        better = [
            standing.front[j]
            for j, others in enumerate(objectives)
            if others != values and all(a >= b for a, b in zip(others, values, strict=True))
        ]
        if better:
            assert standing.front[i] > min(better)
        elif objectives.index(values) == i:
            assert standing.front[i] == 0


def test_one_objective_is_not_enough():
    dataset = Dataset.from_arrays(*load_iris(return_X_y=True))
    toolbox = make_toolbox(dataset, random_state=0)
    population = toolbox.population(n=4)
    for individual in population:
        individual.fitness.values = toolbox.evaluate(individual)
    with pytest.raises(ValueError, match="QualityAndComplexity"):
        sel_nsga2(population, 2)


@given(tasks(max_size=5), seeds)
def test_replacement_keeps_the_best_and_no_twins(drawn, seed):
    dataset, parents, names = drawn
    offspring = [parents[0].clone(), parents[1].clone()]
    for name, stream in zip(names, make_streams(seed, 0, len(names)), strict=True):
        offspring += [a.clone() for a in apply_operator(name, *parents[:2], dataset, stream)]
    for individual in (*parents, *offspring):
        individual.fitness = FitnessQualityComplexity(QualityAndComplexity()(individual))
    survivors = replace_nsga2(parents, offspring)
    assert len(survivors) == len(parents)
    everyone = [*parents, *offspring]
    n_different = sum(distinct(everyone))
    assert sum(distinct(survivors)) == min(len(parents), n_different)
    assert max(a.fitness for a in survivors) == max(a.fitness for a in everyone)
    assert len({id(a) for a in survivors}) == len(survivors)
    for dropped in everyone:
        assert not all(dropped.fitness.dominates(kept.fitness) for kept in survivors)


def two_objectives(dataset, n=24):
    """Return a toolbox of NSGA-II and a first population for it."""
    toolbox = make_toolbox(dataset, random_state=3)
    toolbox.register("evaluate", QualityAndComplexity())
    toolbox.register("select", sel_crowded)
    toolbox.register("replace", replace_nsga2)
    population = toolbox.population(n=n)
    for individual in population:
        individual.fitness = FitnessQualityComplexity()
    return population, toolbox


def test_a_run_with_two_objectives_spreads_over_the_front():
    dataset = Dataset.from_arrays(*load_iris(return_X_y=True))
    runs = [evolve(*two_objectives(dataset), max_generations=40) for _ in range(2)]
    first, second = (run.population for run in runs)
    assert all(a == b for a, b in zip(first, second, strict=True))
    assert len(first) == 24 and all(distinct(first))
    assert {a.n_leaves for a in first} >= {1, 2, 3}
    assert runs[0].best.quality == max(a.quality for a in first) > 0.97
    best = runs[0].logbook.chapters["quality"].select("best")
    assert best == sorted(best)

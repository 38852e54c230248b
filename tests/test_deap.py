"""DEAP as its users know it: its loops, fitnesses, migration and logbook with our toolbox."""

import random

import pytest
from deap import algorithms, base, creator, tools

from evotree import make_toolbox
from tests.strategies import assert_sound

N = 12
LOOPS = {
    "simple": lambda population, toolbox, **options: algorithms.eaSimple(
        population, toolbox, 0.2, 0.9, 4, **options
    ),
    "plus": lambda population, toolbox, **options: algorithms.eaMuPlusLambda(
        population, toolbox, N, 16, 0.2, 0.7, 4, **options
    ),
    "comma": lambda population, toolbox, **options: algorithms.eaMuCommaLambda(
        population, toolbox, N, 16, 0.2, 0.7, 4, **options
    ),
}


@pytest.fixture(autouse=True)
def seeded():
    random.seed(0)  # what DEAP's own operators draw from


@pytest.fixture
def toolbox(iris):
    return make_toolbox(iris, random_state=0)


@pytest.mark.parametrize("loop", LOOPS)
def test_the_loops_of_deap_evolve_trees(iris, toolbox, loop):
    best = tools.HallOfFame(3)
    statistics = tools.Statistics(lambda one: one.fitness.values[0])
    statistics.register("max", max)
    first = toolbox.population(n=N)
    last, logbook = LOOPS[loop](
        first, toolbox, halloffame=best, stats=statistics, verbose=False
    )
    assert len(last) == N and len(logbook) == 5
    for one in last:
        assert_sound(one, iris)
        assert one.fitness.values == toolbox.evaluate(one)
    assert best[0].fitness.values[0] == max(logbook.select("max"))
    assert max(logbook.select("max")[1:]) > logbook.select("max")[0]


def test_a_fitness_of_the_users_own_creator_with_nsga2(iris, toolbox):
    creator.create("QualityAndTerms", base.Fitness, weights=(1.0, -1.0))
    toolbox.register("evaluate", lambda one: (one.quality, one.n_terms))
    toolbox.register("select", tools.selNSGA2)
    population = toolbox.population(n=N)
    for one in population:
        one.fitness = creator.QualityAndTerms()
    last, _ = LOOPS["plus"](population, toolbox, verbose=False)
    (front, *_) = tools.sortNondominated(last, N)
    assert all(isinstance(one.fitness, creator.QualityAndTerms) for one in last)
    assert len({one.fitness.values for one in front}) > 1
    for one in front:
        assert one.fitness.values == (one.quality, one.n_terms)
        assert not any(other.fitness.dominates(one.fitness) for other in last)

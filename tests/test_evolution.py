"""The loop: its stops, its records, its parts replaced, and the same run for the same seed."""

import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.pool import Pool, ThreadPool
from types import SimpleNamespace

import numpy as np
import pytest
from deap import tools

from evotree import (
    Refinement,
    evolve,
    make_statistics,
    make_toolbox,
    to_frame,
    with_tree,
)
from evotree.engine.evolution import CallbackError, ParetoFront
from evotree.fitness.base import FitnessQualityComplexity
from evotree.rng import as_generator
from evotree.tree import set_fitness
from tests.runs import assert_same_run
from tests.strategies import assert_sound

ALWAYS_TAO = Refinement("tao", probability=1.0)
OFTEN_TAO = Refinement("tao", probability=0.5)


def run(dataset, toolbox=None, n=20, **options):
    toolbox = make_toolbox(dataset, random_state=1) if toolbox is None else toolbox
    return evolve(
        toolbox.population(n=n), toolbox, **({"max_generations": 30} | options)
    )


@pytest.mark.parametrize("kind", [ThreadPool, Pool, ProcessPoolExecutor])
@pytest.mark.parametrize("init", [None, "widths"])
def test_maps_of_all_pools_make_the_same_run(iris, kind, init):
    def evolved(mapper, seed=1):
        options = {"refinement": OFTEN_TAO, "init": init, "max_split_terms": 2}
        toolbox = make_toolbox(iris, random_state=seed, **options)
        toolbox.register("map", mapper)
        return run(iris, toolbox, n=12, max_generations=3)

    expected = evolved(map)
    assert expected.population != evolved(map, seed=2).population
    with kind(2) as pool:
        assert_same_run(evolved(pool.map), expected)


def test_trees_are_made_without_a_stream_as_deap_does(iris):
    first, other = (make_toolbox(iris, random_state=seed) for seed in (1, 2))
    trees = tools.initRepeat(list, first.individual, 5)
    again = tools.initRepeat(list, make_toolbox(iris, random_state=1).individual, 5)
    assert trees == again and trees != tools.initRepeat(list, other.individual, 5)
    assert any(one != trees[0] for one in trees[1:])
    assert len(evolve(trees, first, max_generations=2).population) == 5


def test_the_genealogy_of_deap_knows_all_parents(iris):
    toolbox, history = make_toolbox(iris, random_state=1), tools.History()
    population = toolbox.population(n=12)
    history.update(population)
    for role in ("mate", "mutate"):
        toolbox.decorate(role, history.decorator)
    last = evolve(population, toolbox, max_generations=3).population
    parents = history.genealogy_tree
    n_founders = sum(not of for of in parents.values())
    assert n_founders == 12 and len(parents) > 24
    assert all(history.getGenealogy(one) or one in population for one in last)


def test_stops(iris):
    assert run(iris, max_generations=7).stop_reason == "max_generations"
    assert run(iris, max_generations=0).generation == 0
    stopped = run(iris, max_generations=10_000, patience=15)
    assert stopped.stop_reason == "patience"
    best = np.array(stopped.logbook.chapters["fitness"].select("best"))
    assert len(best) - 1 - np.argmax(best) == 15
    by_callback = run(iris, callbacks=[lambda state: state.generation == 4])
    assert (by_callback.generation, by_callback.stop_reason) == (4, "callback")
    for wrong in ({"n": 1}, {"callbacks": [3]}):
        with pytest.raises(ValueError, match="population|callbacks"):
            run(iris, **wrong)


class Clock:
    """A clock that moves only when told to, in the place of `time.perf_counter`."""

    now = 100.0

    def __call__(self):
        return self.now

    def ticking(self, function, seconds=1.0):
        """Return a function that takes some time."""

        def slow(*arguments, **keywords):
            self.now += seconds
            return function(*arguments, **keywords)

        return slow


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", clock := Clock())
    return clock


@pytest.mark.parametrize(
    "slow", ["hall of fame", "front", "statistics", "breeding", "callback"]
)
def test_all_that_a_generation_does_is_on_the_clock(iris, clock, monkeypatch, slow):
    toolbox, hall = make_toolbox(iris, random_state=1), tools.HallOfFame(5)
    stats = make_statistics()
    owner, name = {
        "hall of fame": (hall, "update"),
        "front": (ParetoFront, "update"),
        "statistics": (stats, "compile"),
        "breeding": (toolbox, "streams"),
    }.get(slow, (None, None))
    population, begin = toolbox.population(n=8), clock.now
    if owner is not None:
        monkeypatch.setattr(owner, name, clock.ticking(getattr(owner, name)))
    callbacks = [clock.ticking(id)] if slow == "callback" else []
    options = {"stats": stats, "hall_of_fame": hall, "callbacks": callbacks}
    result = evolve(population, toolbox, time_limit=7.0, **options)
    assert result.stop_reason == "time_limit"
    assert result.seconds == clock.now - begin == 7.0
    recorded = np.diff(result.logbook.select("seconds"))
    assert (recorded == 1.0).all() and len(recorded) == result.generation
    evolve(result, toolbox, time_limit=9.0, **options)
    assert result.seconds == clock.now - begin == 9.0


def test_records(iris):
    """Users' statistics extend ours."""
    result = run(iris)
    table = to_frame(result.logbook)
    assert list(table["gen"]) == list(range(31)) and "diversity" in str(result.logbook)
    assert table["nevals"][0] == 20
    assert (table["nevals"][1:] <= 19).all() and table["nevals"].sum() > 100
    assert table["diversity"].between(0, 1, inclusive="right").all()
    assert table["seconds"].is_monotonic_increasing
    population, last = result.population, table.iloc[-1]
    assert last["quality_best"] == population[0].quality
    fitness = [ind.fitness.values[0] for ind in population]
    for chapter, values in (("fitness", fitness), ("size", list(map(len, population)))):
        written = last[
            [f"{chapter}_{name}" for name in ("mean", "std", "q1", "median", "q3")]
        ]
        expected = [
            np.mean(values),
            np.std(values),
            *np.quantile(values, [0.25, 0.5, 0.75]),
        ]
        assert written.tolist() == pytest.approx(expected)
    extended = make_statistics()
    extended.register("worst", min)
    assert run(iris, stats=extended).logbook.chapters["size"].select("worst")[-1] >= 1


def test_operators_are_replaced_by_registering(iris):
    """One of DEAP's own, and others in plain Python that draw from the individual's stream."""
    draws, chosen = [], []

    def mutate(individual):
        rng = as_generator(individual.stream)
        draws.append(rng.random())
        thresholds = individual.thresholds + 0.1 * rng.normal(size=len(individual))
        tree = individual.weights, thresholds, individual.subtree_size
        return (with_tree(individual, iris, *tree),)

    def choose(offspring):
        chosen.append(len(offspring))
        return offspring[:2]

    toolbox = make_toolbox(iris, refinement="tao", random_state=1)
    toolbox.register("select", tools.selBest)
    toolbox.register("mutate", mutate)
    toolbox.register("choose", choose)
    toolbox.register("evaluate", lambda individual: (100.0 - len(individual),))
    result = run(iris, toolbox, max_generations=3)
    assert len(draws) == 3 * 19 == len(set(draws))
    assert chosen == [19, 19, 19]
    assert all(one.fitness.values == (100.0 - len(one),) for one in result.population)
    for one in (*result.population, *result.hall_of_fame, *result.pareto_front):
        assert_sound(one, iris)
        assert one.origin == "dipole"


def writes(individual):
    individual.weights[0] = 1.0
    return (individual,)


@pytest.mark.parametrize(
    ("role", "operator", "error", "message"),
    [
        (
            "mutate",
            writes,
            ValueError,
            r"mutate \(writes\) wrote to arrays .*with_tree",
        ),
        ("refine", writes, ValueError, r"refine \(writes\) wrote to arrays"),
        (
            "mutate",
            lambda one: one,
            TypeError,
            r"mutate .* allowed is a tuple of 1 individual\.",
        ),
        (
            "mutate",
            lambda _: None,
            TypeError,
            r"mutate \(<lambda>\) returned None: allowed is",
        ),
        ("mutate", lambda _: (1.0,), TypeError, r"returned \(1\.0,\): allowed"),
        ("mate", lambda one, _: (one,), TypeError, r"mate .* a tuple of 2 individuals"),
    ],
)
def test_what_an_operator_does_wrong_is_named(iris, role, operator, error, message):
    toolbox = make_toolbox(iris, refinement=ALWAYS_TAO, random_state=1)
    toolbox.register(role, operator)
    with pytest.raises(error, match=message):
        run(iris, toolbox)


def test_a_tree_with_the_partition_of_another_is_refused(iris):
    """As is what is no tree over the rows."""
    individual = next(one for one in run(iris).population if len(one) > 1)
    weights, thresholds, size, *partition = individual.nodes()
    for wrong in ((weights, thresholds + 1.0, size), (2.0 * weights, thresholds, size)):
        with pytest.raises(ValueError, match="with_tree"):
            individual.replace((*wrong, *partition))
    assert individual.fitness.valid and individual.thresholds is thresholds
    for wrong, message in (
        ((weights[:, :2], thresholds, size), "weights has 2 features, the data set 4"),
        ((weights, thresholds[1:], size), "thresholds"),
        ((weights, thresholds, size + 1), "subtree_size"),
        ((weights * np.nan, thresholds, size), "weights"),
    ):
        with pytest.raises(ValueError, match=message):
            with_tree(individual, iris, *wrong)
    made = with_tree(
        individual, iris, weights.tolist(), thresholds.tolist(), size.tolist()
    )
    assert made == individual and not made.fitness.valid and individual.fitness.valid
    assert made.stream is individual.stream and made.origin == individual.origin


@pytest.mark.parametrize("refinement", [None, ALWAYS_TAO])
@pytest.mark.parametrize(
    "value", [np.nan, (np.inf,), (-1e308,), 0.5, (0.5, 3.0), (), ("0.5",)]
)
def test_a_fitness_that_is_none_is_named(iris, value, refinement):
    toolbox = make_toolbox(iris, refinement=refinement, random_state=1)
    evaluate, calls = toolbox.evaluate, []
    toolbox.register(
        "evaluate",
        lambda one: calls.append(one) or (evaluate(one) if len(calls) < 40 else value),
    )
    with pytest.raises(ValueError, match=r"evaluate returned .*1 finite number"):
        run(iris, toolbox)
    of_two_objectives = SimpleNamespace(fitness=FitnessQualityComplexity())
    set_fitness(of_two_objectives, (np.float64(0.5), 3))
    with pytest.raises(ValueError, match="2 finite numbers"):
        set_fitness(of_two_objectives, (0.5,))


def test_a_callback_that_fails_loses_nothing(iris):
    def fail(state):
        if state.generation == 7:
            raise LookupError("no such thing")

    with pytest.raises(CallbackError, match="generation 7") as caught:
        run(iris, callbacks=[fail])
    assert isinstance(caught.value.__cause__, LookupError)
    kept = caught.value.run
    assert (kept.generation, kept.stop_reason) == (7, "callback_error")
    assert len(kept.logbook) == 8 and kept.best.fitness.valid
    on = evolve(kept, make_toolbox(iris, random_state=0), max_generations=9)
    assert on.generation == 9


def test_a_generation_breeds_and_refines_no_more_when_the_time_is_up(iris, clock):
    """The rest are clones, so that the generation is whole; so is a first population."""
    toolbox, calls = make_toolbox(iris, refinement="tao", random_state=1), Counter()
    for role in ("mutate", "refine"):
        operator = clock.ticking(getattr(toolbox, role))
        toolbox.register(
            role, lambda one, r=role, f=operator: calls.update([r]) or f(one)
        )
    run = evolve(toolbox.population(n=40), toolbox, time_limit=5.0)
    assert run.stop_reason == "time_limit" and run.generation == 1
    assert calls == {"mutate": 5} and run.seconds == 5.0
    assert len(run.population) == 40
    for one in run.population:
        assert one.fitness.values == toolbox.evaluate(one)
    toolbox, made = make_toolbox(iris, random_state=1), []
    grow = clock.ticking(toolbox.individual)
    toolbox.register("individual", lambda stream: made.append(stream) or grow(stream))
    population = toolbox.population(n=40, seconds=8.0)
    assert len(population) == 40 and len(made) == 6
    assert len({id(one.weights) for one in population}) <= 7
    assert len({id(one.stream) for one in population}) > 30

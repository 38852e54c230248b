"""The loop: its stops, its records, its parts replaced, and the same run for the same seed."""

import copy
import pickle
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from deap import tools
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core import event
from sklearn.datasets import load_iris

from evotree import (
    Dataset,
    Individual,
    Refinement,
    Variation,
    evolve,
    make_statistics,
    make_toolbox,
    to_frame,
    with_tree,
)
from evotree._jit import compile_seconds
from evotree.engine.evolution import CallbackError
from evotree.engine.pareto import ParetoFront
from evotree.fitness.penalties import FitnessQualityComplexity
from evotree.individual import FitnessMax, set_fitness
from evotree.operators.pruning.penalized import prune
from evotree.rng import as_generator, make_streams
from tests.strategies import assert_sound


@pytest.fixture(scope="module")
def iris():
    return Dataset.from_arrays(*load_iris(return_X_y=True))


def run(dataset, toolbox=None, n=20, **options):
    toolbox = make_toolbox(dataset, random_state=1) if toolbox is None else toolbox
    return evolve(toolbox.population(n=n), toolbox, **({"max_generations": 30} | options))


def test_the_same_seed_makes_the_same_run_on_any_number_of_threads(iris):
    first, toolbox = run(iris), make_toolbox(iris, random_state=1)
    with ThreadPoolExecutor(3) as executor:
        toolbox.register("map", executor.map)
        second = run(iris, toolbox)
    assert all(a == b for a, b in zip(first.population, second.population, strict=True))
    columns = ["gen", "nevals", "diversity", "fitness_best", "fitness_std", "size_mean"]
    assert to_frame(first.logbook)[columns].equals(to_frame(second.logbook)[columns])
    other = run(iris, make_toolbox(iris, random_state=2))
    assert any(a != b for a, b in zip(first.population, other.population, strict=True))


def test_the_best_survives_and_stands_first(iris):
    seen = []
    result = run(iris, callbacks=[lambda state: seen.append(list(state.population))])
    best = [max(ind.fitness.values[0] for ind in population) for population in seen]
    assert best == sorted(best)
    assert best[-1] > best[0]
    assert [population[0].fitness.values[0] for population in seen] == best
    assert all(len(population) == 20 for population in seen)
    assert result.best.fitness.values[0] == best[-1]


def test_stops(iris):
    assert run(iris, max_generations=7).stop_reason == "max_generations"
    assert run(iris, max_generations=0).generation == 0
    stopped = run(iris, max_generations=10_000, patience=15)
    assert stopped.stop_reason == "patience"
    best = np.array(stopped.logbook.chapters["fitness"].select("best"))
    assert len(best) - 1 - np.argmax(best) == 15
    by_callback = run(iris, callbacks=[lambda state: state.generation == 4])
    assert (by_callback.generation, by_callback.stop_reason) == (4, "callback")


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
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


@pytest.mark.parametrize("slow", ["hall of fame", "front", "statistics", "breeding", "callback"])
def test_all_that_a_generation_does_is_on_the_clock(iris, clock, monkeypatch, slow):
    toolbox, hall = make_toolbox(iris, random_state=1), tools.HallOfFame(5)
    stats = make_statistics()
    if slow == "hall of fame":
        hall.update = clock.ticking(hall.update)
    elif slow == "front":
        monkeypatch.setattr(ParetoFront, "update", clock.ticking(ParetoFront.update))
    elif slow == "statistics":
        stats.compile = clock.ticking(stats.compile)
    elif slow == "breeding":
        toolbox.register("streams", clock.ticking(toolbox.streams))
    callbacks = [clock.ticking(id)] if slow == "callback" else []
    population, begin = toolbox.population(n=8), clock.now
    options = {"stats": stats, "hall_of_fame": hall, "callbacks": callbacks}
    result = evolve(population, toolbox, time_limit=7.0, **options)
    assert result.stop_reason == "time_limit"
    assert result.seconds == clock.now - begin == 7.0
    recorded = np.diff(result.logbook.select("seconds"))
    assert (recorded == 1.0).all() and len(recorded) == result.generation
    evolve(result, toolbox, time_limit=9.0, **options)
    assert result.seconds == clock.now - begin == 9.0


def test_compilation_is_on_a_clock_of_its_own(iris, clock):
    """Neither the refiners nor a budget of theirs pay for it."""

    def refiner(individual, dataset):
        clock.now += 2.0
        event.start_event("numba:compiler_lock")
        event.start_event("numba:compiler_lock")
        clock.now += 10.0
        event.end_event("numba:compiler_lock")
        event.end_event("numba:compiler_lock")
        return (individual,)

    refinement = Refinement({refiner: 1.0}, probability=1.0)
    toolbox = make_toolbox(iris, refinement=refinement, random_state=1)
    before = compile_seconds()
    result = run(iris, toolbox, n=4, max_generations=3)
    tried = result.spent.evaluations
    assert tried > 0 and result.spent.seconds == pytest.approx(2.0 * tried)
    assert result.compile_seconds == pytest.approx(10.0 * tried)
    assert compile_seconds() - before == pytest.approx(10.0 * tried)
    assert result.seconds == pytest.approx(12.0 * tried)
    booked = to_frame(result.logbook)["refinement_refiner_seconds"].sum()
    assert booked == pytest.approx(2.0 * tried)


@pytest.mark.parametrize("limit", ["max_generations", "patience", "time_limit", "callback"])
def test_an_interrupt_in_the_last_generation_is_not_lost(iris, limit):
    last = 4
    options = {
        "max_generations": {"max_generations": last},
        "patience": {"max_generations": 10**4, "patience": 1},
        "time_limit": {"time_limit": 1e-9},
        "callback": {},
    }[limit]

    def press(state):
        if limit != "max_generations" or state.generation == last:
            signal.raise_signal(signal.SIGINT)
        return limit == "callback"

    toolbox = make_toolbox(iris, random_state=1)
    toolbox.register("evaluate", lambda _: (1.0,))  # nothing improves
    with pytest.raises(KeyboardInterrupt):
        run(iris, toolbox, callbacks=[press], **options)
    kept = run(iris, toolbox, callbacks=[press], keep_on_interrupt=True, **options)
    assert kept.stop_reason == "interrupt"


def test_records(iris):
    result = run(iris)
    table = to_frame(result.logbook)
    assert list(table["gen"]) == list(range(31))
    assert table["nevals"][0] == 20
    assert (table["nevals"][1:] <= 19).all() and table["nevals"].sum() > 100
    assert table["diversity"].between(0, 1, inclusive="right").all()
    assert table["seconds"].is_monotonic_increasing
    last = result.population
    assert table["quality_best"].iloc[-1] == last[0].quality
    assert table["size_mean"].iloc[-1] == pytest.approx(np.mean([len(ind) for ind in last]))
    fitness = [ind.fitness.values[0] for ind in last]
    assert table["fitness_std"].iloc[-1] == pytest.approx(np.std(fitness))
    for chapter, values in (("fitness", fitness), ("size", list(map(len, last)))):
        drawn = table.iloc[-1][[f"{chapter}_{name}" for name in ("q1", "median", "q3")]]
        assert drawn.tolist() == pytest.approx(np.quantile(values, [0.25, 0.5, 0.75]))
    assert "diversity" in str(result.logbook)


def test_users_statistics_replace_ours(iris):
    stats = tools.Statistics(lambda ind: ind.n_leaves)
    stats.register("max", max)
    result = run(iris, stats=stats)
    assert result.logbook.select("max")[-1] == max(ind.n_leaves for ind in result.population)
    extended = make_statistics()
    extended.register("worst", min)
    assert run(iris, stats=extended).logbook.chapters["size"].select("worst")[-1] >= 1


def test_operators_are_replaced_by_registering(iris):
    """One of DEAP's own, and two in plain Python that draw from the individual's stream."""
    calls = []

    def mutate(individual):
        rng = as_generator(individual.stream)
        calls.append(rng.random())
        thresholds = individual.thresholds + 0.1 * rng.normal(size=len(individual))
        return (
            with_tree(individual, iris, individual.weights, thresholds, individual.subtree_size),
        )

    toolbox = make_toolbox(iris, random_state=1)
    toolbox.register("select", tools.selBest)
    toolbox.register("mutate", mutate)
    toolbox.register("evaluate", lambda individual: (individual.quality,))
    result = run(iris, toolbox, max_generations=5)
    assert len(calls) == 5 * 19 == len(set(calls))
    assert result.best.fitness.values[0] == result.best.quality
    for one in (*result.population, *result.hall_of_fame, *result.pareto_front):
        assert_sound(one, iris)
        assert one.origin == "dipole"


def writes(individual):
    individual.weights[0] = 1.0
    return (individual,)


@pytest.mark.parametrize(
    ("role", "operator", "error", "message"),
    [
        ("mutate", writes, ValueError, r"mutate \(writes\) wrote to arrays .*with_tree"),
        ("refine", writes, ValueError, r"refine \(writes\) wrote to arrays"),
        ("mutate", lambda one: one, TypeError, r"mutate .* allowed is a tuple of 1 individual\."),
        ("mutate", lambda _: None, TypeError, r"mutate \(<lambda>\) returned None: allowed is"),
        ("mutate", lambda _: (1.0,), TypeError, r"returned \(1\.0,\): allowed"),
        ("mate", lambda one, _: (one,), TypeError, r"mate .* a tuple of 2 individuals"),
    ],
)
def test_what_an_operator_does_wrong_is_named(iris, role, operator, error, message):
    toolbox = make_toolbox(iris, refinement=Refinement("tao", probability=1.0), random_state=1)
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
        ((weights[:, :2], thresholds, size), "weights has 2 features: the data set has 4"),
        ((weights, thresholds[1:], size), "thresholds"),
        ((weights, thresholds, size + 1), "subtree_size"),
        ((weights * np.nan, thresholds, size), "weights"),
    ):
        with pytest.raises(ValueError, match=message):
            with_tree(individual, iris, *wrong)
    made = with_tree(individual, iris, weights.tolist(), thresholds.tolist(), size.tolist())
    assert made == individual and not made.fitness.valid and individual.fitness.valid
    assert made.stream is individual.stream and made.origin == individual.origin


class Bare:
    """Something whose `fitness` has two objectives."""

    def __init__(self):
        self.fitness = FitnessQualityComplexity()


@pytest.mark.parametrize("refinement", [None, Refinement("tao", probability=1.0)])
@pytest.mark.parametrize("value", [np.nan, (np.inf,), (-1e308,), 0.5, (0.5, 3.0), (), ("0.5",)])
def test_a_fitness_that_is_none_is_named(iris, value, refinement):
    toolbox = make_toolbox(iris, refinement=refinement, random_state=1)
    evaluate, calls = toolbox.evaluate, []

    def spoilt(individual):
        calls.append(individual)
        return evaluate(individual) if len(calls) < 40 else value

    toolbox.register("evaluate", spoilt)
    with pytest.raises(ValueError, match=r"evaluate returned .*1 finite number"):
        run(iris, toolbox)
    set_fitness(Bare(), (np.float64(0.5), 3))
    with pytest.raises(ValueError, match="2 finite numbers"):
        set_fitness(Bare(), (0.5,))


def test_what_a_choice_is_called_with(iris):
    toolbox = make_toolbox(iris, refinement="tao", random_state=1)
    seen = []

    def choose(offspring, generation, spent):
        seen.append((len(offspring), generation, spent.evaluations))
        return offspring[:2]

    toolbox.register("choose", choose)
    run(iris, toolbox, max_generations=3)
    assert seen == [(19, 1, 0), (19, 2, 2), (19, 3, 4)]


def test_bad_arguments_are_named(iris):
    with pytest.raises(ValueError, match="population"):
        run(iris, n=1)
    with pytest.raises(ValueError, match="callbacks"):
        run(iris, callbacks=[3])


def test_individuals_copy_and_pickle(iris):
    individual = run(iris).best
    for twin in (
        copy.deepcopy(individual),
        individual.clone(),
        pickle.loads(pickle.dumps(individual)),
    ):
        assert type(twin) is Individual and type(twin.fitness) is FitnessMax
        assert twin == individual
        assert twin.fitness == individual.fitness and twin.fitness is not individual.fitness
        assert twin.quality == individual.quality
        np.testing.assert_array_equal(twin.order, individual.order)
        del twin.fitness.values
        assert individual.fitness.valid


def test_two_objectives_keep_the_best_of_both(iris):
    toolbox = make_toolbox(iris, variation=Variation(algorithm="nsga2"), random_state=1)
    sizes, qualities = [], []

    def look(state):
        sizes.append(min(len(individual) for individual in state.population))
        qualities.append(max(individual.quality for individual in state.population))

    result = run(iris, toolbox, callbacks=[look])
    assert qualities == sorted(qualities) and sizes == sorted(sizes, reverse=True)
    assert result.best.quality == qualities[-1]  # the fitter of two is that of higher quality
    assert all(len(individual.fitness.values) == 2 for individual in result.population)


def test_outcomes_are_those_of_the_generation(iris):
    """What survives from an earlier one says nothing of it."""
    for algorithm in ("penalized", "nsga2"):
        toolbox = make_toolbox(
            iris,
            refinement=Refinement("tao", probability=0.5, max_evaluations=10),
            variation=Variation(algorithm=algorithm),
            random_state=1,
        )
        result = run(iris, toolbox)
        assert result.spent.evaluations == 10
        assert all(individual.outcome is None for individual in result.population)


def test_refinements_are_worth_what_the_toolbox_says(iris):
    """Also where ``evaluate`` is replaced after the toolbox was made."""
    toolbox = make_toolbox(iris, refinement=Refinement("tao", probability=0.5), random_state=1)
    toolbox.register("evaluate", lambda individual: (100.0 - len(individual),))
    result = run(iris, toolbox)
    assert all(one.fitness.values == (100.0 - len(one),) for one in result.population)


def test_a_map_that_returns_copies_changes_nothing(iris):
    """As one over processes does."""

    def copying(function, *arguments):
        return [pickle.loads(pickle.dumps(made)) for made in map(function, *arguments)]

    def evolved(mapper):
        toolbox = make_toolbox(iris, refinement=Refinement("tao", probability=0.5), random_state=1)
        toolbox.register("map", mapper)
        return run(iris, toolbox)

    here, elsewhere = evolved(map), evolved(copying)
    assert here.spent.evaluations == elsewhere.spent.evaluations > 10
    tried = [one.logbook.chapters["refinement"].select("tao_tried") for one in (here, elsewhere)]
    assert tried[0] == tried[1]
    assert all(a == b for a, b in zip(here.population, elsewhere.population, strict=True))
    assert here.best.fitness == elsewhere.best.fitness


def keep(individual, dataset):
    """Refine nothing: what is refined is pruned in any case."""
    return (individual,)


def test_every_part_of_the_toolbox_knows_the_penalty_for_terms(iris):
    """Trees that are made or refined are the fittest of their prunings."""
    options = {"size_penalty": 0.001, "term_penalty": 0.02, "random_state": 1}
    axis = make_toolbox(iris, **options).quick(make_streams(0, 0, 1)[0])
    wide = iris.to_raw(axis.to_tree())
    wide.weights = np.where(wide.is_leaf[:, None], 0.0, wide.weights + 1e-9)
    toolbox = make_toolbox(iris, init=[wide], refinement={keep: 1.0}, **options)
    made = [toolbox.individual(stream) for stream in make_streams(2, 0, 8)]
    made += [toolbox.seed("tao", stream) for stream in make_streams(3, 0, 4)]
    made += [toolbox.seed("linear", stream) for stream in make_streams(3, 0, 4)]
    made += [axis, toolbox.population(n=4)[0]]
    assert sum(one.n_terms > len(one) // 2 for one in made) > 8
    for one in made:
        assert prune(one.clone(), iris, 0.001, 0.02)[0] == one
    (tree,) = make_toolbox(iris, init=[wide], size_penalty=0.001).population(n=2)[:1]
    assert len(tree) > len(made[-1])  # cut by its terms alone
    tree.stream, tree.fitness.values = make_streams(0, 0, 1)[0], toolbox.evaluate(tree)
    (refined,) = toolbox.refine(tree)
    assert refined == made[-1]


def without_seconds(logbook):
    """Return the records of a run without their times."""
    table = to_frame(logbook)
    return table.drop(columns=[name for name in table if name.endswith("seconds")])


@pytest.mark.parametrize("refinement", [None, "tao"])
@given(st.integers(0, 12))
@settings(max_examples=6, deadline=None)
def test_a_run_that_stopped_goes_on_as_if_it_had_not(iris, refinement, stop):
    limits = {"max_generations": 12}
    toolboxes = [
        make_toolbox(
            iris,
            refinement=refinement,
            variation=Variation(keep_duplicates=stop % 2 == 0),
            random_state=stop,
        )
        for _ in range(2)
    ]
    whole = evolve(toolboxes[0].population(n=20), toolboxes[0], **limits)
    half = evolve(toolboxes[1].population(n=20), toolboxes[1], max_generations=stop)
    rest = evolve(half, toolboxes[1], **limits)
    assert rest is half and rest.stop_reason == "max_generations"
    assert all(a == b for a, b in zip(whole.population, rest.population, strict=True))
    pd.testing.assert_frame_equal(without_seconds(whole.logbook), without_seconds(rest.logbook))
    assert list(whole.hall_of_fame) == list(rest.hall_of_fame)
    assert whole.last_improvement == rest.last_improvement
    assert evolve(rest, toolboxes[1], max_generations=5).generation == 12


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
    """The rest are clones, so that the generation is whole."""
    toolbox, calls = make_toolbox(iris, refinement="tao", random_state=1), Counter()
    for role in ("mutate", "refine"):
        operator = clock.ticking(getattr(toolbox, role))
        toolbox.register(role, lambda one, r=role, f=operator: calls.update([r]) or f(one))
    run = evolve(toolbox.population(n=40), toolbox, time_limit=5.0)
    assert run.stop_reason == "time_limit" and run.generation == 1
    assert calls == {"mutate": 5} and run.seconds == 5.0
    assert len(run.population) == 40
    for one in run.population:
        assert one.fitness.values == toolbox.evaluate(one)


def test_a_population_that_has_no_time_is_made_of_clones(iris, clock):
    toolbox, made = make_toolbox(iris, random_state=1), []
    grow = clock.ticking(toolbox.individual)
    toolbox.register("individual", lambda stream: made.append(stream) or grow(stream))
    population = toolbox.population(n=40, seconds=8.0)
    assert len(population) == 40 and len(made) == 6
    assert len({id(one.weights) for one in population}) <= 7
    assert len({id(one.stream) for one in population}) > 30

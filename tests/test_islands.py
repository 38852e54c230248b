"""Islands: the same run on any executor, the best exchanged, and workers that die."""

import math
import multiprocessing
import os
import pickle
import signal
import time
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from evotree import Dataset, evolve, make_toolbox, to_frame
from evotree.engine.evolution import CallbackError, start, watch
from evotree.engine.history import make_statistics
from evotree.engine.islands import emigrants, epochs, island_seeds, join, migrate


@pytest.fixture(scope="module")
def iris():
    return Dataset.from_arrays(*load_iris(return_X_y=True))


def make_toolboxes(dataset, n=3, seed=0, **options):
    options = {"refinement": "tao"} | options
    return [make_toolbox(dataset, random_state=s, **options) for s in island_seeds(seed, n)]


def evolve_islands(toolboxes, *, islands=None, callbacks=(), time_limit=math.inf, **options):
    """Evolve islands as a search does."""
    limits = {"max_generations": 12, "end": time.perf_counter() + time_limit}
    given = {"population_size": 12, "migration_interval": 10, "migration_size": 2}
    given |= {"topology": "ring", "executor": None, "crossover_probability": 0.2}
    watched = {"patience": None, "keep_on_interrupt": False}
    for known in (limits, given, watched):
        known.update({name: options.pop(name) for name in known.keys() & options.keys()})
    states = epochs(toolboxes, islands=islands, **given, **limits, **options)
    return watch(states, callbacks, is_new=islands is None, **limits, **watched)


def run(dataset, n=3, **options):
    limits = {"population_size": 12, "max_generations": 12, "migration_interval": 5}
    return evolve_islands(make_toolboxes(dataset, n), **(limits | options))


def assert_same(one, other):
    """Check that two runs are the same, bit for bit, times apart."""
    for a, b in zip([one, *one.islands], [other, *other.islands], strict=True):
        assert all(x == y for x, y in zip(a.population, b.population, strict=True))
        assert [x.fitness.values for x in a.population] == [x.fitness.values for x in b.population]
        assert list(a.hall_of_fame) == list(b.hall_of_fame)
        assert list(a.pareto_front) == list(b.pareto_front)
        tables = [to_frame(x.logbook) for x in (a, b)]
        tables = [t.drop(columns=[c for c in t if c.endswith("seconds")]) for t in tables]
        pd.testing.assert_frame_equal(*tables)
    assert one.last_improvement == other.last_improvement


@pytest.fixture(scope="module")
def alone(iris):
    return run(iris)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_threads_make_the_same_run(iris, alone, n_workers):
    with ThreadPoolExecutor(n_workers) as executor:
        assert_same(alone, run(iris, executor=executor))


@pytest.mark.slow
def test_a_cluster_makes_the_same_run(iris, alone):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert_same(alone, run(iris, executor=client.get_executor()))


def test_one_island_is_a_plain_run(iris):
    (toolbox,) = make_toolboxes(iris, 1)
    plain = evolve(toolbox.population(n=12), toolbox, max_generations=12)
    islands = run(iris, n=1)
    assert list(plain.hall_of_fame) == list(islands.hall_of_fame)
    found, expected = to_frame(islands.logbook), to_frame(plain.logbook)
    assert set(found) == set(expected)
    columns = [name for name in expected if not name.endswith("seconds")]
    pd.testing.assert_frame_equal(found[columns], expected[columns], check_dtype=False)


def test_islands_differ_and_exchange(iris):
    apart, together = run(iris, migration_size=0), run(iris)
    assert len({tuple(one.weights.ravel()) for one in (i.best for i in apart.islands)}) > 1
    first, second = (x.islands[1].logbook.chapters["fitness"] for x in (apart, together))
    assert first.select("mean")[:6] == second.select("mean")[:6]
    assert first.select("mean")[6:] != second.select("mean")[6:]


@given(st.integers(0, 100), st.integers(0, 12), st.sampled_from(["ring", "complete"]))
@settings(max_examples=15, deadline=None)
def test_migrants_are_the_best_and_take_the_places_of_the_worst(iris, seed, n, topology):
    islands = []
    for toolbox in make_toolboxes(iris, 3, seed):
        islands.append(start(toolbox.population(n=8), toolbox, make_statistics()))
    before = [list(island.population) for island in islands]
    migrate(islands, n, topology)
    for i, island in enumerate(islands):
        sources = [before[i - 1]] if topology == "ring" else before[:i] + before[i + 1 :]
        pool = emigrants([one for source in sources for one in source], n)
        arrived = pool[: min(n, 7)]
        old = before[i]
        assert len(island.population) == len(old)
        assert island.best.fitness == max(one.fitness for one in [*arrived, *old])
        kept = [one for one in island.population if any(one is x for x in old)]
        assert len(kept) == len(old) - len(arrived) and any(one is old[0] for one in kept)
        gone = [one for one in old if not any(one is x for x in kept)]
        others = [x.fitness for x in kept if x is not old[0]]
        assert not gone or not others or max(x.fitness for x in gone) <= min(others)
        assert all(one in island.population for one in arrived)


def test_joint_records_are_those_of_all_members(iris, alone):
    everyone = [one for island in alone.islands for one in island.population]
    last = to_frame(alone.logbook).iloc[-1]
    sizes = np.array([len(one) for one in everyone])
    assert last["size_mean"] == pytest.approx(sizes.mean())
    assert last["size_std"] == pytest.approx(sizes.std())
    assert last["fitness_best"] == max(one.fitness.values[0] for one in everyone)
    records = [island.logbook for island in alone.islands]
    assert last["nevals"] == sum(book[-1]["nevals"] for book in records)
    tried = to_frame(alone.logbook)["refinement_tao_tried"]
    assert tried.sum() == alone.spent.evaluations > 0
    assert alone.logbook.select("gen") == list(range(13))
    assert len(alone.population) == 36 and alone.population[0] is alone.best


def test_a_run_of_islands_goes_on(iris, alone):
    half = run(iris, max_generations=7)
    rest = evolve_islands(
        make_toolboxes(iris),
        islands=half.islands,
        population_size=12,
        max_generations=12,
        migration_interval=5,
    )
    assert_same(alone, rest)


def test_limits_and_callbacks(iris):
    seen = []
    stopped = run(iris, callbacks=[lambda state: seen.append(state.generation) or len(seen) == 2])
    assert (stopped.stop_reason, stopped.generation, seen) == ("callback", 10, [5, 10])
    assert run(iris, max_generations=0).generation == 0
    assert run(iris, max_generations=100, patience=10).stop_reason == "patience"

    def fail(_):
        raise LookupError

    with pytest.raises(CallbackError) as caught:
        run(iris, callbacks=[fail])
    assert caught.value.run.generation == 5


@pytest.mark.parametrize("n_threads", [0, 1])
def test_time_is_one_for_all_islands(iris, monkeypatch, n_threads):
    """Also where they wait for each other: each of the six has its share, or what is left."""
    now, islands = [100.0], 6
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    toolboxes = make_toolboxes(iris, islands, refinement=None)

    def take_time(generation, n, make_streams):
        now[0] += 1.0
        return make_streams(generation, n)

    for toolbox in toolboxes:
        toolbox.register("streams", partial(take_time, make_streams=toolbox.streams))
    limits = {"max_generations": 10**6, "migration_interval": 10**6, "time_limit": 60.0}
    with ThreadPoolExecutor(1) if n_threads else nullcontext() as executor:
        limited = evolve_islands(toolboxes, executor=executor, population_size=4, **limits)
    assert limited.stop_reason == "time_limit" and len(limited.islands) == islands
    assert 60.0 <= limited.seconds <= 60.0 + islands


class Recorder(Executor):
    """Runs what it is given at once, in a copy, and records how it was given."""

    def __init__(self):
        self.n_records = []

    def submit(self, function, epoch):
        self.n_records.append(len(epoch.run.logbook) if epoch.run else 0)
        future = Future()
        function, epoch = pickle.loads(pickle.dumps((function, epoch)))
        future.set_result(pickle.loads(pickle.dumps(function(epoch))))
        return future


def test_no_more_travels_than_is_needed(iris, alone):
    recorder = Recorder()
    assert_same(alone, run(iris, executor=recorder))
    assert recorder.n_records == [0] * 9


def test_islands_that_are_behind_catch_up(iris):
    """As where time has stopped some of them earlier than others."""
    whole = run(iris, n=2, max_generations=8, migration_size=0)
    ahead = run(iris, n=2, max_generations=6, migration_size=0)
    behind = run(iris, n=2, max_generations=3, migration_size=0)
    mixed = [ahead.islands[0], behind.islands[1]]
    assert join(mixed).logbook.select("gen") == list(range(7))
    rest = run(iris, n=2, islands=mixed, max_generations=8, migration_size=0)
    assert_same(whole, rest)


@pytest.mark.parametrize("keep", [True, False])
def test_an_interrupt_in_the_last_epoch_is_not_lost(iris, keep):
    def press(state):
        if state.generation == 12:
            signal.raise_signal(signal.SIGINT)

    if keep:
        kept = run(iris, callbacks=[press], keep_on_interrupt=True)
        assert (kept.stop_reason, kept.generation) == ("interrupt", 12)
    else:
        with pytest.raises(KeyboardInterrupt):
            run(iris, callbacks=[press])


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        yield executor


class Broken(Executor):
    def submit(self, *_):
        raise RuntimeError("cannot schedule new futures")


def raise_lookup(individual):
    raise LookupError(len(individual))


def raise_type_error(individual):
    raise TypeError(f"no pickles for {individual}")


def with_operator(dataset, evaluate):
    toolboxes = make_toolboxes(dataset)
    toolboxes[1].register("evaluate", evaluate)
    return toolboxes


def test_errors_are_raised_and_say_where(iris, processes):
    """A worker that died is another matter."""
    with pytest.raises(RuntimeError, match="cannot schedule"):
        evolve_islands(make_toolboxes(iris), executor=Broken())
    with ThreadPoolExecutor(2) as executor, pytest.raises(TypeError, match="pickles") as caught:
        evolve_islands(with_operator(iris, raise_type_error), executor=executor)
    assert not hasattr(caught.value, "__notes__")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((pickle.PicklingError, AttributeError), match="pickle") as caught:
            evolve_islands(with_operator(iris, lambda one: (one.quality,)), executor=processes)
        assert "functions of a module" in "".join(caught.value.__notes__)
        with pytest.raises(LookupError) as caught:
            evolve_islands(with_operator(iris, raise_lookup), executor=processes)
        assert "raise_lookup" in str(caught.value.__cause__)


def kill_once(path, home, individual, evaluate):
    """Evaluate; the first process but `home` that comes here is killed."""
    if os.getpid() != home:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return evaluate(individual)


def test_processes_make_the_same_run_and_one_that_dies_costs_an_epoch_only(
    iris, alone, processes, tmp_path
):
    toolboxes = make_toolboxes(iris)
    for toolbox in toolboxes:
        evaluate = toolbox.evaluate
        toolbox.register(
            "evaluate", partial(kill_once, tmp_path / "died", os.getpid(), evaluate=evaluate)
        )
    limits = {"population_size": 12, "max_generations": 12, "migration_interval": 5}
    with warnings.catch_warnings(record=True) as caught:
        assert_same(alone, run(iris, executor=processes))
        warnings.simplefilter("always")
        survived = evolve_islands(toolboxes, executor=processes, **limits)
    assert (tmp_path / "died").exists()
    assert any("has lost" in str(one.message) for one in caught)
    assert_same(alone, survived)

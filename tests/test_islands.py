"""Islands: the same run on any executor, the best exchanged, and workers that die."""

import multiprocessing
import os
import pickle
import signal
import warnings
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evotree import evolve, make_toolbox, to_frame
from evotree.engine.evolution import CallbackError, make_statistics, start
from evotree.engine.islands import island_seeds, join, migrate
from tests.runs import assert_same_run, evolve_islands


def make_toolboxes(dataset, n=3, seed=0, **options):
    options = {"refinement": "tao"} | options
    return [
        make_toolbox(dataset, random_state=s, **options) for s in island_seeds(seed, n)
    ]


def run(dataset, n=3, **options):
    return evolve_islands(make_toolboxes(dataset, n), **options)


@pytest.fixture(scope="module")
def alone(iris):
    return run(iris)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_threads_make_the_same_run(iris, alone, n_workers):
    with ThreadPoolExecutor(n_workers) as executor:
        assert_same_run(alone, run(iris, executor=executor))


def test_one_island_is_a_plain_run(iris):
    (toolbox,) = make_toolboxes(iris, 1)
    plain = evolve(toolbox.population(n=12), toolbox, max_generations=12)
    islands = run(iris, n=1)
    assert list(plain.hall_of_fame) == list(islands.hall_of_fame)
    found, expected = to_frame(islands.logbook), to_frame(plain.logbook)
    assert set(found) == set(expected)
    columns = [name for name in expected if not name.endswith("seconds")]
    pd.testing.assert_frame_equal(found[columns], expected[columns], check_dtype=False)


@pytest.mark.parametrize(
    ("best", "at", "expected"),
    [((0.9, 0.9), (5, 3), 3), ((0.9, 0.8), (5, 3), 5), ((0.8, 0.9), (5, 7), 7)],
)
def test_a_run_is_best_since_the_first_of_its_islands_was(iris, best, at, expected):
    islands = []
    for toolbox, one, generation in zip(make_toolboxes(iris, 2), best, at, strict=True):
        island = start(toolbox.population(n=4), toolbox, make_statistics())
        island.best_fitness = (one,)
        island.last_improvement = generation
        islands.append(island)
    joint = join(islands)
    assert joint.best_fitness == (max(best),) and joint.last_improvement == expected


@example(seed=0, n=3, copies=7)
@given(st.integers(0, 100), st.integers(0, 12), st.integers(0, 7))
@settings(max_examples=15, deadline=None)
def test_migrants_are_the_best_and_take_the_places_of_the_worst(iris, seed, n, copies):
    """The best tree of an island stays, and no tree arrives twice."""
    islands = []
    for toolbox in make_toolboxes(iris, 3, seed):
        trees = toolbox.population(n=8 - copies)
        trees += [tree.clone() for tree in (7 * trees)[:copies]]
        islands.append(start(trees, toolbox, make_statistics()))
    before = [list(island.population) for island in islands]
    migrate(islands, n)
    for i, island in enumerate(islands):
        fitness_of = {splits_of(tree): tree.fitness.values for tree in before[i - 1]}
        arriving = sorted(fitness_of.values(), reverse=True)[: min(n, 7)]
        best, *others = sorted(
            (tree.fitness.values for tree in before[i]), reverse=True
        )
        expected = [best, *others[: 7 - len(arriving)], *arriving]
        after = [tree.fitness.values for tree in island.population]
        assert sorted(after) == sorted(expected) and after[0] == max(expected)
        assert any(tree is before[i][0] for tree in island.population)
        own = set(map(id, before[i]))
        arrived = [splits_of(t) for t in island.population if id(t) not in own]
        assert len(arrived) == len(set(arrived)) == len(arriving)
        assert set(arrived) <= fitness_of.keys()


def splits_of(tree):
    """Return the splits of a tree, by which it is known."""
    return tuple(array.tobytes() for array in tree.splits)


def test_the_records_are_those_of_the_island_with_the_best(alone):
    leader = max(alone.islands, key=lambda island: island.best.fitness.values)
    assert alone.logbook is leader.logbook
    table = to_frame(alone.logbook)
    assert table["fitness_best"].iloc[-1] == alone.best.fitness.values[0]
    assert list(table["gen"]) == list(range(13))
    assert table["refinement_tao_tried"].sum() > 0
    assert len(alone.population) == 36 and alone.population[0] is alone.best


def test_limits_and_callbacks(iris):
    seen = []
    stopped = run(
        iris, callbacks=[lambda state: seen.append(state.generation) or len(seen) == 2]
    )
    assert (stopped.stop_reason, stopped.generation, seen) == ("callback", 10, [5, 10])
    assert run(iris, max_generations=0).generation == 0
    assert run(iris, max_generations=100, patience=10).stop_reason == "patience"
    with pytest.raises(CallbackError) as caught:
        run(iris, callbacks=[lambda _: 1 / 0])
    assert caught.value.run.generation == 5


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        yield executor


class Broken(Executor):
    def submit(self, *_):
        raise RuntimeError("cannot schedule new futures")


def raise_lookup(individual):
    raise LookupError(len(individual))


def test_errors_are_raised_and_say_where(iris, processes):
    """A worker that died is another matter."""

    def evolve_with(evaluate, executor):
        toolboxes = make_toolboxes(iris)
        toolboxes[1].register("evaluate", evaluate)
        evolve_islands(toolboxes, executor=executor)

    with pytest.raises(RuntimeError, match="cannot schedule"):
        run(iris, executor=Broken())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            (pickle.PicklingError, AttributeError), match="pickle|local object"
        ):
            evolve_with(lambda one: (one.quality,), processes)
        with pytest.raises(LookupError) as caught:
            evolve_with(raise_lookup, processes)
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


def test_processes_make_the_same_run_and_one_that_dies_is_an_error(
    iris, alone, processes, tmp_path
):
    """An epoch that has killed a process is not bred again in this one."""
    assert_same_run(alone, run(iris, executor=processes))
    toolboxes, died = make_toolboxes(iris), tmp_path / "died"
    for toolbox in toolboxes:
        dying = partial(kill_once, died, os.getpid(), evaluate=toolbox.evaluate)
        toolbox.register("evaluate", dying)
    with pytest.raises(RuntimeError, match="a worker of the executor died over epochs"):
        evolve_islands(toolboxes, executor=processes)
    assert died.exists()

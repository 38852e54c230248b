"""Checkpoints: the same end as without, refused where they do not fit, data and never code."""

import io
import json
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from deap import tools
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris, load_wine

from evotree import Dataset, Individual, Variation, evolve, make_toolbox, to_frame
from evotree.engine.checkpoint import (
    CheckpointWriter,
    load_checkpoint,
    read_settings,
    save_checkpoint,
)
from evotree.engine.islands import island_seeds
from evotree.individual import FitnessMax
from tests.test_islands import evolve_islands

PROBLEMS = {"iris": load_iris, "diabetes": load_diabetes}


def make_dataset(name):
    task = "regression" if name == "diabetes" else "classification"
    return Dataset.from_arrays(*PROBLEMS[name](return_X_y=True), task=task)


def keep(individual, dataset):
    """Refine nothing: what is refined is pruned in any case."""
    return (individual,)


def toolbox_for(dataset, algorithm="penalized", seed=1):
    return make_toolbox(
        dataset,
        init="tao",
        refinement=("tao", keep),
        variation=Variation(algorithm=algorithm),
        random_state=seed,
    )


def assert_same_run(one, other):
    """Check that two runs are the same, bit for bit, times apart."""
    for name in ("population", "hall_of_fame", "pareto_front"):
        ours, theirs = list(getattr(one, name)), list(getattr(other, name))
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            for x, y in zip(a.nodes(), b.nodes(), strict=True):
                np.testing.assert_array_equal(x, y)
            assert a.fitness.wvalues == b.fitness.wvalues and type(a.fitness) is type(b.fitness)
            assert a.origin == b.origin
            assert (a.stream is None) == (b.stream is None)
            assert a.stream is None or a.stream[0] == b.stream[0]
    tables = [to_frame(run.logbook) for run in (one, other)]
    tables = [t.drop(columns=[c for c in t if c.endswith("seconds")]) for t in tables]
    pd.testing.assert_frame_equal(*tables)
    for name in ("generation", "best_fitness", "last_improvement", "origins"):
        assert getattr(one, name) == getattr(other, name)
    assert one.spent.evaluations == other.spent.evaluations
    assert one.hall_of_fame.maxsize == other.hall_of_fame.maxsize
    assert list(one.hall_of_fame.keys) == list(other.hall_of_fame.keys)


@pytest.mark.parametrize("algorithm", ["penalized", "nsga2"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_read_is_what_was_written(tmp_path, name, algorithm):
    dataset = make_dataset(name)
    toolbox = toolbox_for(dataset, algorithm)
    run = evolve(toolbox.population(n=12), toolbox, max_generations=6)
    path = tmp_path / "run.npz"
    save_checkpoint(path, run, dataset, {"seed": 1, "share": np.float64(0.5)})
    assert read_settings(path) == {"seed": 1, "share": 0.5}
    (read,) = load_checkpoint(path, dataset)
    assert_same_run(run, read)
    clones = [len({id(one.weights) for one in r.population}) for r in (run, read)]
    assert clones[0] == clones[1]
    again = tmp_path / "again.npz"
    save_checkpoint(again, read, dataset, {"seed": 1, "share": 0.5})
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("algorithm", ["penalized", "nsga2"])
@given(stop=st.integers(0, 8))
@settings(max_examples=5, deadline=None)
def test_a_run_reaches_the_end_that_it_would_have_reached(tmp_path_factory, algorithm, stop):
    dataset = make_dataset("iris")
    path = tmp_path_factory.mktemp("run") / "run.npz"
    toolbox = toolbox_for(dataset, algorithm)
    whole = evolve(toolbox.population(n=12), toolbox, max_generations=8)
    part = evolve(toolbox.population(n=12), toolbox, max_generations=stop)
    save_checkpoint(path, part, dataset, {})
    (read,) = load_checkpoint(path, dataset)
    assert_same_run(whole, evolve(read, toolbox_for(dataset, algorithm), max_generations=8))


def test_islands_reach_the_same_end(tmp_path):
    dataset = make_dataset("iris")
    toolboxes = [toolbox_for(dataset, seed=seed) for seed in island_seeds(1, 3)]
    options = {"population_size": 8, "migration_interval": 4}
    whole = evolve_islands(toolboxes, max_generations=10, **options)
    path = tmp_path / "run.npz"
    writer = CheckpointWriter(path, dataset, every=4)
    stopped = evolve_islands(
        toolboxes,
        max_generations=10,
        callbacks=[writer, lambda run: run.generation == 8],
        **options,
    )
    assert stopped.generation == 8
    read = load_checkpoint(path, dataset)
    with ThreadPoolExecutor(2) as executor:
        rest = evolve_islands(
            toolboxes, islands=read, max_generations=10, executor=executor, **options
        )
    for one, other in zip(whole.islands, rest.islands, strict=True):
        assert_same_run(one, other)


def test_columns_apart_are_part_of_the_rows():
    X, y = load_iris(return_X_y=True)
    found = {
        Dataset.from_arrays(X, y, extras=extras).fingerprint
        for extras in (
            None,
            {"cost": y},
            {"cost": y + 1},
            {"group": y},
            {"group": list("abc") * 50},
        )
    }
    assert len(found) == 5


def test_the_writer_writes_now_and_then(tmp_path):
    dataset = make_dataset("iris")
    toolbox, path, seen = toolbox_for(dataset), tmp_path / "run.npz", []
    writer = CheckpointWriter(path, dataset, every=3)

    def look(run):
        if path.exists():
            seen.append(load_checkpoint(path, dataset)[0].generation)

    evolve(toolbox.population(n=8), toolbox, max_generations=7, callbacks=[writer, look])
    assert seen == [3, 3, 3, 6, 6] and [one.name for one in tmp_path.iterdir()] == ["run.npz"]
    with pytest.raises(ValueError, match="checkpoint_every=0"):
        CheckpointWriter(path, dataset, every=0)
    with pytest.raises(FileNotFoundError, match="no folder"):
        CheckpointWriter(tmp_path / "nowhere" / "run.npz", dataset)


# ---- refused -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    dataset = make_dataset("iris")
    toolbox = toolbox_for(dataset)
    path = tmp_path_factory.mktemp("written") / "run.npz"
    run = evolve(toolbox.population(n=8), toolbox, max_generations=3)
    save_checkpoint(path, run, dataset, {})
    return path, dataset


def test_other_rows_are_refused(written):
    path, dataset = written
    X, y = load_iris(return_X_y=True)
    X[3, 1] += 0.1
    for other in (Dataset.from_arrays(X, y), Dataset.from_arrays(*load_wine(return_X_y=True))):
        with pytest.raises(ValueError, match="run.npz is a checkpoint of other rows"):
            load_checkpoint(path, other)
    assert dataset.fingerprint == make_dataset("iris").fingerprint


def rewrite(path, out, change):
    """Write a file whose JSON and arrays are changed."""
    with np.load(path) as file:
        content = dict(file)
    state = json.loads(content["state"].tobytes())
    change(state, content)
    content["state"] = np.frombuffer(json.dumps(state).encode(), dtype=np.uint8)
    np.savez(out, **content)


def islands(change):
    """Return a change of the first of two islands."""

    def apply(state, _):
        state["runs"] *= 2
        change(state["runs"][0])

    return apply


CHANGES = {
    "a later version": lambda s, _: s.update(version=99),
    "no runs": lambda s, _: s.update(runs=[]),
    "a missing array": lambda _, c: c.pop("weights"),
    "objects": lambda _, c: c.update(thresholds=np.array([{}], dtype=object)),
    "other features": lambda _, c: c.update(weights=c["weights"][:, :3].copy()),
    "a broken tree": lambda _, c: c.update(subtree_size=c["subtree_size"] + 1),
    "a far place": lambda s, _: s["runs"][0]["population"][0].update(nodes=[9999, 0, 0]),
    "bounds": lambda _, c: c.update(weights_start=c["weights_start"][::-1].copy()),
    "a kind of fitness": lambda s, _: s["runs"][0]["population"][0].update(kind="Fitness"),
    "no population": lambda s, _: s["runs"][0].update(population=[]),
    "another generation": lambda s, _: s["runs"][0].update(generation=7),
    "a front that is none": lambda s, _: s["runs"][0]["pareto_front"].reverse(),
    "a short chapter": lambda s, _: s["runs"][0]["chapters"]["size"].pop(),
    "a record without a number": lambda s, _: s["runs"][0]["logbook"][1].pop("seconds"),
    "a list for a number": lambda s, _: s["runs"][0]["logbook"][1].update(nevals=[]),
    "a record that is none": lambda s, _: s["runs"][0]["logbook"].__setitem__(1, [["gen", 1]]),
    "no mean": islands(lambda r: r["chapters"]["fitness"][0].pop("mean")),
    "no chapter": islands(lambda r: r["chapters"].pop("quality")),
    "a refiner that is none": lambda s, _: s["runs"][0]["chapters"]["refinement"][3].update(
        tao_gain=None
    ),
    "infinite time": lambda s, _: s["runs"][0].update(seconds=float("inf")),
    "an infinite fitness": lambda s, _: s["runs"][0]["population"][1].update(fitness=[1e999]),
    "a best fitness of two": lambda s, _: s["runs"][0].update(best_fitness=[0.5, 0.5]),
    "a generation too large": lambda s, _: s["runs"][0].update(generation=10**400),
    "a long word": lambda s, _: s["runs"][0]["population"][0].update(kind="x" * 10**5),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_is_wrong_inside_is_refused(written, tmp_path, change):
    path, dataset = written
    out = tmp_path / "changed.npz"
    rewrite(path, out, change)
    with warnings.catch_warnings(), pytest.raises(ValueError, match="changed.npz") as caught:
        warnings.simplefilter("error")
        load_checkpoint(out, dataset)
    assert len(str(caught.value)) < len(str(out)) + 400


HEADERS = {
    "a bad escape": rb"{'descr': '\d', 'fortran_order': False, 'shape': (7,), }",
    "a comment": b"{'descr': '<f8', 'fortran_order': False, 'shape': (7,), }#",
    "by columns": b"{'descr': '<f8', 'fortran_order': True, 'shape': (7,), }",
    "long integers": b"{'descr': '<f8', 'fortran_order': False, 'shape': (7L,), }",
    "many rows": b"{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999999, 9), }",
    "objects": b"{'descr': '|O', 'fortran_order': False, 'shape': (7,), }",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS.keys())
def test_what_is_wrong_in_a_header_is_refused(written, tmp_path, header):
    path, dataset = written
    out = tmp_path / "header.npz"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(56)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, content if name == "thresholds.npy" else old.read(name))
    with (
        warnings.catch_warnings(),
        pytest.raises(ValueError, match="header.npz is not a checkpoint"),
    ):
        warnings.simplefilter("error")
        load_checkpoint(out, dataset)


def test_statistics_of_ones_own_are_kept(tmp_path):
    dataset = make_dataset("iris")
    toolbox, path = toolbox_for(dataset), tmp_path / "run.npz"
    stats = tools.Statistics(len)
    stats.register("sizes", sorted)
    run = evolve(toolbox.population(n=8), toolbox, max_generations=2, stats=stats)
    save_checkpoint(path, run, dataset, {})
    (read,) = load_checkpoint(path, dataset)
    assert_same_run(run, read)
    assert read.logbook.select("sizes")[-1] == sorted(map(len, run.population))


def test_torn_and_foreign_files_are_refused(written, tmp_path):
    path, dataset = written
    whole = path.read_bytes()
    out = tmp_path / "torn.npz"
    for content in (b"", b"PK", whole[: len(whole) // 2], whole[:-1], b"hello\n" * 100):
        out.write_bytes(content)
        with pytest.raises(ValueError, match="torn.npz is not a checkpoint"):
            load_checkpoint(out, dataset)
    with np.load(path) as file:
        np.savez_compressed(out, **file)
    with pytest.raises(ValueError, match="compressed"):
        load_checkpoint(out, dataset)
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "nothing.npz", dataset)
    header = io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(header, described)
    for replaced in (header.getvalue(), header.getvalue().replace(b"(", b"#"), b""):
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
            for name in old.namelist():
                new.writestr(name, replaced if name == "weights.npy" else old.read(name))
        with pytest.raises(ValueError, match="torn.npz is not a checkpoint"):
            load_checkpoint(out, dataset)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_flipped_byte_is_refused_or_does_no_harm(written, tmp_path_factory, data):
    path, dataset = written
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    out = tmp_path_factory.mktemp("flip") / "flip.npz"
    out.write_bytes(content)
    try:
        (read,) = load_checkpoint(out, dataset)
    except ValueError as error:
        assert "flip.npz" in str(error)
    else:
        evolve(read, toolbox_for(dataset), max_generations=read.generation + 1)


class Own(FitnessMax):
    """A fitness of the user's own."""


def test_a_fitness_of_ones_own_is_refused(tmp_path):
    dataset = make_dataset("iris")
    toolbox = make_toolbox(dataset, random_state=0)
    population = toolbox.population(n=4)
    for one in population:
        one.fitness = Own()
    run = evolve(population, toolbox, max_generations=1, hall_of_fame=tools.HallOfFame(1))
    assert isinstance(run.best, Individual)
    with pytest.raises(ValueError, match="the kind Own cannot be kept"):
        save_checkpoint(tmp_path / "run.npz", run, dataset, {})
    assert not any(tmp_path.iterdir())

"""Checkpoints: the same end as without, refused where they do not fit, data and never code."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris, load_wine

from evotree import Dataset, Variation, evolve, make_toolbox
from evotree.engine.state import (
    ARRAYS,
    CheckpointWriter,
    load_checkpoint,
    read_sealed,
    save_checkpoint,
    write_sealed,
)
from tests.runs import assert_same_run


def toolbox_for(dataset, variation=None, refinement=None, seed=1):
    options = {
        "init": "tao",
        "refinement": refinement or ("tao", keep),
        "variation": variation,
    }
    return make_toolbox(dataset, random_state=seed, **options)


def keep(individual, dataset):
    """Refine nothing: what is refined is pruned in any case."""
    return (individual,)


def evolved(dataset, n=8, max_generations=3, **options):
    toolbox = toolbox_for(dataset, **options)
    return evolve(toolbox.population(n=n), toolbox, max_generations=max_generations)


@pytest.mark.parametrize("algorithm", ["penalized", "nsga2"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_what_is_read_is_what_was_written(tmp_path, task, algorithm):
    rows = (load_diabetes if task == "regression" else load_iris)(return_X_y=True)
    dataset = Dataset.from_arrays(*rows, task=task)
    run = evolved(dataset, 12, 6, variation=Variation(algorithm=algorithm))
    path, again = tmp_path / "run.npz", tmp_path / "again.npz"
    run.population[-1].measured(0.125)  # as other rows may have said
    save_checkpoint(path, run, dataset, {"seed": 1, "share": np.float64(0.5)})
    assert json.loads(read_sealed(path)[0])["settings"] == {"seed": 1, "share": 0.5}
    (read,) = load_checkpoint(path, dataset)
    assert_same_run(run, read)
    clones = [len({id(one.weights) for one in r.population}) for r in (run, read)]
    assert clones[0] == clones[1]
    save_checkpoint(again, read, dataset, {"seed": 1, "share": 0.5})
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("refinement", [None, ("tao", keep)])
@pytest.mark.parametrize("algorithm", ["penalized", "nsga2"])
@given(stop=st.integers(0, 8), keep_duplicates=st.booleans())
@settings(max_examples=5, deadline=None)
def test_a_run_that_stopped_goes_on_as_if_it_had_not(
    iris, tmp_path_factory, algorithm, refinement, stop, keep_duplicates
):
    """In this process, and from a file."""
    path = tmp_path_factory.mktemp("run") / "run.npz"
    variation = Variation(algorithm=algorithm, keep_duplicates=keep_duplicates)
    options = {"variation": variation, "refinement": refinement}
    whole = evolved(iris, 12, 8, **options)
    part = evolved(iris, 12, stop, **options)
    save_checkpoint(path, part, iris, {})
    (read,) = load_checkpoint(path, iris)
    for one in (part, read):
        rest = evolve(one, toolbox_for(iris, **options), max_generations=8)
        assert rest is one and rest.stop_reason == "max_generations"
        assert_same_run(whole, rest)
    assert evolve(read, toolbox_for(iris, **options), max_generations=5).generation == 8


def test_the_writer_writes_now_and_then(iris, tmp_path):
    toolbox, path, seen = toolbox_for(iris), tmp_path / "run.npz", []

    def look(run):
        if path.exists():
            seen.append(load_checkpoint(path, iris)[0].generation)

    callbacks = [CheckpointWriter(path, iris, every=3), look]
    evolve(toolbox.population(n=8), toolbox, max_generations=7, callbacks=callbacks)
    assert seen == [3, 3, 3, 6, 6] and [one.name for one in tmp_path.iterdir()] == [
        "run.npz"
    ]


# ---- refused -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(iris, tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "run.npz"
    save_checkpoint(path, evolved(iris), iris, {})
    return path


def test_other_rows_are_refused(written):
    X, y = load_iris(return_X_y=True)
    X[3, 1] += 0.1
    for other in (
        Dataset.from_arrays(X, y),
        Dataset.from_arrays(*load_wine(return_X_y=True)),
    ):
        with pytest.raises(ValueError, match="run.npz .*is a checkpoint of other rows"):
            load_checkpoint(written, other)


def changed(path, out, change):
    """Write a file whose text and arrays are changed, with the digest of what it holds."""
    text, arrays = read_sealed(path)
    state = json.loads(text)
    change(state, arrays)
    write_sealed(out, json.dumps(state), arrays)


def with_array(name, change):
    """Return what changes an array of the first tree."""

    def apply(state, arrays):
        nodes = state["runs"][0]["population"][0]["nodes"]
        place = nodes[ARRAYS.index(name)]
        arrays[place] = change(arrays[place])

    return apply


# Kernels check no trees: these are refused whatever the digest says.
UNSOUND = {
    "a missing array": lambda _, arrays: arrays.pop(),
    "other features": with_array("weights", lambda array: array[:, :3]),
    "a broken tree": with_array("subtree_size", lambda array: array + 1),
    "a far place": lambda s, _: s["runs"][0]["population"][0].update(
        nodes=[9999, 0, 0, 0]
    ),
    "a long word": lambda s, _: s["runs"][0]["population"][0].update(kind="x" * 10**5),
}


def refusal(out, dataset, match):
    """Check that a file is refused, by words that are few."""
    with warnings.catch_warnings(), pytest.raises(ValueError, match=match) as caught:
        warnings.simplefilter("error")
        load_checkpoint(out, dataset)
    assert len(str(caught.value)) < len(str(out)) + 400


@pytest.mark.parametrize("change", UNSOUND.values(), ids=UNSOUND.keys())
def test_what_is_wrong_inside_is_refused(iris, written, tmp_path, change):
    changed(written, out := tmp_path / "changed.npz", change)
    refusal(out, iris, "changed.npz cannot be read")


def test_torn_and_foreign_files_are_refused(iris, written, tmp_path):
    whole, out = written.read_bytes(), tmp_path / "torn.npz"
    for content, reason in (
        (b"", "is not a checkpoint"),
        (b"PK", "is not a checkpoint"),
        (b"hello\n" * 100, "is not a checkpoint"),
        (whole.replace(b"checkpoint 12", b"checkpoint 99", 1), "of version 99"),
        (whole[: len(whole) // 2], "not as it was written"),
        (whole[:-1], "not as it was written"),
        (whole + b"0", "not as it was written"),
    ):
        out.write_bytes(content)
        refusal(out, iris, f"torn.npz .*{reason}")
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "nothing.npz", iris)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_flipped_byte_is_refused(iris, written, tmp_path_factory, data):
    content = bytearray(written.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    out = tmp_path_factory.mktemp("flip") / "flip.npz"
    out.write_bytes(content)
    refusal(out, iris, "flip.npz")

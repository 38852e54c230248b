"""Checkpoints: the same end as without, refused where they do not fit, data and never code."""

import json
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris, load_wine

from evotree import Dataset, Variation, evolve, make_toolbox
from evotree.engine.state import (
    CheckpointWriter,
    _sha256,
    load_checkpoint,
    read_settings,
    save_checkpoint,
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
    assert read_settings(path) == {"seed": 1, "share": 0.5}
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
        with pytest.raises(ValueError, match="run.npz is a checkpoint of other rows"):
            load_checkpoint(written, other)


def rewrite(path, out, change, *, seals=False):
    """Write a file whose JSON and arrays are changed, with a digest that says so or does not."""
    with np.load(path) as file:
        content = dict(file)
    state = json.loads(content["state"].tobytes())
    change(state, content)
    content["state"] = np.frombuffer(json.dumps(state).encode(), dtype=np.uint8)
    if seals:
        del content["digest"]
        content["digest"] = _sha256(content)
    np.savez(out, **content)


def with_array(path, out, content):
    """Write a file whose thresholds are other bytes."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, content if name == "thresholds.npy" else old.read(name))


CHANGES = {
    "a later version": lambda s, _: s.update(version=99),
    "a missing array": lambda _, c: c.pop("weights"),
    "objects": lambda _, c: c.update(thresholds=np.array([{}], dtype=object)),
    "another generation": lambda s, _: s["runs"][0].update(generation=7),
    "a generation too large": lambda s, _: s["runs"][0].update(generation=10**400),
}
# Kernels check no trees: these are refused whatever the digest says.
UNSOUND = {
    "other features": lambda _, c: c.update(weights=c["weights"][:, :3].copy()),
    "a broken tree": lambda _, c: c.update(subtree_size=c["subtree_size"] + 1),
    "a far place": lambda s, _: s["runs"][0]["population"][0].update(
        nodes=[9999, 0, 0]
    ),
    "bounds": lambda _, c: c.update(weights_start=c["weights_start"][::-1].copy()),
    "a long word": lambda s, _: s["runs"][0]["population"][0].update(kind="x" * 10**5),
}


HEADERS = {
    "a bad escape": rb"{'descr': '\d', 'fortran_order': False, 'shape': (7,), }",
    "a comment": b"{'descr': '<f8', 'fortran_order': False, 'shape': (7,), }#",
    "by columns": b"{'descr': '<f8', 'fortran_order': True, 'shape': (7,), }",
    "long integers": b"{'descr': '<f8', 'fortran_order': False, 'shape': (7L,), }",
    "many rows": b"{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999999, 9), }",
    "objects": b"{'descr': '|O', 'fortran_order': False, 'shape': (7,), }",
}


def refusal(out, dataset, match):
    """Return the words of the error that a file is refused with."""
    with warnings.catch_warnings(), pytest.raises(ValueError, match=match) as caught:
        warnings.simplefilter("error")
        load_checkpoint(out, dataset)
    return str(caught.value)


@pytest.mark.parametrize("name", [*CHANGES, *UNSOUND])
def test_what_is_wrong_inside_is_refused(iris, written, tmp_path, name):
    change, out = (CHANGES | UNSOUND)[name], tmp_path / "changed.npz"
    rewrite(written, out, change, seals=name in UNSOUND)
    assert len(refusal(out, iris, "changed.npz")) < len(str(out)) + 400


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS.keys())
def test_what_is_wrong_in_a_header_is_refused(iris, written, tmp_path, header):
    content = (
        b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(56)
    )
    with_array(written, out := tmp_path / "header.npz", content)
    refusal(out, iris, "header.npz is not a checkpoint")


def test_torn_and_foreign_files_are_refused(iris, written, tmp_path):
    whole, out = written.read_bytes(), tmp_path / "torn.npz"
    for content in (b"", b"PK", whole[: len(whole) // 2], whole[:-1], b"hello\n" * 100):
        out.write_bytes(content)
        refusal(out, iris, "torn.npz is not a checkpoint")
    with np.load(written) as file:
        np.savez_compressed(out, **file)
    refusal(out, iris, "compressed")
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "nothing.npz", iris)
    with_array(written, out, b"")
    refusal(out, iris, "torn.npz is not a checkpoint")


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_flipped_byte_is_refused_or_does_no_harm(
    iris, written, tmp_path_factory, data
):
    content = bytearray(written.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(
            st.integers(1, 255)
        )
    out = tmp_path_factory.mktemp("flip") / "flip.npz"
    out.write_bytes(content)
    try:
        (read,) = load_checkpoint(out, iris)
    except ValueError as error:
        assert "flip.npz" in str(error)
    else:
        evolve(read, toolbox_for(iris), max_generations=read.generation + 1)

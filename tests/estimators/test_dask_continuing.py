"""Fits of collections of Dask that go on: from a file, by a warm start, after failures."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree import Checkpoint, EvoTreeRegressor, Islands
from evotree.estimators.partitions import Part, Schema, Summary
from tests.estimators.test_continuing import quick
from tests.estimators.test_dask import (
    ON_SHARDS,
    X,
    Y,
    assert_same,
    fit,
    sample_positions,
    table_of_all_kinds,
)

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

FAILS_AT = {"on the sample": 2, "judged by all rows": 5}


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


def fails_at(generation):
    def fail(run):
        if run.generation == generation:
            raise LookupError("no such thing")

    return fail


def parted(X, y, n_rows=700):
    return da.from_array(X, chunks=(n_rows, -1)), da.from_array(y, chunks=n_rows)


def resumed(path):
    return Checkpoint(path, resume=True)


@pytest.mark.parametrize("generation", FAILS_AT.values(), ids=FAILS_AT)
@pytest.mark.parametrize(
    "changed",
    [{}, {"kind": EvoTreeRegressor, "y": X[:, 0] * X[:, 1]}, {"islands": Islands(2, every=1)}],
    ids=["classes", "targets", "islands"],
)
def test_a_fit_goes_on_from_its_checkpoint(tmp_path, generation, changed):
    path = tmp_path / "fit.npz"
    whole = fit(**changed)
    with pytest.raises(LookupError, match="no such thing"):
        fit(**changed, checkpoint=path, callbacks=[fails_at(generation)])
    rest = fit(**changed, checkpoint=resumed(path), random_state=99)
    assert_same(whole, rest)
    assert whole.history_.chapters["quality"].select("mean") == (
        rest.history_.chapters["quality"].select("mean")
    )


def test_partitions_do_not_matter_to_a_checkpoint(tmp_path):
    path = tmp_path / "fit.npz"
    fit(max_generations=5, checkpoint=path)
    kept = path.read_bytes()
    rest = fit(checkpoint=resumed(path))
    path.write_bytes(kept)
    assert_same(rest, fit(90, checkpoint=resumed(path)))


def test_a_fit_goes_on_after_workers_failed(tmp_path):
    """What is written on the way is enough."""
    path, passes = tmp_path / "fit.npz", []

    def compute(*args, **kwargs):
        passes.append(1)
        if len(passes) == 5:
            raise ConnectionError("the scheduler has gone")
        return dask.get(*args, **kwargs)

    with dask.config.set(scheduler=compute), pytest.raises(ConnectionError):
        fit(checkpoint=Checkpoint(path, every=1))
    assert_same(fit(), fit(checkpoint=resumed(path)))


def test_other_rows_are_refused(tmp_path):
    """Also where the sample is the same."""
    path = tmp_path / "fit.npz"
    fit(max_generations=3, checkpoint=path)
    outside = np.setdiff1d(np.arange(len(X)), sample_positions(300))[0]
    other = X.copy()
    other[outside] *= 1.0 + 1e-15
    swapped = np.arange(len(X))
    swapped[[3, 4]] = 4, 3
    weight = np.where(np.arange(len(X)) == outside, 2.0, 1.0)
    before = path.read_bytes()
    for changed in (
        {"X": other},
        {"X": X[swapped], "y": Y[swapped]},
        {"y": np.where(np.arange(len(X)) == outside, Y[Y[outside] != Y][0], Y)},
        {"sample_weight": weight},
    ):
        with pytest.raises(ValueError, match="is a checkpoint of other rows"):
            fit(**changed, checkpoint=resumed(path))
    with pytest.raises(ValueError, match="is a checkpoint of other rows"):
        quick(**ON_SHARDS, checkpoint=resumed(path)).fit(X, Y)
    assert path.read_bytes() == before


def test_a_warm_start_goes_on():
    warm = quick(**ON_SHARDS, warm_start=True, callbacks=[fails_at(5)])
    rows, labels = parted(X, Y)
    with pytest.raises(LookupError):
        warm.fit(rows, labels)
    warm.set_params(callbacks=None, random_state=99)
    assert_same(fit(), warm.fit(*parted(X, Y, 90)))
    with pytest.warns(RuntimeWarning, match="the rows changed"):
        begun = warm.fit(rows, da.from_array(Y[::-1], chunks=700))
    assert_same(fit(y=Y[::-1], random_state=99), begun)
    with pytest.warns(RuntimeWarning, match="the rows changed"):
        in_memory = warm.fit(X, Y)
    assert_same(quick(**ON_SHARDS, random_state=99).fit(X, Y), in_memory)


@settings(max_examples=20)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.booleans())
def test_checksums_of_parts_make_that_of_the_whole(sizes, is_regression):
    table, y = table_of_all_kinds(24)
    part = Part(table, (y == "yes").to_numpy(np.float64), np.arange(24.0))
    categorical = np.array([False, True, False])
    schema = Schema(tuple(table.columns), 3, categorical, is_regression, is_known_again=True)

    def of(begin, end):
        return Summary.of(schema, Part(*[one[begin:end] for one in part]))

    cuts = [0, *np.cumsum(sizes).tolist()]
    parts = [of(a, b) for a, b in pairwise([*cuts, 24])]
    assert reduce(Summary.plus, parts).checksum == of(0, 24).checksum
    assert 0 < of(0, 24).checksum < 2**64 and of(0, 23).checksum != of(0, 24).checksum


def test_what_cannot_be_continued_is_refused_before_any_work(tmp_path):
    def never(*args, **kwargs):
        pytest.fail("computed")

    path = tmp_path / "fit.npz"
    fit(max_generations=2, checkpoint=path)
    (tmp_path / "torn").write_bytes(path.read_bytes()[:1000])
    with dask.config.set(scheduler=never):
        with pytest.raises(ValueError, match="population_size=14: the run in"):
            fit(checkpoint=resumed(path), population_size=14)
        with pytest.raises(ValueError, match="torn is not a checkpoint"):
            fit(checkpoint=resumed(tmp_path / "torn"))
        with pytest.raises(FileNotFoundError):
            fit(checkpoint=resumed(tmp_path / "nothing"))
        with pytest.raises(OSError, match="no folder"):
            fit(checkpoint=tmp_path / "no" / "folder")

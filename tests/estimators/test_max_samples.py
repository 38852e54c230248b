"""`max_samples`: fits on samples that grow, however they end, go on or are spread."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from evotree import Checkpoint, EvoTreeClassifier, EvoTreeRegressor, Islands
from tests.estimators.test_continuing import quick, resumed
from tests.quick_models import FIXED, assert_same_fit

X = np.random.default_rng(0).random((900, 2))
# The four fields between the two diagonals, alternately.
Y = ((X.sum(axis=1) > 1.0) ^ (X[:, 0] > X[:, 1])).astype(int)
STILL = FIXED.set_params(noise=0.0)
ON_SAMPLES = {
    "max_samples": 50,
    "regularization": STILL,
    "refinement": None,
    "init": None,
}
SIZES = [50, 131, 343, 900]


def sizes_seen(kind=EvoTreeClassifier, **changed):
    """Fit; return the estimator and how many rows each generation was measured on."""
    seen = []
    callbacks = [
        lambda run: seen.append(run.best.order.size),
        *changed.pop("callbacks", ()),
    ]
    fit = quick(kind, **(ON_SAMPLES | changed), callbacks=callbacks)
    return fit.fit(X, Y), seen


@pytest.mark.parametrize("kind", [EvoTreeClassifier, EvoTreeRegressor])
def test_each_sample_has_half_the_generations_of_the_one_before(kind):
    fit, seen = sizes_seen(kind, max_generations=15)
    assert seen == [50] * (1 + 8) + [131] * 4 + [343] * 2 + [900]
    assert fit.n_generations_ == 15 and fit.history_.select("gen") == list(range(16))


def test_patience_leads_on_to_the_next_sample():
    fit, seen = sizes_seen(patience=3, max_generations=400)
    assert [size for size in SIZES if size in seen] == SIZES
    assert fit.stop_reason_ == "patience" and len(seen) < 300


@pytest.mark.parametrize("n_islands", [1, 2])
def test_a_run_goes_on_from_any_moment_with_any_workers(tmp_path, n_islands):
    """What is on disk after any generation leads to the end of the run that was not cut."""
    path, kept = tmp_path / "run.npz", []

    def keep(run):
        kept.append(tmp_path / f"{run.generation}-{len(kept)}.npz")
        shutil.copy(path, kept[-1])

    changed = ON_SAMPLES | {"islands": Islands(n_islands, every=2), "refinement": "tao"}
    changed["max_generations"] = 12
    written = {"checkpoint": Checkpoint(path, every=1)}
    # There is a file.
    quick(**changed, **written, callbacks=[lambda run: True]).fit(X, Y)
    whole = quick(**changed, **written, callbacks=[keep]).fit(X, Y)
    assert len(kept) >= 6
    with ThreadPoolExecutor(2) as executor:
        for at in kept[1::3]:
            how = {
                "islands__executor": executor,
                "n_jobs": 2,
                "checkpoint": resumed(at),
            }
            assert_same_fit(whole, quick(**changed, **how).fit(X, Y))


def test_however_a_run_ends_its_trees_are_those_of_all_rows():
    def stops(run):
        return run.generation == 2

    def fails(run):
        if run.generation == 2:
            raise OSError("full")

    fit, seen = sizes_seen(callbacks=[stops])
    assert (
        fit.stop_reason_ == "callback" and fit.n_generations_ == 2 and set(seen) == {50}
    )
    broken = quick(**ON_SAMPLES, callbacks=[fails])
    with pytest.raises(OSError, match="full"):
        broken.fit(X, Y)
    assert_same_fit(fit, broken)
    assert broken.stop_reason_ == "callback_error"

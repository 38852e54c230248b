"""Estimators that go on: islands, checkpoints, warm starts, kills and failing callbacks."""

import os
import pickle
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.model_selection import GridSearchCV

from evotree import EvoTreeClassifier, EvoTreeRegressor
from evotree.experiments.problems import make_problem

QUICK = {
    "population_size": 12,
    "max_generations": 15,
    "patience": None,
    "C": 1.0,
    "penalty": "l2",
    "noise": 0.1,
    "teacher": None,
    "size_penalty": 0.005,
    "random_state": 3,
}
X, Y = load_wine(return_X_y=True)


def quick(kind=EvoTreeClassifier, **changed):
    return kind(**(QUICK | changed))


def assert_same_fit(one, other):
    """Check that two fits have found the same, bit for bit, times apart."""
    assert one.tree_ == other.tree_
    np.testing.assert_array_equal(one.tree_.values, other.tree_.values)
    assert list(one.hall_of_fame_) == list(other.hall_of_fame_)
    assert list(one.pareto_front_) == list(other.pareto_front_)
    for chapter in ("fitness", "quality", "size"):
        records = [fit.history_.chapters[chapter].select("mean") for fit in (one, other)]
        assert records[0] == records[1]
    assert one.n_generations_ == other.n_generations_
    assert (one.setting_, one.size_penalty_) == (other.setting_, other.size_penalty_)


@pytest.mark.parametrize("n_islands", [1, 3])
@pytest.mark.parametrize("kind", [EvoTreeClassifier, EvoTreeRegressor])
def test_a_fit_goes_on_from_its_checkpoint(tmp_path, kind, n_islands):
    path = tmp_path / "fit.npz"
    changed = {"n_islands": n_islands, "migration_interval": 4}
    whole = quick(kind, **changed).fit(X, Y)
    part = quick(kind, **changed, max_generations=6, checkpoint=path).fit(X, Y)
    assert part.n_generations_ == 6
    rest = quick(kind, **changed, resume_from=path, random_state=99, n_jobs=2).fit(X, Y)
    assert_same_fit(whole, rest)
    assert quick(kind, **changed, resume_from=path, max_generations=2).fit(X, Y).n_generations_ == 6


@pytest.mark.parametrize("n_islands", [1, 2])
def test_a_warm_start_goes_on(n_islands):
    changed = {"n_islands": n_islands, "migration_interval": 5}
    whole = quick(**changed).fit(X, Y)
    warm = quick(**changed, warm_start=True, max_generations=4).fit(X, Y)
    assert warm.n_generations_ == 4
    assert_same_fit(whole, warm.set_params(max_generations=15).fit(X, Y))
    begun = warm.set_params(max_generations=5).fit(*load_iris(return_X_y=True))
    assert begun.n_generations_ == 5 and begun.n_features_in_ == 4
    assert_same_fit(quick(**changed, max_generations=5).fit(*load_iris(return_X_y=True)), begun)
    cold = quick(**changed, max_generations=4).fit(X, Y)
    assert not hasattr(cold, "_last")


def test_what_was_chosen_is_kept(tmp_path):
    """A fit that goes on does not choose its settings again."""
    path = tmp_path / "fit.npz"
    auto = {"C": "auto", "penalty": "auto", "noise": "auto", "size_penalty": "auto"}
    whole = quick(**auto).fit(X, Y)
    quick(**auto, max_generations=3, checkpoint=path, checkpoint_every=2).fit(X, Y)
    begin = time.perf_counter()
    rest = quick(**auto, resume_from=path).fit(X, Y)
    assert_same_fit(whole, rest)
    assert time.perf_counter() - begin < 60.0


def test_other_parameters_and_rows_are_refused(tmp_path):
    path = tmp_path / "fit.npz"
    quick(max_generations=2, checkpoint=path).fit(X, Y)
    before = path.read_bytes()
    for changed in ({"mutation_probability": 0.2}, {"population_size": 14}, {"n_islands": 2}):
        name = next(iter(changed))
        with pytest.raises(ValueError, match=f"{name}=.*: the run in .*fit.npz has {name}="):
            quick(**changed, resume_from=path).fit(X, Y)
    with pytest.raises(ValueError, match="other rows"):
        quick(resume_from=path).fit(X[:-1], Y[:-1])
    with pytest.raises(FileNotFoundError):
        quick(resume_from=tmp_path / "nothing").fit(X, Y)
    (tmp_path / "torn").write_bytes(before[:1000])
    with pytest.raises(ValueError, match="torn is no checkpoint"):
        quick(resume_from=tmp_path / "torn").fit(X, Y)
    model = quick(checkpoint=tmp_path / "no" / "folder")
    with pytest.raises(OSError, match="no folder"):
        model.fit(X, Y)
    assert not hasattr(model, "dataset_")  # before any work
    assert path.read_bytes() == before


def test_islands_do_not_depend_on_what_they_run_on():
    serial = quick(n_islands=3, migration_interval=5).fit(X, Y)
    assert len(serial.history_) == 16
    threads = quick(n_islands=3, migration_interval=5, n_jobs=2).fit(X, Y)
    with ThreadPoolExecutor(3) as executor:
        given = quick(n_islands=3, migration_interval=5, executor=executor)
        assert clone(given).executor is executor and given.executor is executor
        given.fit(X, Y)
        again = pickle.loads(pickle.dumps(given))
        assert again.executor is None and again.tree_ == given.tree_
        search = GridSearchCV(given, {"n_islands": [2]}, cv=2).fit(X, Y)
        assert search.best_score_ > 0.7
    assert_same_fit(serial, threads)
    assert_same_fit(serial, given)
    for wrong in ({"n_islands": 0}, {"topology": "star"}, {"executor": 3}, {"checkpoint_every": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            quick(**wrong).fit(X, Y)


def test_a_failing_callback_does_not_lose_the_population(tmp_path):
    path = tmp_path / "fit.npz"

    def fail(run):
        if run.generation == 9:
            raise LookupError("no such thing")

    model = quick(callbacks=[fail], checkpoint=path)
    with pytest.raises(LookupError, match="no such thing"):
        model.fit(X, Y)
    assert (model.n_generations_, model.stop_reason_) == (9, "callback_error")
    assert model.score(X, Y) > 0.8 and len(model.history_) == 10
    assert_same_fit(quick().fit(X, Y), quick(resume_from=path).fit(X, Y))


# ---- killed --------------------------------------------------------------------------------------

N_KILLS = 20
SCRIPT = """
import sys
from pathlib import Path
from evotree import EvoTreeClassifier
from evotree.experiments.problems import make_problem
path = Path(sys.argv[1])
EvoTreeClassifier.from_preset(
    "gea_odt", population_size=16, max_generations=GENERATIONS, patience=None, random_state=1,
    checkpoint=path, checkpoint_every=1, resume_from=path if path.exists() else None,
    callbacks=[lambda run: print(run.generation, flush=True)],
).fit(*make_problem("chessboard2", 150, 0))
print("done", flush=True)
"""


def test_killed_at_twenty_moments_every_run_goes_on(tmp_path):
    """One run, killed again and again, each time a little later, reaches the end."""
    path, generations = tmp_path / "fit.npz", 20 * N_KILLS
    code = SCRIPT.replace("GENERATIONS", str(generations))
    rng, n_kills, last, n_starts = random.Random(0), 0, 0, 0
    while True:
        n_starts += 1
        command = [sys.executable, "-c", code, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            stop_at = last + rng.randint(3, 15)
            seen = []
            for line in process.stdout:
                seen.append(line.strip())
                if seen[-1] != "done" and int(seen[-1]) >= stop_at and n_kills < N_KILLS:
                    time.sleep(rng.uniform(0.0, 0.01))
                    os.kill(process.pid, signal.SIGKILL)
                    n_kills += 1
                    break
            rest = process.stdout.read().split()
        seen += rest
        # No generation is skipped; the last one may have been written and not told.
        assert seen and int(seen[0]) <= last + 2, seen
        if seen[-1] == "done":
            break
        last = int(seen[-1])
        assert n_starts <= N_KILLS + 1
    assert n_kills == N_KILLS and [one.name for one in tmp_path.glob("*.npz")] == ["fit.npz"]
    whole = EvoTreeClassifier.from_preset(
        "gea_odt", population_size=16, max_generations=generations, patience=None, random_state=1
    )
    rows = make_problem("chessboard2", 150, 0)
    whole.fit(*rows)
    on = clone(whole).set_params(resume_from=path).fit(*rows)
    assert on.n_generations_ == generations
    assert_same_fit(whole, on)


@pytest.mark.parametrize("n_islands", [1, 3])
def test_the_time_limit_holds_for_seeds_and_settings_too(n_islands):
    rows = make_classification(6_000, 24, n_informative=16, n_classes=6, random_state=0)
    limited = {"time_limit": 1.0, "n_islands": n_islands, "random_state": 0}
    EvoTreeClassifier(**limited).fit(*(part[:200] for part in rows))  # compiles
    begin = time.perf_counter()
    model = EvoTreeClassifier(**limited).fit(*rows)
    assert time.perf_counter() - begin < 8.0  # without the limit it is minutes
    assert model.stop_reason_ == "time_limit" and model.score(*rows) > 0.3

"""Estimators that go on: islands, checkpoints, warm starts, kills and failing callbacks."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

from evotree import (
    Checkpoint,
    Cost,
    EvoTreeClassifier,
    EvoTreeRegressor,
    Islands,
    Refinement,
    keep_best_trees,
)
from evotree.configuration import Configuration, as_text
from evotree.engine import choice
from tests.quick_models import assert_same_fit, brief, nested

X, Y = load_wine(return_X_y=True)


def quick(kind=EvoTreeClassifier, **changed):
    return brief(
        kind, **({"max_generations": 8, "patience": None, "random_state": 3} | changed)
    )


def polish(individual, dataset):
    """Refine by a function of one's own, which has an address."""
    return (individual,)


def resumed(path):
    """Return the configuration of a search that continues from a file."""
    return Checkpoint(path, resume=True)


@pytest.mark.parametrize("islands", [None, Islands(3, every=3)], ids=["one", "three"])
@pytest.mark.parametrize("kind", [EvoTreeClassifier, EvoTreeRegressor])
def test_a_fit_goes_on_from_its_checkpoint(tmp_path, kind, islands):
    path, kept = (
        tmp_path / "fit.npz",
        {"islands": islands, "callbacks": [keep_best_trees]},
    )
    whole = quick(kind, **kept).fit(X, Y)
    part = quick(kind, **kept, max_generations=6, checkpoint=path).fit(X, Y)
    assert part.n_generations_ == 6 and part.best_trees_
    changed = {**kept, "checkpoint": resumed(path)}
    rest = quick(kind, **changed, random_state=99, n_jobs=2).fit(X, Y)
    assert_same_fit(whole, rest)
    with pytest.raises(
        ValueError, match="max_generations=7: the run in .* has bred 8 generations"
    ):
        quick(kind, **changed, max_generations=7).fit(X, Y)


@pytest.mark.parametrize("islands", [None, Islands(2, every=3)], ids=["one", "two"])
def test_a_warm_start_goes_on(islands):
    kept = {"islands": islands, "callbacks": [keep_best_trees]}
    whole = quick(**kept).fit(X, Y)
    warm = quick(**kept, warm_start=True, max_generations=6).fit(X, Y)
    assert warm.n_generations_ == 6
    assert_same_fit(whole, warm.set_params(max_generations=8).fit(X, Y))
    iris = load_iris(return_X_y=True)
    with pytest.warns(RuntimeWarning, match="warm_start=True: the rows changed"):
        begun = warm.set_params(max_generations=5).fit(*iris)
    assert_same_fit(quick(**kept, max_generations=5).fit(*iris), begun)
    with pytest.warns(
        RuntimeWarning, match="warm_start=True: the parameters variation changed"
    ):
        begun.set_params(evolution__variation__mutation_probability=0.3).fit(*iris)


@pytest.mark.parametrize(
    ("term_penalty", "kind"), [(0.0, "tree"), ("auto", "logistic")]
)
def test_what_was_chosen_is_kept(tmp_path, monkeypatch, term_penalty, kind):
    """A fit that goes on does not choose its hyperparameters again."""
    path = tmp_path / "fit.npz"
    auto = {"regularization": None, "size_penalty": "auto"}
    auto["term_penalty"] = term_penalty
    whole = quick(**auto).fit(X, Y)
    assert "auto" not in whole.regularization_.get_params().values()
    assert whole.choice_.to_frame().query("chosen")["kind"].tolist() == [kind]
    quick(**auto, max_generations=3, checkpoint=Checkpoint(path, every=2)).fit(X, Y)
    warm = quick(**auto, max_generations=3, warm_start=True).fit(X, Y)
    monkeypatch.setattr(choice, "cross_validate", None)
    resumed_fit = quick(**auto, checkpoint=resumed(path)).fit(X, Y)
    for rest in (resumed_fit, warm.set_params(max_generations=8).fit(X, Y)):
        assert rest.choice_ is None
        assert_same_fit(whole, rest)
        assert (rest.predict_proba(X) == whole.predict_proba(X)).all()


# A valid value of each parameter that a short run does not have.
OTHERS = nested(
    {
        "objective": "balanced_accuracy",
        "leaves": "constant",
        "max_depth": 5,
        "max_leaf_nodes": 9,
        "min_samples_leaf": 2,
        "max_split_terms": 2,
        "max_terms": 9,
        "size_penalty": 0.01,
        "term_penalty": 0.001,
        "precision": 3,
        "monotonic_cst": [1, 0, 0],
        "interaction_cst": "pairwise",
        "max_generations": 2,
        "time_limit": 60.0,
        "warm_start": True,
        "callbacks": [keep_best_trees],
        "random_state": 99,
        "n_jobs": 2,
        "verbose": 0,
        "categorical_features": None,
        "class_weight": "balanced",
        "probability": "leaf",
        "population_size": 14,
        "patience": 3,
        "init": "tao",
        "scaling": "minmax",
        "max_samples": 60,
        "variation__mutation_probability": 0.2,
        "variation__crossover_probability": 0.3,
        "variation__dipolar_probability": 0.4,
        "variation__split_crossover_probability": 0.4,
        "variation__term_mutation_probability": 0.4,
        "variation__sparse_dipoles": False,
        "variation__published_operators": True,
        "variation__selection_pressure": 3.0,
        "variation__keep_duplicates": True,
        "variation__survival": "generational",
        "variation__algorithm": "nsga2",
        "refinement__operators": "tao",
        "refinement__probability": 0.1,
        "refinement__C": 1.0,
        "refinement__penalty": "l1",
        "regularization__C": 2.0,
        "regularization__penalty": "l1",
        "regularization__noise": 0.2,
        "islands__n": 2,
        "islands__every": 3,
        "islands__size": 1,
        "islands__executor": ThreadPoolExecutor(1),
        "operators": {"mutate": polish},
        "start": "|--- 1\n",
        "hold": [0],
        "shapes": None,
    }
)
# Limits, who watches and where it runs, and what is done with finished trees.
MAY_CHANGE = nested(
    dict.fromkeys(
        (
            "max_generations",
            "time_limit",
            "patience",
            "callbacks",
            "verbose",
            "n_jobs",
            "islands__executor",
            "precision",
            "probability",
            "warm_start",
            "random_state",  # the file has the seed
            "init",  # the file has the first population
            "categorical_features",  # the rows show it
        )
    )
)
TWO_CLASSES = X[Y < 2, :3], Y[Y < 2]


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """Return a fit of one generation that is in a file."""
    path = tmp_path_factory.mktemp("short") / "fit.npz"
    return quick(max_generations=1, checkpoint=path).fit(*TWO_CLASSES)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, value in quick().get_params().items()
        if name != "checkpoint" and not isinstance(value, Configuration)
    ],
)
def test_a_fit_goes_on_with_other_parameters_only_if_they_change_no_later_tree(
    short, tmp_path, name
):
    """Each parameter is tried; one that is new is refused, or is added to the exceptions."""
    path = shutil.copy(short.checkpoint, tmp_path / "fit.npz")
    before = path.read_bytes()
    model = quick(max_generations=1, checkpoint=resumed(path))
    assert repr(model.get_params()[name]) != repr(OTHERS[name])
    model.set_params(**{name: OTHERS[name]})
    if name == "evolution__hold":  # splits are held of a start alone
        middle = np.median(np.asarray(TWO_CLASSES[0])[:, 0])
        rules = f"|--- x0 <= {middle}\n|   |--- 0\n|--- else\n|   |--- 1\n"
        model.set_params(evolution__start=rules)
    if name in MAY_CHANGE:
        fitness = [
            fit.history_.chapters["fitness"].select("mean")
            for fit in (short, model.fit(*TWO_CLASSES))
        ]
        assert fitness[1][:2] == fitness[0]
        return
    field = name.removeprefix("evolution__").partition("__")[0]
    refusal = f"^({field}|start)=.*: the run in .*fit.npz has ({field}|start)="
    with pytest.raises(ValueError, match=refusal):
        model.fit(*TWO_CLASSES)
    assert path.read_bytes() == before


def test_other_rows_and_files_are_refused(tmp_path):
    path = tmp_path / "fit.npz"
    quick(max_generations=2, checkpoint=path).fit(X, Y)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="other rows"):
        quick(checkpoint=resumed(path)).fit(X[:-1], Y[:-1])
    assert path.read_bytes() == before
    model = quick(checkpoint=tmp_path / "no" / "folder")
    with pytest.raises(OSError, match="No such file"):
        model.fit(X, Y)
    assert not hasattr(model, "tree_")


@pytest.mark.parametrize("every", [100, 1], ids=["at the end", "on the way"])
def test_a_checkpoint_that_cannot_be_written_loses_no_tree(tmp_path, every):
    folder = tmp_path / "folder"
    folder.mkdir()

    def vanish(run):
        if run.generation == 3:
            shutil.rmtree(folder)

    checkpoint = Checkpoint(folder / "fit.npz", every)
    model = quick(checkpoint=checkpoint, callbacks=[vanish])
    with pytest.raises(OSError, match="folder") as raised:
        model.fit(X, Y)
    assert any("fitted with the best tree" in note for note in raised.value.__notes__)
    n_generations = 8 if every == 100 else 4
    assert model.n_generations_ == n_generations
    assert_same_fit(model, quick(max_generations=n_generations).fit(X, Y))


# ---- in another process --------------------------------------------------------------------------


class Weighted:
    """A score of leaves with a state of its own."""

    def __init__(self, weight):
        self.weight = weight

    def __call__(self, counts):
        return counts.max(axis=1).sum() / counts.sum() - self.weight * len(counts)

    def of(self, counts):
        return self(counts)


def weighted(counts, weight):
    return Weighted(weight)(counts)


ONES = np.ones(2000)
OTHER = np.where(np.arange(2000) == 1000, 2.0, ONES)
# A value, another object that is the same, and one that differs inside.
ALIKE = {
    "arrays": (Cost(features=ONES), Cost(features=ONES.copy()), Cost(features=OTHER)),
    "tables": (pd.Series(ONES), pd.Series(ONES.copy()), ONES),
    "numbers": (0.3, np.float64(0.3), 0.4),
    "partials": [partial(weighted, weight=k) for k in (1, 1, 2)],
    "objects": [Weighted(k) for k in (0.0, 0.0, 0.2)],
    "methods": [Weighted(k).of for k in (0.0, 0.0, 0.2)],
    "nested": [Weighted(Weighted(k)) for k in (0, 0, 1)],
}


@pytest.mark.parametrize("name", ALIKE)
def test_values_are_told_apart_by_what_they_hold(name):
    one, same, other = map(as_text, ALIKE[name])
    assert one == same != other


def test_functions_of_one_name_are_told_apart_by_what_they_do(monkeypatch):
    """As in a notebook, where one of the same name may follow."""
    texts = []
    for body in ("0.0", "0.0", "1.0"):
        scope = {"__name__": __name__}
        exec(f"def score(counts):\n    return {body}", scope)
        monkeypatch.setitem(globals(), "score", scope["score"])
        texts.append(as_text(scope["score"]))
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize("resume", [False, True])
def test_functions_without_a_name_of_their_own_are_refused(tmp_path, resume):
    def own(individual, dataset):
        return individual

    checkpoint = Checkpoint(tmp_path / "fit.npz", resume=resume)
    for name, value in (("objective", lambda counts: 0.0), ("refinement", {own: 1.0})):
        model = quick(checkpoint=checkpoint, **{name: value})
        with pytest.raises(
            ValueError, match=f"{name} has .*: a checkpoint cannot recognize"
        ):
            model.fit(X, Y)
    assert not checkpoint.path.exists()


# ---- killed --------------------------------------------------------------------------------------

SCRIPT = """
import sys
from pathlib import Path
import tests.conftest
from tests.estimators.test_continuing import Checkpoint, Y, X, polishing
path = Path(sys.argv[1])
polishing(
    max_generations=16,
    checkpoint=Checkpoint(path, every=1, resume=path.exists()),
    callbacks=[lambda run: print(run.generation, flush=True)],
).fit(X, Y)
"""


def polishing(**changed):
    """Return an estimator whose refiner is a function of a module."""
    return quick(refinement=Refinement({polish: 1.0}, probability=0.5), **changed)


def test_a_run_that_is_killed_goes_on(tmp_path):
    """In another process, from the last generation that was written; it reaches the end."""
    path = tmp_path / "fit.npz"
    command = [sys.executable, "-c", SCRIPT, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        next(line for line in process.stdout if int(line) >= 5)
        process.kill()
        seen = ["5", *process.stdout.read().split()]
    again = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    # No generation is skipped; the last one may have been written and not told.
    generations = again.stdout.split()
    assert int(generations[0]) <= int(seen[-1]) + 2 and generations[-1] == "16"
    assert [one.name for one in tmp_path.glob("*.npz")] == ["fit.npz"]
    whole = polishing(max_generations=16).fit(X, Y)
    assert_same_fit(whole, clone(whole).set_params(checkpoint=resumed(path)).fit(X, Y))

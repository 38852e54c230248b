"""The engine's one door, limits of time, and Ctrl-C at any moment."""

import signal

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris, load_wine

from evotree import (
    Dataset,
    EvoTreeClassifier,
    Islands,
    Regularization,
    SearchConfig,
    make_toolbox,
    search,
)
from evotree.engine import populations
from evotree.engine import toolbox as toolboxes
from evotree.engine.choice import penalties_to_try
from evotree.engine.problem import NOISE
from evotree.log import Progress
from tests.quick_models import (
    BRIEF,
    brief,
    every_evolved,
    evolved,
    interrupts_raise,
    nested,
    rows_for,
)

AUTO = {"size_penalty": "auto", "regularization": Regularization()}
KINDS_OF_RUNS = pytest.mark.parametrize(
    "changed",
    [{}, {"islands": Islands(2, every=2)}, {"variation__algorithm": "nsga2"}],
    ids=["one", "islands", "nsga2"],
)


# ---- a plain function ----------------------------------------------------------------------------


@every_evolved
@KINDS_OF_RUNS
def test_the_estimator_is_the_search(model, changed):
    X, y = rows_for(model)
    fitted = clone(model).set_params(**nested(changed)).fit(X, y)
    task = "classification" if is_classifier(model) else "regression"
    of_search = SearchConfig().get_params()
    parameters = {name: fitted.get_params(deep=False)[name] for name in of_search}
    result = search(Dataset.from_arrays(X, y, task=task), SearchConfig(**parameters))
    assert result.tree == fitted.tree_
    np.testing.assert_array_equal(result.tree.values, fitted.tree_.values)
    assert list(result.front) == list(fitted.pareto_front_)
    assert result.choice.penalties == (fitted.size_penalty_, fitted.term_penalty_)
    assert result.problem.noise == fitted.regularization_.noise
    assert result.run.generation == fitted.n_generations_ and result.failure is None


# ---- limits of time ------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["penalized", "nsga2"])
@pytest.mark.parametrize("init", ["tao", {"oc1": 1.0}])
def test_a_limit_that_is_over_at_once_leaves_a_quick_tree_and_a_warning(
    init, algorithm
):
    X, y = load_wine(return_X_y=True)
    model = brief(time_limit=1e-9, init=init, variation__algorithm=algorithm)
    with pytest.warns(RuntimeWarning, match="time_limit ended before any of the first"):
        model.fit(X, y)
    assert model.stop_reason_ == "time_limit" and model.n_generations_ == 0
    shares = model.history_.chapters["origin"][0]
    assert shares["axis"] > 0.0 and shares["dipole"] > 0.5
    assert max(m.quality for m in model.pareto_front_) > 0.8
    assert model.score(X, y) > 0.8


# ---- Ctrl-C --------------------------------------------------------------------------------------


def press(*_):
    signal.raise_signal(signal.SIGINT)


def press_at(n, function):
    """Return a function that presses Ctrl-C in its n-th call, and the list of its calls."""
    calls = []

    def pressing(*arguments, **options):
        calls.append(arguments)
        if len(calls) == n:
            press()
        return function(*arguments, **options)

    return pressing, calls


def interrupted(model):
    """Return what a fit on iris that Ctrl-C ends leaves behind."""
    X, y = load_iris(return_X_y=True)
    with interrupts_raise(), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.stop_reason_ == "interrupt"
    assert model.predict(X).shape == y.shape and len(model.pareto_front_) > 0
    return model


def test_an_interrupt_while_choosing_takes_the_first_penalties(monkeypatch):
    pressing, calls = press_at(2, populations.path_trees)
    monkeypatch.setattr(populations, "path_trees", pressing)
    kept = interrupted(evolved(EvoTreeClassifier, **BRIEF | AUTO))
    assert kept.n_generations_ == 0 and len(calls) <= 5  # those of one fold
    config = evolved(SearchConfig, **AUTO)
    penalties = penalties_to_try(config, 150)[0]
    assert (kept.regularization_.noise, kept.size_penalty_) == (NOISE, penalties.size)
    assert kept.score(*load_iris(return_X_y=True)) > 0.6


def test_an_interrupt_while_first_trees_are_made_leaves_the_rest_out(monkeypatch):
    pressing, calls = press_at(2, toolboxes.init_seed)
    monkeypatch.setattr(toolboxes, "init_seed", pressing)
    kept = interrupted(brief(init={"tao": 1.0}))
    assert kept.n_generations_ == 0 and len(calls) == 2
    shares = kept.history_.chapters["origin"][0]
    assert [shares[name] for name in ("tao", "dipole", "axis")] == pytest.approx(
        [2 / 12, 9 / 12, 1 / 12]
    )


@KINDS_OF_RUNS
@pytest.mark.parametrize("generation", [2, 4])
def test_an_interrupt_while_evolving_ends_the_generation(changed, generation, tmp_path):
    """Also in the last one, after which the search would have ended anyway."""
    iris, path = load_iris(return_X_y=True), tmp_path / "fit.npz"
    ends = {"callbacks": [lambda run: run.generation == generation and press()]}
    kept = interrupted(brief(**changed, **ends, checkpoint=path))
    whole = brief(**changed, max_generations=generation).fit(*iris)
    assert kept.n_generations_ == generation
    assert kept.tree_ == whole.tree_
    rest = brief(**changed, checkpoint=path, checkpoint__resume=True).fit(*iris)
    assert rest.n_generations_ == 4 and rest.tree_ == brief(**changed).fit(*iris).tree_


# ---- made once -----------------------------------------------------------------------------------


def test_first_trees_that_fail_leave_the_map_of_the_toolbox():
    rows = Dataset.from_arrays(*load_iris(return_X_y=True))
    toolbox = make_toolbox(rows, random_state=0)
    before = toolbox.map

    def fail(**options):
        assert toolbox.map is not before
        raise ZeroDivisionError

    toolbox.register("population", fail)
    with pytest.raises(ZeroDivisionError):
        populations.first_population(toolbox, 4, np.inf, Progress(0))
    assert toolbox.map is before

"""The evolved estimators: predictions, threads, callbacks, and failed fits."""

from concurrent.futures import Executor
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import (
    load_iris,
    make_classification,
)

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    keep_best_trees,
    parallel,
    to_frame,
)
from tests.quick_models import (
    CLASSIFIERS,
    FIXED,
    REGRESSORS,
    assert_same,
    brief,
    every_evolved,
    name_of,
    rows_for,
)

STILL = FIXED.set_params(noise=0.0)  # the fitness is measured on the rows alone


def test_predictions_follow_from_the_tree():
    X, y = load_iris(return_X_y=True)
    model = brief(regularization=STILL, patience=None, probability="leaf").fit(X, y)
    leaves, tree = model.apply(X), model.tree_
    shares = pd.crosstab(leaves, y, normalize="index").loc[leaves]
    found = np.exp(model.predict_log_proba(X))
    np.testing.assert_allclose(found, shares)
    assert model.get_n_leaves() == tree.n_leaves and model.get_depth() == tree.depth
    assert model.n_generations_ == 4 and model.stop_reason_ == "max_generations"
    phases = {"compiling", "choosing hyperparameters", "making first trees", "evolving"}
    assert set(model.seconds_) == phases and min(model.seconds_.values()) >= 0.0
    assert to_frame(model.history_)["quality_best"].iloc[-1] == pytest.approx(
        model.score(X, y)
    )


@pytest.mark.parametrize("kind", [EvoTreeClassifier, EvoTreeRegressor])
def test_threads_do_not_change_the_tree(kind, monkeypatch):
    """Also where trees are refined, rows are jittered, and the penalty is chosen."""
    monkeypatch.setattr(parallel, "_LEAST_NUMBERS", 0)
    X, y = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
    y = y if kind is EvoTreeClassifier else X[:, 0] * X[:, 1] + 0.1 * y
    one, two = (
        brief(kind, n_jobs=n, size_penalty="auto", refinement__probability=0.3).fit(
            X, y
        )
        for n in (1, 2)
    )
    tried = one.history_.chapters["refinement"].select("sparse_tried")
    assert len(one.tree_) > 3 and sum(tried) > 3
    assert one.tree_ == two.tree_
    np.testing.assert_array_equal(one.tree_.values, two.tree_.values)


def test_progress_bar_shows_the_tree(capsys):
    X, y = load_iris(return_X_y=True)
    brief(verbose=1).fit(X, y)
    assert "nodes=" in capsys.readouterr().err
    brief().fit(X, y)  # nobody watches
    brief(verbose=0).fit(X, y)
    assert capsys.readouterr().err == ""


# ---- callbacks -----------------------------------------------------------------------------------


@every_evolved
def test_callbacks_see_the_logbook_and_stop_the_run(model):
    X, y = rows_for(model)
    seen = []

    def watch(run):
        assert (
            len(run.logbook) == run.generation + 1
            and run.logbook[-1]["gen"] == run.generation
        )
        assert run.best.fitness.values == run.population[0].fitness.values
        best = run.logbook.chapters["quality"].select("best")
        assert best[-1] == run.best.quality
        seen.append(best[-1])
        return len(seen) > 2

    last = []
    stopped = clone(model).set_params(callbacks=[watch, lambda run: last.append(run)])
    stopped.fit(X, y)
    assert stopped.n_generations_ == 2 and stopped.stop_reason_ == "callback"
    assert stopped.history_.chapters["quality"].select("best") == seen
    assert len(last) == 3  # those behind the one that stops are called too
    assert len(stopped.hall_of_fame_) == len(last[-1].hall_of_fame)
    assert_same(stopped, clone(model).set_params(max_generations=2).fit(X, y), X)


@every_evolved
def test_best_trees_are_kept_where_they_change(model):
    X, y = rows_for(model)
    bare = clone(model).fit(X, y)
    assert bare.best_trees_ == {}
    runs = []
    kept = clone(model).set_params(callbacks=[keep_best_trees, runs.append]).fit(X, y)
    assert_same(bare, kept, X)
    history, trees = kept.history_, runs[-1].best_trees
    best = dict(
        zip(
            history.select("gen"),
            history.chapters["fitness"].select("best"),
            strict=True,
        )
    )
    assert min(trees) == 0 and [*kept.best_trees_] == [*trees] == sorted(trees)
    assert all(a != b for a, b in pairwise(trees.values()))
    for gen, value in best.items():
        assert (
            trees[max(one for one in trees if one <= gen)].fitness.wvalues[0] == value
        )
    assert [*trees.values()][-1] == runs[-1].best


# ---- failed fits ---------------------------------------------------------------------------------


KINDS = CLASSIFIERS + REGRESSORS


class Broken(Executor):
    """What fails as late as it can: when the tree is to be found."""

    def __call__(self, *arguments, **options):
        raise KeyboardInterrupt

    submit = __call__


BROKEN = [{name: Broken()} for name in ("objective", "splitter", "init")]
BROKEN += [{"objective": "poisson"}, *BROKEN[1:]]


def fitted_state(model):
    """Return the attributes that a fit has set."""
    names = set(vars(model)) - set(model.get_params(deep=False))
    return {name: vars(model)[name] for name in names}


@pytest.mark.parametrize(
    ("model", "broken"), [*zip(KINDS, BROKEN, strict=True)], ids=map(name_of, KINDS)
)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(model, broken):
    X, y = rows_for(model)
    fitted = clone(model).fit(X, y)
    before, said = fitted_state(fitted), fitted.predict(X)
    other = pd.DataFrame(X[:, 1:3], columns=["a", "b"])
    labels = np.array(["c", "b", "a"])[y] if is_classifier(model) else -y
    with pytest.raises((KeyboardInterrupt, ValueError)):
        fitted.set_params(**broken).fit(other, labels)
    after = fitted_state(fitted)
    assert after.keys() == before.keys() and all(
        after[name] is before[name] for name in after
    )
    np.testing.assert_array_equal(fitted.predict(X), said)
    bare = clone(model).set_params(**broken)
    with pytest.raises((KeyboardInterrupt, ValueError)):
        bare.fit(other, labels)
    assert not fitted_state(bare)

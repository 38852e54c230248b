"""Objectives, costs and constraints of the evolved estimators, from rows to printed trees."""

from copy import copy

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.datasets import load_wine

from evotree import (
    Cost,
    Dataset,
    EvoTreeClassifier,
    EvoTreeRegressor,
    ObliqueTreeRegressor,
    Regularization,
    TAORegressor,
    evolve,
    make_toolbox,
)
from evotree.fitness.objectives import as_objective
from evotree.texts import export_text
from tests.quick_models import by_tree, evolved
from tests.reference.signs import violations

QUICK = {
    "size_penalty": 0.002,
    "term_penalty": 0.0002,
    "population_size": 12,
    "max_generations": 6,
    "regularization": Regularization(noise=0.0),
    "random_state": 0,
}


def quick(kind=EvoTreeClassifier, **changed):
    """Return an estimator that fits in a moment."""
    return evolved(kind, **QUICK | changed)


@pytest.fixture(scope="module")
def rare():
    """Return rows of two classes, one of which is rare and not told apart easily."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] + X[:, 1] + rng.normal(scale=1.2, size=400) > 2.2).astype(int)
    return X, y


def test_costs_choose_labels_and_are_told(rare):
    X, y = rare
    costs = np.array([[0.0, 1.0], [20.0, 0.0]])
    model = quick(objective=Cost(costs)).fit(X, y)
    predicted = model.predict(X)
    assert model.cost_score(X, y) == pytest.approx(costs[y, predicted].mean())
    plain = quick().fit(X, y)
    assert costs[y, predicted].mean() < costs[y, plain.predict(X)].mean()
    assert plain.cost_score(X, y) == pytest.approx(1.0 - plain.score(X, y))
    leaves = model.apply(X)
    for leaf in np.unique(leaves):
        shares = np.bincount(y[leaves == leaf], minlength=2) / (leaves == leaf).sum()
        assert model.fitted_.costs[leaf] == pytest.approx((shares @ costs).min())
    assert "; costs " in export_text(model)
    assert "; costs " not in export_text(plain)
    with pytest.raises(ValueError, match="label 7"):
        plain.cost_score(X[:1], [7])


def test_dear_features_are_left_out(rare):
    X, y = rare
    doubled = np.column_stack([X, X[:, 0], X[:, 1]])
    prices = [50.0, 50.0, 0.0, 0.0, 0.0, 0.0]
    model = quick(objective=Cost(features=prices)).fit(doubled, y)
    used = np.flatnonzero((model.tree_.weights != 0.0).any(axis=0))
    assert not {0, 1} & set(used.tolist())


def test_several_numbers_are_for_nsga2(rare):
    X, y = rare
    sensitive = (X[:, 0] > 0.0).astype(int)

    def two(counts, leaves):
        predicted = counts.argmax(axis=1)[leaves.leaf]
        rates = [predicted[leaves.extras["sensitive"] == k].mean() for k in (0, 1)]
        return counts.max(axis=1).sum() / counts.sum(), -abs(rates[0] - rates[1])

    nsga2 = quick(objective=two, variation__algorithm="nsga2")
    front = nsga2.fit(X, y, sensitive=sensitive).pareto_front_
    table = front.to_frame()
    assert {"objective_0", "objective_1", "objective_2"} <= set(table)
    values = table[["objective_0", "objective_1"]].to_numpy()
    values = np.column_stack([values, -table["objective_2"]])
    for one in values:
        assert not ((values >= one).all(axis=1) & (values > one).any(axis=1)).any()


def test_a_run_of_the_toolbox_becomes_an_estimator():
    X, y = load_wine(return_X_y=True, as_frame=True)
    dataset = Dataset.from_arrays(X, y)
    dataset = dataset.evolved_for(as_objective("f1_macro", dataset))
    toolbox = make_toolbox(dataset, size_penalty=0.002, random_state=0)
    run = evolve(toolbox.population(n=12), toolbox, max_generations=5)
    model = EvoTreeClassifier.from_run(
        run, dataset, size_penalty=0.002, term_penalty=0.0
    )
    predicted = model.predict(X)
    assert metrics.f1_score(y, predicted, average="macro") == pytest.approx(
        run.best.quality
    )
    assert model.n_generations_ == 5 and model.feature_names_in_.tolist() == list(
        X.columns
    )
    assert model.select_tree("leaves<=2").tree_.n_leaves <= 2
    with pytest.raises(ValueError, match="run has trees over 13 features, for classes"):
        EvoTreeRegressor.from_run(run, dataset)


def test_monotonic_predictions_of_tables_with_gaps(rare):
    """Missing numbers, categories, weights, few digits, and a tree that is chosen later."""
    rng = np.random.default_rng(1)
    X, y = rare
    table = pd.DataFrame(
        np.where(rng.random(X.shape) < 0.1, np.nan, X), columns=list("abcd")
    )
    table["kind"] = pd.Categorical(rng.choice(["x", "y", "z"], len(y)))
    model = quick(
        monotonic_cst={"a": 1, "b": 1, "d": -1},
        class_weight="balanced",
        precision=1,
        size_penalty=0.0,
        term_penalty=0.0,
    ).fit(table, y, sample_weight=rng.exponential(size=len(y)))
    signs = np.array(model.objective_.constraint.signs)
    rows = table.sample(3000, replace=True, random_state=0)
    raised = rows.assign(a=rows["a"] + rng.exponential(size=3000), d=rows["d"] - 1.0)
    for chosen in (model, copy(model).select_tree("leaves<=4")):
        for at, tree in enumerate(chosen.pareto_front_):
            assert violations(tree, signs) == []
            other = by_tree(chosen, at)
            assert (other.predict(raised) >= other.predict(rows)).all()
        assert chosen.probabilities_ is not None and chosen.tree_.n_leaves >= 2
        rise = chosen.predict_proba(raised) - chosen.predict_proba(rows)
        assert rise[:, 1].min() > -1e-12 and rise[:, 1].max() > 0.1


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"objective": "f2"}, "objective='f2'"),
        ({"objective": 3}, "objective"),
        ({"objective": Cost([[0, 1]])}, "matrix="),
        ({"objective": Cost(features=[1.0])}, "features has shape"),
        ({"objective": Cost(features={"x9": 1.0})}, "features names 'x9'"),
        ({"monotonic_cst": [1]}, "monotonic_cst"),
        (
            {"monotonic_cst": [1, 0, 0, 0], "objective": "f1"},
            "'f1' does not go with monotonic_cst",
        ),
        (
            {"monotonic_cst": [1, 0, 0, 0], "objective": Cost([[3, 1], [0, 7]])},
            "matrix=.*monotonic",
        ),
        ({"objective": lambda counts: np.nan}, "returned nan"),
        (
            {"objective": lambda counts: (0.0,) * 4, "variation__algorithm": "nsga2"},
            "returned 4 numbers",
        ),
        (
            {"objective": metrics.f1_score},
            r"objective=f1_score takes .*\(counts\).*'f1_macro'",
        ),
        (
            {"objective": metrics.make_scorer(metrics.f1_score)},
            r"make_scorer.*\(counts, leaves\)",
        ),
        (
            {"objective": lambda y_true, y_pred: 1.0},
            r"takes \(y_true, y_pred\): allowed are",
        ),
    ],
)
def test_wrong_parameters_are_named(rare, parameters, named):
    with pytest.raises(ValueError, match=named):
        quick(**parameters).fit(*rare)


@pytest.mark.parametrize(
    "model",
    [
        ObliqueTreeRegressor("axis"),
        TAORegressor(random_state=0),
        quick(EvoTreeRegressor, leaves="constant"),
        quick(EvoTreeRegressor, leaves="constant", monotonic_cst=[1, 0]),
        quick(EvoTreeRegressor, objective="quantile"),
        quick(EvoTreeRegressor, objective="poisson"),
        quick(EvoTreeRegressor, objective="poisson", leaves="linear"),
    ],
    ids=str,
)
def test_leaves_of_equal_targets_predict_these(model):
    """Nothing is below 0 where no target is, and no rate is 0: its logarithm is asked for."""
    X = np.random.default_rng(0).normal(size=(150, 2))
    y = np.where(X[:, 0] > 0.0, 1.3, 0.0)
    predicted = model.fit(X, y).predict(X)
    if getattr(model, "objective", "") == "poisson":
        assert predicted.min() > 0.0
        assert np.isfinite(metrics.mean_poisson_deviance(y, predicted))
    else:
        assert set(predicted.tolist()) == {0.0, 1.3}

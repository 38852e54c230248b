"""The study of costs: what trees cost, how data sets are priced, and how methods are compared."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from evotree.experiments.execution import Fit, do_fit
from evotree.experiments.protocols import Task
from evotree.experiments.studies import costs
from evotree.experiments.studies.cost_problems import PROBLEMS, CostProblem, priced_tests
from evotree.fitness.costs import FeatureCosts

COLUMNS = {
    "bupa": "mcv alkphos sgpt sgot gammagt drinks",
    "heart": (
        "age sex chest resting_blood_pressure serum_cholestoral fasting_blood_sugar "
        "resting_electrocardiographic_results maximum_heart_rate_achieved exercise_induced_angina "
        "oldpeak slope number_of_major_vessels thal"
    ),
    "hepatitis": (
        "AGE SEX STEROID ANTIVIRALS FATIGUE MALAISE ANOREXIA LIVER_BIG LIVER_FIRM SPLEEN_PALPABLE "
        "SPIDERS ASCITES VARICES BILIRUBIN ALK_PHOSPHATE SGOT ALBUMIN PROTIME HISTOLOGY"
    ),
    "pima": "preg plas pres skin insu mass pedi age",
    "thyroid": (
        "age sex on_thyroxine query_on_thyroxine on_antithyroid_medication sick pregnant "
        "thyroid_surgery I131_treatment query_hypothyroid query_hyperthyroid lithium goitre tumor "
        "hypopituitary psych TSH T3 TT4 T4U FTI"
    ),
}
"""Of the data sets whose tests cost, in their order."""
PUBLISHED = {
    "bupa": {"gammagt": 9.86, "mcv": 7.27},
    "heart": {"thal": 102.90, "exercise_induced_angina": 87.30, "fasting_blood_sugar": 5.20},
    "hepatitis": {"PROTIME": 8.30, "ALBUMIN": 7.27, "HISTOLOGY": 1.00},
    "pima": {"plas": 17.61, "insu": 22.78, "age": 1.00},
    "thyroid": {"TSH": 22.78, "T3": 11.41, "TT4": 14.51, "T4U": 11.41},
}
"""What some tests cost alone."""


def prices_of(problem):
    names = COLUMNS[problem.dataset].split()
    return FeatureCosts.of(problem.tests, names, range(len(names))), names


def random_prices(rng, n_features):
    """Return prices of features and of two groups that overlap."""
    alone = {(j,): float(rng.integers(1, 9)) for j in range(n_features)}
    return {**alone, (0, 1, 2): 10.0, (2, 3): float(rng.integers(1, 9))}


def naive_price(tree, row, prices):
    """Walk down one of scikit-learn's trees and add what its features need."""
    row, node, seen = row.astype(np.float32), 0, set()
    while tree.children_left[node] >= 0:
        j = tree.feature[node]
        seen.add(j)
        goes_left = row[j] <= tree.threshold[node]
        node = tree.children_left[node] if goes_left else tree.children_right[node]
    return sum(price for members, price in prices.items() if seen & set(members))


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_of_scikit_learn_costs_what_a_walk_adds_up(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(150, 5)), rng.integers(0, 3, 150)
    prices = random_prices(rng, 5)
    model = costs.CostCart(rng.integers(1, 9, (3, 3)) * (1.0 - np.eye(3)), prices)
    model.classes_ = np.arange(3)
    cart = DecisionTreeClassifier(max_depth=4, ccp_alpha=0.002 * seed, random_state=seed)
    model.best_estimator_ = cart.fit(X[:100], y[:100])
    expected = [naive_price(cart.tree_, row, prices) for row in X]
    assert costs.features_paid(model, X, prices) == pytest.approx(expected)
    assert costs.feature_cost(model, X, y) == pytest.approx(np.mean(expected))
    assert costs.features_paid(model, X, None) == pytest.approx(np.zeros(150))
    errors = [model.cost_matrix[a, b] for a, b in zip(y, cart.predict(X), strict=True)]
    assert costs.error_cost(model, X, y) == pytest.approx(np.mean(errors))
    used = {j for j in cart.tree_.feature if j >= 0}
    assert costs.n_features_used(model) == len(used)


@pytest.mark.parametrize("name", [name for name, problem in PROBLEMS.items() if problem.tests])
def test_the_tests_of_a_data_set_are_its_columns(name):
    problem = PROBLEMS[name]
    prices, names = prices_of(problem)
    free = [one for one, price in zip(names, prices.alone, strict=True) if price == 0.0]
    assert free == ([problem.target] if problem.target else [])
    for test, price in PUBLISHED[problem.dataset].items():
        assert prices.alone[names.index(test)] == pytest.approx(price)
    if problem.names:
        assert list(problem.names) == names


def test_a_second_test_of_a_group_costs_less():
    tests = priced_tests({"a": 5.0, "b": 7.0, "c": 1.0}, (("a", "b"), 2.0))
    assert tests == {"a": 3.0, "b": 5.0, "c": 1.0, ("a", "b"): 2.0}


def test_whoever_has_both_hormones_has_the_index_too():
    prices, names = prices_of(PROBLEMS["thyroid-100"])
    needed = prices.is_part[[names.index(one) for one in ("TT4", "T4U", "FTI")]]
    assert (needed[0] | needed[1] == needed[2]).all()


def test_the_classes_of_a_row_say_what_its_errors_cost():
    assert CostProblem("any", (1.0, 5.0)).matrix.tolist() == [[0.0, 1.0], [5.0, 0.0]]


@pytest.fixture
def donors(tmp_path):
    """Write a table of the columns of blood-transfusion."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 50, (120, 4)), columns=list("abcd"))
    table["target"] = (table["a"] + rng.integers(0, 10, 120) > 40).astype(int)
    table.to_csv(tmp_path / "blood-transfusion.csv", index=False)
    return tmp_path


def test_methods_are_told_the_costs_of_their_data_set(donors):
    experiment = costs.make_experiment()
    task = Task("blood-transfusion-3", costs.CART, 0, 0)
    fit = Fit(
        task,
        experiment.methods[task.method],
        experiment.protocol,
        tuple(experiment.metrics),
        experiment.scorers,
        experiment.measures,
        None,
        False,
        donors,
    )
    row, _ = do_fit(fit)
    told = experiment.protocol.method_for(fit.method, task, donors)
    assert told.cost_matrix.tolist() == [[0.0, 1.0], [3.0, 0.0]]
    assert row["feature_cost"] == 0.0
    assert 1.0 - row["accuracy"] <= row["error_cost"] <= 3.0 * (1.0 - row["accuracy"])
    assert row["complexity"] == row["leaves"] + row["terms"]


def test_folds_choose_cheap_features_where_they_tell_as_much():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(120, 1)), 2, axis=1)
    X[:, 1] += 0.1 * rng.normal(size=120)
    y = (X[:, 0] > 0.0).astype(int)
    told = {"cost_matrix": 10.0 * (1.0 - np.eye(2)), "feature_costs": {(0,): 4.0, (1,): 1.0}}
    cheap, plain = (kind(**told).fit(X, y) for kind in (costs.CheapCart, costs.CostCart))
    assert costs.feature_cost(plain, X, y) == 4.0
    assert costs.feature_cost(cheap, X, y) == 1.0


def test_an_optimal_tree_pays_for_what_it_asks():
    pytest.importorskip("pystreed")
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), rng.integers(0, 2, 300)])
    y = ((X[:, 0] > 0.3) ^ (rng.random(300) < 0.1)).astype(int)
    errors = 10.0 * (1.0 - np.eye(2))
    paying, free = (costs.OptimalTree(errors, {(0,): price}).fit(X, y) for price in (100.0, 0.0))
    assert not paying.best_estimator_.tree_.weights.any()
    assert (free.predict(X) == y).mean() > 0.8


@pytest.mark.parametrize("n", [1, 5, 10, 11, 1000])
def test_cuts_part_rows(n):
    column = np.random.default_rng(n).permutation(n).astype(float)
    found = costs.cuts(column)
    assert len(found) == min(n - 1, costs.MAX_THRESHOLDS)
    assert all((column <= cut).any() and (column > cut).any() for cut in found)


def test_a_method_is_compared_by_cost_and_by_size():
    def run(method, error_cost, complexity):
        sizes = {"leaves": 1, "terms": 1, "complexity": complexity, "features": 1, "accuracy": 0.5}
        row = {"dataset": "heart-5", "method": method, "feature_cost": 1.0}
        return {**row, "error_cost": error_cost, **sizes}

    runs = pd.DataFrame([run(costs.EVOTREE, 2.0, 9), run(costs.CART, 2.5, 5)])
    means = costs.costs_of(runs)
    assert means.loc[("heart-5", costs.CART), "cost"] == 3.5
    assert costs.compared(means, costs.CART).loc["heart-5"].tolist() == [True, False]
    assert "**3.000** (9.0)" in costs.problems_table(means)
    assert "1 of 1" in costs.summary_table(means)

"""The benchmark: its methods, their sizes, runs, and the report of partial runs."""

import types

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterSampler, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evotree.estimators import EvoTreeClassifier, ObliqueTreeClassifier
from evotree.experiments.execution import seed_method
from evotree.experiments.measures import tree_sizes
from evotree.experiments.studies import benchmark, suites, systems, tables
from evotree.experiments.studies.study import run_study, write_report


def fake_runs(accuracies, n_folds=5):
    """Make rows of runs from mean accuracies by data set and system."""
    return pd.DataFrame(
        [
            {
                "dataset": dataset,
                "method": system,
                "fold": fold,
                "seed": 0,
                "accuracy": accuracy + 0.01 * (fold - 2),
                "train_accuracy": 1.0,
                "nodes": 5,
                "leaves": 3 + fold,
                "terms": 1000 + 2 * fold,
                "seconds": 0.5,
            }
            for (dataset, system), accuracy in accuracies.items()
            for fold in range(n_folds)
        ]
    )


def fitted(name, X, y, random_state=0):
    """Fit a system."""
    return seed_method(systems.make_systems()[name], random_state).fit(X, y)


# ---- systems -------------------------------------------------------------------------------------


def test_the_suites_are_whole():
    assert len(set(suites.THIRTY)) == len(suites.THIRTY) == 30
    assert len(set(suites.BENCHMARK)) == len(suites.BENCHMARK) == 34


def test_the_defaults_are_run_as_they_come():
    made = systems.make_systems()
    assert tuple(made) == systems.SYSTEMS
    as_it_comes = EvoTreeClassifier(probability="leaf").get_params()
    assert made["EvoTree"].get_params() == as_it_comes


def test_cart_is_pruned_as_an_exhaustive_search_says():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = (X[:, 0] + 0.8 * rng.normal(size=150) > 0).astype(int)
    path = DecisionTreeClassifier(random_state=3).cost_complexity_pruning_path(X, y).ccp_alphas
    assert len(np.unique(path)) < systems.MAX_ALPHAS
    folds = list(StratifiedKFold(5, shuffle=True, random_state=3).split(X, y))
    scores = []
    for alpha in path:
        tree = DecisionTreeClassifier(random_state=3, ccp_alpha=max(alpha, 0))
        scores.append(np.mean([tree.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds]))
    best = path[np.flatnonzero(np.isclose(scores, max(scores)))[-1]]  # of equal ones the largest
    found = fitted("CART", X, y, 3).best_estimator_
    assert found.ccp_alpha == best > 0.0
    assert found.tree_.n_leaves < DecisionTreeClassifier(random_state=3).fit(X, y).tree_.n_leaves


def test_a_long_path_is_thinned(monkeypatch):
    monkeypatch.setattr(systems, "MAX_ALPHAS", 3)
    tried = []
    search = systems.GridSearchCV
    monkeypatch.setattr(
        systems,
        "GridSearchCV",
        lambda tree, grid, cv: tried.append(grid["ccp_alpha"]) or search(tree, grid, cv=cv),
    )
    X, y = load_iris(return_X_y=True)
    fitted("CART", X, y)
    path = DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X, y).ccp_alphas
    (alphas,) = tried
    assert len(alphas) == 3 and alphas[0] == path[-1] and alphas[-1] == 0.0


def test_logistic_regression_has_the_best_cost():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 20)) * np.geomspace(0.01, 100.0, 20)
    y = np.where(X[:, 0] * 100 + rng.normal(size=120) > 0, "yes", "no")
    folds = list(StratifiedKFold(5, shuffle=True, random_state=1).split(X, y))
    scores = []
    for C in systems.COSTS:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=1000))
        scores.append(np.mean([model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds]))
    assert scores[-1] < max(scores) > scores[0]
    found = fitted("Logistic", X, y, 1)
    chosen = found.best_estimator_[-1].C
    assert chosen == systems.COSTS[int(np.argmax(scores))]
    model = make_pipeline(StandardScaler(), LogisticRegression(C=chosen, max_iter=1000)).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    np.testing.assert_allclose(found.predict_proba(X), model.predict_proba(X))


def test_the_tuned_forest_has_the_best_draw(monkeypatch):
    monkeypatch.setattr(systems, "N_TREES", 30)
    monkeypatch.setattr(systems, "N_TRIAL_TREES", 20)
    monkeypatch.setattr(systems, "N_DRAWS", 4)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=100) > 0, "yes", "no")
    draws = list(ParameterSampler(systems.FOREST_SPACE, 4, random_state=7))
    scores = []
    for settings in draws:
        trial = RandomForestClassifier(20, oob_score=True, random_state=7, **settings).fit(X, y)
        scores.append(trial.oob_score_)
    assert len(set(scores)) > 1
    expected = RandomForestClassifier(30, random_state=7, **draws[int(np.argmax(scores))])
    found = fitted("Tuned forest", X, y, 7)
    np.testing.assert_allclose(found.predict_proba(X), expected.fit(X, y).predict_proba(X))
    assert set(found.predict(X)) == {"no", "yes"}
    assert tree_sizes(found)["leaves"] == sum(t.get_n_leaves() for t in expected.estimators_)


# ---- sizes ---------------------------------------------------------------------------------------


def test_sizes_of_trees_and_forests(monkeypatch):
    monkeypatch.setattr(systems, "N_TREES", 4)
    X, y = load_iris(return_X_y=True)
    cart = fitted("CART", X, y)
    found = tree_sizes(cart)
    assert found["leaves"] == cart.best_estimator_.get_n_leaves()
    assert found["nodes"] == found["leaves"] + found["terms"] == 2 * found["leaves"] - 1
    forest = fitted("Forest", X, y)
    found = tree_sizes(forest)
    assert found["leaves"] == sum(tree.get_n_leaves() for tree in forest.estimators_)
    assert found["nodes"] == 2 * found["leaves"] - 4 == found["leaves"] + found["terms"]
    oblique = fitted("Linear", X, y)
    found = tree_sizes(oblique)
    assert found["nodes"] == 2 * found["leaves"] - 1 == len(oblique.tree_)
    assert found["terms"] == 4 * (found["leaves"] - 1)
    axis = tree_sizes(ObliqueTreeClassifier.from_preset("APDT").fit(X, y))
    assert axis["terms"] == axis["leaves"] - 1 and axis["complexity"] == axis["nodes"]
    for model, sizes in ((cart, tree_sizes(cart)), (forest, tree_sizes(forest))):
        assert sizes["complexity"] == sizes["nodes"], model
    bag = BaggingClassifier(ObliqueTreeClassifier.from_preset("APDT"), 3, random_state=0).fit(X, y)
    sizes = [tree_sizes(tree) for tree in bag.estimators_]
    assert tree_sizes(bag)["leaves"] == sum(one["leaves"] for one in sizes)


class FakeNode:
    """A node as STree has them."""

    def __init__(self, coef=None, column=-1):
        self.coef, self.column = coef, column

    def is_leaf(self):
        return self.coef is None

    def get_classifier(self):
        return types.SimpleNamespace(coef_=np.array(self.coef))

    def get_partition_column(self):
        return self.column


class FakeSTree(DecisionTreeClassifier):
    """A tree that is looked into as STree is."""

    def nodes_leaves(self):
        return 5, 3

    def __iter__(self):
        three_classes = FakeNode([[1.0, 2.0], [0.0, 3.0], [4.0, 5.0]], 1)
        two_classes = FakeNode([[1.0, 2.0]])
        return iter([three_classes, FakeNode(), two_classes, FakeNode(), FakeNode()])


def test_a_node_of_stree_counts_the_machine_that_parts_it():
    model = make_pipeline(MinMaxScaler(), FakeSTree())
    found = tree_sizes(model)
    assert found == {"nodes": 5, "leaves": 3, "terms": 1 + 2, "complexity": 6}


def test_stree_itself():
    pytest.importorskip("stree")
    X, y = load_iris(return_X_y=True)
    model = fitted("STree", X, np.array(list("abc"))[y])
    found = tree_sizes(model)
    assert found["nodes"] == 2 * found["leaves"] - 1
    assert 0 < found["terms"] <= 4 * (found["leaves"] - 1)


# ---- report --------------------------------------------------------------------------------------


def test_means_are_of_whole_data_sets():
    runs = fake_runs({("wine", "CART"): 0.9, ("iris", "CART"): 0.8, ("iris", "OC1"): 0.7})
    runs = pd.concat([runs, fake_runs({("wine", "OC1"): 0.9, ("wine", "WODT"): 0.9}, n_folds=4)])
    means = benchmark.figure(runs, "accuracy")
    assert list(means.index) == ["iris", "wine"] and list(means) == ["OC1", "WODT", "CART"]
    expected = [[70.0, np.nan, 80.0], [np.nan, np.nan, 90.0]]
    np.testing.assert_allclose(means, expected)
    assert benchmark.figure(runs, "AUC").isna().all(axis=None)
    one_is_missing = runs.assign(auc=np.where(runs["fold"] == 3, np.nan, 0.5))
    assert benchmark.figure(one_is_missing, "AUC").isna().all(axis=None)


def test_the_best_of_the_judged_are_bold():
    means = pd.DataFrame(
        {"A": [81.04, np.nan], "B": [80.96, 70.0], "Forest": [99.0, 70.0], "none": np.nan}
    )
    rows = tables.cells_table(means, 1, bold=("A", "B", "C")).splitlines()
    assert rows[0] == "| data set | A | B | Forest |"
    assert rows[2:] == ["| 0 | **81.0** | **81.0** | 99.0 |", "| 1 | - | **70.0** | 70.0 |"]


def test_means_are_over_the_data_sets_of_all_methods_with_enough(monkeypatch):
    monkeypatch.setattr(tables, "ENOUGH", 0.9)
    names = [f"d{k}" for k in range(20)]
    accuracy = pd.DataFrame(
        {"whole": 90.0, "one lacks": 80.0, "two lack": 70.0, "three lack": 60.0}, index=names
    )
    accuracy.loc["d0", "one lacks"] = accuracy.loc[["d1", "d2"], "two lack"] = np.nan
    accuracy.loc[["d1", "d3", "d4"], "three lack"] = np.nan
    both = tables.compared(accuracy)
    assert list(both) == ["whole", "one lacks", "two lack"]
    assert list(both.index) == names[3:] and both.notna().all(axis=None)
    assert tables.left_out_text(accuracy) == "three lack (17)"
    assert tables.left_out_text(accuracy[["whole"]]) == "none"


def test_the_summary_shows_what_was_not_measured():
    runs = fake_runs(
        {(dataset, system): 0.9 for dataset in ("iris", "glass") for system in ("OC1", "CART")}
    )
    is_known = (runs["method"] == "CART") | (runs["dataset"] == "iris")
    runs = runs.assign(auc=np.where(is_known, 0.75, np.nan), score_seconds=0.01)
    rows = benchmark.summary_table(runs).splitlines()[2:]
    tree = "| 5.0 | 1,004.0 | - | 0.50 | 0.01 |"
    assert rows == [
        f"| OC1 | 90.00 | - | - | - {tree}",
        f"| CART | 90.00 | - | 75.00 | - {tree}",
    ]


def test_duels_are_paired_over_the_data_sets_of_both():
    accuracies = {
        ("iris", "EvoTree"): 0.90,
        ("iris", "CART"): 0.88,
        ("wine", "EvoTree"): 0.80,
        ("wine", "CART"): 0.8004,
        ("sick", "EvoTree"): 0.70,
        ("sick", "CART"): 0.76,
        ("usps", "EvoTree"): 0.60,
    }
    runs = fake_runs(accuracies)
    d = np.array([2.0, -0.04, -6.0])
    error = d.std(ddof=1) / np.sqrt(3)
    (row,) = benchmark.duels_table(runs).splitlines()[2:]
    cell = f"{d.mean():+.2f} ± {error:.2f} (1 / 1 / 1)"
    assert row == f"| CART | 3 | {cell} | - | - | -6.00 (0 / 0 / 1) |"
    assert "not been run yet" in benchmark.duels_table(runs[runs["method"] == "CART"])


def test_the_floor_is_the_better_of_cart_and_logistic_regression():
    accuracy = pd.DataFrame(
        {
            "EvoTree": [90.0, 80.0, 70.0, 60.0],
            "CART": [95.0, 70.0, 60.0, 10.0],
            "Logistic": [80.0, 81.0, 65.0, np.nan],
        },
        index=["iris", "wine", "pima", "usps"],
    )
    section = benchmark.floors_section(accuracy)
    assert "below the floor: iris (-5.0). Mean" in section
    assert "(1 / 0 / 2).\n" in section
    assert section.splitlines()[-3:] == [
        "| iris | -5.0 | 90.0 | 95.0 | 80.0 |",
        "| wine | -1.0 | 80.0 | 70.0 | 81.0 |",
        "| pima | +5.0 | 70.0 | 60.0 | 65.0 |",
    ]
    assert benchmark.floors_section(accuracy[["EvoTree", "CART"]]) == "Not run yet."


def test_ranks_are_of_the_methods_that_are_compared():
    means = pd.DataFrame(
        {"EvoTree": [90.0, 80.0, 70.0], "OC1": [80.0, 80.0, 60.0], "CART": [70.0, 60.0, 50.0]},
        index=["iris", "wine", "pima"],
    )
    table = tables.ranks_table(tables.rank_systems(means), "EvoTree")
    first, second, third = table.splitlines()[2:5]
    assert first == "| EvoTree | 1.17 |  |"
    assert second.startswith("| OC1 | 1.83 |") and third.startswith("| CART | 3.00 |")
    assert "Friedman's χ² is" in table
    assert tables.rank_systems(means[["OC1", "CART"]]) is None
    assert tables.rank_systems(means[:2]) is None
    others = means.drop(columns="EvoTree").assign(WODT=1.0)
    assert "against" not in tables.ranks_table(tables.rank_systems(others), "EvoTree")


def test_the_report_is_written_from_the_rows_alone(tmp_path):
    accuracies = {
        (dataset, system): 0.5 + 0.01 * k + 0.1 * (system == "EvoTree")
        for dataset in benchmark.BENCHMARK
        for k, system in enumerate(("EvoTree", "CART", "Forest", "Linear", "Logistic"))
    }
    del accuracies["usps", "Linear"]
    fake_runs(accuracies).to_csv(tmp_path / "benchmark_runs.csv", index=False)
    report = write_report(benchmark.STUDY, tmp_path).read_text(encoding="utf-8")
    n_planned = len(systems.SYSTEMS) * 34 * 5
    assert f"845 of {n_planned:,} planned fits" in report
    assert "Means over the 33 data sets" in report and "their data sets: none." in report
    assert "| EvoTree | 60.00 | - |" in report and "| Linear | 53.00 | - |" in report
    duel = "| CART | 34 | +9.00 ± 0.00 (34 / 0 / 0) | - | - | +9.00 ± 0.00 (4 / 0 / 0) |"
    assert duel in report and "| Linear | 33 |" in report
    assert "below the floor: none." in report and "| EvoTree | 1.00 |" in report
    terms = report.split("## Terms")[1].split("## Seconds")[0]
    assert "| data set | EvoTree | Linear | CART |\n" in terms
    assert "| usps | 1,004 | - | 1,004 |" in terms
    for picture in ("benchmark_ranks.png", "benchmark_sizes.png"):
        assert (tmp_path / picture).stat().st_size > 5000


# ---- a real run ----------------------------------------------------------------------------------


def test_four_methods_on_one_data_set(tmp_path):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    pd.DataFrame(X).add_prefix("x").assign(target=names).to_csv(tmp_path / "iris.csv", index=False)
    out = tmp_path / "out"
    names = ["Linear", "CART", "Logistic", "HistGB"]
    runs, report = run_study(benchmark.STUDY, tmp_path, out, datasets=["iris"], methods=names)
    assert runs["method"].value_counts().to_dict() == dict.fromkeys(names, 5)
    assert (runs["status"] == "done").all() and (runs["accuracy"] > 0.8).all()
    # The folds of iris are balanced.
    np.testing.assert_allclose(runs["balanced_accuracy"], runs["accuracy"])
    assert runs["auc"].between(0.85, 1.0).all() and runs["log_loss"].between(0.0, 1.5).all()
    is_tree = runs["method"].isin(systems.TREES)
    assert (runs["nodes"][is_tree] == 2 * runs["leaves"][is_tree] - 1).all()
    assert runs.loc[~is_tree, ["leaves", "terms", "complexity"]].isna().all(axis=None)
    lines = report.read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith("| Logistic | ")][:1]
    assert line.split(" | ")[5:8] == ["-", "-", "-"] and "-" not in line.split(" | ")[1:5]

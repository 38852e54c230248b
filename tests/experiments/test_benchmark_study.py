"""The study of single trees: systems, their sizes, runs, and the report of partial runs."""

import sys
import types

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

from evotree.estimators import GREEDY_PRESETS, EvoTreeClassifier
from evotree.experiments.execution import seed_method
from evotree.experiments.measures import tree_sizes
from evotree.experiments.studies import benchmark, systems
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


def test_the_two_halves_part_the_data_sets():
    both = benchmark.CHOSEN_ON + benchmark.CONFIRMED_ON
    assert sorted(both) == sorted(benchmark.DATASETS) and len(set(both)) == 21


def test_every_preset_is_a_system():
    made = systems.make_systems()
    assert tuple(made) == benchmark.SYSTEMS and set(GREEDY_PRESETS) < set(made)
    assert made["EvoTree"].get_params() == EvoTreeClassifier().get_params()


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "stree", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install stree==1\.4\.2"):
        fitted("STree", *load_iris(return_X_y=True))


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
    axis = tree_sizes(fitted("APDT", X, y))
    assert axis["terms"] == axis["leaves"] - 1 and axis["complexity"] == axis["nodes"]
    for model, sizes in ((cart, tree_sizes(cart)), (forest, tree_sizes(forest))):
        assert sizes["complexity"] == sizes["nodes"], model


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


def test_a_cell_without_all_its_folds_is_empty():
    runs = fake_runs({("wine", "CART"): 0.9, ("iris", "CART"): 0.8, ("iris", "OC1"): 0.7})
    runs = pd.concat([runs, fake_runs({("wine", "OC1"): 0.9, ("wine", "DT"): 0.9}, n_folds=4)])
    means = benchmark.mean_scores(runs, "accuracy")
    assert list(means.index) == ["iris", "wine"] and list(means) == ["OC1", "CART"]
    np.testing.assert_allclose(means, [[0.7, 0.8], [np.nan, 0.9]])


def test_the_best_benchmark_are_bold():
    means = pd.DataFrame({"A": [81.04, np.nan], "B": [80.96, 70.0], "Forest": [99.0, 70.0]})
    rows = benchmark.cells_table(means, 1, bold=True).splitlines()[2:]
    assert rows == ["| 0 | **81.0** | **81.0** | 99.0 |", "| 1 |  | **70.0** | 70.0 |"]


@pytest.fixture
def chosen_on_two(monkeypatch):
    """Let the defaults be chosen on iris and glass."""
    chosen = ("iris", "glass")
    others = tuple(name for name in benchmark.DATASETS if name not in chosen)
    halves = {"all": benchmark.DATASETS, "chosen on": chosen, "confirmed on": others}
    monkeypatch.setattr(benchmark, "HALVES", halves)


def test_summary_is_over_the_data_sets_of_each_system(chosen_on_two):
    runs = fake_runs(
        {
            ("iris", "CART"): 0.9,
            ("glass", "CART"): 0.7,
            ("wine", "CART"): 0.5,
            ("wine", "OC1"): 0.6,
        }
    )
    accuracy, leaves, seconds = (
        benchmark.mean_scores(runs, name) for name in ("accuracy", "leaves", "seconds")
    )
    rows = benchmark.summary_table(100 * accuracy, leaves, seconds).splitlines()[2:]
    assert rows == [
        "| OC1 | 1 (0 + 1) | 60.00 |  | 60.00 | 5.0 |  | 5.0 | 0.50 |  | 0.50 |",
        "| CART | 3 (2 + 1) | 70.00 | 80.00 | 50.00 | 5.0 | 5.0 | 5.0 | 0.50 | 0.50 | 0.50 |",
    ]


def test_wins_ties_and_losses(chosen_on_two):
    means = pd.DataFrame(
        {"EvoTree": [90.0, 80.0, 70.0, 50.04, 60.0], "CART": [88.0, 80.04, 75.0, 50.0, np.nan]},
        index=["iris", "wine", "pima", "sonar", "usps"],
    )
    assert benchmark.duels_table(means).splitlines()[2:] == [
        "| CART | 1 / 2 / 1 | -0.75 | 1 / 0 / 0 | +2.00 | 0 / 2 / 1 | -1.67 |"
    ]
    assert "not been run yet" in benchmark.duels_table(means[["CART"]])


def test_ranks_are_of_systems_run_on_all_data_sets(monkeypatch):
    monkeypatch.setattr(benchmark, "DATASETS", ("iris", "wine", "pima"))
    means = pd.DataFrame(
        {"EvoTree": [90.0, 80.0, 70.0], "OC1": [80.0, 80.0, 60.0], "CART": [70.0, 60.0, 50.0]},
        index=["iris", "wine", "pima"],
    ).assign(STree=[99.0, 99.0, np.nan])
    table = benchmark.ranks_table(benchmark.rank_systems(means))
    first, second, third = table.splitlines()[2:5]
    assert first == "| EvoTree | 1.17 |  |"
    assert second.startswith("| OC1 | 1.83 |") and third.startswith("| CART | 3.00 |")
    assert "STree" not in table and "Friedman's χ² is" in table
    assert benchmark.rank_systems(means[["OC1", "CART"]]) is None
    others = means.drop(columns="EvoTree").assign(DT=1.0)
    assert "against" not in benchmark.ranks_table(benchmark.rank_systems(others))


def test_the_report_is_written_from_the_rows_alone(tmp_path):
    accuracies = {
        (dataset, system): 0.5 + 0.01 * k + 0.1 * (system == "EvoTree")
        for dataset in benchmark.DATASETS
        for k, system in enumerate(("EvoTree", "CART", "Forest", "Linear"))
    }
    del accuracies["usps", "Linear"]
    fake_runs(accuracies).to_csv(tmp_path / "benchmark_runs.csv", index=False)
    report = write_report(benchmark.STUDY, tmp_path).read_text(encoding="utf-8")
    n_planned = len(benchmark.SYSTEMS) * 21 * 5
    assert f"415 of {n_planned:,} planned fits" in report
    assert "| EvoTree | 21 (18 + 3) | 60.00 |" in report
    assert "| CART | 21 / 0 / 0 | +9.00 | 18 / 0 / 0 |" in report
    assert "| Linear | 20 (18 + 2) |" in report and "| EvoTree | 1.00 |" in report
    _, weights = report.split("## Weights other than 0")
    assert "| data set | EvoTree | Linear | CART |\n" in weights.split("## Seconds")[0]
    assert "| usps | 1,004 |  | 1,004 |" in weights


# ---- a real run ----------------------------------------------------------------------------------


def test_two_systems_on_one_data_set(tmp_path):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    pd.DataFrame(X).add_prefix("x").assign(target=names).to_csv(tmp_path / "iris.csv", index=False)
    out = tmp_path / "out"
    some = {"datasets": ["iris"], "methods": ["Linear", "CART"]}
    runs, report = run_study(benchmark.STUDY, tmp_path, out, **some)
    assert runs.fold.tolist() == [0, 1, 2, 3, 4] * 2
    assert (runs.accuracy > 0.8).all() and (runs.nodes == 2 * runs.leaves - 1).all()
    assert "| Linear | 1 (1 + 0) |" in report.read_text(encoding="utf-8")

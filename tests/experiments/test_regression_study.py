"""The study of regression: its methods, their sizes, its draws of rows, and its report."""

import sys
import types

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, LeaveOneOut, ParameterSampler, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from evotree.experiments.execution import seed_method
from evotree.experiments.measures import tree_sizes
from evotree.experiments.protocols import OFFICIAL, Task
from evotree.experiments.studies import peers, regression, systems
from evotree.experiments.studies import regression_systems as methods
from evotree.experiments.studies.agreement import load_published
from evotree.experiments.studies.study import run_study, write_report


def bent_rows(n_samples=150, random_state=0):
    """Make rows of a bent plane with noise."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n_samples, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 5.0, 0.0, 0.0]
    y = np.abs(X[:, 0]) + 0.1 * X[:, 1] + 0.3 * rng.normal(size=n_samples)
    return X, y


def write_table(folder, name, n_samples=100):
    """Write a data set with a category and missing cells."""
    X, y = bent_rows(n_samples)
    frame = (
        pd.DataFrame(X).add_prefix("x").assign(kind=np.array(list("abc"))[np.arange(len(y)) % 3])
    )
    frame.loc[:2, "x1"] = np.nan
    frame.assign(target=y).to_csv(folder / f"{name}.csv", index=False)


def fitted(name, X, y, random_state=0):
    """Fit a method."""
    return seed_method(methods.make_systems()[name], random_state).fit(X, y)


def fake_runs(scores, folds=range(5)):
    """Make rows of runs from mean R² by data set and method."""
    return pd.DataFrame(
        [
            {
                "dataset": dataset,
                "method": system,
                "fold": fold,
                "seed": 0,
                "r2": score + 0.01 * (fold - 2),
                "rmse": 2.0 * (1.0 - score),
                "leaves": 3,
                "terms": 4 + k,
                "complexity": 7 + k,
                "seconds": 0.5,
            }
            for k, ((dataset, system), score) in enumerate(scores.items())
            for fold in folds
        ]
    )


# ---- methods -------------------------------------------------------------------------------------


def test_the_kinds_of_leaves_are_asked_for():
    made = methods.make_systems()
    assert tuple(made) == (*methods.SYSTEMS, methods.CART_DEPTH)
    assert made[methods.EVOTREE].leaves == "auto" and made[methods.CONSTANT].leaves == "constant"
    assert made[methods.TAO_LINEAR].leaves == "linear"
    assert set(regression.RADDT_METHODS) <= set(made)


def test_cart_is_pruned_as_an_exhaustive_search_says():
    X, y = bent_rows(60)
    path = DecisionTreeRegressor(random_state=3).cost_complexity_pruning_path(X, y).ccp_alphas
    path = np.quantile(np.unique(path), np.linspace(0, 1, systems.MAX_ALPHAS), method="nearest")
    folds = KFold(5, shuffle=True, random_state=3)
    scores = [
        cross_val_score(DecisionTreeRegressor(random_state=3, ccp_alpha=a), X, y, cv=folds).mean()
        for a in path
    ]
    best = path[np.flatnonzero(np.isclose(scores, max(scores), rtol=0, atol=1e-15))[-1]]
    assert min(path) < best < max(path)
    assert fitted("CART", X, y, 3).best_estimator_.ccp_alpha == best


def test_the_ridge_is_the_best_by_leaving_one_out():
    X, y = bent_rows(40)
    rows = StandardScaler().fit_transform(X)
    errors = [
        -cross_val_score(
            Ridge(alpha), rows, y, cv=LeaveOneOut(), scoring="neg_mean_squared_error"
        ).mean()
        for alpha in methods.ALPHAS
    ]
    model = fitted("Ridge", X, y)
    assert model.best_estimator_[-1].alpha_ == methods.ALPHAS[int(np.argmin(errors))]
    assert tree_sizes(model) == {"leaves": 1, "nodes": 1, "depth": 0, "terms": 4, "complexity": 5}


def test_the_last_third_chooses_the_depth():
    X, y = bent_rows(91)
    ((first, last),) = methods.LastThird().split(X)
    assert len(last) == 30 and np.array_equal(np.r_[first, last], np.arange(91))
    scores = [
        DecisionTreeRegressor(max_depth=depth, random_state=2)
        .fit(X[first], y[first])
        .score(X[last], y[last])
        for depth in methods.MAX_DEPTHS
    ]
    found = fitted(methods.CART_DEPTH, X, y, 2).best_estimator_
    assert found.max_depth == methods.MAX_DEPTHS[int(np.argmax(scores))]
    assert found.tree_.n_node_samples[0] == 91


def test_draws_are_judged_by_some_rows_and_the_best_is_fitted_to_all(monkeypatch):
    monkeypatch.setattr(methods, "TUNING_ROWS", 60)
    monkeypatch.setattr(systems, "N_TREES", 30)
    monkeypatch.setattr(systems, "N_TRIAL_TREES", 20)
    monkeypatch.setattr(systems, "N_DRAWS", 4)
    X, y = bent_rows(100)
    rows = methods.tuning_rows(100, 7)
    assert len(set(rows)) == 60 and np.array_equal(methods.tuning_rows(60, 7), np.arange(60))
    draws = list(ParameterSampler(systems.FOREST_SPACE, 4, random_state=7))
    scores = []
    for settings in draws:
        trial = RandomForestRegressor(20, oob_score=True, random_state=7, **settings)
        scores.append(trial.fit(X[rows], y[rows]).oob_score_)
    expected = RandomForestRegressor(30, random_state=7, **draws[int(np.argmax(scores))])
    found = fitted("Tuned forest", X, y, 7)
    np.testing.assert_allclose(found.predict(X), expected.fit(X, y).predict(X))


def test_boosting_has_the_best_draw(monkeypatch):
    class FakeXGBRegressor(DecisionTreeRegressor):
        def __init__(self, max_depth=None, random_state=0, n_jobs=None):
            super().__init__(max_depth=max_depth, random_state=random_state)
            self.n_jobs = n_jobs

    package = types.SimpleNamespace(XGBRegressor=FakeXGBRegressor)
    monkeypatch.setitem(sys.modules, "xgboost", package)
    monkeypatch.setattr(peers, "BOOSTING_SPACE", {"max_depth": range(1, 12)})
    monkeypatch.setattr(peers, "N_DRAWS", 5)
    monkeypatch.setattr(methods, "TUNING_ROWS", 90)
    X, y = bent_rows()
    rows = methods.tuning_rows(len(X), 4)
    draws = list(ParameterSampler({"max_depth": range(1, 12)}, 5, random_state=4))
    folds = KFold(3, shuffle=True, random_state=4)
    scores = [
        cross_val_score(
            DecisionTreeRegressor(random_state=4, **draw), X[rows], y[rows], cv=folds
        ).mean()
        for draw in draws
    ]
    chosen = fitted("Tuned XGBoost", X, y, 4).best_estimator_
    assert chosen.settings == draws[int(np.argmax(scores))]
    assert chosen.best_estimator_.tree_.n_node_samples[0] == len(X)


def test_a_linear_tree_predicts_by_the_leaf_that_a_row_reaches(monkeypatch):
    with pytest.raises(ModuleNotFoundError, match="EVOTREE_LINEAR_TREE_PYTHON is not set"):
        monkeypatch.delenv(methods.LINEAR_TREE_PYTHON, raising=False)
        methods.LinearTree().fit(*bent_rows())
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.0, 2.0], [1.0, 2.0]])  # standardized: -1 and 1
    leaves = (
        '[{"conditions": [[0, false, 0.0]], "coef": [0, 1], "intercept": 5},'
        ' {"conditions": [[0, true, 0.0], [1, false, 0.5]], "coef": [0, 0], "intercept": 7},'
        ' {"conditions": [[0, true, 0.0], [1, true, 0.5]], "coef": [2, 3], "intercept": 0}]'
    )

    def run(command, **_):
        with open(command[-1], "w", encoding="ascii") as file:
            file.write(leaves)

    monkeypatch.setenv(methods.LINEAR_TREE_PYTHON, "python")
    monkeypatch.setattr(methods.subprocess, "run", run)
    model = methods.LinearTree().fit(X, np.arange(4.0))
    np.testing.assert_allclose(model.predict(X), [4, 7, 6, 5])
    sizes = {"leaves": 3, "nodes": 5, "depth": 2, "terms": 2 + 3, "complexity": 8}
    assert tree_sizes(model) == sizes


@pytest.mark.parametrize("name", ["Cubist", "EBM", "XGBoost"])
def test_the_packages_themselves(name):
    module = {"Cubist": "cubist", "EBM": "interpret.glassbox", "XGBoost": "xgboost"}[name]
    pytest.importorskip(module)
    X, y = bent_rows()
    model = fitted(name, X, y)
    assert model.score(X, y) > 0.6
    found = tree_sizes(model)
    assert (found == {}) == (name != "Cubist")
    if found:
        assert 1 <= found["leaves"] <= found["complexity"] - found["terms"] <= 20


@pytest.mark.parametrize("name", ["HistGB", "Cubist", "EBM"])
def test_small_targets_are_no_hindrance(name):
    if name != "HistGB":
        pytest.importorskip({"Cubist": "cubist", "EBM": "interpret.glassbox"}[name])
    X, y = bent_rows()
    scores = [fitted(name, X, scale * y).score(X, scale * y) for scale in (1.0, 1e-6)]
    np.testing.assert_allclose(*scores, atol=1e-3)


# ---- RADDT ---------------------------------------------------------------------------------------


def test_the_draws_part_the_rows(tmp_path):
    write_table(tmp_path, "space-ga")
    protocol = regression.RegressionProtocol(5)
    tests = []
    for seed in (0, 1):
        parts = protocol.take_parts(Task("space-ga", "Ridge", OFFICIAL, seed), tmp_path, False)
        assert parts.X_train.shape == (75, 8) and parts.X_test.shape == (25, 8)
        together = np.sort(np.r_[parts.y_train, parts.y_test])
        np.testing.assert_array_equal(together, np.sort(bent_rows(100)[1]))
        tests.append(parts.y_test)
    assert set(tests[0]) != set(tests[1])
    folds = [
        protocol.take_parts(Task("space-ga", "Ridge", fold, 0), tmp_path, False).y_test
        for fold in range(5)
    ]
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.sort(bent_rows(100)[1]))


def test_every_published_cell_is_here():
    published = load_published("regression")
    cells = published[published["metric"] == "r2"].set_index(["dataset", "system"])["mean"]
    assert cells.index.is_unique and cells.between(0.4, 1.0).all()
    for name in regression.PUBLISHED:
        assert set(cells.xs(name, level="system").index) == set(regression.RADDT_SETS)
    assert set(regression.RADDT_SETS) < set(regression.DATASETS)
    assert len(set(regression.DATASETS)) == len(regression.DATASETS) == 18


def test_published_means_are_over_the_data_sets_of_ours():
    scores = {("space-ga", "Ridge"): 0.5, ("fried", "Ridge"): 0.7, ("space-ga", "Cubist"): 0.6}
    table = regression.raddt_table(fake_runs(scores, folds=[OFFICIAL]))
    assert "Means over 1 data sets" in table
    assert "| RADDT-Linear, published | 61.20 | 130.0 |" in table
    assert "| Ridge | 47.00 | 3.0 |" in table and "| Cubist | 57.00 | 3.0 |" in table
    assert regression.raddt_section(fake_runs(scores)) == "Not run yet."


# ---- report --------------------------------------------------------------------------------------


def test_the_report_is_written_from_the_rows_alone(tmp_path):
    names = (methods.EVOTREE, methods.CONSTANT, "CART", "Ridge", "HistGB")
    scores = {
        (dataset, system): 0.5 + 0.01 * k + 0.1 * (system == methods.EVOTREE)
        for dataset in regression.DATASETS
        for k, system in enumerate(names)
    }
    del scores["fried", "CART"]
    runs = fake_runs(scores)
    unsized = runs["method"] == "HistGB"
    runs.loc[unsized, ["leaves", "terms", "complexity"]] = np.nan
    runs = pd.concat([runs, fake_runs({("space-ga", "EvoTree"): 0.6}, folds=[OFFICIAL])])
    runs.to_csv(tmp_path / "regression_runs.csv", index=False)
    report = write_report(regression.STUDY, tmp_path).read_text(encoding="utf-8")
    n_planned = len(methods.SYSTEMS) * 18 * 5 + len(regression.RADDT_METHODS) * 10 * 3
    assert f"446 of {n_planned:,} planned fits" in report
    assert "Means over the 17 data sets" in report and "their data sets: none." in report
    assert "| EvoTree | 60.00 | 0.851 | 3.0 |" in report  # (1 - 0.6) / (1 - 0.53)
    assert "| HistGB | 54.00 | 0.979 | - | - | - | 0.50 |" in report
    assert "| CART | 17 | +8.00 ± 0.00 (17 / 0 / 0) |" in report
    assert "below the floor: none." in report and "| EvoTree | 1.00 |" in report
    assert "| bodyfat | 0.8 | 0.98 | 0.96 | 0.94 | 0.92 |" in report
    assert "| EvoTree | 57.00 | 3.0 |" in report  # the draw of RADDT's protocol
    for picture in ("regression_ranks.png", "regression_sizes.png"):
        assert (tmp_path / picture).stat().st_size > 5000


def test_three_methods_on_two_data_sets(tmp_path):
    for name in ("bodyfat", "space-ga"):
        write_table(tmp_path, name)
    names = ["CART", "Ridge", "HistGB"]
    out = tmp_path / "out"
    runs, report = run_study(
        regression.STUDY, tmp_path, out, datasets=["bodyfat", "space-ga"], methods=names
    )
    assert runs["method"].value_counts().to_dict() == {"Ridge": 13, "CART": 10, "HistGB": 10}
    assert (runs["status"] == "done").all() and (runs["r2"] < 1.0).all()
    assert (runs["fold"] == OFFICIAL).sum() == 3
    # The R² of a fold and its RMSE tell of the same errors.
    one = runs[(runs["dataset"] == "bodyfat") & (runs["fold"] == 2)]
    np.testing.assert_allclose(
        (1.0 - one["r2"]) / one["rmse"] ** 2, (1 - one["r2"].iloc[0]) / one["rmse"].iloc[0] ** 2
    )
    text = report.read_text(encoding="utf-8")
    assert "EvoTree has not been run yet." in text and "| CART by depth" not in text

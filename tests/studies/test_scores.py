"""Scores, costs and tables of the studies, compared with scikit-learn's and naive ones."""

import shutil
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from evotree.configuration import check_parameters
from evotree.experiments.protocols import Task
from evotree.experiments.store import checksum
from experiments import STUDIES, agreement, load_study, tables
from experiments.agreement import AS_PUBLISHED, BETTER, WORSE, judge
from experiments.probabilities import (
    LEAST,
    N_BINS,
    auc,
    brier,
    calibration_error,
    clipped_log_loss,
    probabilities,
)
from experiments.studies import constraints, costs, variants
from experiments.studies.costs import CART


def fixed(predicted, classes):
    """Make a model that predicts given probabilities."""
    return types.SimpleNamespace(
        predict_proba=lambda X: predicted, classes_=np.array(classes)
    )


def random_shares(n_rows, n_classes, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, 5.0), n_rows)


@pytest.mark.parametrize("labels", [["a", "b", "c", "d"], [7, 3, 5, 9]])
def test_the_scores_of_many_classes_are_scikit_learns(labels):
    shares = random_shares(80, 4)
    labels = np.sort(labels)
    y = labels[np.random.default_rng(1).choice(4, 80, p=[0.1, 0.2, 0.3, 0.4])]
    model = fixed(shares, labels)
    expected = roc_auc_score(
        y, shares, multi_class="ovr", average="weighted", labels=labels
    )
    assert auc(model, None, y) == pytest.approx(expected)
    assert (shares > LEAST).all()
    assert clipped_log_loss(model, None, y) == pytest.approx(
        log_loss(y, shares, labels=labels)
    )
    expected = brier_score_loss(y, shares, labels=labels, scale_by_half=False)
    assert brier(model, None, y) == pytest.approx(expected)


def test_classes_of_one_side_alone():
    """The model knows a class that no row has, and the rows one that the model does not know."""
    shares = random_shares(40, 3)
    model = fixed(shares, ["a", "b", "c"])
    y = np.array(["a", "b", "z"] * 13 + ["z"])
    shown = probabilities(model, None, np.array(["a", "b", "z"]))
    np.testing.assert_array_equal(shown, np.column_stack([shares[:, :2], np.zeros(40)]))
    areas = [roc_auc_score(y == c, shares[:, at]) for at, c in enumerate("ab")]
    assert auc(model, None, y) == pytest.approx((13 * sum(areas) + 14 * 0.5) / 40)
    assert clipped_log_loss(model, None, y[y == "z"]) == pytest.approx(-np.log(LEAST))
    assert brier(fixed([[1.0]], ["a"]), None, np.array(["b"])) == 2.0


def test_what_has_no_score_is_not_a_number():
    X, y = load_iris(return_X_y=True)
    machine, tree = LinearSVC().fit(X, y), DecisionTreeClassifier().fit(X, y)
    scores = (auc, clipped_log_loss, brier, calibration_error)
    assert np.isnan([score(machine, X, y) for score in scores]).all()
    assert np.isnan(auc(tree, X[y == 0], y[y == 0]))
    assert auc(tree, X, y) == 1.0 and clipped_log_loss(tree, X, y) == 0.0


def test_the_calibration_error_is_that_of_its_definition():
    shares = random_shares(200, 3)
    y = np.random.default_rng(1).choice(3, 200)
    top, is_right = shares.max(axis=1), shares.argmax(axis=1) == y
    expected = 0.0
    for low in np.arange(N_BINS) / N_BINS:
        here = (top >= low) & (top < low + 1.0 / N_BINS)
        if here.any():
            expected += here.mean() * abs(top[here].mean() - is_right[here].mean())
    assert calibration_error(fixed(shares, range(3)), None, y) == pytest.approx(
        expected
    )
    certain = fixed(np.eye(3)[y], range(3))
    assert calibration_error(certain, None, y) == 0.0
    assert calibration_error(certain, None, (y + 1) % 3) == 1.0


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a regression data set of known signs, with gaps."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        rng.normal(size=(80, 4)), columns=["cement", "water", "age", "slag"]
    )
    target = table["cement"] - table["water"] + 0.1 * rng.normal(size=80)
    table.loc[:9, "slag"] = np.nan
    table.assign(target=target).to_csv(tmp_path / "concrete.csv", index=False)
    return tmp_path


def test_columns_have_the_signs_of_their_data_set(folder):
    task = Task("concrete", constraints.CART, 1, 0)
    parts = constraints.NamedProtocol(n_folds=5).take_parts(task, folder)
    assert len(parts.y_train) == 64 and not parts.X_train.isna().any(axis=None)
    model = constraints.Constrained("CART", is_monotonic=True).fit(
        parts.X_train, parts.y_train
    )
    signs = dict(zip(parts.X_train.columns, model.signs_, strict=True))
    assert signs["concrete/cement"] == signs["concrete/age"] == 1
    assert signs["concrete/water"] == -1
    assert signs["concrete/slag"] == signs["concrete/slag is missing"] == 0
    assert constraints.share_broken(model, parts.X_test, parts.y_test, "predict") == 0.0
    assert model.score(parts.X_test, parts.y_test) > 0.0


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
    errors = rng.integers(1, 9, (3, 3)) * (1.0 - np.eye(3))
    model = with_prices(CART, errors, prices)
    model.classes_ = np.arange(3)
    cart = DecisionTreeClassifier(
        max_depth=4, ccp_alpha=0.002 * seed, random_state=seed
    )
    model.best_estimator_ = cart.fit(X[:100], y[:100])
    expected = [naive_price(cart.tree_, row, prices) for row in X]
    assert costs.features_paid(model, X, prices) == pytest.approx(expected)
    assert costs.feature_cost(model, X, y) == pytest.approx(np.mean(expected))
    assert costs.features_paid(model, X, None) == pytest.approx(np.zeros(150))
    errors = [model.cost_matrix[a, b] for a, b in zip(y, cart.predict(X), strict=True)]
    assert costs.error_cost(model, X, y) == pytest.approx(np.mean(errors))
    used = {j for j in cart.tree_.feature if j >= 0}
    assert costs.n_features_used(model) == len(used)


@pytest.fixture
def donors(tmp_path):
    """Write a table of the columns of blood-transfusion."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 50, (120, 4)), columns=list("abcd"))
    table["target"] = (table["a"] + rng.integers(0, 10, 120) > 40).astype(int)
    table.to_csv(tmp_path / "blood-transfusion.csv", index=False)
    return tmp_path


def test_methods_know_the_costs_of_their_data_set(donors):
    experiment = costs.EXPERIMENT
    task = Task("blood-transfusion-3", CART, 0, 0)
    method = experiment.protocol.method_for(experiment.methods[CART], task, donors)
    assert (
        method.cost_matrix.tolist() == [[0.0, 1.0], [3.0, 0.0]]
        and method.feature_costs == {}
    )
    assert experiment.methods[CART].cost_matrix is None


def with_prices(name, errors, prices):
    """Return a method that knows costs."""
    return clone(costs.METHODS[name]).set_params(
        cost_matrix=errors, feature_costs=prices
    )


def test_duels_are_paired_over_the_data_sets_of_both():
    scores = pd.DataFrame(
        {"EvoTree": [90.0, 80.0, 70.0, 60.0], "CART": [88.0, 80.04, 76.0, np.nan]},
        index=["iris", "wine", "sick", "usps"],
    )
    duels, sizes = {"accuracy": scores, "on sick": scores.loc[["sick"]]}, scores / 10.0
    (row,) = tables.differences_table(duels, "EvoTree", sizes).splitlines()[2:]
    d = np.array([2.0, -0.04, -6.0])
    cell = f"{d.mean():+.2f} ± {d.std(ddof=1) / np.sqrt(3):.2f} (1 / 1 / 1)"
    assert row == f"| CART | 3 | {cell} | -6.00 (0 / 0 / 1) | 8 / 8 |"
    # Of a loss less is better, and a tie is closer.
    losses = scores / 100.0 + [0.0, 0.02]
    (row,) = tables.differences_table({"log loss": losses}, "EvoTree").splitlines()[2:]
    d = np.array([0.0, -0.0204, -0.08])
    cell = f"{d.mean():+.3f} ± {d.std(ddof=1) / np.sqrt(3):.3f} (2 / 1 / 0)"
    assert row == f"| CART | 3 | {cell} |"
    assert "not been run yet" in tables.differences_table(
        {"": scores[["CART"]]}, "EvoTree"
    )


def test_every_variant_can_be_made_and_has_parameters_of_its_own():
    methods = variants.EXPERIMENT.methods
    for name in variants.VARIANTS:
        check_parameters(methods[name])
    first = {}
    descriptions = variants.EXPERIMENT.definition()["methods"].items()
    twins = {name: first.setdefault(checksum(one), name) for name, one in descriptions}
    assert twins == {name: name for name in methods}


RESULTS = Path(__file__).parents[2] / "docs" / "results"
OF_PAPERS = [name for name in STUDIES if load_study(name).measured is not None]


@pytest.mark.parametrize(
    ("metric", "published", "std", "ours", "verdict"),
    [
        ("accuracy", 0.90, 0.02, 0.86, AS_PUBLISHED),
        ("accuracy", 0.90, 0.02, 0.859, WORSE),
        ("accuracy", 0.90, np.nan, 0.91, AS_PUBLISHED),
        ("accuracy", 0.90, np.nan, 0.911, BETTER),
        ("accuracy", 0.90, 0.001, 0.891, AS_PUBLISHED),
        ("test_error", 0.05, np.nan, 0.03, BETTER),
        ("leaves", 20.0, np.nan, 22.0, AS_PUBLISHED),
        ("leaves", 20.0, np.nan, 22.1, WORSE),
        ("leaves", 20.0, 3.0, 14.0, AS_PUBLISHED),
        ("rank by leaves", 1.5, np.nan, 2.0, AS_PUBLISHED),
        ("rank by leaves", 2.5, np.nan, 1.9, BETTER),
    ],
)
def test_the_rule(metric, published, std, ours, verdict):
    assert judge(metric, published, std, ours) == verdict


def test_figures_that_were_recalled_do_not_count():
    published = agreement.load_published("oc1")
    ours = published[agreement.KEY].assign(ours=published["mean"])
    assert set(agreement.agreement(published, ours)["verdict"]) == {agreement.RECALLED}
    read = published.assign(recalled=False)
    assert set(agreement.agreement(read, ours)["verdict"]) == {AS_PUBLISHED}


def test_every_data_set_of_the_papers_has_a_source_and_is_taken():
    lines = agreement.datasets_table().splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")[1:4]] for line in lines]
    assert len(cells) > 30 and all(all(row) for row in cells)


@pytest.mark.parametrize("name", OF_PAPERS)
def test_every_figure_of_ours_has_a_published_one(name):
    study = load_study(name)
    runs = pd.read_csv(study.rows_file(RESULTS))
    ours = study.measured(runs)
    assert len(ours) and not ours.duplicated(agreement.KEY).any()
    published = agreement.load_published(name).set_index(agreement.KEY).index
    assert ours.set_index(agreement.KEY).index.isin(published).mean() > 0.95


@pytest.mark.slow
def test_the_report_in_git_is_written_from_the_rows_in_git(tmp_path):
    for file in RESULTS.glob("*.csv"):
        shutil.copy(file, tmp_path)
    report = agreement.write_reproductions(tmp_path)
    for written in (report, tmp_path / "published.csv"):
        assert written.read_text("utf-8") == (RESULTS / written.name).read_text("utf-8")

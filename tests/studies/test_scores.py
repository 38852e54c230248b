"""Scores and tables of the studies, compared with scikit-learn's and naive ones."""

import shutil
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from evotree.experiments.protocols import KEY
from experiments import agreement, load_study
from experiments.agreement import AS_PUBLISHED, BETTER, WORSE, judge
from experiments.problems import PROBLEMS
from experiments.studies import wodt
from experiments.study import LEAST, TEXTS, auc, clipped_log_loss, probabilities


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


def test_what_has_no_score_is_not_a_number():
    X, y = load_iris(return_X_y=True)
    machine, tree = LinearSVC().fit(X, y), DecisionTreeClassifier().fit(X, y)
    scores = (auc, clipped_log_loss)
    assert np.isnan([score(machine, X, y) for score in scores]).all()
    assert np.isnan(auc(tree, X[y == 0], y[y == 0]))
    assert auc(tree, X, y) == 1.0 and clipped_log_loss(tree, X, y) == 0.0


RESULTS = Path(__file__).parents[2] / "docs" / "results"


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
    figures = agreement.agreement(published.assign(recalled=False), ours)
    assert set(figures["verdict"]) == {AS_PUBLISHED}


def test_wodt_wins_and_loses_by_paired_fits():
    """The rival loses on iris by clear gains, ties on wine by noise, and has too few on glass."""
    gains = {"iris": (0.1, 0.11, 0.1), "wine": (0.1, -0.1, 0.01), "glass": (0.2,)}
    rows = [
        (
            dataset,
            method,
            fold,
            0,
            0.5 + gain * (method == "WODT"),
            9 - (method == "CO2"),
        )
        for dataset, of in gains.items()
        for fold, gain in enumerate(of)
        for method in ("WODT", "CO2")
    ]
    runs = pd.DataFrame(rows, columns=[*KEY, "accuracy", "leaves"])
    accuracy, leaves = wodt.wins_table(runs).splitlines()[2:]
    assert "| 1 / 1 / 0 |" in accuracy and "| 0 / 0 / 2 |" in leaves


def test_figures_of_other_data_do_not_count():
    figures = agreement.all_agreements(RESULTS)
    for study, datasets in agreement.WITH_OTHER_DATA.items():
        is_other = (figures["study"] == study) & figures["dataset"].isin(datasets)
        verdicts = set(figures.loc[is_other, "verdict"])
        assert agreement.OTHER_DATA in verdicts
        assert not verdicts & {AS_PUBLISHED, BETTER, WORSE}


def test_every_data_set_of_the_papers_has_a_source():
    text = (TEXTS / "reproductions.md").read_text(encoding="utf-8")
    for experiment in (load_study(name).experiment for name in agreement.OWN):
        files = experiment.protocol.files
        for name in set(experiment.datasets) - set(PROBLEMS):
            assert f"\n| {files.get(name, name)} | " in text


@pytest.mark.parametrize("name", agreement.OWN)
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
    agreement.write_reproductions(tmp_path)
    for name in ("reproductions.md", "published.csv"):
        written = (tmp_path / name).read_text("utf-8")
        assert written == (RESULTS / name).read_text("utf-8")

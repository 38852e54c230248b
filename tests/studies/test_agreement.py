"""Our figures beside the published ones: what agrees, what is counted, what is written."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from experiments import STUDIES, agreement, load_study
from experiments.agreement import AS_PUBLISHED, BETTER, WORSE, judge

RESULTS = Path(__file__).parents[2] / "docs" / "results"
OF_PAPERS = [name for name in STUDIES if load_study(name).measured is not None]
metrics = st.sampled_from(["accuracy", "test_error", "leaves", "rank by accuracy"])
means = st.floats(0.1, 50.0)


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


def test_what_has_no_figure_of_ours_is_told_apart():
    names = ["table", "dataset", "system", "metric", "mean", "std"]
    rows = [
        ("1", dataset, system, "accuracy", 0.9, np.nan)
        for dataset in ("iris", "moon")
        for system in ("WODT", "C4.5")
    ]
    published = pd.DataFrame([*rows, ("1", "iris", "OC1", "accuracy", 0.9, 0.1)], columns=names)
    runs = pd.DataFrame({"dataset": ["iris", "wine", "moon"], "method": ["WODT", "OC1", "WODT"]})
    runs["accuracy"] = [0.95, 0.9, np.nan]
    ours = agreement.name_as_published(runs, {"accuracy": "1"})
    assert len(ours) == 2
    found = agreement.agreement(published, ours)
    assert found["verdict"].tolist() == [
        BETTER,
        agreement.OTHER_PROGRAM,
        agreement.NO_DATA,
        agreement.OTHER_PROGRAM,
        agreement.NOT_RUN,
    ]
    assert found["difference"][0] == pytest.approx(0.05)


@pytest.mark.parametrize("name", OF_PAPERS)
def test_every_figure_of_ours_has_a_published_one(name):
    study = load_study(name)
    runs = pd.read_csv(study.rows_file(RESULTS))
    ours = study.measured(runs)
    assert len(ours) and not ours.duplicated(agreement.KEY).any()
    published = agreement.load_published(name).set_index(agreement.KEY).index
    assert ours.set_index(agreement.KEY).index.isin(published).mean() > 0.95


def test_the_report_in_git_is_written_from_the_rows_in_git(tmp_path):
    for file in RESULTS.glob("*.csv"):
        shutil.copy(file, tmp_path)
    report = agreement.write_reproductions(tmp_path)
    for written in (report, tmp_path / "published.csv"):
        assert written.read_text("utf-8") == (RESULTS / written.name).read_text("utf-8")

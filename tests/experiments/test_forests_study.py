"""The study of forests: its fits, its folds, and the report from rows of three studies."""

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.datasets import load_iris

from evotree.experiments.protocols import Task
from evotree.experiments.studies import benchmark, forests, regression
from evotree.experiments.studies.study import run_study, write_report


def fake_runs(scores, column, nodes=100):
    """Make rows of five folds from mean scores by data set and method."""
    return pd.DataFrame(
        [
            {
                "dataset": dataset,
                "method": method,
                "fold": fold,
                "seed": 0,
                column: mean + 0.01 * (fold - 2),
                "nodes": nodes,
                "leaves": nodes // 2,
                "terms": nodes,
                "seconds": 0.5,
            }
            for (dataset, method), mean in scores.items()
            for fold in range(5)
        ]
    )


def test_forests_are_run_as_they_come_on_the_folds_of_the_other_studies(tmp_path):
    experiment = forests.make_experiment()
    other = regression.make_experiment(), benchmark.make_experiment()
    rng = np.random.default_rng(0)
    for name, y in (("bodyfat", rng.normal(size=40)), ("housing", rng.normal(size=40))):
        frame = pd.DataFrame(rng.normal(size=(40, 3))).assign(target=y)
        frame.to_csv(tmp_path / f"{name}.csv.gz", index=False)
    for model in (experiment.methods[forests.CLASSES], experiment.methods[forests.TARGETS]):
        told = {name for name, value in model.get_params().items() if value is not None}
        assert model.get_params() == type(model)().get_params() and "random_state" not in told
    for task in experiment.tasks():
        model = experiment.methods[task.method]
        assert (task.dataset in benchmark.BENCHMARK) == is_classifier(model)
    for name in ("bodyfat", "housing"):
        task = Task(name, forests.TARGETS, 2, 0)
        ours = experiment.protocol.take_parts(task, tmp_path, stratified=False)
        theirs = other[0].protocol.take_parts(task, tmp_path, stratified=False)
        np.testing.assert_array_equal(ours.X_test, theirs.X_test)
        np.testing.assert_array_equal(ours.y_test, theirs.y_test)
    states = {one.protocol.random_state(Task("iris", "a", 3, 0)) for one in (experiment, *other)}
    assert len(states) == 1


def test_the_report_has_the_rows_of_other_studies_beside_ours(tmp_path):
    sets = ("iris", "wine", "heart")
    ours = fake_runs({(name, forests.CLASSES): 0.9 for name in sets}, "score", nodes=10)
    ours.to_csv(tmp_path / "forests_runs.csv", index=False)
    report = write_report(forests.STUDY, tmp_path).read_text(encoding="utf-8")
    assert (
        f"15 of {len(forests.make_experiment().tasks())} planned fits" in report
        and "Not run yet." in report
    )
    rivals = {(name, "Forest"): 0.8 for name in (*sets, "car")} | {("iris", "OC1"): 0.1}
    fake_runs(rivals, "accuracy").to_csv(tmp_path / "benchmark_runs.csv", index=False)
    report = write_report(forests.STUDY, tmp_path).read_text(encoding="utf-8")
    assert "| EvoForest | 90.00 | - | - | 10 | 5 | 10 | 0.50 |" in report
    assert "| Forest | 3 | +10.00 ± 0.00 (3 / 0 / 0) | +10.00 ± 0.00 (2 / 0 / 0) |" in report
    assert "OC1" not in report and "| car |" not in report


def test_a_forest_on_a_data_set(tmp_path):
    load_iris(as_frame=True).frame.to_csv(tmp_path / "iris.csv.gz", index=False)
    out, told = tmp_path / "out", {"datasets": ["iris"], "methods": [forests.CLASSES]}
    runs, report = run_study(forests.STUDY, tmp_path, out, **told)
    assert (runs["status"] == "done").all() and len(runs) == 5
    assert runs["score"].min() > 0.8 and (runs["nodes"] == 2 * runs["leaves"] - 30).all()
    assert "| iris |" in report.read_text(encoding="utf-8")

"""The study of variants: overrides relative to any defaults, runs, and the report of its rows."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

from evotree.configuration import check_parameters
from evotree.estimators import EvoTreeClassifier
from evotree.experiments.studies import suites, variant_groups, variants
from evotree.experiments.studies.study import run_study, write_report
from evotree.operators.refinement.policy import Refinement, as_refinement

PLAIN = {"C": 1.0, "penalty": "l2", "noise": 0.0, "teacher": None}
PLAIN = {f"regularization__{name}": value for name, value in PLAIN.items()}


def set_default(monkeypatch, **changed):
    """Let the study see other defaults."""
    defaults = variant_groups.default_parameters() | changed
    monkeypatch.setattr(variant_groups, "default_parameters", lambda: dict(defaults))


def row(dataset, variant, fold, accuracy, **others):
    """Make a row of a run."""
    figures = {"accuracy": accuracy, "train_accuracy": 1.0, "leaves": 4, "seconds": 0.5}
    key = {"dataset": dataset, "method": variant, "fold": fold, "seed": 0}
    return {**key, **figures, "best_fitness": 0.9, **others}


# ---- variants ------------------------------------------------------------------------------------


def test_every_variant_is_a_classifier_that_can_be_made():
    names = [name for group in variants.make_groups() for name in group.variants]
    assert len(set(names)) == len(names)
    for overrides in variants.all_variants().values():
        check_parameters(EvoTreeClassifier().set_params(**overrides))


def test_the_groups_hold_what_was_asked_for():
    groups = {group.title: group for group in variants.make_groups()}
    assert len(groups["Parts"].datasets) == 10
    for group in groups.values():
        assert set(group.datasets) <= set(suites.CHOSEN_ON)
    assert len(groups["Refinement"].variants) == 1 + 2 * len(variant_groups.REFINERS)
    assert "NSGA-II" in groups["Diversity"].variants


def test_refinements_follow_the_default(monkeypatch):
    set_default(monkeypatch, refinement=Refinement({"tao": 3, "oc1": 1}, probability=0.3))
    found = {name: one["refinement"] for name, one in variant_groups.refinements().items()}
    assert found["no refinement"] is None
    assert found["without oc1"].shares() == {"tao": 1.0}
    assert found["wodt alone"].shares() == {"wodt": 1.0}
    assert {one.probability for one in found.values() if one} == {0.3}
    assert as_refinement(found["without wodt"]).shares() == {"tao": 0.75, "oc1": 0.25}
    twins = variants.same_as(variants.all_variants())
    assert twins["without wodt"] == twins["without prune"] == "default"
    assert twins["tao alone"] == "without oc1"


def test_without_the_only_refiner_there_is_none(monkeypatch):
    for name, refinement in (("tao", "tao"), ("oc1", None)):
        set_default(monkeypatch, refinement=refinement)
        assert variant_groups.refinements()[f"without {name}"]["refinement"] is None
        assert variant_groups.refinements()["wodt alone"]["refinement"].shares() == {"wodt": 1.0}
    assert variants.same_as(variants.all_variants())["no refinement"] == "default"


# ---- tasks ---------------------------------------------------------------------------------------


def test_each_setting_is_run_once():
    made = variants.make_experiment()
    described = [str(method) for method in made.definition()["methods"].values()]
    assert len(set(described)) == len(described)
    assert [task.dataset for task in made.tasks() if task.method == "default"] == [
        dataset for dataset in variants.TEN for _ in range(5)
    ]


def test_wine_is_for_the_ablation_only():
    made = variants.make_experiment()
    ablation = variants.make_groups()[0].variants
    twins = variants.same_as(variants.all_variants())
    of_wine = {task.method for task in made.tasks() if task.dataset == "wine"}
    assert of_wine == {"default", *(twins[name] for name in ablation)}


def test_a_twin_is_run_under_the_name_of_the_first(monkeypatch):
    set_default(monkeypatch, regularization__noise=0.2)
    names = [t.method for t in variants.make_experiment().tasks() if t.dataset == "iris"]
    assert "noise 0.2" not in names and names.count("default") == 5


# ---- report --------------------------------------------------------------------------------------


def test_difference_is_over_paired_folds():
    rows = [row("iris", "default", fold, 0.9) for fold in range(5)]
    rows += [row("iris", "NSGA-II", fold, 0.9 + 0.01 * fold) for fold in range(4)]
    rows += [row("wine", "NSGA-II", 0, 0.1), row("wine", "default", 0, 0.9)]
    runs = pd.DataFrame(rows)
    expected = f"+1.50 ± {np.std([0, 1, 2, 3], ddof=1) / 2:.2f}"
    assert variants.difference(runs, "NSGA-II", ["iris"]) == expected
    assert variants.difference(runs, "no seeds", ["iris"]) == ""
    assert variants.difference(runs[runs.fold == 0], "NSGA-II", ["iris"]) == ""


def test_the_table_of_a_group():
    group = variants.Group("A", "B.", {"NSGA-II": {}, "teacher": {}}, ("iris", "glass"))
    rows = [row(name, "default", k, 0.8) for name in group.datasets for k in range(5)]
    rows += [row("iris", "NSGA-II", k, 0.9, leaves=k) for k in range(5)]
    rows += [row("glass", "NSGA-II", k, 0.7) for k in range(4)]
    twins = {"NSGA-II": "NSGA-II", "teacher": "teacher"}
    lines = variants.group_table(pd.DataFrame(rows), group, twins).splitlines()
    assert lines[0].startswith("| variant | iris | glass | mean | difference |")
    assert lines[2] == "| default | 80.0 | 80.0 | 80.00 |  | 100.00 | 0.9000 | 4.0 | 0.50 |"
    assert lines[3] == "| NSGA-II | 90.0 |  |  | +1.11 ± 3.51 |  |  |  |  |" and len(lines) == 4
    assert variants.group_table(pd.DataFrame(rows[:3]), group, twins) == "Not run yet."


def test_the_report_is_written_from_the_rows_alone(monkeypatch, tmp_path):
    set_default(monkeypatch, regularization__noise=0.0, refinement="tao")
    rows = [row(name, "default", k, 0.75) for name in variants.TEN for k in range(5)]
    pd.DataFrame(rows).to_csv(tmp_path / "variants_runs.csv", index=False)
    report = write_report(variants.STUDY, tmp_path).read_text(encoding="utf-8")
    n_planned = len(variants.make_experiment().tasks())
    assert f"50 of {n_planned:,} planned fits." in report
    assert "`regularization__noise=0.0`" in report and "75.00" in report
    assert "The same as *default*: noise 0.0" in report
    assert "The same as *without refinement*: no refinement, without tao." in report


# ---- a real run ----------------------------------------------------------------------------------


def test_two_variants_on_one_data_set(tmp_path, monkeypatch):
    quick = {"max_generations": 5, "population_size": 8, "size_penalty": 0.005}
    set_default(monkeypatch, **quick, **PLAIN)
    X, y = load_iris(return_X_y=True)
    pd.DataFrame(X).add_prefix("x").assign(target=y).to_csv(tmp_path / "iris.csv", index=False)
    some = {"datasets": ["iris"], "methods": ["default", "without refinement"]}
    runs, report = run_study(variants.STUDY, tmp_path, tmp_path / "out", **some)
    assert runs["method"].tolist() == ["default"] * 5 + ["without refinement"] * 5
    assert (runs.accuracy > 0.5).all() and (runs.leaves >= 2).all()
    assert (runs.best_fitness <= runs.train_accuracy + 1e-9).all()
    assert "| without refinement | " in report.read_text(encoding="utf-8")

"""The study of variants: what they override, runs, and the report of whole or partial rows."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from evotree.configuration import check_parameters
from evotree.estimators import EvoTreeClassifier
from evotree.experiments.experiment import checksum
from evotree.experiments.studies import suites, variant_groups, variants
from evotree.experiments.studies.study import run_study, write_report
from tests.quick_models import BRIEF, brief


def rows(dataset, variant, accuracies, **others):
    """Make the rows of the folds of a variant on a data set."""
    made = pd.DataFrame({"accuracy": accuracies, "train_accuracy": 1.0, "fitness": 0.9})
    made = made.assign(complexity=10, seconds=0.5, size_penalty=0.01, term_penalty=0.001, noise=0.1)
    key = {"dataset": dataset, "method": variant, "fold": np.arange(len(made)), "seed": 0}
    return made.assign(**key | others)


def cells(table):
    """Return the cells of a table in Markdown by its first column and its head."""
    head, _, *lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return {line[0]: dict(zip(head, line, strict=True)) for line in lines}


# ---- variants ------------------------------------------------------------------------------------


def test_every_variant_is_a_classifier_that_can_be_made():
    names = [name for group in variants.GROUPS for name in group.variants]
    assert len(set(names)) == len(names)
    for overrides in variants.all_variants().values():
        check_parameters(variants.make_variant(overrides))


def test_no_two_variants_have_the_same_parameters():
    methods = variants.make_experiment().definition()["methods"]
    first = {}
    twins = {name: first.setdefault(checksum(one), name) for name, one in methods.items()}
    assert twins == {name: name for name in methods}


def test_a_part_is_taken_out_and_all_else_is_left():
    default = variants.make_variant({}).get_params()
    for name, overrides in variant_groups.PARTS.items():
        found = variants.make_variant(overrides).get_params()
        # A refinement or regularization in place of None or a name has parameters of its own.
        groups = {key.partition("__")[0] for key in overrides}
        others = {key for key in default if key.partition("__")[0] not in groups}
        assert {key: found[key] for key in others} == {key: default[key] for key in others}, name


# ---- tasks ---------------------------------------------------------------------------------------


def test_the_parts_are_compared_on_the_readable_studys_data_sets_all_else_on_small_ones():
    left_out = set(suites.THIRTY) - set(variants.DATASETS)
    assert len(variants.DATASETS) == len(set(variants.DATASETS)) == 28
    assert left_out == {"letter", "usps"}
    tasks = variants.make_experiment().tasks()
    assert len(set(tasks)) == len(tasks) <= 1900
    order = [variants.DATASETS.index(task.dataset) for task in tasks]
    assert order == sorted(order)
    places = {}
    for task in tasks:
        places.setdefault(task.method, []).append((task.dataset, task.fold))
    everywhere = [(name, fold) for name in variants.DATASETS for fold in range(3)]
    for name in ("default", *variant_groups.PARTS):
        assert places.pop(name) == everywhere
    small = [place for place in everywhere if place[0] in variants.SMALL]
    assert len(small) == 21 and all(found == small for found in places.values())
    assert len(places) == len(variants.all_variants()) - 1 - len(variant_groups.PARTS)


def test_noise_is_none_with_rows_of_a_teacher():
    X, y = load_iris(return_X_y=True)
    plain = brief(max_generations=0, regularization__noise=0.2).fit(X, y)
    taught = brief(max_generations=0, regularization__teacher="ensemble").fit(X, y)
    assert (variants.noise(plain), variants.noise(taught)) == (0.2, None)
    assert variants.size_penalty(plain) == BRIEF["size_penalty"]
    assert variants.term_penalty(plain) == BRIEF["term_penalty"]


# ---- differences ---------------------------------------------------------------------------------


def test_differences_are_those_of_a_loop_over_the_folds():
    rng = np.random.default_rng(0)
    runs = pd.concat(
        [
            rows(dataset, variant, rng.random(3), fitness=rng.random(3), seconds=rng.random(3) + 1)
            for dataset in ("wine", "iris", "glass")
            for variant in ("default", "NSGA-II")
        ]
    )
    # glass lacks a fold of the variant; the penalties differ in one fold of wine, in all of iris.
    runs = runs[(runs.dataset != "glass") | (runs.method == "default") | (runs.fold > 0)]
    is_own = runs.method == "NSGA-II"
    runs.loc[is_own & (runs.dataset == "wine") & (runs.fold == 1), "term_penalty"] = 0.5
    runs.loc[is_own & (runs.dataset == "iris"), "noise"] = None
    shuffled = runs.sample(frac=1.0, random_state=1)
    found = variants.differences(variants.whole_fits(shuffled), "NSGA-II")
    assert set(found.index) == {"iris", "wine"}
    by_key = runs.set_index(["dataset", "method", "fold"]).sort_index()
    for dataset in found.index:
        own, default = by_key.loc[dataset, "NSGA-II"], by_key.loc[dataset, "default"]
        pairs = [(own.loc[fold], default.loc[fold]) for fold in range(3)]
        assert found.accuracy[dataset] == pytest.approx(
            np.mean([one.accuracy - other.accuracy for one, other in pairs])
        )
        assert np.exp(found.seconds[dataset]) == pytest.approx(
            np.prod([one.seconds / other.seconds for one, other in pairs]) ** (1 / 3)
        )
    at = [0, 2]
    own, default = by_key.loc["wine", "NSGA-II"], by_key.loc["wine", "default"]
    expected = np.mean(own.fitness.to_numpy()[at] - default.fitness.to_numpy()[at])
    assert found.fitness["wine"] == pytest.approx(expected) and np.isnan(found.fitness["iris"])


@pytest.mark.parametrize("missing", ["default", "NSGA-II"])
def test_there_is_no_difference_without_the_other(missing):
    runs = pd.concat([rows("iris", name, [0.9] * 3) for name in ("default", "NSGA-II")])
    fits = variants.whole_fits(runs[runs.method != missing])
    assert variants.differences(fits, "NSGA-II").empty


# ---- report --------------------------------------------------------------------------------------


def test_the_table_of_a_group():
    group = variants.Group("A", "B.", {"NSGA-II": {}, "no seeds": {}}, ("iris", "glass", "wine"))
    runs = [rows(name, "default", [0.8] * 3) for name in group.datasets]
    runs += [rows("iris", "NSGA-II", [0.8, 0.9, 1.0], complexity=16, seconds=2.0)]
    runs += [rows("glass", "NSGA-II", [0.72] * 3, noise=0.0, train_accuracy=0.98)]
    runs += [rows("wine", "NSGA-II", [0.1] * 2)]
    fits = variants.whole_fits(pd.concat(runs))
    assert cells(variants.group_table(fits, group)) == {
        "NSGA-II": {
            "variant": "NSGA-II",
            "data sets": "2",
            "accuracy": "81.00",
            "difference": "+1.00 ± 9.00 (1 / 0 / 1)",
            "on training rows": "-1.00",
            "fitness": "+0.00 (1)",
            "complexity": "+3.0",
            "seconds": "× 2.00",
        }
    }
    sentence = variants.default_sentence(fits, group)
    assert sentence.startswith("The default, on 3 of 3 data sets: accuracy 80.00, on training rows")
    some = variants.whole_fits(pd.concat(runs[1:]))
    assert variants.group_table(some, group).count("\n") == 2
    assert "on 2 of 3 data sets" in variants.default_sentence(some, group)
    none = variants.whole_fits(pd.concat(runs[3:]))
    assert variants.group_table(none, group) == "Not run yet."
    assert variants.default_sentence(none, group) == "The default has not been run yet."


def test_the_report_is_written_from_the_rows_of_a_part(tmp_path):
    runs = [rows(name, "default", [0.75] * 3) for name in ("iris", "wine", "page-blocks")]
    runs += [rows(name, "no evolution", [0.74] * 3) for name in ("iris", "page-blocks")]
    runs += [rows("iris", "tao alone", [0.78] * 3, noise=None)]
    pd.concat(runs).to_csv(tmp_path / "variants_runs.csv", index=False)
    report = write_report(variants.STUDY, tmp_path).read_text(encoding="utf-8")
    n_planned = len(variants.make_experiment().tasks())
    assert f"18 of {n_planned:,} planned fits." in report
    assert "`regularization__noise='auto'`" in report
    assert "The default, on 3 of 28 data sets: accuracy 75.00" in report
    assert "The default, on 1 of 7 data sets: accuracy 75.00" in report
    assert "| no evolution | 2 | 74.00 | -1.00 ± 0.00 (0 / 0 / 2) |" in report
    assert "| tao alone | 1 | 78.00 | +3.00 (1 / 0 / 0) | +0.00 |  | +0.0 |" in report
    assert report.count("Not run yet.") == len(variants.GROUPS) - 2


# ---- a real run ----------------------------------------------------------------------------------


def test_two_variants_on_one_data_set(tmp_path, monkeypatch):
    quick = BRIEF | {"max_generations": 5, "population_size": 8}
    monkeypatch.setattr(variant_groups, "EvoTreeClassifier", partial(EvoTreeClassifier, **quick))
    X, y = load_iris(return_X_y=True)
    pd.DataFrame(X).add_prefix("x").assign(target=y).to_csv(tmp_path / "iris.csv", index=False)
    some = {"datasets": ["iris"], "methods": ["default", "no evolution"]}
    runs, report = run_study(variants.STUDY, tmp_path, tmp_path / "out", **some)
    assert runs["method"].tolist() == ["default"] * 3 + ["no evolution"] * 3
    assert (runs.accuracy > 0.5).all() and (runs.leaves >= 2).all()
    by_fold = runs.set_index(["method", "fold"])
    # The seeds are the same, and are in the first population.
    gains = by_fold.fitness["default"] - by_fold.fitness["no evolution"]
    assert (gains >= -1e-9).all() and (runs.noise == 0.1).all()
    shown = report.read_text(encoding="utf-8")
    assert "| no evolution | 1 | " in shown and f"{-100.0 * gains.mean():+.2f} (1) |" in shown

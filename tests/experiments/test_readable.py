"""The study of readable trees: what fits a budget, trees of other programs, reports of a part."""

import sys
import types

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from evotree.dataset import Dataset
from evotree.engine.pareto import FrontTree
from evotree.estimators import EvoTreeClassifier
from evotree.experiments.protocols import stratified_folds
from evotree.experiments.studies import readable
from evotree.experiments.studies import readable_trees as made
from evotree.experiments.studies.study import run_study, write_report
from tests.quick_models import BRIEF

BUDGETS = (1, 2, 3, 5, 8, 20, np.inf)


def noisy_rows(seed=0, n_rows=120, n_features=3, n_classes=2):
    """Draw rows of classes that overlap."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    return rng.normal(size=(n_rows, n_features)) + 0.8 * y[:, None], y


def quick_methods():
    return {
        "CART": made.CartTrees(),
        "Linear": made.LinearTrees(Cs=(0.1, 1.0)),
        "TAO": made.TaoTrees(depths=(1, 3), Cs=(1.0, 0.1, 0.01)),
    }


every = pytest.mark.parametrize("name", list(quick_methods()))


# ---- trees within a budget -----------------------------------------------------------------------


@every
def test_trees_grow_in_complexity_from_a_single_leaf(name):
    X, y = load_wine(return_X_y=True)
    model = quick_methods()[name].fit(X, np.array(list("abc"))[y])
    sizes = [tree.complexity for tree in model.trees_]
    assert sizes[0] == 1 and sizes == sorted(sizes) == model.complexities_.tolist()
    assert sizes[-1] > 3
    chosen = [made.tree_within(model, budget) for budget in BUDGETS]
    found = [tree.complexity for tree in chosen]
    assert all(size <= budget for size, budget in zip(found, BUDGETS, strict=True))
    right = [model.n_right_[model.best_within(budget)] for budget in BUDGETS]
    assert right == sorted(right) and right[-1] == model.n_right_.max()
    assert chosen[-1] is model.tree_
    assert set(model.predict(X)) <= set("abc")
    np.testing.assert_array_equal(model.predict(X), made.predict_within(model, X))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([2, 3]))
def test_the_tree_of_a_budget_is_that_of_an_exhaustive_search(seed, n_classes):
    """Scikit-learn prunes and cross-validates every tree between two links of its path."""
    X, y = noisy_rows(seed, 90, n_classes=n_classes)
    model = made.CartTrees(random_state=seed).fit(X, y)
    folds = stratified_folds(y, 5, seed)
    path = DecisionTreeClassifier(random_state=seed).cost_complexity_pruning_path(X, y).ccp_alphas
    best = {}
    # Links of one alpha are cut together here, one by one there.
    links = np.unique(path.clip(0.0).round(12))
    for alpha in (*np.sqrt(links[1:] * links[:-1]), 1.0):
        tree = DecisionTreeClassifier(random_state=seed, ccp_alpha=alpha)
        n_right = np.count_nonzero(cross_val_predict(tree, X, y, cv=folds) == y)
        size = tree.fit(X, y).tree_.node_count
        for budget in BUDGETS:
            if size <= budget:
                best[budget] = max(best.get(budget, (-1, 0)), (n_right, -size))
    for budget in BUDGETS[1:]:
        n_right, size = best[budget]
        at = model.best_within(budget)
        assert (model.n_right_[at], -model.complexities_[at]) == (n_right, size)


def test_a_pruning_is_that_of_scikit_learn():
    X, y = noisy_rows(3, 200, 4, 3)
    cart = DecisionTreeClassifier(random_state=0)
    model = made.CartTrees()
    (tree,) = model.counted(X, y, y.max() + 1)
    path = cart.cost_complexity_pruning_path(X, y).ccp_alphas
    middles = (path[1:] + path[:-1]) / 2.0
    fresh = np.random.default_rng(1).normal(size=(300, 4))
    for alpha, pruned in zip(
        middles, made.prunings([tree], [(0, a) for a in middles]), strict=True
    ):
        expected = cart.set_params(ccp_alpha=alpha).fit(X, y)
        assert pruned.n_nodes == expected.tree_.node_count == pruned.complexity
        np.testing.assert_array_equal(made.predicted_codes(pruned, fresh), expected.predict(fresh))


def test_many_large_prunings_are_thinned(monkeypatch):
    X, y = noisy_rows(5, 600)
    (tree,) = made.CartTrees().counted(X, y, y.max() + 1)
    whole = made.CartTrees().penalties(tree)
    monkeypatch.setattr(made, "BUDGETS", (5,))
    monkeypatch.setattr(made, "MAX_LARGE", 4)
    thinned = made.CartTrees().penalties(tree)
    assert len(thinned) < len(whole) and set(thinned) <= set(whole)
    before, after = (
        [one.complexity for one in made.prunings([tree], [(0, alpha) for alpha in alphas])]
        for alphas in (whole, thinned)
    )
    assert after == sorted(after, reverse=True) and sum(size > 10 for size in after) == 4
    assert {1} < {size for size in before if size <= 10} == {size for size in after if size <= 10}


def test_classes_that_are_missing_in_a_fold():
    X, y = noisy_rows(2, 60)
    y[0] = 2
    model = made.CartTrees().fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.trees_[-1].values.shape[1] == 3 and model.n_right_.max() > np.bincount(y).max()


def test_the_area_is_the_mean_over_budgets_that_are_even_on_a_logarithmic_scale():
    X, y = noisy_rows(6, 300)
    model = made.CartTrees().fit(X[:200], y[:200])
    budgets = np.array(readable.AREA_BUDGETS)
    assert (budgets[0], budgets[-1]) == (made.BUDGETS[0], made.BUDGETS[-1])
    np.testing.assert_allclose(budgets[1:] / budgets[:-1], np.sqrt(2.0), atol=0.02)
    at = [readable.accuracy_within(model, X[200:], y[200:], budget) for budget in budgets]
    assert readable.area(model, X[200:], y[200:]) == pytest.approx(np.mean(at))
    assert len(set(at)) > 1


# ---- trees of other programs ---------------------------------------------------------------------


def test_a_linked_tree_becomes_arrays():
    """The second child of the root has children; rows below a threshold go to the first child."""
    inner = (np.array([0.0, 2.0]), 1.0, "b", "c")
    nodes = {"root": (np.array([1.0, -1.0]), 0.5, "a", "inner"), "inner": inner}
    tree = made.flatten("root", nodes.get, 2).validate()
    assert tree.subtree_size.tolist() == [5, 1, 3, 1, 1] and tree.complexity == 3 + 3
    rows = np.array([[0.5, 0.0], [0.6, 0.0], [9.0, 0.6]])
    assert tree.apply(rows).tolist() == [1, 3, 4]
    counted = made.with_counts(tree, rows, np.array([1, 0, 0]), 2)
    np.testing.assert_allclose(counted.values[:, 0], [2 / 3, 0, 1, 1, 1])
    assert counted.n_node_samples.tolist() == [3, 1, 2, 1, 1]


@pytest.mark.parametrize(
    ("package", "version", "kind"),
    [("stree", "1.4.2", made.STreeTrees), ("obliquetree", "1.1.1", made.PairTrees)],
)
def test_a_missing_package_says_what_to_install(package, version, kind, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install {package}=={version}"):
        kind().fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_trees_of_stree_predict_as_the_package_does(n_classes):
    stree = pytest.importorskip("stree")
    X, y = noisy_rows(7, 200, 3, n_classes)
    scaled = made.MinMaxScaler((-1.0, 1.0)).fit(X)
    fresh, _ = noisy_rows(8, 400, 3, n_classes)
    trees = made.STreeTrees(Cs=(1.0, 30.0)).counted(X, y, y.max() + 1)
    for C, tree in zip((1.0, 30.0), trees, strict=True):
        expected = stree.Stree(C=C, random_state=0).fit(scaled.transform(X), y)
        assert (tree.n_nodes, tree.n_leaves) == expected.nodes_leaves()
        found = made.predicted_codes(tree, fresh)
        np.testing.assert_array_equal(found, expected.predict(scaled.transform(fresh)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_of_obliquetree_predict_as_the_package_does(n_classes):
    package = pytest.importorskip("obliquetree")
    X, y = noisy_rows(9, 200, 4, n_classes)
    fresh, _ = noisy_rows(10, 400, 4, n_classes)
    model = package.Classifier(n_pair=2, random_state=0).fit(X, y)
    tree = made.with_counts(made.read_obliquetree(model, 4), X, y, n_classes)
    np.testing.assert_array_equal(made.predicted_codes(tree, fresh), model.predict(fresh))
    widths = np.count_nonzero(tree.weights, axis=1)
    assert widths.max() == 2 and tree.n_leaves > 3


# ---- EvoTree -------------------------------------------------------------------------------------


def member(quality, n_leaves, root_width):
    """Make a member of a front: a chain of splits, the root's on several features."""
    weights = np.zeros((2 * n_leaves - 1, 10))
    inner = np.arange(0, 2 * n_leaves - 2, 2)
    weights[inner, 0] = 1.0
    weights[0, :root_width] = 1.0
    size = np.ones(2 * n_leaves - 1, dtype=np.int32)
    size[inner] = 2 * n_leaves - 1 - inner
    tree = made.ObliqueTree(weights, np.zeros(len(size)), size, np.zeros((len(size), 2)))
    return FrontTree.of(tree.validate(), quality, "made up")


@pytest.mark.parametrize(
    ("size_penalty", "term_penalty", "budget", "expected"),
    [
        (0.0, 0.0, np.inf, 4),  # the best quality
        (0.0, 0.0, 11, 3),
        (0.0, 0.0, 10, 2),
        (0.01, 0.0, np.inf, 3),  # 0.02 for each leaf
        (0.0, 0.02, np.inf, 2),  # the last two have 6 and 7 terms more than splits
        (0.0, 0.02, 5, 1),
        (1.0, 0.0, np.inf, 0),
    ],
)
def test_the_front_is_asked_by_the_penalties_of_the_fit(
    size_penalty, term_penalty, budget, expected
):
    shapes = [(0.5, 1, 0), (0.8, 2, 1), (0.9, 5, 1), (0.95, 3, 7), (0.96, 4, 8)]
    front = [member(*shape) for shape in shapes]
    assert [tree.complexity for tree in front] == [1, 3, 9, 11, 14]
    model = types.SimpleNamespace(
        pareto_front_=front, size_penalty_=size_penalty, term_penalty_=term_penalty
    )
    assert made.tree_within(model, budget) is front[expected]


def test_restarts_take_the_time_and_do_not_evolve(monkeypatch):
    X, y = noisy_rows(11, 150, 3, 3)
    seeds = []
    make = made.make_toolbox
    monkeypatch.setattr(
        made,
        "make_toolbox",
        lambda *given, **named: seeds.append(named["random_state"]) or make(*given, **named),
    )
    first = EvoTreeClassifier(**BRIEF | {"max_generations": 0}).fit(X, y)
    model = made.RestartsClassifier(**BRIEF | {"time_limit": 2.0}).fit(X, y)
    assert model.n_generations_ == 0 and len(seeds) == len(set(seeds)) > 0
    # The first trees of all are those of a fit without evolution.
    best = [max(tree.quality for tree in one.pareto_front_) for one in (model, first)]
    assert best[0] >= best[1]


def test_restarts_need_a_limit():
    with pytest.raises(ValueError, match="time_limit=None: restarts need a number"):
        made.RestartsClassifier(**BRIEF).fit(*load_iris(return_X_y=True))


def test_restarts_refine_first_trees_as_long_as_that_helps(monkeypatch):
    X, y = noisy_rows(12, 200, 4, 2)
    dataset = Dataset.from_arrays(X, y, np.ones(len(y)), None, "standard")
    config = EvoTreeClassifier(**BRIEF | {"max_generations": 0, "time_limit": 2.0, "init": None})
    plain = made.search(dataset, config)
    make, gains = made.make_toolbox, {}

    def make_counting(*given, **named):
        toolbox = make(*given, **named)
        refine = toolbox.refine

        def counted(tree):
            (refined,) = refine(tree)
            gains.setdefault((named["random_state"], id(tree)), []).append(refined.outcome.gain)
            return (refined,)

        toolbox.register("refine", counted)
        return toolbox

    monkeypatch.setattr(made, "make_toolbox", make_counting)
    found = made.restarts(dataset, config, made.time.perf_counter())
    best = [max(one.quality for one in result.run.pareto_front) for result in (found, plain)]
    assert best[0] > best[1]
    first, *_ = sequences = list(gains.values())
    assert max(map(len, sequences)) > 2 and first[-1] == 0.0
    assert all(gain > 0.0 for sequence in sequences for gain in sequence[:-1])


# ---- report --------------------------------------------------------------------------------------


def fake_runs(accuracies, n_folds=5):
    """Make rows from accuracies at the budgets and of the best, by data set and method."""
    rows = []
    for (dataset, method), scores in accuracies.items():
        for fold in range(n_folds):
            row = {"dataset": dataset, "method": method, "fold": fold, "seed": 0, "seconds": 2.0}
            values = dict(zip((*made.BUDGETS, "best"), scores, strict=True))
            for budget in made.BUDGETS:
                row[f"accuracy_{budget}"] = values[budget] + 0.01 * (fold - 2)
                row[f"complexity_{budget}"] = budget - 1
                row[f"terms_{budget}"], row[f"leaves_{budget}"] = budget // 2, budget // 2
            row |= {"accuracy": values["best"] + 0.01 * (fold - 2), "train_accuracy": 0.99}
            row |= {"fitness": 0.6 + 0.1 * (method == "search")}
            row |= {"area": 0.7, "complexity": 100 + len(method), "terms": 80, "leaves": 20}
            rows.append(row)
    return pd.DataFrame(rows)


LOW, HIGH = (0.5, 0.6, 0.7, 0.8, 0.8, 0.8), (0.6, 0.7, 0.8, 0.8, 0.8, 0.75)


def test_means_are_of_whole_data_sets():
    runs = fake_runs({("iris", "CART"): LOW, ("wine", "CART"): HIGH, ("iris", "EvoTree"): HIGH})
    runs = pd.concat([runs, fake_runs({("wine", "EvoTree"): HIGH}, n_folds=4)])
    means = readable.complete_means(runs, "accuracy_10")
    assert list(means) == ["CART", "EvoTree"] and list(means.index) == ["iris", "wine"]
    np.testing.assert_allclose(means, [[0.6, 0.7], [0.7, np.nan]])
    lines = readable.budgets_table(runs).splitlines()
    assert lines[2].startswith(
        "| CART | 2 | 55.00 | 65.00 | 75.00 | 80.00 | 80.00 | 77.50 | 104.0 |"
    )
    assert lines[3].startswith("| EvoTree | 1 | 60.00 |")


def test_differences_are_paired_over_data_sets():
    runs = fake_runs(
        {
            ("usps", "CART"): LOW,
            ("usps", "EvoTree"): HIGH,
            ("wine", "CART"): HIGH,
            ("wine", "EvoTree"): HIGH,
            ("pima", "CART"): LOW,
        }
    )
    (line,) = readable.against_table(runs, "CART").splitlines()[2:]
    both = "+5.00 ± 5.00 (1 / 1 / 0)"
    tied = "+0.00 ± 0.00 (0 / 2 / 0)"
    best = "-2.50 ± 2.50 (0 / 1 / 1)"
    assert line == f"| EvoTree | {both} | {both} | {both} | {tied} | {tied} | {best} |"
    (line,) = readable.against_table(runs, "EvoTree", reverse=True).splitlines()[2:]
    assert line == f"| CART | {both} | {both} | {both} | {tied} | {tied} | {best} |"
    (line,) = readable.bounds_table(runs).splitlines()[2:]
    assert line.startswith(f"| EvoTree | 2 | 75.00 | 77.50 | {best} | 107.0 | 104.0 | 20.0 |")
    section = readable.unbounded_section(runs)
    assert "Mean complexity: 107.0 on 2 data sets." in section
    assert "Difference to tuned\nCART: -2.50 ± 2.50 (0 / 1 / 1)." in section
    assert "More than 1 point below it:\nusps.\n" in section
    assert section.splitlines()[6].startswith("| usps | -5.0 |")


def test_search_beside_restarts_and_first_trees():
    kinds = {("iris", "search"): HIGH, ("iris", "restarts"): LOW, ("iris", "seeds"): HIGH}
    runs = fake_runs(kinds | {("wine", "search"): LOW, ("wine", "seeds"): LOW})
    lines = readable.worth_table(runs).splitlines()
    differences = "+10.00 (1 / 0 / 0) | +0.00 (0 / 1 / 0) |"
    assert lines[2] == f"| accuracy at 10 | 1 | 70.00 | 60.00 | 70.00 | {differences}"
    differences = "+10.00 (1 / 0 / 0) | +10.00 (1 / 0 / 0) |"
    assert lines[-1] == f"| its fitness | 1 | 70.00 | 60.00 | 60.00 | {differences}"
    assert readable.worth_table(runs[runs["method"] != "seeds"]) == "Not run yet."


def test_gaps_are_sorted_and_of_the_data_sets_that_all_three_have():
    runs = fake_runs({(name, one): LOW for name in ("iris", "wine") for one in readable.WORTH})
    at = runs.set_index(["dataset", "method"]).index
    # Search is 10 points fitter than the first trees on both, and 4 better on wine.
    runs.loc[at == ("wine", "search"), "accuracy"] += 0.04
    runs.loc[at == ("wine", "restarts"), "fitness"] -= 0.02
    runs = pd.concat([runs, fake_runs({("glass", "search"): HIGH, ("glass", "seeds"): LOW})])
    text = readable.gaps_section(runs)
    assert "on\n2 of 2 data sets, and the accuracy with it on\n1 of these." in text
    assert text.splitlines()[-2:] == [
        "| iris | +10.00 | +10.00 | +0.00 | +0.00 | +0.00 |",
        "| wine | +6.00 | +10.00 | -2.00 | +4.00 | +0.00 |",
    ]
    assert readable.gaps_section(runs[runs["method"] != "restarts"]) == "Not run yet."


@pytest.mark.parametrize(
    "methods", [readable.METHODS, ("CART",), ("EvoTree", "restarts"), ("STree", "CART", "EvoTree")]
)
def test_the_report_is_written_from_the_rows_of_a_part(methods, tmp_path):
    names = [(dataset, method) for dataset in ("iris", "usps") for method in methods]
    rows = fake_runs(dict.fromkeys(names[:-1], LOW))
    rows = pd.concat([rows, fake_runs({names[-1]: HIGH}, n_folds=2)])
    rows.to_csv(tmp_path / "readable_runs.csv", index=False)
    (tmp_path / "readable_heart.txt").write_text("if x1 <= 3\n")
    report = write_report(readable.STUDY, tmp_path).read_text(encoding="utf-8")
    n_planned = 30 * 5 * len(readable.METHODS)
    assert f"{len(rows)} of {n_planned:,} planned fits" in report
    assert "### heart\n\n```text\nif x1 <= 3\n```" in report and "### sick" not in report
    assert not any(f"\n| {method} |" in report for method in readable.WORTH)
    n_common = 2 if methods[-1] in readable.WORTH else 1
    assert f"Means over the {n_common} data sets" in report
    assert (tmp_path / "readable_fronts.png").stat().st_size > 5000


def test_nothing_is_drawn_without_a_common_data_set(tmp_path):
    runs = fake_runs({("iris", "CART"): LOW, ("wine", "EvoTree"): LOW})
    assert "No data set" in readable.draw_fronts(runs, tmp_path) and not list(tmp_path.iterdir())


# ---- runs ----------------------------------------------------------------------------------------


def test_the_study_has_thirty_data_sets_the_small_ones_first():
    tasks = readable.make_experiment().tasks()
    assert len(set(tasks)) == len(tasks) == 30 * 5 * len(readable.METHODS)
    assert {task.dataset for task in tasks[: 5 * len(readable.METHODS)]} == {"iris"}


def test_a_study_of_two_methods(tmp_path, monkeypatch):
    X, y = load_wine(return_X_y=True)
    for name in ("wine", *readable.PRINTED):
        pd.DataFrame(X).add_prefix("x").assign(target=y).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    make_methods = readable.make_methods
    quick = EvoTreeClassifier(**BRIEF)
    monkeypatch.setattr(
        readable, "make_methods", lambda: make_methods() | quick_methods() | {"EvoTree": quick}
    )
    monkeypatch.setattr(readable, "EvoTreeClassifier", lambda **_: quick)
    out = tmp_path / "out"
    some = {"datasets": ["wine"], "methods": ["CART", "EvoTree"]}
    runs, report = run_study(readable.STUDY, tmp_path, out, **some)
    assert (runs["status"] == "done").all() and len(runs) == 10
    assert (runs["accuracy_80"] > 0.8).all()
    assert (runs["accuracy_5"][runs["method"] == "CART"] > 0.6).all()
    for budget in made.BUDGETS:
        assert (runs[f"complexity_{budget}"] <= budget).all()
        total = runs[f"terms_{budget}"] + runs[f"leaves_{budget}"]
        assert (runs[f"complexity_{budget}"] == total).all()
    assert (runs["complexity"] == runs["leaves"] + runs["terms"]).all()
    assert runs["area"].between(0.5, 1.0).all()
    is_evolved = runs["method"] == "EvoTree"
    assert (runs["fitness"].notna() == is_evolved).all() and (runs["fitness"][is_evolved] < 1).all()
    text = report.read_text(encoding="utf-8")
    assert "### sick\n\n```text\nEvoTree: " in text and (out / "readable_sick.png").exists()
    kept = out / "readable_wdbc.txt"
    kept.write_text("kept")
    readable.draw_trees(tmp_path, out)
    assert kept.read_text() == "kept"

"""What single studies have of their own: rows of fits, problems, sizes, variants and ranks."""

import ast
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold, train_test_split

from evotree import EvoTreeClassifier
from evotree.configuration import check_parameters
from evotree.experiments.experiment import describe_method
from evotree.experiments.protocols import Task
from evotree.experiments.store import checksum
from experiments import load_study, suites
from experiments.problems import PROBLEMS, make_problem
from experiments.studies import finds, operators, pmlb, srbench, tao
from experiments.studies.operators import (
    BASE,
    FACTORS,
    METHODS,
    at_end,
    fitness_within,
    method_name,
)
from experiments.study import load_public
from experiments.suites import OFFICIAL
from tests.quick_models import FREE, evolved
from tests.strategies import seeds

# ---- rows of fits --------------------------------------------------------------------------------


def write_numbers(folder, name, n_rows=60, target=None):
    """Write a data set whose only feature is the number of the row."""
    y = np.arange(n_rows) % 3 if target is None else target
    table = pd.DataFrame({"x": np.arange(float(n_rows)), "target": y})
    table.to_csv(folder / f"{name}.csv", index=False)
    return y


def parts_of(study, dataset, folder, seed=0, fold=OFFICIAL, stratified=True):
    """Return the rows of a fit."""
    protocol = load_study(study).experiment.protocol
    return protocol.take_parts(Task(dataset, "", fold, seed), folder, stratified)


def numbers_of(*place):
    """Return the numbers of the training rows and of the test rows of a fit."""
    parts = parts_of(*place)
    return parts.X_train[:, 0].astype(int), parts.X_test[:, 0].astype(int)


@pytest.mark.parametrize("most", [10, 10_000])
def test_rows_are_drawn_as_srbench_draws_them(tmp_path, monkeypatch, most):
    monkeypatch.setattr(srbench, "MAX_TRAIN_ROWS", most)
    y = np.random.default_rng(0).normal(50.0, 7.0, 61)
    write_numbers(tmp_path, "toy", 61, y)
    for seed in srbench.SEEDS[:2]:
        parts = parts_of("srbench", "toy", tmp_path, seed)
        train, test = train_test_split(
            np.arange(61), train_size=0.75, test_size=0.25, random_state=seed
        )
        if most < len(train):
            stream = np.random.RandomState(seed)
            train = train[stream.choice(len(train), size=most, replace=False)]
        np.testing.assert_array_equal(parts.X_train[:, 0], train)
        # Of the training rows mean and deviation are 0 and 1.
        scaled = (y - y[train].mean()) / y[train].std()
        np.testing.assert_allclose(parts.y_train, scaled[train])
        np.testing.assert_allclose(parts.y_test, scaled[test])


def test_rows_are_those_of_the_published_folds_of_pmlb(tmp_path):
    (tmp_path / pmlb.FOLDER).mkdir()
    y = np.random.default_rng(0).choice([3, 1, 7], 61)
    write_numbers(tmp_path / pmlb.FOLDER, "iris", 61, y)
    tasks = [task for task in pmlb.EXPERIMENT.tasks() if task.dataset == "iris"]
    folds = StratifiedKFold(4, shuffle=True, random_state=42).split(y, y)
    for task, (train, test) in zip(tasks, folds, strict=True):
        numbers = numbers_of("pmlb", "iris", tmp_path, task.seed, task.fold)
        assert [*map(list, numbers)] == [[*train], [*test]]
        assert pmlb.EXPERIMENT.protocol.random_state(task) == 0


def test_tao_draws_letter_anew_for_each_fit(tmp_path, monkeypatch):
    monkeypatch.setitem(tao.DRAWN, "letter", {"train_size": 30})
    y = write_numbers(tmp_path, "letter")
    drawn = [numbers_of("tao", "letter", tmp_path, seed) for seed in (0, 1)]
    for train, test in drawn:
        assert np.bincount(y[train]).tolist() == [10, 10, 10]
        assert sorted([*train, *test]) == list(range(60))
    assert set(drawn[0][0]) != set(drawn[1][0])


def test_gea_odt_has_the_parts_of_its_paper(tmp_path, monkeypatch):
    """Waveform is drawn for each fit, and sat has the official parts under its name of a file."""
    monkeypatch.setattr("experiments.suites.OFFICIAL_TRAIN_ROWS", {"satimage": 40})
    write_numbers(tmp_path, "satimage")
    train, test = numbers_of("gea_odt", "sat", tmp_path)
    assert train.tolist() == [*range(40)] and test.tolist() == [*range(40, 60)]
    y = write_numbers(tmp_path, "waveform21", 4_500)
    drawn = [numbers_of("gea_odt", "waveform", tmp_path, seed) for seed in (0, 1)]
    for train, test in drawn:
        assert np.bincount(y[train]).tolist() == [200] * 3 and len(test) == 3_000
        assert not {*train} & {*test}
    assert set(drawn[0][0]) != set(drawn[1][0])


def test_some_data_sets_need_no_folder(monkeypatch):
    """A missing folder is named for the others."""
    protocol, X = load_study("wodt").experiment.protocol, pd.DataFrame({"x": range(3)})
    assert protocol.load("iris", None).X.shape == (150, 4)

    def fetch(data_id, **options):
        assert data_id == 15
        return X, pd.Series(["benign", "malignant", "benign"], dtype="category")

    monkeypatch.setattr("experiments.study.fetch_openml", fetch)
    load_public.cache_clear()
    assert protocol.load("breast", None).y[1] == "malignant"
    load_public.cache_clear()
    with pytest.raises(ValueError, match="data_home .* of the data set 'letter'"):
        protocol.load("letter", None)


# ---- synthetic problems --------------------------------------------------------------------------


def bands(weights, thresholds, leaves):
    """Return a balanced tree over the bands between parallel hyperplanes."""
    if not thresholds:
        return leaves[0]
    m = len(thresholds) // 2
    lower = bands(weights, thresholds[:m], leaves[: m + 1])
    upper = bands(weights, thresholds[m + 1 :], leaves[m + 1 :])
    return weights, thresholds[m], lower, upper


def tree_of_stripes(n, degrees=45.0):
    weights = np.array([np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))])
    edges = [k * weights.sum() / n for k in range(1, n)]
    return bands(weights, edges, [k % 2 for k in range(n)])


def tree_of_board(*labels):
    halves = [bands((1.0, -1.0), [0.0], labels[i : i + 2]) for i in (0, 2)]
    return (1.0, 1.0), 1.0, *halves


def tree_of_house():
    """What lies outside an edge is a leaf at once."""
    tree, slope = 1, 0.29 / 0.488
    for weights, threshold in (
        ((1.0, 0.0), 0.988),
        ((-1.0, 0.0), -0.012),
        ((0.0, -1.0), -0.008),
        ((slope, 1.0), 0.99 + 0.5 * slope),
        ((-slope, 1.0), 0.99 - 0.5 * slope),
    ):
        tree = weights, threshold, tree, 0
    return tree


def tree_of_checkerboard():
    """The column of the turned board first, and then the row."""
    along, across = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2.0)
    quarters = np.array([-0.25, 0.0, 0.25])
    rows = [
        bands(
            across,
            list(quarters + 0.5 * sum(across)),
            [(4 * i + j) % 8 for j in range(4)],
        )
        for i in range(4)
    ]
    return bands(along, list(quarters + 0.5 * sum(along)), rows)


TREES = {
    "chessboard2": tree_of_board(0, 1, 1, 0),
    "chessboard4": tree_of_board(0, 1, 2, 3),
    "zebra1": tree_of_stripes(4),
    "zebra2": tree_of_stripes(3),
    "zebra3": tree_of_stripes(8, 10.0),
    "house": tree_of_house(),
    "LS10": ((1.0,) * 5 + (-1.0,) * 5, 0.0, 1, 0),
    "POL": tree_of_stripes(5),
    "RCB": tree_of_checkerboard(),
}


def n_nodes(tree):
    return 1 + sum(map(n_nodes, tree[2:])) if isinstance(tree, tuple) else 1


def classify(tree, X):
    if not isinstance(tree, tuple):
        return np.full(len(X), tree)
    weights, threshold, left, right = tree
    goes_left = X @ np.asarray(weights) <= threshold
    return np.where(goes_left, classify(left, X), classify(right, X))


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_optimal_tree_has_no_error(name):
    X, y = make_problem(name, 20_000, random_state=1)
    np.testing.assert_array_equal(classify(TREES[name], X), y)
    assert n_nodes(TREES[name]) == PROBLEMS[name].optimal_nodes


@pytest.mark.parametrize("name", PROBLEMS)
def test_samples_have_their_classes_and_region_and_follow_their_seed(name):
    problem = PROBLEMS[name]
    X, y = make_problem(name, random_state=0)
    assert X.shape == (problem.default_samples, problem.n_features) and len(y) == len(X)
    X, y = make_problem(name, 20_000, random_state=7)
    assert len(np.bincount(y)) == problem.n_classes and np.bincount(y).min() > 1000
    np.testing.assert_allclose(X.mean(axis=0), 0.5, atol=0.02)
    np.testing.assert_allclose(X.var(axis=0), 1 / 12, atol=0.005)
    again, _ = make_problem(name, 20_000, np.random.default_rng(7))
    assert (again == X).all()
    others = [make_problem(name, 50, seed)[0] for seed in (8, None, None)]
    assert len({rows.tobytes() for rows in (X[:50], *others)}) == 4


def test_a_name_that_is_none_is_refused():
    with pytest.raises(ValueError, match="'zebra9'.*allowed: chessboard2, .*RCB"):
        make_problem("zebra9")


# ---- PMLB ----------------------------------------------------------------------------------------


def test_a_family_is_on_one_side_with_all_its_copies():
    chosen, confirming, new = (set(one) for one in pmlb.PARTS.values())
    assert new < confirming and chosen | confirming == {*suites.PMLB}
    sides = [{suites.family(name) for name in side} for side in (chosen, confirming)]
    assert not sides[0] & sides[1] and not chosen & confirming
    known = {*suites.PMLB, *suites.GROUPS["in all"], "waveform"}
    for first, copies in suites.COPIES.items():
        assert {*copies} <= known and {*map(suites.family, (first, *copies))} == {first}
    assert len({*map(suites.family, new)} & {*suites.CONFIRMING}) == 12


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_on_a_score_is_told_from_a_tree(n_classes):
    X, y = make_classification(
        150, n_informative=4, n_classes=n_classes, flip_y=0.2, random_state=0
    )
    returned = {
        leaves: pmlb.KINDS[
            pmlb.kind(evolved(EvoTreeClassifier, **FREE, leaves=leaves).fit(X, y))
        ]
        for leaves in ("constant", "score")
    }
    assert "score" not in returned["constant"] and "score" in returned["score"]


# ---- SRBench -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "n"),
    [
        ("-0.5", 1),
        ("x[3]", 1),
        ("-x[12] - 2.0 * x[0]", 5),
        ("if not x[0] + 0.4 * x[1] <= 9.3:\n    y = 1.0\ny = -2.0", 10),
        ("-1.5 if s < -1.5 else s if s <= 2.0 else 2.0", 4),
        ("max(x[3] - 52.0, 0.0)", 5),
        ("log(max(x[3], 1.0))", 4),
    ],
)
def test_pieces_of_code_have_so_many_nodes(code, n):
    assert srbench.count_nodes(ast.parse(code)) == n


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 12), min_size=1, max_size=5))
def test_who_is_behind_whom(figures):
    """A method is behind those that are as good by both ranks, and better by one."""
    r2, size = (
        pd.DataFrame(part, columns=list("abcdef"), dtype=float)
        for part in np.split(np.array(figures), 2, axis=1)
    )
    ranks = srbench.mean_ranks({"r2": r2, "size": size})
    np.testing.assert_allclose(ranks["r2"], rankdata(-r2, axis=1).mean(axis=0))
    np.testing.assert_allclose(ranks["size"], rankdata(size, axis=1).mean(axis=0))
    for _, own in ranks.iterrows():
        before = []
        for other, rank in ranks.iterrows():
            gains = (own["r2"] - rank["r2"], own["size"] - rank["size"])
            if min(gains) >= 0.0 and max(gains) > 0.0:
                before.append(other)
        assert own["behind"] == ", ".join(before)
    assert (ranks["behind"] == "").any()


def test_a_fit_worse_than_the_mean_counts_as_0():
    row = {
        "dataset": "1027_ESL",
        "method": srbench.EVOTREE,
        "r2": -1.0,
        "expression_nodes": 9,
        "complexity": 2,
        "seconds": 1.5,
    }
    r2 = srbench.figures_by_method(pd.DataFrame([row]))["r2"]
    assert r2.loc["1027_ESL", srbench.EVOTREE] == 0.0


# ---- what evolution finds ------------------------------------------------------------------------


def cost_of(X, y, depth, n_rows):
    """Return the cost of the best tree, row by row and tree by tree."""
    wrong = len(y) - max(np.bincount(y, minlength=1))
    costs = [wrong / n_rows + 2.0 * finds.PRICE]
    for column in X.T if depth else ():
        parts = [
            cost_of(X[is_in], y[is_in], depth - 1, n_rows)
            for is_in in (column, ~column)
        ]
        costs.append(sum(parts))
    return min(costs)


@given(seeds, st.integers(0, 2))
def test_no_tree_of_binary_columns_costs_less(seed, depth):
    rng = np.random.default_rng(seed)
    X, y = rng.random((25, 4)) < 0.5, rng.integers(0, 3, 25)
    shares = (y[:, np.newaxis] == np.arange(3)) / 25
    expected = cost_of(X, y, depth, 25)
    assert finds.least_cost(X, shares, depth) == pytest.approx(expected)


def test_trees_that_are_grown_again_are_as_fit_as_the_optimum_at_most():
    X, y = make_problem("zebra2", 200, 0)
    search = clone(finds.METHODS[finds.GREEDY]).set_params(seconds=0.2).fit(X, y)
    optimum = 1.0 - finds.PRICE * PROBLEMS["zebra2"].optimal_nodes
    assert 0.5 < search.fitness_ <= optimum and search.processor_ >= 0.2
    binary = np.random.default_rng(0).random((60, 5)) < 0.5
    y = (binary[:, 0] & binary[:, 1]).astype(int)
    exact = clone(finds.METHODS[finds.EXACT]).fit(1.0 * binary, y)
    name = finds.GREEDY + finds.SUFFIX
    found = clone(finds.METHODS[name]).set_params(seconds=0.2).fit(1.0 * binary, y)
    assert found.fitness_ == pytest.approx(exact.fitness_)
    assert exact.fitness_ == pytest.approx(1.0 - 5.0 * finds.PRICE)
    assert found.tree_.n_leaves == 3


# ---- operators -----------------------------------------------------------------------------------


def test_fitness_is_read_at_budgets(monkeypatch):
    monkeypatch.setattr(operators, "to_frame", pd.DataFrame)
    # The clock of the records began 0.5 seconds after the search.
    records = enumerate([(1.0, 0.25), (2.0, 0.5), (4.0, 0.75)])
    model = SimpleNamespace(
        history_=[{"gen": n, "seconds": s, "fitness_best": f} for n, (s, f) in records],
        seconds_={"making first trees": 1.0, "evolving": 3.5},
    )
    by_generation = [fitness_within(model, "gen", n) for n in (0, 1, 2, 3)]
    np.testing.assert_array_equal(by_generation, [0.25, 0.5, 0.75, np.nan])
    by_second = [fitness_within(model, "seconds", s) for s in (1.4, 1.5, 2.5, 9.0)]
    np.testing.assert_array_equal(by_second, [np.nan, 0.25, 0.5, 0.75])
    assert at_end(model, "gen") == 2 and at_end(model, "seconds", 0) == 1.5


@pytest.mark.parametrize("factor", FACTORS)
def test_a_variant_differs_from_the_base_in_what_it_says_alone(factor):
    base = METHODS[BASE]
    values = base.get_params()
    for name, changed in FACTORS[factor].items():
        variant = METHODS[method_name(factor, name)]
        check_parameters(variant)
        assert describe_method(variant) != describe_method(base)
        back = clone(variant).set_params(**{key: values[key] for key in changed})
        assert describe_method(back) == describe_method(base)


def test_no_two_methods_are_the_same():
    first = {}
    described = operators.EXPERIMENT.definition()["methods"].items()
    twins = {name: first.setdefault(checksum(one), name) for name, one in described}
    assert twins == {name: name for name in METHODS}

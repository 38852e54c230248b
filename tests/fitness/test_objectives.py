"""Objectives: qualities as scikit-learn computes them from the rows, and what errors cost."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import metrics

from evotree.dataset import Dataset
from evotree.fitness.costs import FeatureCosts
from evotree.fitness.leaves import F1, MCC, rank_risk, score_labels
from evotree.fitness.objectives import (
    CLASS_OBJECTIVES,
    TARGET_OBJECTIVES,
    ConfusionScore,
    OwnObjective,
    as_objective,
)
from evotree.fitness.penalties import PenalizedAccuracy
from evotree.operators.pruning.held_out import node_losses
from evotree.operators.pruning.penalized import prune, prune_marked
from evotree.operators.structure.reduced import leaf_table, loss_unit, row_losses
from evotree.operators.structure.splice import make_individual
from tests.reference import leaves as naive
from tests.strategies import populations, seeds, with_random_zeros

SUMS = ("balanced_accuracy", "log_loss", "brier", "cost")
"""Objectives of classes that are sums over rows."""


def remade(individual, dataset):
    """Return the individual on the rows of a data set that has an objective."""
    return make_individual(dataset, *individual.nodes()[:3])


def judged(drawn, name, **parameters):
    dataset, individuals = drawn
    dataset = dataset.evolved_for(as_objective(name, dataset, **parameters))
    return dataset, [remade(one, dataset) for one in individuals]


def random_costs(n_classes, seed):
    costs = np.random.default_rng(seed).integers(1, 9, (n_classes, n_classes)).astype(float)
    return costs - np.diag(np.diag(costs))


class_populations = populations().filter(lambda drawn: drawn[0].n_classes > 1)
two_classes = populations().filter(lambda drawn: drawn[0].n_classes == 2)


@given(class_populations)
def test_qualities_of_labels_are_scikit_learns_scores_of_the_rows(drawn):
    scores = {
        "balanced_accuracy": metrics.balanced_accuracy_score,
        "f1_macro": lambda y, p, sample_weight: metrics.f1_score(
            y, p, average="macro", sample_weight=sample_weight, labels=classes, zero_division=0.0
        ),
        "mcc": metrics.matthews_corrcoef,
    }
    classes = np.arange(drawn[0].n_classes)
    for name, score in scores.items():
        dataset, individuals = judged(drawn, name)
        for one in individuals:
            predicted = one.labels[naive.leaf_of_rows(one)]
            expected = score(dataset.y, predicted, sample_weight=dataset.sample_weight)
            assert one.quality == pytest.approx(expected, abs=1e-9)


@given(two_classes)
def test_f1_is_that_of_the_second_class(drawn):
    dataset, individuals = judged(drawn, "f1")
    for one in individuals:
        predicted = one.labels[naive.leaf_of_rows(one)]
        weight = {"sample_weight": dataset.sample_weight, "zero_division": 0.0}
        assert one.quality == pytest.approx(metrics.f1_score(dataset.y, predicted, **weight))


@given(class_populations)
def test_the_area_is_that_of_the_shares_of_the_leaves(drawn):
    dataset, individuals = judged(drawn, "roc_auc")
    present = np.flatnonzero(np.bincount(dataset.y, minlength=dataset.n_classes))
    assume(len(present) == dataset.n_classes)
    for one in individuals:
        shares = one.values[naive.leaf_of_rows(one)]
        areas = [
            metrics.roc_auc_score(dataset.y == c, shares[:, c], sample_weight=dataset.sample_weight)
            for c in present
        ]
        assert one.quality == pytest.approx(np.mean(areas))
        assert areas[0] == pytest.approx(naive.area(one.counts, one.subtree_size, present[0]))


@given(class_populations, st.sampled_from(("log_loss", "brier")))
def test_proper_scores_are_shares_of_the_loss_that_is_saved(drawn, name):
    dataset, individuals = judged(drawn, name)
    assume(np.ptp(dataset.y) > 0)
    prior = individuals[0].counts[0] / dataset.total_weight
    for one in individuals:
        shares = (one.counts + prior) / (one.counts.sum(axis=1, keepdims=True) + 1.0)
        rows = shares[naive.leaf_of_rows(one)]
        right = np.eye(dataset.n_classes)[dataset.y]
        losses = {
            "log_loss": lambda p, right=right: -np.log((p * right).sum(axis=-1)),
            "brier": lambda p, right=right: ((p - right) ** 2).sum(axis=-1),
        }[name]
        weight = dataset.sample_weight
        expected = 1.0 - weight @ losses(rows) / (weight @ losses(np.tile(prior, (len(rows), 1))))
        assert one.quality == pytest.approx(expected)


@given(class_populations, seeds)
def test_labels_cost_the_least_and_the_quality_counts_costs_in_mean_errors(drawn, seed):
    n_classes = drawn[0].n_classes
    costs = random_costs(n_classes, seed)
    dataset, individuals = judged(drawn, "cost", cost_matrix=costs)
    for one in individuals:
        assert (one.counts @ costs).min(axis=1) == pytest.approx(
            (one.counts @ costs)[np.arange(len(one)), one.labels]
        )
        paid = dataset.sample_weight @ costs[dataset.y, one.labels[naive.leaf_of_rows(one)]]
        errors = costs[dataset.y].sum(axis=1) / (n_classes - 1)
        assert one.quality == pytest.approx(1.0 - paid / (dataset.sample_weight @ errors))


@given(class_populations, st.floats(0.01, 1000.0))
def test_equal_costs_are_the_accuracy(drawn, cost):
    n_classes = drawn[0].n_classes
    equal = judged(drawn, "cost", cost_matrix=cost * (1.0 - np.eye(n_classes)))[1]
    for one, plain in zip(equal, drawn[1], strict=True):
        assert one.quality == pytest.approx(plain.quality)


@given(two_classes)
def test_no_labels_have_a_higher_f1(drawn):
    for one in drawn[1]:
        assume(one.n_leaves <= 8)
        found = score_labels(one.counts, one.subtree_size, F1, 1)[2]
        assert found == pytest.approx(naive.best_score(one, f1_of), abs=1e-9)


def f1_of(confusion):
    (_, fp), (fn, tp) = confusion
    return 2.0 * tp / (2.0 * tp + fp + fn) if tp + fp + fn else 0.0


SIZES = np.array([3, 1, 1], dtype=np.int32)


@given(class_populations, st.sampled_from((F1, MCC)))
def test_no_leaf_alone_can_be_labelled_better(drawn, measure):
    name = {F1: "f1_macro", MCC: "mcc"}[measure]
    dataset, individuals = judged(drawn, name)
    scores = {
        F1: lambda y, p: metrics.f1_score(
            y,
            p,
            average="macro",
            labels=np.arange(dataset.n_classes),
            sample_weight=dataset.sample_weight,
            zero_division=0.0,
        ),
        MCC: lambda y, p: metrics.matthews_corrcoef(y, p, sample_weight=dataset.sample_weight),
    }
    for one in individuals:
        leaf = naive.leaf_of_rows(one)
        for k in np.flatnonzero(one.is_leaf):
            for c in np.flatnonzero(one.counts[k]):
                labels = one.labels.copy()
                labels[k] = c
                assert scores[measure](dataset.y, labels[leaf]) <= one.quality + 1e-9


@given(class_populations, st.sampled_from(SUMS), seeds)
def test_what_is_cut_takes_its_risk_from_the_quality(drawn, name, seed):
    costs = random_costs(drawn[0].n_classes, seed) if name == "cost" else None
    dataset, individuals = judged(drawn, name, cost_matrix=costs)
    for one in individuals:
        risk = one.objective.risk(one)
        assert one.quality == pytest.approx(1.0 - risk[one.is_leaf].sum())
        for k in np.flatnonzero(~one.is_leaf):
            cut = prune_marked(one.clone(), dataset, np.arange(len(one)) == k)[0]
            below = np.arange(k, k + one.subtree_size[k])
            gone = risk[below[one.is_leaf[below]]].sum() - risk[k]
            assert cut.quality == pytest.approx(one.quality + gone)


@given(class_populations)
def test_what_is_cut_takes_its_risk_from_the_area(drawn):
    dataset, individuals = judged(drawn, "roc_auc")
    for one in individuals:
        risk = one.objective.risk(one)
        for k in np.flatnonzero(~one.is_leaf):
            cut = prune_marked(one.clone(), dataset, np.arange(len(one)) == k)[0]
            below = np.arange(k, k + one.subtree_size[k])
            gone = risk[below[one.is_leaf[below]]].sum() - risk[k]
            assert cut.quality == pytest.approx(one.quality + gone)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("unit", [1.0, 0.37])
@pytest.mark.parametrize("seed", range(5))
def test_the_risks_of_larger_trees_are_those_of_all_pairs(n_classes, unit, seed):
    rng = np.random.default_rng(seed)
    n_leaves = int(rng.integers(2, 40))
    sizes, counts = random_counts(rng, n_leaves, n_classes, unit)
    leaf_risk = rng.random(len(sizes))
    risk = rank_risk(counts, sizes, leaf_risk)
    gone = naive.area_risk(counts, sizes)
    for k, size in enumerate(sizes):
        below = np.arange(k, k + size)[sizes[k : k + size] == 1]
        assert risk[k] == pytest.approx(gone[k] + leaf_risk[below].sum(), abs=1e-12)


def random_counts(rng, n_leaves, n_classes, unit):
    """Return sizes and class weights of a random tree, many leaves of which have equal shares."""
    if n_leaves == 1:
        return np.ones(1, dtype=np.int32), unit * (1.0 + rng.integers(0, 4, (1, n_classes)))
    n_left = int(rng.integers(1, n_leaves))
    sides = [random_counts(rng, n, n_classes, unit) for n in (n_left, n_leaves - n_left)]
    sizes, counts = (np.concatenate(parts) for parts in zip(*sides, strict=True))
    whole = sides[0][1][:1] + sides[1][1][:1]
    size = np.array([len(sizes) + 1], dtype=np.int32)
    return np.concatenate([size, sizes]), np.concatenate([whole, counts])


@given(class_populations, st.sampled_from(SUMS), st.floats(0.0, 0.1), st.floats(0.0, 0.05))
def test_pruning_keeps_the_fittest_part_of_a_tree(drawn, name, size_penalty, term_penalty):
    dataset, individuals = judged(drawn, name)
    fitness = PenalizedAccuracy(size_penalty, term_penalty)
    for one in individuals:
        pruned = prune(one.clone(), dataset, size_penalty, term_penalty)[0]
        for k in np.flatnonzero(~one.is_leaf):
            cut = prune_marked(one.clone(), dataset, np.arange(len(one)) == k)[0]
            assert fitness(pruned)[0] >= fitness(cut)[0] - 1e-9
        assert fitness(pruned)[0] >= fitness(one)[0] - 1e-9


@given(class_populations, st.sampled_from(CLASS_OBJECTIVES))
def test_a_table_is_finite_and_free_where_all_is_right(drawn, name):
    assume(name != "f1" or drawn[0].n_classes == 2)
    dataset, individuals = judged(drawn, name)
    for one in individuals:
        table = leaf_table(one, dataset.n_classes)
        assert table.shape == one.counts.shape
        assert np.isfinite(table).all() and (table >= -1e-12).all()
        losses = row_losses(one, dataset, one)
        assert losses.shape == dataset.y.shape and np.isfinite(losses).all()
        of_nodes, _ = node_losses(dataset.to_raw(one.to_tree()), raw(dataset))
        assert np.isfinite(of_nodes).all()


def raw(dataset):
    labels = dataset.classes[dataset.y]
    units = Dataset.in_raw_units(np.array(dataset.raw), labels, dataset.classes)
    return units.evolved_for(dataset.objective)


def test_the_costs_of_errors_are_the_slopes_of_a_score():
    counts = np.array([[60.0, 40.0], [50.0, 10.0], [10.0, 30.0]])
    labels, costs, score = score_labels(counts, SIZES, F1, 1)
    assert labels[1:].tolist() == [0, 1]
    assert score == pytest.approx(2 * 30 / (2 * 30 + 10 + 10))
    # Parambath et al. 2014: an error on the positives costs 2 - F, one on the others F.
    assert costs[1, 0] / costs[0, 1] == pytest.approx((2.0 - score) / score, rel=1e-4)
    for a, b in ((0, 1), (1, 0)):
        moved = counts.copy()
        side = {0: (1, 2), 1: (2, 1)}[a]
        moved[side[0], a] -= 0.01
        moved[side[1], a] += 0.01
        changed = score_labels(moved, SIZES, F1, 1)[2]
        assert score - changed == pytest.approx(costs[a, b] * 0.01 / 100.0, rel=1e-2)


target_populations = populations(task="regression")


@given(target_populations, st.sampled_from(TARGET_OBJECTIVES[1:]), st.floats(0.05, 0.95))
def test_qualities_of_targets_are_scikit_learns_shares(drawn, name, level):
    dataset, individuals = drawn
    level = 0.5 if name == "absolute_error" else level
    assume(name != "poisson" or dataset.target_mean > 0.0)
    dataset, individuals = judged(drawn, name, level=level)
    for one in individuals:
        raw = dataset.target_mean + dataset.target_scale * dataset.y
        values = dataset.target_mean + dataset.target_scale * one.values[:, 0]
        predicted, weight = values[naive.leaf_of_rows(one)], dataset.sample_weight
        if name == "poisson":
            lowest = dataset.target_scale * 1e-9
            constant = np.average(raw, weights=weight)
            counts = np.maximum(raw, 0.0)
            lost, whole = (
                0.5 * metrics.mean_poisson_deviance(counts, p, sample_weight=weight)
                for p in (np.maximum(predicted, lowest), np.full(len(raw), constant))
            )
        else:
            constant = naive.quantile(raw, weight, level)
            lost, whole = (
                metrics.mean_pinball_loss(raw, p, alpha=level, sample_weight=weight)
                for p in (predicted, np.full(len(raw), constant))
            )
        if whole > 1e-9 * abs(raw).max():
            assert one.quality == pytest.approx(1.0 - lost / whole, abs=1e-6)
            share = whole * dataset.total_weight / dataset.target_scale
            assert loss_unit(dataset) == pytest.approx(share)


@given(populations(), seeds)
def test_items_are_paid_once_on_a_path(drawn, seed):
    rng = np.random.default_rng(seed)
    dataset, individuals = drawn
    n_features, n_items = dataset.X.shape[1], int(rng.integers(0, 6))
    costs = FeatureCosts(rng.random((n_features, n_items)) < 0.4, rng.random(n_items))
    for individual in individuals:
        tree = with_random_zeros(individual, dataset, seed)
        expected = [
            naive.path_price(tree, k, costs.is_part, costs.prices) for k in range(len(tree))
        ]
        assert costs.of_paths(tree) == pytest.approx(expected)


def test_features_cost_what_their_columns_and_groups_do():
    costs = FeatureCosts.of({"a": 2.0, ("a", "b"): 0.5, 2: 1.0}, ["a", "b", "c"], [0, 0, 1, 2])
    assert costs.is_part.tolist() == [[1, 1, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert costs.prices.tolist() == [2.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([1.0, 2.0], "shape"),
        ([1.0, -2.0, 0.0], r"features\[1\]=-2.0"),
        ({"a": np.nan}, "features"),
        ({"d": 1.0}, "names 'd'"),
        ({("a", 7): 1.0}, "names 7"),
        ({"a": "dear"}, "'dear'"),
        ({"a": 1.0, 0: 2.0}, "names 0.*each once"),
        ({(): 1.0}, "at least one"),
    ],
)
def test_wrong_costs_of_features_are_named(given, named):
    with pytest.raises(ValueError, match=named):
        FeatureCosts.of(given, ["a", "b", "c"], [0, 1, 2])


CLASSES = Dataset.from_arrays(np.arange(6.0)[:, None], [0, 1, 2, 0, 1, 2])
TARGETS = Dataset.from_arrays(np.arange(3.0)[:, None], [-1.0, 2.0, 3.0], task="regression")


@pytest.mark.parametrize(
    ("dataset", "objective", "parameters", "named"),
    [
        (CLASSES, "f2", {}, "objective='f2'"),
        (CLASSES, "f1", {}, "3 classes"),
        (CLASSES, "poisson", {}, "objective='poisson'"),
        (TARGETS, "accuracy", {}, "objective='accuracy'"),
        (TARGETS, "poisson", {}, "targets from -1 to 3"),
        (TARGETS, max, {}, "callables are for classes"),
        (CLASSES, "cost", {"cost_matrix": np.ones((2, 2))}, "matrix=.*3 rows of 3"),
        (CLASSES, "cost", {"cost_matrix": -np.ones((3, 3))}, "matrix=.*at least 0"),
        (CLASSES, "cost", {"cost_matrix": np.eye(3)}, "at least one error"),
        (CLASSES, "cost", {"cost_matrix": [["a"]]}, "matrix"),
    ],
)
def test_wrong_objectives_are_named(dataset, objective, parameters, named):
    with pytest.raises(ValueError, match=named):
        as_objective(objective, dataset, **parameters)


@pytest.mark.parametrize("returned", [np.nan, np.inf, "much", None, (), (0.5, np.nan)])
def test_what_a_callable_returns_is_checked(returned):
    def strange(counts):
        return returned

    tree = make_individual(CLASSES, np.zeros((1, 1)), np.zeros(1), np.ones(1, dtype=np.int32))
    with pytest.raises(ValueError, match="objective=strange returned"):
        OwnObjective(strange).quality(tree)


@given(class_populations)
def test_a_callable_sees_the_leaves_and_their_rows(drawn):
    dataset, individuals = drawn

    def right(counts, leaves):
        sums = np.zeros(counts.shape)
        np.add.at(sums, (leaves.leaf, leaves.y), leaves.sample_weight)
        np.testing.assert_allclose(sums, counts)
        return float(counts.max(axis=1).sum() / counts.sum())

    dataset = dataset.evolved_for(as_objective(right, dataset))
    for individual in individuals:
        assert remade(individual, dataset).quality == pytest.approx(individual.quality)


def test_scores_of_a_single_class_are_those_of_scikit_learn():
    one_class = Dataset.from_arrays(np.arange(3.0)[:, None], ["a", "a", "a"])
    leaf = np.zeros((1, 1)), np.zeros(1), np.ones(1, dtype=np.int32)
    for name, expected in (("f1_macro", 1.0), ("mcc", 0.0), ("roc_auc", 1.0), ("cost", 1.0)):
        dataset = one_class.evolved_for(as_objective(name, one_class))
        assert make_individual(dataset, *leaf).quality == expected
    assert ConfusionScore(F1).labels(make_individual(one_class, *leaf)).tolist() == [0]

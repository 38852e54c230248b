"""Losses: what each registered one has to be, and what is said of some of them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics

from evotree.configuration import Cost, Quantile
from evotree.dataset import Dataset
from evotree.fitness.base import (
    LINES,
    ORDER,
    OUTPUTS,
    FeatureCosts,
    FitnessQualityComplexity,
    PenalizedAccuracy,
    leaf_table,
    loss_unit,
    quality_and_complexity,
)
from evotree.fitness.leaves import F1, score_labels
from evotree.fitness.objectives import (
    CLASS_OBJECTIVES,
    LOSSES,
    TARGET_OBJECTIVES,
    ConfusionScore,
    OwnObjective,
    as_objective,
    compose,
)
from evotree.fitness.probabilities import LEAST, STARTS, log_losses, quick_shares
from evotree.operators.constraints import MonotonicConstraint
from evotree.operators.losses import row_losses
from evotree.operators.pruning import prune, prune_marked
from evotree.operators.structure.splice import make_individual
from evotree.tree import SoftSides
from tests.reference import leaves as naive
from tests.reference.pruning import node_losses
from tests.strategies import any_populations, populations, seeds, with_random_zeros

each_loss = pytest.mark.parametrize("name", LOSSES)
quickly = settings(max_examples=8)


def evolved(name, drawn, seed=0):
    """Return rows for a loss, and individuals on them that are evolved for it."""
    dataset, individuals = drawn
    rng, n = np.random.default_rng(seed), dataset.n_classes
    costs = rng.integers(1, 9, (n, n)) * (1.0 - np.eye(n)) if n else None
    asked = {"cost": Cost(costs), "quantile": Quantile(rng.uniform(0.05, 0.95))}
    # Not by `as_objective`, which leaves the accuracy and the squared error to the search.
    objective = LOSSES[name].named(name, dataset, asked.get(name))
    return with_objective(dataset, objective, individuals)


def with_objective(dataset, objective, individuals):
    dataset = dataset.evolved_for(objective)
    return dataset, [make_individual(dataset, *one.nodes()[:3]) for one in individuals]


def of_leaves(dataset, individuals):
    """Return rows and individuals that are judged by class shares, without soft sides."""
    objective = replace(dataset.objective, is_soft=False)
    return with_objective(dataset, objective, individuals)


def populations_for(name):
    """Return what draws rows that a loss is for, with trees."""
    if LOSSES[name].is_of_classes:
        most = 2 if name == "f1" else 9
        return populations().filter(lambda drawn: 1 < drawn[0].n_classes <= most)
    return populations(task="regression").filter(
        lambda drawn: drawn[0].target_mean > 0.0
    )


def raw_targets(dataset):
    return dataset.target_mean + dataset.target_scale * dataset.y


# ---- the quality, as scikit-learn computes it from the rows --------------------------------------


def of_labels(score, **options):
    def quality(dataset, labels):
        return score(dataset.y, labels, sample_weight=dataset.sample_weight, **options)

    return quality


def f1_macro(dataset, labels):
    classes = {"labels": np.arange(dataset.n_classes), "zero_division": 0.0}
    return of_labels(metrics.f1_score, average="macro", **classes)(dataset, labels)


def saved_cost(dataset, labels):
    costs, weight = np.array(dataset.objective.costs), dataset.sample_weight
    of_errors = costs[dataset.y].sum(axis=1) / (dataset.n_classes - 1)
    return 1.0 - weight @ costs[dataset.y, labels] / (weight @ of_errors)


def saved(loss, constant):
    """Return the share of the loss of a constant that predictions save."""

    def quality(dataset, predicted):
        y, weight = raw_targets(dataset), dataset.sample_weight
        whole = loss(dataset, y, np.full(len(y), constant(dataset, y, weight)))
        if whole <= 1e-9 * abs(y).max():
            return None
        return 1.0 - loss(dataset, y, predicted) / whole

    return quality


def pinball(dataset, y, predicted):
    level, weight = dataset.objective.level, dataset.sample_weight
    return metrics.mean_pinball_loss(y, predicted, alpha=level, sample_weight=weight)


def poisson(dataset, y, predicted):
    y, predicted = (
        np.maximum(y, 0.0),
        np.maximum(predicted, 1e-9 * dataset.target_scale),
    )
    return metrics.mean_poisson_deviance(
        y, predicted, sample_weight=dataset.sample_weight
    )


def squares(dataset, y, predicted):
    return dataset.sample_weight @ (y - predicted) ** 2


def mean(dataset, y, weight):
    return np.average(y, weights=weight)


def quantile(dataset, y, weight):
    return naive.quantile(y, weight, dataset.objective.level)


TRUTH = {
    "accuracy": of_labels(metrics.accuracy_score),
    "balanced_accuracy": of_labels(metrics.balanced_accuracy_score),
    "cost": saved_cost,
    "f1": of_labels(metrics.f1_score, zero_division=0.0),
    "f1_macro": f1_macro,
    "mcc": of_labels(metrics.matthews_corrcoef),
    "squared_error": saved(squares, mean),
    "absolute_error": saved(pinball, quantile),
    "quantile": saved(pinball, quantile),
    "poisson": saved(poisson, mean),
}
"""Qualities by what rows are predicted: labels, or targets."""

OF_SHARES = ("log_loss", "brier", "roc_auc")
"""Losses of the shares of leaves, which have truths of their own below."""

each_prediction = pytest.mark.parametrize("name", TRUTH)


def test_every_loss_has_a_truth():
    assert {*TRUTH, *OF_SHARES} == {*LOSSES}


def predictions(dataset, individual):
    """Return what each node predicts: a label, or a raw target."""
    if dataset.n_classes:
        return individual.labels
    return dataset.target_mean + dataset.target_scale * individual.values[:, 0]


@pytest.mark.slow
@each_prediction
@quickly
@given(st.data(), seeds)
def test_qualities_are_those_of_the_rows_and_no_leaf_can_do_better(name, data, seed):
    dataset, individuals = evolved(name, data.draw(populations_for(name)), seed)
    for one in individuals:
        predicted, leaf = predictions(dataset, one), naive.leaf_of_rows(one)
        quality = TRUTH[name](dataset, predicted[leaf])
        if quality is None:
            continue
        assert one.quality == pytest.approx(quality, abs=1e-6)
        for k in np.flatnonzero(one.is_leaf)[:4]:
            if dataset.n_classes:
                others = np.flatnonzero(one.counts[k])
            else:
                others = [*raw_targets(dataset)[leaf == k][:3], predicted[k] + 0.1]
            for other in others:
                changed = predicted.copy()
                changed[k] = other
                assert TRUTH[name](dataset, changed[leaf]) <= one.quality + 1e-6


@pytest.mark.parametrize("name", ["log_loss", "brier"])
@quickly
@given(st.data())
def test_proper_scores_are_shares_of_the_loss_that_is_saved(name, data):
    dataset, individuals = of_leaves(*evolved(name, data.draw(populations_for(name))))
    assume(np.ptp(dataset.y) > 0)
    right, weight = np.eye(dataset.n_classes)[dataset.y], dataset.sample_weight
    losses = {
        "log_loss": lambda p: -np.log(np.maximum(LEAST, (p * right).sum(axis=-1))),
        "brier": lambda p: ((p - right) ** 2).sum(axis=-1),
    }[name]
    prior = individuals[0].counts[0] / dataset.total_weight
    for one in individuals:
        shares = (one.counts + prior) / (one.counts.sum(axis=1, keepdims=True) + 1.0)
        rows = shares[naive.leaf_of_rows(one)]
        whole = weight @ losses(np.tile(prior, (len(rows), 1)))
        assert one.quality == pytest.approx(1.0 - weight @ losses(rows) / whole)


@quickly
@given(st.data())
def test_the_area_is_that_of_the_shares_of_the_leaves(data):
    drawn = evolved("roc_auc", data.draw(populations_for("roc_auc")))
    dataset, individuals = of_leaves(*drawn)
    assume(len(np.unique(dataset.y)) == dataset.n_classes)
    weights = np.bincount(dataset.y, dataset.sample_weight)
    for one in individuals:
        shares = one.values[naive.leaf_of_rows(one)]
        areas = [
            metrics.roc_auc_score(
                dataset.y == c, shares[:, c], sample_weight=dataset.sample_weight
            )
            for c in range(dataset.n_classes)
        ]
        assert one.quality == pytest.approx(np.average(areas, weights=weights))


def sides_of(one, dataset, slope):
    """Return sides of one slope, in units of the mean distance of the rows that reach a split."""
    away = np.abs(dataset.X @ one.weights.T - one.thresholds)
    reached = one.decision_path(dataset.X).toarray() * dataset.sample_weight[:, None]
    scale = (reached * away).sum(axis=0) / reached.sum(axis=0)
    shares = one.counts + one.counts[0] / dataset.total_weight
    shares /= shares.sum(axis=1, keepdims=True)
    slopes = np.where(one.is_leaf, 0.0, slope / np.where(scale > 0.0, scale, 1.0))
    return SoftSides(slopes, 0.0 * slopes, shares * one.is_leaf[:, None])


@quickly
@given(populations_for("log_loss"))
def test_soft_probabilities_are_those_of_the_best_common_slope(drawn):
    dataset, individuals = drawn
    rows = dataset.X, dataset.y, dataset.sample_weight
    for one in individuals:
        tree = one.to_tree()
        each = [sides_of(one, dataset, slope) for slope in STARTS[:-1]]
        losses = [log_losses(sides.mix(tree, dataset.X), *rows[1:]) for sides in each]
        best = each[np.argmin(losses @ dataset.sample_weight)]
        expected = best.predict(tree, dataset.X)
        np.testing.assert_allclose(quick_shares(one, *rows), expected, atol=1e-9)


# ---- what all of them keep -----------------------------------------------------------------------


@each_loss
@quickly
@given(st.data(), seeds, st.tuples(st.floats(0.0, 0.1), st.floats(0.0, 0.05)))
def test_cuts_take_their_risk_and_pruning_keeps_the_fittest(
    name, data, seed, penalties
):
    dataset, individuals = evolved(name, data.draw(populations_for(name)), seed)
    fitness, is_sum = PenalizedAccuracy(*penalties), LOSSES[name].is_sum
    for one in individuals:
        best = fitness(prune(one.clone(), dataset, *penalties)[0])[0]
        assert best >= fitness(one)[0] - 1e-9
        if not is_sum:
            continue
        risk = one.objective.risk(one)
        assert one.quality == pytest.approx(1.0 - risk[one.is_leaf].sum())
        for k in np.flatnonzero(~one.is_leaf)[:8]:
            cut = prune_marked(one.clone(), dataset, np.arange(len(one)) == k)[0]
            below = np.arange(k, k + one.subtree_size[k])
            gone = risk[below[one.is_leaf[below]]].sum() - risk[k]
            assert cut.quality == pytest.approx(one.quality + gone, abs=1e-9)
            assert best >= fitness(cut)[0] - 1e-9


@each_loss
@quickly
@given(st.data(), seeds)
def test_rows_lose_what_the_quality_lacks(name, data, seed):
    dataset, individuals = evolved(name, data.draw(populations_for(name)), seed)
    if dataset.n_classes:
        labels = dataset.classes[dataset.y]
        units = Dataset.in_raw_units(np.array(dataset.raw), labels, dataset.classes)
    else:
        units = Dataset.in_raw_units(np.array(dataset.raw), raw_targets(dataset), None)
    for one in individuals:
        table = leaf_table(one, dataset.n_classes)
        assert (
            table.shape == (len(one), dataset.n_classes or 1)
            and np.isfinite(table).all()
        )
        losses = row_losses(one, dataset, reference=one)
        assert losses.shape == dataset.y.shape and losses.min() >= -1e-12
        if LOSSES[name].is_sum:
            lost = dataset.sample_weight @ losses / (loss_unit(dataset) or 1.0)
            assert one.quality == pytest.approx(1.0 - lost, abs=1e-6)
        held_out = units.evolved_for(dataset.objective)
        finished = dataset.to_raw(one.to_tree())
        assert np.isfinite(node_losses(finished, held_out)).all()


@each_loss
@quickly
@given(st.data(), seeds)
def test_finished_trees_predict_as_the_search_does(name, data, seed):
    dataset, individuals = evolved(name, data.draw(populations_for(name)), seed)
    for one in individuals:
        raw = dataset.to_raw(one.to_tree())
        if (raw.apply(dataset.raw) != one.apply(dataset.X)).any():
            continue  # rounding sends a row on a hyperplane to its other side
        finished = dataset.bound_objective.finish(raw, dataset).validate()
        if dataset.n_classes == 0:
            expected = predictions(dataset, one)
            np.testing.assert_allclose(
                finished.values[:, 0],
                expected,
                rtol=1e-6,
                atol=2e-9 * max(1.0, dataset.target_scale),  # no rate is 0
            )
        elif name == "accuracy":  # where shares tie, rounding decides
            nodes = np.arange(len(finished))
            best = finished.values.max(axis=1)
            np.testing.assert_allclose(finished.values[nodes, one.labels], best)
        elif name in TRUTH:  # where two labels are worth the same, rounding decides
            leaf = naive.leaf_of_rows(one)
            worth, again = (
                TRUTH[name](dataset, labels[leaf])
                for labels in (one.labels, finished.labels)
            )
            assert again == (None if worth is None else pytest.approx(worth, abs=1e-9))
        else:
            np.testing.assert_array_equal(finished.labels, one.labels)


# ---- what goes together --------------------------------------------------------------------------

ROWS = np.arange(6.0)[:, None]
CLASSES = Dataset.from_arrays(ROWS, [0, 1, 2, 0, 1, 2])
TWO_CLASSES = Dataset.from_arrays(ROWS, [0, 1, 1, 0, 1, 1])
TARGETS = Dataset.from_arrays(ROWS, [1.0, 2.0, 3.0, 0.0, 1.0, 2.0], task="regression")
NEGATIVE = Dataset.from_arrays(ROWS, [-1.0, 2.0, 3.0, 0.0, 1.0, 2.0], task="regression")
SEVERAL = Dataset.from_arrays(ROWS, np.column_stack([ROWS, ROWS**2]), task="regression")


@pytest.mark.parametrize(
    ("name", "part"),
    [(name, ORDER) for name in CLASS_OBJECTIVES]
    + [(name, part) for name in TARGET_OBJECTIVES for part in (LINES, OUTPUTS, ORDER)],
)
def test_what_does_not_go_together_is_named(name, part):
    is_of_classes = LOSSES[name].is_of_classes
    dataset = TWO_CLASSES if is_of_classes else SEVERAL if part == OUTPUTS else TARGETS
    options = {"leaves": "linear"} if part == LINES else {}
    if part == ORDER:
        options["constraint"] = MonotonicConstraint((1,), dataset.n_classes)
    if part in LOSSES[name].goes_with:
        objective = compose(name, dataset, **options)
        assert objective.constraint is options.get("constraint")
        return
    with pytest.raises(
        ValueError, match=rf"objective='{name}' does not go with {part}: allowed"
    ):
        compose(name, dataset, **options)
    with pytest.raises(ValueError, match="monotonic_cst: y has 2 outputs"):
        compose(None, SEVERAL, constraint=MonotonicConstraint((1,)))


@pytest.mark.parametrize(
    ("dataset", "objective", "named"),
    [
        (CLASSES, "f2", "objective='f2'.*and callables"),
        (CLASSES, "f1", "3 classes"),
        (CLASSES, "poisson", "objective='poisson'"),
        (TARGETS, "accuracy", "objective='accuracy'"),
        (NEGATIVE, "poisson", "targets from -1 to 3"),
        (TARGETS, max, "callables are for classes"),
        (CLASSES, Cost(np.ones((2, 2))), "matrix=.*3 rows of 3"),
        (CLASSES, Cost(-np.ones((3, 3))), "matrix=.*at least 0"),
        (CLASSES, Cost(np.eye(3)), "at least one error"),
        (CLASSES, Cost([["a"]]), "matrix="),
    ],
)
def test_wrong_objectives_are_named(dataset, objective, named):
    with pytest.raises(ValueError, match=named):
        as_objective(objective, dataset)


# ---- scores of the confusion matrix, and the area ------------------------------------------------


@quickly
@given(populations_for("f1"))
def test_no_labels_have_a_higher_f1(drawn):
    def f1_of(confusion):
        (_, fp), (fn, tp) = confusion
        return 2.0 * tp / (2.0 * tp + fp + fn) if tp + fp + fn else 0.0

    for one in drawn[1]:
        if one.n_leaves <= 8:
            found = score_labels(one.counts, one.subtree_size, F1, 1)[2]
            assert found == pytest.approx(naive.best_score(one, f1_of), abs=1e-9)


def test_scores_of_a_single_class_are_those_of_scikit_learn():
    one_class = Dataset.from_arrays(np.arange(3.0)[:, None], ["a", "a", "a"])
    leaf = np.zeros((1, 1)), np.zeros(1), np.ones(1, dtype=np.int32)
    for name, expected in (
        ("f1_macro", 1.0),
        ("mcc", 0.0),
        ("roc_auc", 1.0),
        ("cost", 1.0),
    ):
        dataset = one_class.evolved_for(as_objective(name, one_class))
        assert make_individual(dataset, *leaf).quality == expected
    assert ConfusionScore(F1).labels(make_individual(one_class, *leaf)).tolist() == [0]


# ---- costs ---------------------------------------------------------------------------------------


@quickly
@given(populations(), seeds)
def test_items_are_paid_once_on_a_path(drawn, seed):
    rng = np.random.default_rng(seed)
    dataset, individuals = drawn
    n_features, n_items = dataset.X.shape[1], int(rng.integers(0, 6))
    costs = FeatureCosts(rng.random((n_features, n_items)) < 0.4, rng.random(n_items))
    for individual in individuals:
        tree = with_random_zeros(individual, dataset, seed)
        expected = [
            naive.path_price(tree, k, costs.is_part, costs.prices)
            for k in range(len(tree))
        ]
        assert costs.of_paths(tree) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("prices", "named"),
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
def test_features_cost_what_their_columns_and_groups_do_and_wrong_costs_are_named(
    prices, named
):
    costs = FeatureCosts.of(
        {"a": 2.0, ("a", "b"): 0.5, 2: 1.0}, ["a", "b", "c"], [0, 0, 1, 2]
    )
    assert costs.is_part.tolist() == [[1, 1, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert costs.prices.tolist() == [2.0, 0.5, 1.0]
    with pytest.raises(ValueError, match=named):
        FeatureCosts.of(prices, ["a", "b", "c"], [0, 1, 2])


# ---- callables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("returned", [np.nan, np.inf, "much", None, (), (0.5, np.nan)])
def test_what_a_callable_returns_is_checked(returned):
    def strange(counts):
        return returned

    leaf = SimpleNamespace(
        counts=np.ones((1, 2)), subtree_size=np.ones(1, dtype=np.int32)
    )
    with pytest.raises(ValueError, match="objective=strange returned"):
        OwnObjective(strange).quality(leaf)


@quickly
@given(populations_for("accuracy"))
def test_a_callable_sees_the_leaves_and_their_rows(drawn):
    def right(counts, leaves):
        sums = np.zeros(counts.shape)
        np.add.at(sums, (leaves.leaf, leaves.y), leaves.sample_weight)
        np.testing.assert_allclose(sums, counts)
        return float(counts.max(axis=1).sum() / counts.sum())

    dataset, individuals = drawn
    own = with_objective(dataset, as_objective(right, dataset), individuals)[1]
    for one, plain in zip(own, individuals, strict=True):
        assert one.quality == pytest.approx(plain.quality)


# ---- penalties -----------------------------------------------------------------------------------


@given(any_populations, seeds)
def test_terms_after_the_first_of_a_split_are_penalized(drawn, seed):
    dataset, population = drawn
    for individual in population:
        tree = with_random_zeros(individual, dataset, seed)
        widths = [
            sum(w != 0.0 for w in tree.weights[k])
            for k in np.flatnonzero(~tree.is_leaf)
        ]
        assert all(width >= 1 for width in widths) and tree.n_terms == sum(widths)
        plain = tree.quality - 0.01 * len(tree)
        assert PenalizedAccuracy(0.01)(tree) == (plain,)
        expected = plain - sum(0.002 * (width - 1) for width in widths)
        assert PenalizedAccuracy(0.01, 0.002)(tree)[0] == pytest.approx(expected)
        values = quality_and_complexity(tree)
        assert values == (tree.quality, tree.n_leaves + sum(widths))
        assert FitnessQualityComplexity(values).values == values

"""Rows that belong together, and rows in time: what is held out is really held out."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import (
    StratifiedGroupKFold,
    TimeSeriesSplit,
)

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    ObliqueTreeClassifier,
    ObliqueTreeRegressor,
    TAOClassifier,
)
from evotree.dataset import (
    GROUPS,
    Dataset,
    deal_groups,
    hold_out,
    make_folds,
    split_folds,
    strata_of,
)
from evotree.engine import choice
from evotree.engine.populations import GrowingSample, own_streams
from evotree.estimators.base import conformal_width
from evotree.estimators.rows import Beside
from evotree.operators import pruning
from evotree.operators.initialization import growth
from evotree.operators.losses import loss_moments, mean_and_error, row_losses
from evotree.operators.splitters.base import Axis
from tests.quick_models import FREE, brief, evolved
from tests.strategies import seeds, stream_of

COPIES = 4
greedy = partial(
    ObliqueTreeClassifier, "axis", pruning="cross_validation", random_state=0
)
quick = partial(evolved, EvoTreeClassifier, **FREE | {"max_generations": 2})


@st.composite
def grouped_datasets(draw):
    """Draw few distinct rows, so that equal ones are of several groups."""
    n = draw(st.integers(4, 50))
    rng = np.random.default_rng(draw(seeds))
    task = draw(st.sampled_from(("classification", "regression")))
    y = rng.integers(0, 3, n)
    groups = rng.integers(0, draw(st.integers(2, n)), n)
    groups[:2] = [0, 1]
    return Dataset.from_arrays(
        rng.integers(0, 3, (n, 2)).astype(float),
        y if task == "classification" else y.astype(float),
        rng.integers(1, 3, n),
        task=task,
        extras={GROUPS: groups},
    )


def parts_no_group(*parts):
    """Return whether the groups of data sets are others than those of all others."""
    labels = [set(part.extras[GROUPS].tolist()) for part in parts]
    return sum(map(len, labels)) == len(set.union(*labels))


@given(grouped_datasets(), st.integers(2, 8), st.floats(0.05, 0.95), seeds)
def test_no_part_of_the_rows_parts_a_group(dataset, n_folds, share, seed):
    n_folds = min(n_folds, dataset.n_groups)
    folds = make_folds(dataset, n_folds, stream_of(seed))
    held_out = [split_folds(dataset, folds, fold) for fold in range(n_folds)]
    assert parts_no_group(*(inside for _, inside in held_out))
    for parts in (*held_out, hold_out(dataset, share, stream_of(seed))):
        assert parts_no_group(*parts)
        assert sum(part.n_rows for part in parts) == dataset.n_rows
    assert all(inside.n_rows for _, inside in held_out)
    samples = GrowingSample(dataset, share, stream_of(seed))
    for at in range(len(samples)):
        sample = samples[at]
        assert len(set(sample.extras[GROUPS].tolist())) >= 2
        inside = np.isin(dataset.extras[GROUPS], sample.extras[GROUPS])
        assert sample.n_rows == dataset.multiplicity[inside].sum()


@given(seeds)
def test_folds_of_groups_have_like_shares_of_the_classes(seed):
    """Nearly as even as scikit-learn's, which tries each group in each fold."""
    rng = np.random.default_rng(seed % 2**32)
    groups = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 9, 40)))
    y = (rng.random(40) < 0.3)[groups] ^ (rng.random(len(groups)) < 0.1)
    theirs = np.empty(len(y), dtype=int)
    known = StratifiedGroupKFold(4, shuffle=True, random_state=seed % 2**32)
    for fold, (_, test) in enumerate(known.split(y, y, groups)):
        theirs[test] = fold
    ours = deal_groups(y.astype(int), groups, 4, rng)

    def spread(folds):
        return max(np.ptp(np.bincount(folds[y == c], minlength=4)) for c in (0, 1))

    assert spread(ours) <= spread(theirs) + 8  # rows of the largest group


@given(grouped_datasets(), seeds)
def test_standard_errors_are_those_of_the_sums_of_groups(dataset, seed):
    values = np.random.default_rng(seed % 2**32).normal(size=dataset.n_distinct)
    weight, groups = dataset.sample_weight, dataset.groups
    mean, error = mean_and_error(loss_moments(values, weight, groups))
    assert mean == pytest.approx(np.average(values, weights=weight))
    n = dataset.n_groups
    of_groups = [weight[groups == g] @ (values[groups == g] - mean) for g in range(n)]
    expected = np.sqrt(np.square(of_groups).sum() * n / (n - 1)) / weight.sum()
    assert error == pytest.approx(expected)


# ---- through all doors ---------------------------------------------------------------------------


def copies(n=60, noise=0.02, seed=0):
    """Return rows, a class that a fifth of them have by chance, groups, and rows once.

    Each row comes several times, with a little noise; its copies are its group.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] > 0.0) ^ (rng.random(n) < 0.2)
    groups = np.repeat(np.arange(n), COPIES)
    again = X[groups] + noise * rng.normal(size=(n * COPIES, 3))
    shuffled = rng.permutation(n * COPIES)
    return again[shuffled], y[groups][shuffled].astype(int), groups[shuffled], X, y


@pytest.fixture
def seen(monkeypatch):
    """Return the pairs of data sets that fits hold out, as they come."""
    pairs = []

    def spied(function):
        def spy(*arguments):
            pairs.append(function(*arguments))
            return pairs[-1]

        return spy

    for module, name in (
        (choice, "split_folds"),
        (pruning, "split_folds"),
        (growth, "hold_out"),
    ):
        monkeypatch.setattr(module, name, spied(getattr(module, name)))
    return pairs


DOORS = {
    "evolved": quick(),
    "evolved on samples": quick(max_samples=100),
    "log loss": quick(objective="log_loss"),
    "targets": evolved(EvoTreeRegressor, **FREE | {"max_generations": 1}),
    "cross_validation": greedy(),
    "cost_complexity": greedy(pruning="cost_complexity"),
    "greedy targets": ObliqueTreeRegressor("axis", pruning="cross_validation"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DOORS)
def test_what_a_fit_holds_out_parts_no_group(name, seen):
    X, y, groups, *_ = copies()
    labels = np.array([f"patient {g}" for g in groups])
    DOORS[name].fit(X, y, groups=labels)
    assert seen and all(parts_no_group(*pair) for pair in seen)
    n_pairs = len(seen)
    DOORS[name].fit(X, y)
    assert len(seen) > n_pairs  # the door is one that holds rows out


# ---- what comes of it ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [3, 5])
@pytest.mark.parametrize("kind", [EvoTreeClassifier, EvoTreeRegressor])
def test_candidates_are_compared_by_the_differences_of_groups(kind, seed):
    """Each group is a fold, so that the losses of folds tell what a choice by groups is.

    That is the least complex candidate which the best one beats by half a standard error or less.
    """
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(5), 12)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=5)[groups] + 0.3 * rng.normal(size=60)
    y = y > np.median(y) if kind is EvoTreeClassifier else y
    model = evolved(kind, **FREE | {"max_generations": 0, "shapes": None})
    # A tree on a score is chosen by another rule.
    model.set_params(leaves="constant" if kind is EvoTreeClassifier else "linear")
    table = model.fit(X, y, groups=groups).choice_.to_frame()
    # Those of the menu by size are for people.
    table = table[table["at_most"].isna()].reset_index(drop=True)
    losses = table.filter(like="fold_").to_numpy()
    assert losses.shape[1] == 5 and table.complexity.is_monotonic_increasing

    def error_beside(k):
        return (losses - losses[k]).std(axis=1, ddof=1) / np.sqrt(5)

    best = losses.mean(axis=1).argmin()
    excess = (losses - losses[best]).mean(axis=1)
    chosen = int((excess <= 0.5 * error_beside(best)).argmax())
    assert np.flatnonzero(table.chosen).tolist() == [chosen]
    np.testing.assert_allclose(table.standard_error, error_beside(chosen), atol=1e-12)


def test_terms_of_lines_cost_as_of_as_many_rows_as_groups():
    X, y, groups, X_once, y_once = copies()
    model = ObliqueTreeRegressor(leaves="linear")
    prices = [
        model._objective(model._make_dataset(rows, 1.0 * target, beside)).term_penalty
        for rows, target, beside in (
            (X_once, y_once, Beside()),
            (X, y, Beside(groups=groups)),
            (X, y, Beside()),
        )
    ]
    assert prices[0] == prices[1] > prices[2]


# ---- with rows that fits have not seen -----------------------------------------------------------


@given(grouped_datasets())
def test_errors_of_pruned_trees_are_those_of_the_sums_of_groups(dataset):
    criterion = "gini" if dataset.n_classes else "squared_error"
    tree = growth.grow(dataset, Axis(), criterion, stream=stream_of())
    # With links that are cut at once the sequence is the root alone, a leaf.
    moments = pruning.sequence_losses(tree, dataset, np.zeros(len(tree)), np.zeros(1))
    leaf = pruning.prune_tree(tree.to_tree(), np.ones(len(tree), dtype=bool))
    expected = loss_moments(
        row_losses(dataset.to_raw(leaf), dataset),
        dataset.sample_weight,
        dataset.groups,
    )
    np.testing.assert_allclose(moments[0], expected, atol=1e-7)


@settings(max_examples=20)
@given(seeds, st.sampled_from((0.5, 0.8, 0.9)))
def test_groups_of_one_row_are_calibrated_as_rows_are(seed, coverage):
    rng = np.random.default_rng(seed % 2**32)
    X = rng.integers(0, 3, (40, 2)).astype(float)
    y = X[:, 0] + rng.normal(size=40)
    model = ObliqueTreeRegressor("axis", max_depth=2, random_state=0).fit(X, y)
    expected = model.calibrate(X, y).predict_interval(X, coverage)
    of_ones = model.calibrate(X, y, groups=rng.permutation(40))
    np.testing.assert_array_equal(of_ones.predict_interval(X, coverage), expected)


@given(seeds, st.floats(0.01, 0.95))
def test_a_width_covers_the_shares_of_groups_that_are_asked_for(seed, coverage):
    """Each group counts once, by the share of its scores that are covered."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 30], 20)
    scores, group = rng.exponential(size=sizes.sum()), np.repeat(np.arange(20), sizes)
    order = np.argsort(scores)
    mass = np.cumsum(1.0 / sizes[group[order]])
    width = conformal_width(scores[order], coverage, mass)
    inside, upto = (
        np.bincount(group, is_in).dot(1.0 / sizes)
        for is_in in (scores < width, scores <= width)
    )
    assert inside - 1e-9 <= 21 * coverage <= upto + 1e-9
    with pytest.raises(ValueError, match="20 groups of calibration allow 0.952381"):
        conformal_width(scores[order], 0.96, mass)


# ---- folds of the user's own ---------------------------------------------------------------------


@pytest.mark.slow
def test_pairs_that_are_the_folds_of_the_default_give_the_same_model():
    _, _, _, X, y = copies(n=90)
    folds = np.empty(90, dtype=int)
    canonical = np.lexsort((y, *X.T[::-1]))
    folds[canonical] = make_folds(Dataset.from_arrays(X, y), 5, own_streams()[0])
    pairs = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(5)]
    # Within the rows trained on, a score deals out folds of its own.
    model = quick(leaves="constant")
    found = [
        (fit.tree_, fit.size_penalty_, fit.term_penalty_, repr(fit.choice_))
        for cv in (None, 5, pairs, iter(pairs))
        for fit in [model.fit(X, y, cv=cv)]
    ]
    assert found == [found[0]] * 4
    fewer = model.fit(X, y, cv=pairs[:2]).choice_
    assert repr(fewer) != found[0][-1]


@pytest.mark.filterwarnings("ignore:cv has one class")
@pytest.mark.parametrize("name", ["evolved", "targets", "cross_validation"])
def test_rows_in_time_are_never_held_out_before_those_trained_on(name, seen):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    X[:, 1] = np.arange(60)  # the time of each row
    y = np.sort(rng.integers(0, 2, 60))  # the first folds have one class
    DOORS[name].fit(X, y, cv=TimeSeriesSplit(4))
    assert len(seen) >= 4
    for train, test in seen:
        assert train.raw[:, 1].max() < test.raw[:, 1].min()


def test_the_last_pair_is_what_greedy_trees_hold_out(seen):
    X, y, groups, *_ = copies()
    greedy(pruning="cost_complexity").fit(X, y, cv=TimeSeriesSplit(3))
    for _, held_out in seen:
        assert held_out.n_rows == len(X) // 4


ZEROS = copies()[4] == 0
REFUSED = {
    "a label too few": ({"groups": [0, 1] * 29 + [0]}, "groups has shape"),
    "a matrix": ({"groups": np.zeros((60, 2))}, "groups has shape"),
    "a missing one": (
        {"groups": [None] + [0, 1] * 29 + [0]},
        "missing labels: 1 of 60",
    ),
    "a missing number": ({"groups": [np.nan] * 2 + [0, 1] * 29}, "labels: 2 of 60"),
    "lists": ({"groups": [[0]] * 60}, "groups: unhashable"),
    "one group": ({"groups": ["a"] * 60}, "groups has one label, 'a'"),
    "too few groups": (
        {"groups": [0, 1, 2] * 20, "cv": 5},
        "from 2 to 3, the number of g",
    ),
    "one fold": ({"cv": 1}, "cv=1: allowed are integers from 2 to 60"),
    "truth": ({"cv": True}, "cv=True"),
    "a word": ({"cv": "five"}, "cv='five'"),
    "a number": ({"cv": 2.5}, "cv=2.5"),
    "no pairs": ({"cv": []}, "cv has 0 pairs"),
    "no pair": ({"cv": [(range(5),)]}, "cv has"),
    "a row twice": ({"cv": [([0, 0, 1], range(30, 60))]}, "some twice"),
    "one class": (
        {"cv": [(np.flatnonzero(ZEROS), np.flatnonzero(~ZEROS))]},
        "one class",
    ),
    "one row": ({"cv": [([0], range(1, 60))]}, "one class, or one target"),
    "overlap": ({"cv": [(range(30), range(29, 60))]}, "row 29 in both parts"),
    "beyond": ({"cv": [(range(30), range(30, 61))]}, "no rows"),
    "below": ({"cv": [(range(30), [-1])]}, "no rows"),
    "a mask": ({"cv": [(np.arange(60) < 30, np.arange(60) >= 30)]}, "no rows"),
    "twice": ({"cv": [(range(30), range(30, 60))] * 2}, "held out once"),
    "nothing": ({"cv": [(range(30), [])]}, "cv has no rows to train on"),
    "parted": (
        {"groups": [0, 1] * 30, "cv": [(range(30), range(30, 60))]},
        "the group of the row 0 in both parts",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("model", [quick(), greedy(), greedy(pruning=None)])
def test_what_is_wrong_is_said(model, case):
    given_, message = REFUSED[case]
    _, _, _, X, y = copies()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, **given_)


@pytest.mark.parametrize("model", [brief(), greedy(pruning=None), TAOClassifier()])
def test_folds_that_nothing_is_chosen_by_are_refused(model):
    _, _, _, X, y = copies()
    with pytest.raises(ValueError, match="cv is given, but nothing is"):
        model.fit(X, y, cv=3)


LABELS = (str, float, lambda g: (g, "a"), lambda g: pd.Timestamp(g, unit="D"))


@settings(max_examples=20)
@given(st.sampled_from(LABELS), seeds)
def test_groups_are_the_same_in_any_order_of_any_labels(label, seed):
    X, y, groups, *_ = copies(n=12)
    order = np.random.default_rng(seed % 2**32).permutation(len(X))
    model = greedy(n_folds=3)
    labels = [label(int(g)) for g in groups]
    first = model.fit(X, y, groups=labels).tree_
    again = model.fit(X[order], y[order], groups=[labels[i] for i in order])
    assert again.tree_ == first


def test_strata_of_targets_are_tenths():
    y = np.random.default_rng(0).normal(size=50)
    dataset = Dataset.from_arrays(y[:, None], y, task="regression")
    assert np.bincount(strata_of(dataset)).tolist() == [5] * 10


@pytest.mark.filterwarnings("ignore:no split pays")
def test_groups_of_one_class_each_are_warned_of():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y, groups = np.repeat([0, 1], 20), np.repeat([0, 1], 20)
    model = evolved(EvoTreeClassifier, max_generations=1)
    with pytest.warns(UserWarning, match="groups: .* are of one class") as caught:
        model.fit(X, y, groups=groups)
    assert model.choice_ is None and caught[0].filename == __file__

"""Settings by cross-validation: folds, the comparison of losses, and what is chosen."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import mean_squared_error, zero_one_loss

from evotree import with_tree
from evotree.dataset import Dataset
from evotree.engine import choice as tuning
from evotree.engine.choice import (
    LEAST_PENALTY,
    SIZE_MULTIPLES,
    TERM_MULTIPLES,
    Penalties,
    best_prunings,
    cross_validate,
    found_by,
    penalties_to_try,
    row_losses,
    worth_it,
)
from evotree.engine.config import SearchConfig
from evotree.folds import make_folds
from evotree.operators.initialization.growth import grow
from evotree.operators.splitters.axis import Axis
from evotree.rng import make_streams
from tests.quick_models import brief, evolved
from tests.strategies import any_populations, seeds

SIZE_PENALTIES = (0.005, 0.002, 0.001, 0.0005)


def stream(seed=0):
    return make_streams(seed, 0, 1)[0]


def choose(dataset, search, candidates, stream, size_penalties=SIZE_PENALTIES, **parameters):
    """Cross-validate with the same penalties for any number of rows."""
    told = {"penalties": lambda n_rows: size_penalties, **parameters}
    trials = list(cross_validate(dataset, search, candidates, stream, **told))
    return found_by(trials, candidates, size_penalties, 1.0)


@given(any_populations, seeds)
def test_losses_are_those_of_the_predictions(drawn, seed):
    dataset, (tree, *_) = drawn
    rng = np.random.default_rng(seed)
    held_out = dataset.take(np.flatnonzero(rng.random(len(dataset.y)) < 0.5))
    losses = row_losses(tree, held_out)
    assert losses.shape == held_out.y.shape and losses.dtype == np.float64
    if len(losses) == 0:
        return
    values = tree.values[tree.apply(held_out.X)]
    weight = held_out.sample_weight
    if dataset.n_classes:
        predicted = values.argmax(axis=1)
        expected = zero_one_loss(held_out.y, predicted, sample_weight=weight)
    else:
        expected = mean_squared_error(held_out.y, values[:, 0], sample_weight=weight)
    assert losses @ weight / weight.sum() == pytest.approx(expected, abs=1e-12)


def naive_worth_it(losses, weights, standard_errors):
    """Repeat each row as often as it weighs; compare means of differences with their errors."""
    rows = np.repeat(losses, weights, axis=1)
    n = rows.shape[1]
    for i in range(len(rows)):
        beaten = False
        for later in rows[i + 1 :]:
            difference = rows[i] - later
            beaten |= difference.mean() > standard_errors * difference.std() / np.sqrt(n) + 1e-12
        if not beaten:
            return i
    raise AssertionError("none comes after the last")


@given(st.integers(1, 6), st.integers(1, 40), st.sampled_from((0.0, 0.5, 1.0, 1.7)), seeds)
def test_the_choice_agrees_with_its_naive_twin(n_candidates, n_rows, standard_errors, seed):
    rng = np.random.default_rng(seed)
    level = np.sort(rng.random(n_candidates))[::-1]
    losses = (rng.random((n_candidates, n_rows)) < level[:, None]).astype(np.float64)
    weights = rng.integers(1, 4, n_rows)
    chosen = worth_it(losses, weights.astype(np.float64), standard_errors)
    assert chosen == naive_worth_it(losses, weights, standard_errors)


def test_losses_of_several_trees_are_averaged():
    """One right and one wrong tree lose as much as two that are right on half of the rows."""
    dataset = chessboard(400, 2)

    def search(rows, setting, size_penalties):
        trees = {
            "leaf": [grow(rows, Axis(), max_depth=0, stream=stream())],
            "both": [grow(rows, Axis(), max_depth=depth, stream=stream()) for depth in (0, 8)],
        }
        return [trees[setting]] * len(size_penalties)

    assert choose(dataset, search, ["leaf", "both"], stream())[0] == "both"


@given(st.integers(2, 10**6))
def test_penalties_fall_and_are_relative_to_the_rows(n_rows):
    config = SearchConfig(term_penalty="auto")
    found = penalties_to_try(config, n_rows)
    assert len(found) == len(SIZE_MULTIPLES) * len(TERM_MULTIPLES)
    sizes = [one.size for one in found]
    assert sizes == sorted(sizes, reverse=True)
    terms = [multiple * size for size in sizes for multiple in TERM_MULTIPLES]
    assert all(one.term in terms or one.term == LEAST_PENALTY for one in found)
    assert min(min(one) for one in found) >= LEAST_PENALTY
    expected = max(LEAST_PENALTY, SIZE_MULTIPLES[0] * np.log(n_rows + 1) / n_rows)
    assert found[0].size == pytest.approx(expected)
    fewer = penalties_to_try(config, 2 * n_rows)
    assert all(
        there.size < here.size or there.size == LEAST_PENALTY
        for here, there in zip(found, fewer, strict=True)
    )


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({"size_penalty": 0.01, "term_penalty": 0.5}, [(0.01, 0.5)]),
        (
            {"size_penalty": 0.01, "term_penalty": "auto"},
            [(0.01, multiple * 0.01) for multiple in TERM_MULTIPLES],
        ),
        ({"size_penalty": 0.0, "term_penalty": "auto"}, [(0.0, 0.0)]),
    ],
)
def test_penalties_that_are_given_are_kept(given_, expected):
    assert penalties_to_try(evolved(SearchConfig, **given_), 100) == expected
    free = penalties_to_try(SearchConfig(term_penalty=0.125), 100)
    assert {one.term for one in free} == {0.125} and len(free) == len(SIZE_MULTIPLES)


def test_the_least_complex_trees_within_a_standard_error_are_chosen():
    """Two penalties whose trees are as good: those with fewer terms win, whatever their order."""
    dataset = chessboard(400, 2)
    axis = grow(dataset, Axis(), max_depth=8, stream=stream())
    weights = axis.weights.copy()
    weights[(axis.subtree_size > 1), 0] += 1e-9
    oblique = with_tree(axis, dataset, weights, axis.thresholds, axis.subtree_size)
    assert oblique.complexity > axis.complexity and oblique.quality == axis.quality

    for trees in ([axis, oblique], [oblique, axis]):

        def search(rows, candidate, tried, trees=trees):
            return [[one] for one in trees]

        tried = [Penalties(0.1, 0.1), Penalties(0.1, 0.0)]
        _, found, *_ = choose(dataset, search, [0], stream(), size_penalties=tried)
        assert trees[tried.index(found)] is axis


def chessboard(n_rows, fields, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, fields, (n_rows, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    flipped = rng.random(n_rows) < noise
    return Dataset.from_arrays(X, np.where(flipped, rng.integers(0, 2, n_rows), y))


def prune_greedy(rows, setting, size_penalties):
    """Return the prunings of a greedy tree; the setting is its depth."""
    tree = grow(rows, Axis(), max_depth=setting, stream=stream())
    return [best_prunings([tree], rows, charge) for charge in size_penalties]


def test_large_trees_are_charged_little_where_they_are_better():
    """A board of 144 fields needs hundreds of nodes, each worth less than 0.005 of the rows."""
    _, penalty, *_ = choose(chessboard(6000, 12), prune_greedy, [20], stream())
    assert penalty < 0.002


def test_nodes_are_dear_where_labels_are_noise():
    """Of five smaller charges one is a standard error better by chance, now and then."""
    chosen = [
        choose(chessboard(600, 2, noise=1.0, seed=seed), prune_greedy, [20], stream(seed))[1]
        for seed in range(12)
    ]
    assert chosen.count(SIZE_PENALTIES[0]) >= 7
    assert np.median(chosen) == SIZE_PENALTIES[0]


def test_the_setting_of_the_least_loss_is_chosen():
    dataset = chessboard(600, 2)
    setting, *_ = choose(dataset, prune_greedy, [1, 8, 0, 9], stream())
    assert setting == 8  # as good as 9, and before it
    setting, penalty, *_ = choose(dataset, prune_greedy, [1, 8], stream(), size_penalties=[0.25])
    assert (setting, penalty) == (1, 0.25)  # a tree that small is a leaf in either


def test_searches_see_the_other_folds_and_all_charges():
    dataset = chessboard(100, 2)
    seen = []

    def search(rows, setting, size_penalties):
        seen.append((rows.X, setting, size_penalties))
        return prune_greedy(rows, setting, size_penalties)

    choose(dataset, search, [7, 8], stream(), n_folds=4, max_folds=3)  # all compete
    assert [call[1:] for call in seen] == [(7, SIZE_PENALTIES), (8, SIZE_PENALTIES)] * 3
    folds = make_folds(dataset, 4, stream())
    for fold in range(3):
        for X, *_ in seen[2 * fold : 2 * fold + 2]:
            np.testing.assert_array_equal(X, dataset.X[folds != fold])


def test_the_winner_alone_is_searched_once_400_rows_were_held_out():
    dataset = chessboard(1000, 2)
    seen = []

    def search(rows, setting, size_penalties):
        seen.append(setting)
        return prune_greedy(rows, setting, size_penalties)

    assert choose(dataset, search, [0, 8, 1], stream())[0] == 8
    assert seen == [0, 8, 1, 0, 8, 1, 8, 8, 8]
    seen.clear()
    choose(dataset, search, [0, 8, 1], stream(), size_penalties=[0.001])
    assert seen == [0, 8, 1, 0, 8, 1]  # nothing is left to choose


def test_the_trees_of_all_folds_are_those_of_what_is_chosen():
    dataset = chessboard(600, 2, noise=0.3)
    made = {}

    def search(rows, setting, size_penalties):
        trees = prune_greedy(rows, setting, size_penalties)
        made.setdefault(setting, []).append(trees)
        return trees

    setting, penalty, trees, larger, _ = choose(dataset, search, [1, 8], stream())
    at = SIZE_PENALTIES.index(penalty)
    expected = [tree for fold in made[setting] for tree in fold[at]]
    assert [id(one) for one in trees] == [id(one) for one in expected]
    assert len(made[setting]) == 5
    others = [best for fold in made[setting] for best, *_ in fold[at + 1 :]]
    assert [id(one) for one in larger] == [id(one) for one in others]


def test_threads_choose_the_same():
    dataset = chessboard(800, 4, noise=0.2)
    alone = choose(dataset, prune_greedy, [3, 20], stream(5))
    with ThreadPoolExecutor(3) as threads:
        together = choose(dataset, prune_greedy, [3, 20], stream(5), map=threads.map)
    assert together[:4] == alone[:4] and len(alone.trees) >= 5


def test_nothing_is_searched_where_nothing_is_to_choose():
    def search(rows, setting, size_penalties):
        raise AssertionError("searched")

    one = Dataset.from_arrays([[1.0]], [0])
    assert choose(one, search, ["a", "b"], stream()) == ("a", SIZE_PENALTIES[0], (), (), {})
    only = choose(chessboard(50, 2), search, ["a"], stream(), size_penalties=[0.5])
    assert only == ("a", 0.5, (), (), {})


@pytest.mark.parametrize(
    ("time_limit", "n_searches", "chosen"),
    [(0.5, 1, 0), (1.5, 2, 8), (2.5, 3, 8), (3.5, 4, 8), (6.5, 7, 8), (100.0, 9, 8)],
)
def test_no_search_begins_when_the_time_is_up(monkeypatch, time_limit, n_searches, chosen):
    """A search takes a second here; three settings compete for two folds, one goes on for three."""
    now = [0.0]
    seen = []

    def search(rows, setting, size_penalties):
        now[0] += 1.0
        seen.append(setting)
        return prune_greedy(rows, setting, size_penalties)

    monkeypatch.setattr(tuning.time, "perf_counter", lambda: now[0])
    dataset = chessboard(1000, 2)
    found = choose(dataset, search, [0, 8, 9], stream(), end=time_limit)
    assert (found[0], len(seen)) == (chosen, n_searches)


def test_trials_are_kept_as_arrays():
    dataset, n = chessboard(1000, 2, noise=0.1), len(SIZE_PENALTIES)
    found = choose(dataset, prune_greedy, [0, 8, 1], stream())
    table = found.cv_results
    assert {column.shape for column in table.values()} == {(3 * n,)}
    (row,) = np.flatnonzero(table["chosen"])
    assert row // n == 1 and table["size_penalty"][row] == found.penalties
    splits = np.array([table[f"split{fold}_loss"] for fold in range(5)])
    assert np.isnan(splits[2:, :n]).all() and not np.isnan(splits[:, n : 2 * n]).any()
    np.testing.assert_allclose(table["mean_loss"], np.nanmean(splits, axis=0))  # 200 rows each
    p = table["mean_loss"][row]
    assert table["standard_error"][row] == pytest.approx(np.sqrt(p * (1.0 - p) / 1000))
    model = brief(size_penalty="auto").fit(*load_iris(return_X_y=True))
    (chosen,) = np.flatnonzero(model.cv_results_["chosen"])
    assert model.cv_results_["size_penalty"][chosen] == model.size_penalty_
    assert brief().fit(*load_iris(return_X_y=True)).cv_results_ == {}

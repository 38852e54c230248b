"""Settings by cross-validation: folds, the comparison of losses, and what is chosen."""

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
    first_unbeaten,
    found_by,
    penalties_to_try,
    row_losses,
)
from evotree.engine.config import SearchConfig
from evotree.folds import make_folds
from evotree.operators.initialization.growth import grow
from evotree.operators.splitters.axis import Axis
from evotree.rng import make_streams
from tests.quick_models import brief
from tests.strategies import any_populations, seeds

SIZE_PENALTIES = (0.005, 0.002, 0.001, 0.0005)


def stream(seed=0):
    return make_streams(seed, 0, 1)[0]


def choose(dataset, search, candidates, seed=0, size_penalties=SIZE_PENALTIES, **parameters):
    """Cross-validate with the same penalties for any number of rows."""
    options = {"penalties": lambda n_rows: size_penalties, **parameters}
    trials = list(cross_validate(dataset, search, candidates, stream(seed), **options))
    return found_by(trials, candidates, size_penalties, 1.0)


def chessboard(n_rows, fields, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, fields, (n_rows, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    flipped = rng.random(n_rows) < noise
    return Dataset.from_arrays(X, np.where(flipped, rng.integers(0, 2, n_rows), y))


class Search:
    """Prunings of a greedy tree of a depth; notes what it was called with and what it made."""

    def __init__(self):
        self.calls, self.settings, self.made = [], [], []

    def __call__(self, rows, depth, size_penalties):
        tree = grow(rows, Axis(), max_depth=depth, stream=stream())
        self.calls.append((rows.X, depth, size_penalties))
        self.settings.append(depth)
        self.made.append([best_prunings([tree], rows, charge) for charge in size_penalties])
        return self.made[-1]


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


def naive_first_unbeaten(losses, weights, standard_errors):
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
    chosen = first_unbeaten(losses, weights.astype(np.float64), standard_errors)
    assert chosen == naive_first_unbeaten(losses, weights, standard_errors)


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
    for here, there in zip(found, penalties_to_try(config, 2 * n_rows), strict=True):
        assert there.size < here.size or there.size == LEAST_PENALTY


@pytest.mark.parametrize(
    ("size", "term", "expected"),
    [
        (0.01, 0.5, [(0.01, 0.5)]),
        (0.01, "auto", [(0.01, multiple * 0.01) for multiple in TERM_MULTIPLES]),
        (0.0, "auto", [(0.0, 0.0)]),
    ],
)
def test_penalties_that_are_given_are_kept(size, term, expected):
    config = SearchConfig(size_penalty=size, term_penalty=term)
    assert penalties_to_try(config, 100) == expected
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

    tried = [Penalties(0.1, 0.1), Penalties(0.1, 0.0)]
    for trees in ([axis, oblique], [oblique, axis]):
        made = [[one] for one in trees]
        found = choose(dataset, lambda *_, made=made: made, [0], size_penalties=tried)
        assert trees[tried.index(found.penalties)] is axis


def test_the_setting_of_the_least_loss_is_chosen():
    dataset = chessboard(600, 2)
    assert choose(dataset, Search(), [1, 8, 0, 9])[0] == 8  # as good as 9, and before it
    found = choose(dataset, Search(), [1, 8], size_penalties=[0.25])
    assert found[:2] == (1, 0.25)  # a tree that small is a leaf in either


def test_searches_see_the_other_folds_and_all_charges():
    dataset, search = chessboard(100, 2), Search()
    choose(dataset, search, [7, 8], n_folds=4, max_folds=3)  # all compete
    assert [call[1:] for call in search.calls] == [(7, SIZE_PENALTIES), (8, SIZE_PENALTIES)] * 3
    folds = make_folds(dataset, 4, stream())
    for fold in range(3):
        for X, *_ in search.calls[2 * fold : 2 * fold + 2]:
            np.testing.assert_array_equal(X, dataset.X[folds != fold])


def test_the_winner_alone_is_searched_once_400_rows_were_held_out():
    search, only = Search(), Search()
    assert choose(chessboard(1000, 2), search, [0, 8, 1])[0] == 8
    assert search.settings == [0, 8, 1, 0, 8, 1, 8, 8, 8]
    choose(chessboard(1000, 2), only, [0, 8, 1], size_penalties=[0.001])
    assert only.settings == [0, 8, 1, 0, 8, 1]  # nothing is left to choose


@pytest.mark.parametrize(
    ("time_limit", "n_searches", "chosen"),
    [(0.5, 1, 0), (1.5, 2, 8), (2.5, 3, 8), (3.5, 4, 8), (6.5, 7, 8), (100.0, 9, 8)],
)
def test_no_search_begins_when_the_time_is_up(monkeypatch, time_limit, n_searches, chosen):
    """A search takes a second here; three settings compete for two folds, one goes on for three."""
    now, search = [0.0], Search()

    def slow(*arguments):
        now[0] += 1.0
        return search(*arguments)

    monkeypatch.setattr(tuning.time, "perf_counter", lambda: now[0])
    found = choose(chessboard(1000, 2), slow, [0, 8, 9], end=time_limit)
    assert (found[0], len(search.calls)) == (chosen, n_searches)


def test_trials_are_kept_as_arrays():
    dataset, n = chessboard(1000, 2, noise=0.1), len(SIZE_PENALTIES)
    found = choose(dataset, Search(), [0, 8, 1])
    table = found.cv_results
    assert {column.shape for column in table.values()} == {(3 * n,)}
    (row,) = np.flatnonzero(table["chosen"])
    assert row // n == 1 and table["size_penalty"][row] == found.penalties
    splits = np.array([table[f"split{fold}_loss"] for fold in range(5)])
    assert np.isnan(splits[2:, :n]).all() and not np.isnan(splits[:, n : 2 * n]).any()
    np.testing.assert_allclose(table["mean_loss"], np.nanmean(splits, axis=0))  # 200 rows each
    p = table["mean_loss"][row]
    assert table["standard_error"][row] == pytest.approx(np.sqrt(p * (1.0 - p) / 1000))
    rows = load_iris(return_X_y=True)
    model = brief(size_penalty="auto").fit(*rows)
    (chosen,) = np.flatnonzero(model.cv_results_["chosen"])
    assert model.cv_results_["size_penalty"][chosen] == model.size_penalty_
    assert brief().fit(*rows).cv_results_ == {}

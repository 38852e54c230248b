"""Hyperparameters by cross-validation: folds, the comparison of losses, and what is chosen."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import mean_squared_error, zero_one_loss

from evotree import with_tree
from evotree.dataset import Dataset, make_folds
from evotree.engine import choice as tuning
from evotree.engine.choice import (
    LEAST_PENALTY,
    SIZE_MULTIPLES,
    TERM_MULTIPLES,
    Penalties,
    Trial,
    choose_candidate,
    cross_validate,
    first_unbeaten,
    found_by,
    penalties_to_try,
    row_losses,
)
from evotree.engine.config import SearchConfig
from evotree.engine.finish import with_less_fit
from evotree.engine.populations import best_prunings
from evotree.engine.problem import Ends
from evotree.fitness.linear_leaves import CandidateLosses, LogisticLeaves
from evotree.inspection.front import undominated
from evotree.operators.initialization.growth import GrowthLimits, grow
from evotree.operators.splitters.axis import Axis
from evotree.rng import make_streams
from evotree.tree import FitnessMax
from tests.quick_models import brief
from tests.strategies import any_populations, seeds

SIZE_PENALTIES = (0.005, 0.002, 0.001, 0.0005)


def stream(seed=0):
    return make_streams(seed, 0, 1)[0]


def choose(dataset, search, seed=0, size_penalties=SIZE_PENALTIES, **parameters):
    """Cross-validate with the same penalties for any number of rows."""
    options = {"penalties": lambda n_rows: size_penalties, **parameters}
    trials = list(cross_validate(dataset, search, stream(seed), **options))
    return found_by(trials, size_penalties, 1.0)


def chessboard(n_rows, fields, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, fields, (n_rows, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    flipped = rng.random(n_rows) < noise
    return Dataset.from_arrays(X, np.where(flipped, rng.integers(0, 2, n_rows), y))


class Search:
    """Prunings of a greedy tree; notes what it was called with and what it made."""

    def __init__(self):
        self.calls, self.made = [], []

    def __call__(self, rows, size_penalties):
        tree = grow(rows, Axis(), limits=GrowthLimits(8), stream=stream())
        self.calls.append((rows.X, size_penalties))
        self.made.append(
            [best_prunings([tree], rows, penalty) for penalty in size_penalties]
        )
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
            beaten |= (
                difference.mean()
                > standard_errors * difference.std() / np.sqrt(n) + 1e-12
            )
        if not beaten:
            return i
    raise AssertionError("none comes after the last")


@given(
    st.integers(1, 6), st.integers(1, 40), st.sampled_from((0.0, 0.5, 1.0, 1.7)), seeds
)
def test_the_choice_agrees_with_its_naive_twin(
    n_candidates, n_rows, standard_errors, seed
):
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
    axis = grow(dataset, Axis(), limits=GrowthLimits(8), stream=stream())
    weights = axis.weights.copy()
    weights[(axis.subtree_size > 1), 0] += 1e-9
    oblique = with_tree(axis, dataset, weights, axis.thresholds, axis.subtree_size)
    assert oblique.complexity > axis.complexity and oblique.quality == axis.quality

    tried = [Penalties(0.1, 0.1), Penalties(0.1, 0.0)]
    for trees in ([axis, oblique], [oblique, axis]):
        made = [[one] for one in trees]
        found = choose(dataset, lambda *_, made=made: made, size_penalties=tried)
        assert trees[tried.index(found.penalties)] is axis


def test_the_penalty_of_the_least_loss_is_chosen():
    dataset, alike = chessboard(600, 2), (0.5, 0.001, 0.0005)
    found = choose(dataset, Search(), size_penalties=alike)
    assert found.penalties == 0.001  # as good as the last one, and before it
    # nothing to choose
    assert choose(dataset, Search(), size_penalties=[0.25])[0] == 0.25


def test_searches_see_the_other_folds_and_all_penalties():
    dataset, search = chessboard(100, 2), Search()
    found = choose(dataset, search, n_folds=4, max_folds=3)
    assert [penalties for _, penalties in search.calls] == [SIZE_PENALTIES] * 3
    folds = make_folds(dataset, 4, stream())
    for fold, (X, _) in enumerate(search.calls):
        np.testing.assert_array_equal(X, dataset.X[folds != fold])
    at = SIZE_PENALTIES.index(found.penalties)
    assert found.trees == [tree for made in search.made for tree in made[at]]


def test_rows_are_dealt_out_again_where_more_folds_are_asked_for():
    dataset, search = chessboard(100, 2, noise=0.2), Search()
    found = choose(dataset, search, n_folds=5, max_folds=15)
    given = {row.tobytes(): i for i, row in enumerate(dataset.X)}
    seen = [{given[row.tobytes()] for row in X} for X, _ in search.calls]
    held_out = [set(range(100)) - rows for rows in seen]
    for first in (0, 5, 10):
        assert set().union(*held_out[first : first + 5]) == set(range(100))
    assert held_out[:5] != held_out[5:10] != held_out[10:]
    at, table = SIZE_PENALTIES.index(found.penalties), found.cv_results
    assert found.trees == [tree for made in search.made[:5] for tree in made[at]]
    p = table["mean_loss"][at]
    assert table["standard_error"][at] == pytest.approx(np.sqrt(p * (1.0 - p) / 100))


@pytest.mark.parametrize(
    ("time_limit", "n_searches"), [(0.5, 1), (1.5, 2), (4.5, 5), (100.0, 5)]
)
def test_no_search_begins_when_the_time_is_up(monkeypatch, time_limit, n_searches):
    """A search takes a second here."""
    now, search = [0.0], Search()

    def slow(*arguments):
        now[0] += 1.0
        return search(*arguments)

    monkeypatch.setattr(tuning.time, "perf_counter", lambda: now[0])
    found = choose(chessboard(1000, 2), slow, end=time_limit)
    assert found.penalties in SIZE_PENALTIES and len(search.calls) == n_searches


def test_trials_are_kept_as_arrays():
    dataset = chessboard(1000, 2, noise=0.1)
    found = choose(dataset, Search())
    table = found.cv_results
    assert {column.shape for column in table.values()} == {(len(SIZE_PENALTIES),)}
    (row,) = np.flatnonzero(table["chosen"])
    assert table["size_penalty"][row] == found.penalties
    splits = np.array([table[f"split{fold}_loss"] for fold in range(5)])
    np.testing.assert_allclose(table["mean_loss"], splits.mean(axis=0))  # 200 rows each
    p = table["mean_loss"][row]
    assert table["standard_error"][row] == pytest.approx(np.sqrt(p * (1.0 - p) / 1000))
    rows = load_iris(return_X_y=True)
    model = brief(size_penalty="auto").fit(*rows)
    (chosen,) = np.flatnonzero(model.cv_results_["chosen"])
    assert model.cv_results_["size_penalty"][chosen] == model.size_penalty_
    assert brief().fit(*rows).cv_results_ == {}


# ---- models of leaves ----------------------------------------------------------------------------


def judged_models(seed, n_rows=60, n_trees=3):
    """Return models of leaves with losses that are drawn, each better than chance or not."""
    rng = np.random.default_rng(seed)
    models = LogisticLeaves(in_all_leaves=True)
    candidates = models.candidates(n_trees)
    n = len(candidates)
    level = rng.uniform(0.05, 0.6, n)
    errors = (rng.random((n, n_rows)) < level[:, None]).astype(np.float64)
    losses = CandidateLosses(
        errors,
        rng.random((n, n_rows)),
        rng.integers(1, 40, n),
        rng.random(n) < 0.2,
    )
    return models, candidates, losses


def is_beaten(losses, others, standard_errors):
    """Return whether some other candidate loses clearly less, row by row."""
    differences = losses - others
    error = differences.std(axis=1) / np.sqrt(differences.shape[1])
    return (differences.mean(axis=1) > standard_errors * error + 1e-12).any()


@given(seeds, st.sampled_from([0.5, 1.0, 2.0]))
def test_the_models_that_are_chosen_are_not_worse_than_the_simplest_good_ones(
    seed, standard_errors
):
    _, candidates, losses = judged_models(seed)
    weights = np.ones(losses.errors.shape[1])
    best = choose_candidate(candidates, losses, weights, standard_errors)
    order = np.argsort(losses.complexity, kind="stable")
    simplest = next(
        i
        for at, i in enumerate(order)
        if not is_beaten(
            losses.errors[i], losses.errors[order[at + 1 :]], standard_errors
        )
    )
    assert not is_beaten(
        losses.errors[best], losses.errors[[simplest]], standard_errors
    )
    alike = [
        i
        for i, one in enumerate(candidates)
        if (one.strength.halvings, one.at)
        == (candidates[simplest].strength.halvings, candidates[simplest].at)
        and not is_beaten(losses.errors[i], losses.errors[[simplest]], standard_errors)
    ]
    assert best in alike
    assert losses.log_losses[best].sum() == min(losses.log_losses[alike].sum(axis=1))


@given(seeds)
def test_trees_whose_leaves_have_models_set_the_penalties(seed):
    models, candidates, losses = judged_models(seed)
    n_rows = losses.errors.shape[1]
    trial = Trial(
        fold=0,
        trees=[[SimpleNamespace()] for _ in SIZE_PENALTIES[:3]],
        losses=np.random.default_rng(seed).random((3, n_rows)),
        complexity=np.array([1.0, 2.0, 3.0]),
        weights=np.ones(n_rows),
        of_models=losses,
    )
    found = found_by([trial], SIZE_PENALTIES[:3], models=models)
    (chosen,) = np.flatnonzero(found.cv_results["chosen"])
    candidate = candidates[chosen - 3]
    if candidate.at is not None:
        assert found.penalties == SIZE_PENALTIES[candidate.at]
        assert found.trees == trial.trees[candidate.at]
    assert found.leaves.at == candidate.at
    assert found.leaves.keeps_shares == losses.is_too_large[chosen - 3]
    if not found.leaves.keeps_shares:
        assert found.leaves == candidate


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 40)), min_size=2), seeds)
def test_trees_for_the_front_alone_take_no_place_of_the_fittest(members, seed):
    trees = [
        SimpleNamespace(complexity=size, quality=quality / 40.0, fitness=FitnessMax())
        for size, quality in members
    ]
    n = 1 + seed % (len(trees) - 1)

    def fitness(tree):
        return (tree.quality - 0.01 * tree.complexity,)

    front = undominated(trees[:n])
    best = max(front, key=fitness)
    wider = with_less_fit(front, trees[n:], fitness)
    assert max(wider, key=fitness) is best
    assert [tree for tree in wider if tree.complexity <= best.complexity] == [
        tree for tree in front if tree.complexity <= best.complexity
    ]


@given(st.floats(1e-3, 1e6), st.floats(0.0, 1e6))
def test_a_limit_leaves_time_to_finish_trees_and_to_tell_how_sure_they_are(
    limit, begin
):
    ends = Ends.of(limit, begin)
    assert begin < ends.evolution < ends.trees < ends.all
    assert ends.all == pytest.approx(begin + limit)
    assert ends.all - ends.evolution >= 0.2 * limit

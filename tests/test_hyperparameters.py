"""What is chosen by cross-validation: folds, losses, the rule of the choice, and what it sets."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine, make_friedman1
from sklearn.metrics import (
    brier_score_loss,
    log_loss,
)

from evotree import Cost, EvoTreeClassifier
from evotree.configuration import SCORE
from evotree.dataset import Dataset, make_folds, split_folds
from evotree.engine import choice as choosing
from evotree.engine.choice import (
    EVOLVED,
    EVOLVING_ERRORS,
    LARGE,
    LARGE_ERRORS,
    LEAF_ERRORS,
    LEAST_MULTIPLE,
    LEAST_PENALTY,
    LINEAR,
    SIZE_MULTIPLES,
    SIZED,
    STANDARD_ERRORS,
    TERM_MULTIPLES,
    TREE,
    Candidate,
    CandidateLosses,
    Table,
    Trial,
    cross_validate,
    on_score,
    penalties_to_try,
    trials_of,
    trials_of_targets,
    verdict_of,
    with_evolution,
    with_score,
    with_sizes,
)
from evotree.engine.config import SearchConfig
from evotree.engine.finish import Finisher, with_less_fit
from evotree.engine.populations import FirstTrees, best_prunings
from evotree.engine.problem import Deadlines, Penalties, prepare
from evotree.fitness.probabilities import (
    COSTS,
    LEAST,
    PROBABILITY_LOSSES,
    Strength,
    fit_soft_sides,
    log_losses,
    ranking_losses,
)
from evotree.front import undominated
from evotree.operators.initialization.growth import GrowthLimits, grow
from evotree.operators.initialization.logistic import LOGISTIC
from evotree.operators.splitters.base import Axis
from evotree.tree import FitnessMax
from tests.quick_models import FREE, evolved
from tests.strategies import seeds, stream_of

SIZE_PENALTIES = (0.005, 0.002, 0.001, 0.0005)
PENALTIES = [Penalties(size, 0.0) for size in SIZE_PENALTIES[:3]]


def quick(kind=EvoTreeClassifier, **changed):
    return evolved(kind, **FREE | {"max_generations": 3} | changed)


def choose(dataset, search, seed=0, size_penalties=SIZE_PENALTIES, **parameters):
    """Cross-validate trees by their leaves, with the same penalties for any number of rows."""
    options = {"penalties": lambda n_rows: size_penalties, **parameters}
    problem = prepare(dataset, SearchConfig(term_penalty=0.0), is_soft=False)
    losses_of = CandidateLosses(problem)
    trials = list(
        cross_validate(dataset, search, losses_of, stream_of(seed), **options)
    )
    return verdict_of(trials, size_penalties)


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
        tree = grow(rows, Axis(), limits=GrowthLimits(8), stream=stream_of())
        self.calls.append((rows.X, size_penalties))
        self.made.append(
            [best_prunings([tree], rows, penalty) for penalty in size_penalties]
        )
        return FirstTrees(self.made[-1], [tree])


# ---- losses --------------------------------------------------------------------------------------


@st.composite
def probabilities(draw):
    """Draw probabilities, among them equal ones, with the class and the weight of each row."""
    rng = np.random.default_rng(draw(seeds))
    k, n = draw(st.integers(2, 4)), draw(st.integers(4, 40))
    most = draw(st.sampled_from((3, 100)))
    shares = rng.integers(1, most, (n, k)).astype(float)
    shares /= shares.sum(axis=1, keepdims=True)
    y = np.append(np.arange(k), rng.integers(0, k, n - k))
    return shares, y, rng.choice([0.5, 1.0, 3.0], n)


@given(probabilities())
def test_losses_of_probabilities_are_those_of_scikit_learn(drawn):
    shares, y, weight = drawn
    found = {
        name: np.average(loss(*drawn), weights=weight)
        for name, loss in PROBABILITY_LOSSES.items()
    }
    known = {"sample_weight": weight, "labels": np.arange(shares.shape[1])}
    assert shares.min() > LEAST
    assert found["log_loss"] == pytest.approx(log_loss(y, shares, **known))
    brier = brier_score_loss(y, shares, scale_by_half=False, **known)
    assert found["brier"] == pytest.approx(brier)


@given(probabilities())
def test_a_row_is_outranked_by_others_that_look_more_like_its_class(drawn):
    """Where all rows are of one class, all lose the same."""
    shares, y, weight = drawn
    expected = []
    for i, label in enumerate(y):
        others = np.flatnonzero(y != label)
        above = shares[others, label] - shares[i, label]
        outranked = np.where(above == 0.0, 0.5, above > 0.0)
        expected.append(np.average(outranked, weights=weight[others]))
    np.testing.assert_allclose(ranking_losses(*drawn), expected, atol=1e-12)
    alone = y == y[0]
    lost = ranking_losses(*(each[alone] for each in drawn))
    assert len(set(lost)) == 1 and np.isfinite(lost).all()


def test_no_probability_counts_as_less_than_the_least():
    shares = np.array([[1.0, 0.0], [1.0 - 0.5 * LEAST, 0.5 * LEAST], [0.5, 0.5]])
    lost = log_losses(shares, np.ones(3, dtype=int), np.ones(3))
    assert lost[0] == lost[1] == -math.log(LEAST) and lost[2] < lost[1]


@pytest.mark.parametrize("probability", ["soft", "leaf"])
@pytest.mark.parametrize("objective", ["accuracy", "log_loss", "brier", "roc_auc"])
def test_what_candidates_lose_is_by_the_probabilities_that_would_be_returned(
    objective, probability
):
    """Trees of one leaf and of more, and trees of logistic models."""
    dataset = Dataset.from_arrays(*load_wine(return_X_y=True))
    model = quick(objective=objective, probability=probability, precision=None)
    problem = prepare(dataset, model, is_soft=probability == "soft")
    folds = make_folds(dataset, 4, stream_of())
    others, held_out = split_folds(problem.dataset, folds, 0)
    grown = grow(others, Axis(), limits=GrowthLimits(3), stream=stream_of())
    made = [best_prunings([grown], others, penalty) for penalty in (1.0, 0.01)]
    trial = CandidateLosses(problem).trial(
        0, others, held_out, FirstTrees(made, [grown])
    )

    strength = Strength(0.3)
    finisher = Finisher(replace(problem, dataset=others), Penalties(0.0, 0.0))
    returned = {Candidate(LOGISTIC, strength=strength): finisher.logistic(strength)}
    for at, (tree, *_) in enumerate(made):
        returned[Candidate(TREE, at)] = others.to_raw(tree.to_tree())
    loss = PROBABILITY_LOSSES["log_loss" if objective == "accuracy" else objective]
    for candidate, tree in returned.items():
        shares = tree.values[tree.apply(held_out.raw)]
        if probability == "soft":
            sides = getattr(tree, "sides", None)
            sides = sides or fit_soft_sides(tree, others, brief=True)
            shares = sides.predict(tree, held_out.raw)
        expected = loss(shares, held_out.y, held_out.sample_weight)
        # A fit of logistic models begins where the one before has ended.
        np.testing.assert_allclose(trial.losses[candidate], expected, atol=1e-3)
        assert trial.sizes[candidate] == (tree.n_leaves, tree.complexity)


# ---- penalties -----------------------------------------------------------------------------------


@given(st.integers(2, 10**6))
def test_penalties_fall_and_are_relative_to_the_rows(n_rows):
    config = SearchConfig(term_penalty="auto")
    found = penalties_to_try(config, n_rows)
    assert len(found) == len(SIZE_MULTIPLES) * len(TERM_MULTIPLES)
    sizes = [one.size for one in found]
    assert sizes == sorted(sizes, reverse=True)
    terms = [multiple * size for size in sizes for multiple in TERM_MULTIPLES]
    unit = np.log(n_rows + 1) / n_rows
    least = min(LEAST_PENALTY, LEAST_MULTIPLE * unit)
    assert all(one.term in (*terms, pytest.approx(least)) for one in found)
    assert min(min(one) for one in found) == pytest.approx(least) or n_rows < 10_000
    assert found[0].size == pytest.approx(max(least, SIZE_MULTIPLES[0] * unit))
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


def test_searches_see_the_other_folds_and_all_penalties():
    dataset, search = chessboard(100, 2), Search()
    found = choose(dataset, search, n_folds=4, max_folds=3)
    assert [penalties for _, penalties in search.calls] == [SIZE_PENALTIES] * 3
    folds = make_folds(dataset, 4, stream_of())
    for fold, (X, _) in enumerate(search.calls):
        np.testing.assert_array_equal(X, dataset.X[folds != fold])
    at = SIZE_PENALTIES.index(found.penalties)
    assert found.trees == [tree for made in search.made for tree in made[at]]


@pytest.mark.parametrize(
    ("time_limit", "n_searches"), [(0.5, 1), (1.5, 2), (4.5, 5), (100.0, 5)]
)
def test_no_search_begins_when_the_time_is_up(monkeypatch, time_limit, n_searches):
    """A search takes a second here."""
    now, search = [0.0], Search()

    def slow(*arguments):
        now[0] += 1.0
        return search(*arguments)

    monkeypatch.setattr(choosing.time, "perf_counter", lambda: now[0])
    found = choose(chessboard(1000, 2), slow, end=time_limit)
    assert found.penalties in SIZE_PENALTIES and len(search.calls) == n_searches


# ---- the rule ------------------------------------------------------------------------------------


def naive_mean_and_error(values, weights):
    """Repeat each row as often as it weighs."""
    rows = [v for v, n in zip(values, weights, strict=True) for _ in range(int(n))]
    mean = math.fsum(rows) / len(rows)
    squares = math.fsum((v - mean) ** 2 for v in rows) / len(rows)
    return mean, math.sqrt(squares / len(rows))


def weights_of(trials):
    return np.concatenate([trial.weights for trial in trials])


def lost_by(one, trials):
    """Return what a candidate loses on the rows of all trials."""
    return np.concatenate([trial.losses[one] for trial in trials])


def excess_of(one, other, trials):
    """Return what a candidate loses more than another, with its standard error."""
    excess = lost_by(one, trials) - lost_by(other, trials)
    return naive_mean_and_error(excess, weights_of(trials))


def size_in(trials, one):
    """Return the mean number of leaves, and the mean complexity."""
    return np.mean([trial.sizes[one] for trial in trials], axis=0)


def naive_simplest(trials, standard_errors, kinds):
    """Compare the candidates that all trials have, row by row, by rising complexity."""
    known = [one for one in trials[0].losses if all(one in t.losses for t in trials)]
    size = {one: size_in(trials, one)[1] for one in known}
    asked = sorted((one for one in known if one.kind in kinds), key=size.get)
    best = min(asked, key=lambda one: excess_of(one, asked[0], trials)[0])

    def is_near(one, errors):
        mean, error = excess_of(one, best, trials)
        return mean <= errors * error + 1e-12

    chosen = next(one for one in asked if is_near(one, standard_errors))
    small = [one for one in asked if size[one] <= LARGE]
    if small and size[chosen] > LARGE:
        smaller = min(small, key=lambda one: excess_of(one, best, trials)[0])
        if is_near(smaller, LARGE_ERRORS):
            return smaller
    return chosen


CANDIDATES_OF_KINDS = {
    TREE: [Candidate(TREE, at) for at in range(3)],
    LOGISTIC: [Candidate(LOGISTIC, strength=Strength(C)) for C in COSTS[:2]],
    EVOLVED: [Candidate(EVOLVED, at) for at in range(2)],
    LINEAR: [
        Candidate(LINEAR, at, Strength(C)) for at in (None, 0, 2) for C in COSTS[:2]
    ],
}


@st.composite
def some_trials(draw, *kinds):
    """Draw what candidates lose in some folds, of which one may lack a candidate."""
    rng = np.random.default_rng(draw(seeds))
    candidates = [one for kind in kinds for one in CANDIDATES_OF_KINDS[kind]]
    spread = draw(st.sampled_from((0.05, 0.3, 1.0)))
    # A loss that all have in common: differences are what counts.
    level = rng.normal(1.0, draw(st.sampled_from((0.0, 0.1, 0.5))), len(candidates))
    size = rng.integers(1, draw(st.sampled_from((20, 3 * int(LARGE)))), len(level))
    trials = []
    for fold in range(draw(st.integers(1, 3))):
        n = draw(st.integers(2, 20))
        common = rng.normal(size=n)
        losses = level[:, None] + common + spread * rng.normal(size=(len(level), n))
        if len(level) > 1:
            losses[1] = losses[0]  # at some penalties the tree is the same
        sizes = size + rng.integers(0, 3, len(size))
        trials.append(
            Trial(
                fold,
                FirstTrees([[object(), object()] for _ in range(3)], []),
                dict(zip(candidates, losses, strict=True)),
                {one: (1, int(n)) for one, n in zip(candidates, sizes, strict=True)},
                rng.integers(1, 4, n).astype(float),
            )
        )
    if len(candidates) > 3 and draw(st.booleans()):
        lacking = trials[rng.integers(len(trials))]
        del lacking.losses[candidates[-1]], lacking.sizes[candidates[-1]]
    return trials


@given(some_trials(TREE, LOGISTIC), st.sampled_from((0.0, 0.5, 1.0, 1.7)))
def test_the_choice_agrees_with_its_naive_twin(trials, standard_errors):
    """Also where some kinds alone are asked for."""
    table = Table.of(trials)
    for kinds in [(TREE, LOGISTIC), (TREE,), (LOGISTIC,)]:
        chosen = table.simplest(standard_errors, *kinds)
        assert chosen.kind in kinds
        assert chosen == naive_simplest(trials, standard_errors, kinds)


@given(some_trials(TREE, EVOLVED), st.sampled_from((0.0, 0.5, 2.0)))
def test_the_most_complex_trees_that_are_good_have_the_least_penalties_to_evolve_at(
    trials, standard_errors
):
    """Those of one kind alone are compared."""
    table = Table.of(trials)
    for kind in (TREE, EVOLVED):
        of_kind = [one for one in table.candidates if one.kind == kind]
        best = table.best(kind)
        assert best in of_kind
        excess = {one: excess_of(one, best, trials) for one in of_kind}
        assert all(mean >= -1e-12 for mean, _ in excess.values())
        near = [
            one
            for one, (mean, error) in excess.items()
            if mean <= standard_errors * error + 1e-12
        ]
        assert table.most_complex(standard_errors, kind) == near[-1]


@given(some_trials(TREE, LOGISTIC, EVOLVED))
def test_an_evolved_tree_is_less_complex_and_as_good_or_clearly_better(trials):
    assume(all(CANDIDATES_OF_KINDS[EVOLVED][-1] in trial.losses for trial in trials))
    found = verdict_of(trials, PENALTIES)
    plain = naive_simplest(trials, STANDARD_ERRORS, (TREE, LOGISTIC))
    bred = naive_simplest(trials, STANDARD_ERRORS, (EVOLVED,))
    gain, error = excess_of(plain, bred, trials)
    size, other = (size_in(trials, one)[1] for one in (bred, plain))
    if size < other:
        needed = -STANDARD_ERRORS
    else:
        needed = LARGE_ERRORS if size > LARGE >= other else STANDARD_ERRORS
    assume(abs(gain - needed * error) > 1e-9)
    same = [
        one
        for one in trials[0].losses
        if one.kind == EVOLVED
        and all(
            one in trial.losses
            and np.array_equal(trial.losses[one], trial.losses[bred])
            for trial in trials
        )
    ]
    least = max(
        (one for one in same if (size_in(trials, one) == size_in(trials, bred)).all()),
        key=lambda one: one.at,
    )
    assert found.winner == (least if gain > needed * error else plain)


@given(some_trials(TREE, LOGISTIC))
def test_the_winner_sets_the_penalties_and_the_trees_that_are_kept(trials):
    """A logistic tree has no penalties: those of the best trees are kept, for the front."""
    found = verdict_of(trials, PENALTIES)
    assert found.winner == naive_simplest(trials, STANDARD_ERRORS, (TREE, LOGISTIC))
    at = found.winner.at
    if at is None:
        at = naive_simplest(trials, STANDARD_ERRORS, (TREE,)).at
    assert found.penalties == PENALTIES[at]
    assert found.trees == [tree for trial in trials for tree in trial.trees.best[at]]
    larger = [trees[0] for t in trials for trees in t.trees.best[at + 1 :]]
    assert found.front_only == larger
    # Of several trees of logistic models the one that is kept is the one that was compared.
    logistic = found.winner
    if logistic.kind != LOGISTIC:
        logistic = naive_simplest(trials, STANDARD_ERRORS, (LOGISTIC,))
    assert found.logistic == logistic.strength


@given(some_trials(TREE, LINEAR))
def test_where_leaves_have_models_no_other_candidate_wins(trials):
    found = verdict_of(trials, PENALTIES, (LINEAR,))
    assert found.winner == naive_simplest(trials, STANDARD_ERRORS, (LINEAR,))
    nothing = verdict_of([], PENALTIES, (LINEAR,)).winner
    assert nothing.kind == LINEAR and nothing.strength is not None
    assert verdict_of([], PENALTIES).winner.kind == TREE


@given(some_trials(TREE, LINEAR))
def test_of_times_a_split_pays_clearly_beside_models_of_one_leaf(trials):
    """Else it is the leaf that loses least."""
    kinds = (TREE, LINEAR)
    for one in trials[0].losses:
        if one.at is not None:
            for trial in trials:
                if one in trial.sizes:
                    trial.sizes[one] = (2, trial.sizes[one][1])
    found = verdict_of(trials, PENALTIES, kinds)
    split = naive_simplest(trials, STANDARD_ERRORS, kinds)
    leaves = [one for one in trials[0].losses if one.at is None]
    leaf = min(leaves, key=lambda one: excess_of(one, split, trials)[0])
    gain, error = excess_of(leaf, split, trials)
    assume(abs(gain - LEAF_ERRORS * error) > 1e-9 or split == leaf)
    assert found.winner == (split if gain > LEAF_ERRORS * error else leaf)


@given(some_trials(TREE, LOGISTIC))
def test_the_table_says_what_was_compared(trials):
    penalties = [Penalties(size, 2.0 * size) for size in SIZE_PENALTIES[:3]]
    found = verdict_of(trials, penalties)
    frame = pd.DataFrame(found.columns)
    shared = [c for c in trials[0].losses if all(c in t.losses for t in trials)]
    assert len(frame) == len(shared) and frame["complexity"].is_monotonic_increasing
    (chosen,) = frame[frame["chosen"]].index
    for candidate in shared:
        (row,) = (
            row
            for row in frame.itertuples()
            if row.kind == candidate.kind
            and (
                row.size_penalty == penalties[candidate.at].size
                if candidate.strength is None
                else row.C == candidate.strength.C
            )
        )
        assert (row.Index == chosen) == (candidate == found.winner)
        excess = excess_of(candidate, found.winner, trials)
        assert (row.excess, row.standard_error) == pytest.approx(excess, abs=1e-9)
        loss, _ = naive_mean_and_error(lost_by(candidate, trials), weights_of(trials))
        assert row.loss == pytest.approx(loss)
        sizes = size_in(trials, candidate)
        assert (row.leaves, row.complexity) == pytest.approx(sizes)
        if candidate.strength is None:
            assert row.term_penalty == penalties[candidate.at].term
            assert np.isnan(row.C) and np.isnan(row.halvings)
        else:
            assert np.isnan(row.size_penalty) and np.isnan(row.term_penalty)
            assert row.halvings == candidate.strength.halvings
        for trial in trials:
            mean = np.average(trial.losses[candidate], weights=trial.weights)
            assert getattr(row, f"fold_{trial.fold}") == pytest.approx(mean)


@st.composite
def tables_with_scores(draw):
    """Return a table of a tree, or one leaf, of this on a score, and of the score alone."""
    is_leaf = draw(st.booleans())
    some = [Candidate(TREE, 0)]
    if not is_leaf and draw(st.booleans()):
        some.append(Candidate(TREE, 0, is_scored=True))
    if draw(st.booleans()):
        some.append(Candidate(SCORE))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    losses = rng.normal(size=(len(some), 8)) + 0.3 * rng.normal(size=(len(some), 1))
    complexity = {TREE: 1 if is_leaf else 4, SCORE: 3}
    sizes = [[1, complexity[one.kind] + one.is_scored] for one in some]
    return Table(some, losses, np.array(sizes), np.ones(8))


@given(tables_with_scores(), st.booleans(), st.booleans())
def test_a_score_joins_the_tree_that_was_chosen_unless_that_costs(
    table, of_two, demanded
):
    def is_ahead(one, other, errors):
        losses = [table.losses[table.candidates.index(c)] for c in (one, other)]
        gain, error = naive_mean_and_error(losses[1] - losses[0], table.weights)
        return gain >= errors * error

    winner = table.candidates[0]
    both = next((one for one in table.candidates if one.is_scored), None)
    alone = next((one for one in table.candidates if one.kind == SCORE), None)
    best, lenient = winner, -STANDARD_ERRORS
    if both is not None:
        needed = lenient if of_two else STANDARD_ERRORS
        best = both if demanded or is_ahead(both, winner, needed) else winner
    if alone is not None and table.is_leaf(winner):
        needed = lenient if of_two else STANDARD_ERRORS
        best = alone if demanded or is_ahead(alone, winner, needed) else winner
    elif alone is not None:  # it is less complex than either
        is_left = demanded and best == winner
        best = alone if is_left or is_ahead(alone, best, lenient) else best
    assert on_score(table, winner, of_two=of_two, demanded=demanded) == best


@st.composite
def racing_trials(draw):
    """Draw trials of trees alone, and of trees on a score in the same folds."""
    rng = np.random.default_rng(draw(seeds))
    pairs = []
    for fold in range(4):
        gain = draw(st.sampled_from((-1.0, -0.1, 0.0, 0.1, 1.0)))
        n = draw(st.integers(2, 20))
        weights = rng.integers(1, 4, n).astype(float)
        pair = []
        for kinds, mean in (((TREE,), 1.0), ((TREE, SCORE), 1.0 - gain)):
            some = [
                Candidate(kind) if kind == SCORE else Candidate(kind, 0)
                for kind in kinds
            ]
            losses = {one: rng.normal(mean, 0.3, n) for one in some}
            sizes = {one: (1, int(rng.integers(1, 9))) for one in some}
            trees = FirstTrees([[object()]], [])
            pair.append(Trial(fold, trees, losses, sizes, weights))
        pairs.append(pair)
    return pairs


@given(racing_trials(), st.booleans())
def test_trees_alone_or_on_a_score_leave_once_the_others_lose_less(pairs, demanded):
    """What the table says of those that left is by the folds that they were in."""
    leaves = SCORE if demanded else "auto"
    problem = SimpleNamespace(scored=True, config=SimpleNamespace(leaves=leaves))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "samples_of", lambda problem: [None])
        patch.setattr(choosing, "kinds_of", lambda problem: (TREE, LOGISTIC))

        def trials_of(one, *others):
            return iter([pair[one is True] for pair in pairs])

        patch.setattr(choosing, "trials_of", trials_of)
        raced = list(trials_of_targets(problem, math.inf))
    left = None
    for k, (pair, whole) in enumerate(zip(raced, pairs, strict=True), start=1):
        assert [one is None for one in pair] == [left == place for place in (0, 1)]
        assert all(one in (None, trial) for one, trial in zip(pair, whole, strict=True))
        if left is not None:
            continue
        plain, scored = zip(*pairs[:k], strict=True)
        best = min(
            (lost_by(one, scored) for one in scored[0].losses),
            key=weights_of(plain).dot,
        )
        gains = lost_by(Candidate(TREE, 0), plain) - best
        gain, error = naive_mean_and_error(gains, weights_of(plain))
        if gain > STANDARD_ERRORS * error:
            left = 0
        elif gain < -EVOLVING_ERRORS * error and not demanded:
            left = 1
    plain, scored = (
        [one for one in kind if one is not None] for kind in zip(*raced, strict=True)
    )
    if left == 1:
        return
    penalties = [Penalties(0.1, 0.2)]
    found = with_score(
        verdict_of(plain, penalties), plain, scored, penalties, demanded=demanded
    )
    assert found.winner.has_score or left is None
    frame = pd.DataFrame(found.columns)
    if not found.winner.has_score:
        return
    winner = found.winner._replace(is_scored=False)  # as trials on a score have it
    mean, _ = naive_mean_and_error(lost_by(winner, scored), weights_of(scored))
    for row in frame.itertuples():
        trials = scored if row.on_score or row.kind == SCORE else plain
        one = Candidate(SCORE) if row.kind == SCORE else Candidate(TREE, 0)
        gains = lost_by(one, trials) - lost_by(winner, scored[: len(trials)])
        excess, error = naive_mean_and_error(gains, weights_of(trials))
        assert (row.excess, row.standard_error) == pytest.approx((excess, error))
        assert row.loss == pytest.approx(mean + excess)
        of_folds = frame.filter(like="fold_").loc[row.Index]
        assert of_folds.notna().sum() == len(trials)


# ---- evolved trees -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tried():
    """A small problem, and the trials of what competes before anything evolves."""
    rows = chessboard(150, 3, noise=0.1)
    problem = prepare(rows, quick(SearchConfig))
    trials = list(trials_of(problem, rows, math.inf))
    assert len(trials) == 5
    return problem, rows, trials


def losing(trials, lost):
    """Return trials whose candidates lose something else, the same on all rows."""
    return [
        trial._replace(
            losses={
                one: np.full(len(trial.weights), float(lost(one)))
                for one in trial.losses
            }
        )
        for trial in trials
    ]


@pytest.mark.parametrize("n_leaves", [1, 2, 3])
def test_where_nothing_can_be_gained_by_evolution_trials_stay_as_they_are(
    tried, monkeypatch, n_leaves
):
    """That is seen before the third fold; where one split is chosen nothing evolves at all.

    Where no split pays evolution may find what columns do together.
    """
    problem, rows, trials = tried
    runs, brief_run = [], choosing.evolve_briefly
    monkeypatch.setattr(
        choosing,
        "evolve_briefly",
        lambda *args, **options: runs.append(args) or brief_run(*args, **options),
    )
    best = [
        trial._replace(sizes=dict.fromkeys(trial.sizes, (n_leaves, 2 * n_leaves - 1)))
        for trial in losing(trials, lambda one: 0.0)
    ]
    assert with_evolution(problem, rows, best, math.inf) is best
    assert len(runs) == 0 if n_leaves == 2 else 1 <= len(runs) <= 2


@pytest.mark.parametrize("good", [(0, 0), (0, 4), (4, 17)])
def test_evolved_trees_join_the_trials_where_they_gain(tried, good):
    """At the penalties of the most complex good trees, and at those before."""
    problem, rows, trials = tried
    good = [Candidate(TREE, at) for at in good]
    worse = losing(trials, lambda one: 99.0 if one in good else 100.0)
    judged = with_evolution(problem, rows, worse, math.inf)
    assert len(judged) == len(trials)
    of_good = [one for one in Table.of(worse).candidates if one in good]
    for before, after in zip(worse, judged, strict=True):
        added = set(after.losses) - set(before.losses)
        assert added == {Candidate(EVOLVED, i) for i in range(of_good[-1].at + 1)}
        assert set(after.sizes) == set(after.losses)
        for one, losses in before.losses.items():
            assert after.losses[one] is losses
        assert all(after.losses[one].shape == after.weights.shape for one in added)
        assert all(after.losses[one].max() < 99.0 for one in added)
    penalties = penalties_to_try(problem.config, rows.total_weight)
    found = verdict_of(judged, penalties)
    assert found.winner.kind == EVOLVED
    assert found.penalties == penalties[found.winner.at]


@pytest.mark.parametrize("objective", ["f1", "mcc", "balanced_accuracy", "cost"])
def test_errors_cost_the_same_in_all_candidates_of_a_fold(objective):
    """Those of the menu by size stand beside all others."""
    rows = chessboard(150, 3, noise=0.1)
    named = Cost([[0, 1], [3, 0]]) if objective == "cost" else objective
    problem = prepare(rows, quick(SearchConfig, objective=named))
    rows = problem.dataset
    trials = with_sizes(problem, rows, list(trials_of(problem, rows, math.inf)), 1e300)
    for trial in trials:
        costs = {
            kind: {
                round(float(cost), 9)
                for one, losses in trial.losses.items()
                if one.kind == kind
                for cost in losses
            }
            for kind in (TREE, SIZED)
        }
        assert 1 < len(costs[SIZED]) <= 3 and costs[SIZED] <= costs[TREE]


# ---- fits ----------------------------------------------------------------------------------------


def frame_of(model):
    return model.choice_.to_frame()


@pytest.mark.slow
def test_the_choice_is_the_same_for_all_seeds_and_threads():
    """And so is the tree, if it is a first one, though each run has bred others."""
    rows = chessboard(200, 3, noise=0.1)
    models = [
        quick(random_state=seed, n_jobs=n_jobs, max_generations=8).fit(rows.raw, rows.y)
        for seed, n_jobs in ((0, 1), (1, 2), (2, 1))
    ]
    first, *others = models
    assert first.hall_of_fame_ != others[0].hall_of_fame_
    table = frame_of(first)
    is_bred = set(table["kind"][table["chosen"]]) == {EVOLVED}
    for other in others:
        pd.testing.assert_frame_equal(frame_of(other), table)
        assert (other.size_penalty_, other.term_penalty_) == (
            first.size_penalty_,
            first.term_penalty_,
        )
        assert is_bred or other.tree_ == first.tree_


def test_neither_the_order_of_rows_nor_the_unit_of_weights_changes_the_choice():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    first = quick().fit(X, y)
    again = quick().fit(X[order], y[order], np.full(len(y), 3.0))
    pd.testing.assert_frame_equal(frame_of(again), frame_of(first))
    assert again.tree_ == first.tree_


def test_a_fit_says_what_it_has_chosen():
    model = quick(size_penalty="auto").fit(*load_iris(return_X_y=True))
    table = frame_of(model)
    (chosen,) = table[table["chosen"]].itertuples()
    # That of all rows is smaller than that of the rows of a fold.
    assert chosen.kind in (TREE, EVOLVED)
    assert chosen.size_penalty == model.size_penalty_
    assert chosen.term_penalty == model.term_penalty_
    choice = model.choice_
    assert choice.loss == "log_loss"
    assert choice.n_leaves == model.tree_.n_leaves
    assert choice.n_terms == model.tree_.n_terms
    assert model.pareto_front_.choice is choice


@pytest.mark.parametrize("task", ["classes", "costs", "targets"])
def test_where_there_is_one_candidate_nothing_is_compared(task):
    """By penalties that are given, and by one that leaves no choice of the other."""
    X, y = make_friedman1(60, 5, random_state=0)
    is_high = y > np.median(y)
    dataset = Dataset.from_arrays(X, y, task="regression")
    options = {}
    if task != "targets":
        dataset = Dataset.from_arrays(X, is_high)
    if task == "costs":
        options = {"objective": Cost([[0, 1], [3, 0]])}
    given = [{"size_penalty": 0.01, "term_penalty": 0.001}]
    if task != "classes":  # of which logistic trees are candidates where terms are free
        given.append({"size_penalty": 0.0, "term_penalty": "auto"})
    for penalties in given:
        problem = prepare(dataset, quick(SearchConfig, **options, **penalties))
        assert next(trials_of(problem, problem.dataset, math.inf), None) is None


# ---- continued -----------------------------------------------------------------------------------

# ---- the front, and the time ---------------------------------------------------------------------


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
    ends = Deadlines.of(limit, begin)
    assert begin < ends.evolution < ends.trees < ends.all
    assert ends.all == pytest.approx(begin + limit)
    assert ends.all - ends.evolution >= 0.2 * limit

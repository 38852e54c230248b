"""Searches by scores: trees whose worth a callable alone knows."""

import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree import (
    Checkpoint,
    Islands,
    ObliqueTreeClassifier,
    ScoredProblem,
    SearchConfig,
    Variation,
    search_scores,
)
from evotree.operators.constraints import ShapeLimits
from evotree.operators.structure.splice import make_individual
from evotree.rng import make_streams
from evotree.simulators.scores import DEFAULT, Scorer
from evotree.simulators.trees import Breeder
from evotree.texts import export_text
from evotree.tree import ObliqueTree
from tests.runs import assert_same_run


def points_of(seed, n=60):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (n, 2))


def agreement(tree, seed):
    """Return how often a tree says on which side of a line points are, of an episode."""
    X = points_of(seed)
    return float((tree.predict_label(X) == (X.sum(axis=1) > 0.2)).mean())


def closeness(tree, seed):
    X = points_of(seed)
    return -float(
        np.abs(tree.predict_value(X)[:, 0] - np.where(X[:, 0] > 0.0, 1.0, -0.5)).mean()
    )


POINTS = points_of(0, 512)
NOISY = ScoredProblem(agreement, ["no", "yes"], POINTS, n_episodes=8)
SMALL = replace(DEFAULT, population_size=24)
BRIEF = SearchConfig(max_generations=25, random_state=0, evolution=SMALL)


@pytest.fixture(scope="module")
def found():
    return search_scores(NOISY, BRIEF)


def test_the_tree_is_found_and_says_what_it_is_worth(found):
    tree = found.tree
    fresh = np.mean([agreement(tree, seed) for seed in range(10**6, 10**6 + 50)])
    assert fresh > 0.9 and fresh == pytest.approx(tree.quality, abs=0.03)
    assert (
        tree in found.front
        and isinstance(tree, ObliqueTree)
        and tree.validate() is tree
    )
    one_leaf = found.front[0]
    assert one_leaf.n_leaves == 1 and one_leaf.quality < tree.quality - 0.2
    assert found.n_scores > sum(found.run.logbook.select("nevals"))
    assert f"n_scores={found.n_scores})" in repr(found) and len(repr(found)) < 5_000
    weights = tree.weights[tree.weights != 0.0].tolist()
    assert [float(f"{one:.3g}") for one in weights] == weights
    text = export_text(tree, class_names=["no", "treat"])
    assert "treat" in text and "treat: 1.00" not in text  # actions have no shares


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same(found):
    other = search_scores(NOISY, replace(BRIEF, n_jobs=2))
    assert_same_run(other.run, found.run)
    assert list(other.front) == list(found.front)


def test_islands_in_processes_are_those_of_this_one():
    config = replace(BRIEF, evolution=replace(SMALL, islands=Islands(2, every=3)))
    alone = search_scores(NOISY, config)
    with ProcessPoolExecutor(2) as processes:
        islands = Islands(2, every=3, executor=processes)
        evolution = replace(SMALL, islands=islands)
        apart = search_scores(NOISY, replace(config, evolution=evolution))
    assert alone.tree == apart.tree and alone.tree.quality == apart.tree.quality > 0.9


@pytest.mark.parametrize("n_islands", [1, 2])
@pytest.mark.parametrize(
    ("score", "actions", "leaves"),
    [
        (agreement, 2, "constant"),
        (closeness, (-1.0, 2.0), "constant"),
        (closeness, (-1.0, 2.0), "linear"),
    ],
    ids=["actions", "numbers", "lines"],
)
def test_every_kind_of_leaf_goes_on_as_if_it_had_not_stopped(
    score, actions, leaves, n_islands, tmp_path
):
    problem = ScoredProblem(score, actions, POINTS, n_episodes=2)
    evolution = replace(SMALL, islands=Islands(n_islands, every=3))
    config = replace(BRIEF, leaves=leaves, max_generations=6, evolution=evolution)
    whole = search_scores(problem, config)
    path = tmp_path / "run.npz"
    part = replace(config, max_generations=3, checkpoint=Checkpoint(path))
    search_scores(problem, part)
    rest = search_scores(
        problem, replace(config, checkpoint=Checkpoint(path, resume=True))
    )
    assert_same_run(whole.run, rest.run)
    assert rest.tree == whole.tree and list(rest.front) == list(whole.front)
    for one in rest.run.population:
        assert ObliqueTree(*one.splits, np.zeros((len(one), 1))).validate()
        assert not one.thresholds[one.is_leaf].any()


def test_racing_spares_episodes_of_the_worst():
    dataset = NOISY.dataset(BRIEF)
    breeder, scorer = Breeder(dataset, [], 2), Scorer(NOISY, dataset, BRIEF, 0)
    scores = scorer.race(list(map(breeder.first, make_streams(0, 0, 24))), 7, 8)
    assert Counter(map(len, scores)) == {2: 12, 4: 6, 8: 6}
    for few in (2, 4):
        out = [np.mean(one) for one in scores if len(one) == few]
        assert max(out) <= min(np.mean(one[:few]) for one in scores if len(one) > few)


def test_scores_without_chance_are_asked_once():
    asked = []

    def exact(tree, seed):
        asked.append(
            (tree.weights.tobytes(), tree.thresholds.tobytes(), tree.labels.tobytes())
        )
        return agreement(tree, 0)

    result = search_scores(ScoredProblem(exact, 2, POINTS), BRIEF)
    # Once more the best tree is watched.
    n_bred = sum(result.run.logbook.select("nevals"))
    assert len(asked) == result.n_scores == n_bred + 1
    best = result.run.logbook.chapters["quality"].select("best")
    assert result.tree.quality == max(best) == agreement(result.tree, 0)


def test_leaves_count_the_states_that_episodes_reach():
    asked = []

    def exact(tree, seed):
        few = POINTS[POINTS[:, 0] < 0.2]
        asked.append((tree, few if len(asked) % 2 else few[:5]))
        return agreement(tree, 0) + 0.0 * tree.predict_label(asked[-1][1]).sum()

    result = search_scores(ScoredProblem(exact, 2, POINTS, n_episodes=3), BRIEF)
    watched = [points_of(0) for _ in range(3)] + [one for _, one in asked[-3:]]
    leaves = np.concatenate([result.tree.apply(one) for one in watched])
    is_leaf = result.tree.is_leaf
    counts = np.bincount(leaves, minlength=len(result.tree))
    np.testing.assert_array_equal(result.tree.n_node_samples[is_leaf], counts[is_leaf])
    assert " states)" in export_text(result.tree)
    alone = result.tree.replaced(weighted_n_node_samples=np.where(is_leaf, 0.0, 1.0))
    assert export_text(alone).count("(never reached)") == result.tree.n_leaves


@pytest.mark.parametrize("leaves", ["constant", "linear"])
def test_leaves_answer_numbers(leaves):
    problem = ScoredProblem(closeness, (-1.0, 2.0), POINTS, n_episodes=4)
    result = search_scores(problem, replace(BRIEF, leaves=leaves))
    assert result.tree.quality > result.front[0].quality + 0.2
    assert (result.tree.models is None) == (leaves == "constant")
    values = result.tree.predict_value(points_of(1))
    assert (values >= -1.0).all() and (values <= 2.0).all()
    if leaves == "linear":
        begun = replace(SMALL, init=result.tree)
        with pytest.raises(ValueError, match="allowed are trees of 2 features without"):
            search_scores(problem, replace(BRIEF, leaves=leaves, evolution=begun))


def test_bounds_are_kept_and_trees_taken_as_they_are():
    bounds = {"max_leaf_nodes": 3, "max_depth": 2, "max_terms": 3, "max_split_terms": 1}
    result = search_scores(NOISY, replace(BRIEF, **bounds))
    limits = ShapeLimits(2, 3, 3, 0.0, 1)
    for one in (*result.run.population, *result.run.hall_of_fame):
        assert limits.keeps(one, None)
    X = points_of(5, 400)
    given = ObliqueTreeClassifier("oc1", random_state=0).fit(X, X.sum(axis=1) > 0.2)
    config = replace(BRIEF, max_generations=0, evolution=replace(SMALL, init=[given]))
    first = search_scores(replace(NOISY, observations=X), config)
    assert any(one.origin == "initial" for one in first.run.population)
    assert first.tree.quality == pytest.approx(agreement(given.tree_, 10**7), abs=0.06)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([3, (-2.0, 5.0)]), st.booleans())
def test_every_operator_leaves_whole_trees(seed, actions, is_linear):
    linear = is_linear and not isinstance(actions, int)
    config = replace(BRIEF, leaves="linear" if linear else "constant")
    problem = ScoredProblem(agreement, actions, POINTS)
    dataset = problem.dataset(config)
    breeder, scorer = Breeder(dataset, [], 2), Scorer(problem, dataset, config, 0)
    first, second = map(breeder.first, make_streams(seed, 0, 2))
    for number in range(6):
        streams = make_streams(seed, number + 1, 2)
        first.stream, second.stream = streams
        (first,) = breeder.mutate(first, lambda one: (one,))
        first.stream = streams[1]
        first, second = breeder.mate(first, second, lambda one, other: (other, one))
        for one in (first, second):
            leaf = one.is_leaf
            assert not one.weights[leaf].any() and not one.thresholds[leaf].any()
            assert np.isfinite(one.answers[leaf]).all()
            assert np.isnan(one.answers[~leaf]).all()
            again = make_individual(dataset, *one.splits, one.answers)
            for a, b in zip(again.nodes(), one.nodes(), strict=True):
                np.testing.assert_array_equal(a, b)
            tree = dataset.objective.finished(one, dataset, scorer.shorten)
            assert tree.n_terms == one.n_terms or linear
            answers, ends = one.answers[:, 0], np.flatnonzero(one.subtree_size == 3)
            if isinstance(actions, int):
                assert set(answers[leaf]) <= {0.0, 1.0, 2.0}
                assert (answers[ends + 1] != answers[ends + 2]).all()
            elif not linear:
                assert (np.abs(tree.values[leaf] - 1.5) <= 3.51).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_episodes": 0}, "n_episodes=0: allowed is a whole number of at least 1"),
        ({"observations": [[1.0, 2.0]]}, "observations has 1 points: allowed are 2"),
        ({"actions": 1}, "actions=1: allowed are 2 or more"),
        ({"actions": ["a", "b", "b"]}, "allowed are 2 or more, different names"),
        ({"actions": (1.0, np.inf)}, "two finite bounds"),
        (
            {"score": lambda tree, seed: np.nan},
            "score returned nan: allowed is a finite number",
        ),
        ({"score": lambda tree, seed: "good"}, "score returned 'good'"),
        ({"score": lambda tree, seed: -1e101}, "of a magnitude up to 1e.100"),
        ({"score": lambda tree, seed: 10**400}, "score returned 10*[.]{3}: allowed"),
        ({"score": lambda tree, seed: np.ones(1)}, "allowed is a finite number"),
        ({"score": lambda tree, seed: (1.0, 2.0)}, "allowed is a finite number"),
    ],
)
def test_wrong_problems_are_named(changed, message):
    with pytest.raises(ValueError, match=message):
        search_scores(replace(NOISY, **changed), BRIEF)


@pytest.mark.parametrize("value", [np.float32(1.0), 1, 1e100])
def test_numbers_of_any_kind_are_scores(value):
    problem = replace(NOISY, score=lambda tree, seed: value)
    found = search_scores(problem, replace(BRIEF, max_generations=0))
    assert found.tree.quality == pytest.approx(float(value), rel=1e-12)


def test_a_score_that_ends_iterations_ends_no_loop_of_the_search():
    with pytest.raises(RuntimeError):
        search_scores(replace(NOISY, score=lambda *_: next(iter(()))), BRIEF)


@pytest.mark.parametrize(
    ("changed", "evolution"),
    [
        ({"objective": "f1"}, {}),
        ({"warm_start": True}, {}),
        ({"leaves": "linear"}, {}),
        ({"monotonic_cst": [1, 0]}, {}),
        ({}, {"refinement": "tao"}),
        ({}, {"variation": Variation(algorithm="nsga2")}),
        ({}, {"max_samples": 0.5}),
        ({}, {"hold": [0]}),
        ({}, {"init": ["axis"]}),
        ({}, {"shapes": {"x0": [("above", 1.0)]}}),
    ],
)
def test_what_needs_labels_is_refused(changed, evolution):
    config = replace(BRIEF, evolution=replace(SMALL, **evolution), **changed)
    message = "search by scores has no labels|leaves='linear' needs"
    with pytest.raises(ValueError, match=message):
        search_scores(NOISY, config)


@pytest.mark.parametrize(
    ("rows", "n_times", "message"),
    [
        (np.eye(3), 1, "allowed are trees of 2 features"),
        (np.eye(3)[:, :2], 1, "init holds a tree of 3 actions: 2 there are"),
        (np.eye(2), 25, "init holds 25 trees: at most 24, the population"),
    ],
)
def test_first_trees_that_do_not_fit_are_refused(rows, n_times, message):
    model = ObliqueTreeClassifier("axis").fit(rows, np.arange(len(rows)))
    evolution = replace(SMALL, init=[model] * n_times)
    with pytest.raises(ValueError, match=message):
        search_scores(NOISY, replace(BRIEF, evolution=evolution))


# ---- going on, limits, and workers that die ------------------------------------------------------


class Margin:
    """A score with a state of its own."""

    def __init__(self, margin):
        self.margin = margin

    def __call__(self, tree, seed):
        return agreement(tree, seed) - self.margin


def going_on(path, **changed):
    return replace(BRIEF, max_generations=3, checkpoint=Checkpoint(path, **changed))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("score=.*closeness.*: the run in .* has score=", {"score": closeness}),
        ("score=.*Margin.*: the run in .* has score=", {"score": Margin(0.1)}),
        ("actions", {"actions": ["yes", "no"]}),
        ("n_episodes", {"n_episodes": 4}),
        ("other rows", {"observations": points_of(1, 512)}),
    ],
)
def test_a_search_goes_on_with_the_same_problem_only(tmp_path, name, other):
    path, problem = tmp_path / "run.npz", replace(NOISY, score=Margin(0.2))
    first = search_scores(problem, going_on(path))
    again = going_on(path, resume=True)
    assert search_scores(replace(problem, score=Margin(0.2)), again).tree == first.tree
    with pytest.raises(ValueError, match=name):
        search_scores(replace(problem, **other), again)


@pytest.mark.parametrize("islands", [1, 2])
@pytest.mark.parametrize("limit", [1.0, 40.0, 300.0])
def test_a_limit_holds_for_the_first_trees_and_the_last(monkeypatch, limit, islands):
    """A score takes a second here, and all else nothing."""
    now = [0.0]

    def slow(tree, seed):
        now[0] += 1.0
        return agreement(tree, seed)

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    evolution = replace(SMALL, islands=Islands(islands, every=2))
    config = replace(
        BRIEF, time_limit=limit, evolution=evolution, max_generations=10**6
    )
    result = search_scores(replace(NOISY, score=slow), config)
    assert now[0] <= limit + islands
    assert result.run.stop_reason == "time_limit"
    assert np.isfinite(result.tree.quality) and result.tree in result.front
    if limit == 300.0:
        assert now[0] > 0.9 * limit
        assert result.tree.quality > 0.6


def agreement_unless(path, tree, seed):
    """A simulator that crashes once a file is there."""
    if path.exists():
        os._exit(9)
    return agreement(tree, seed)


@pytest.mark.slow
def test_a_worker_that_dies_is_an_error_and_loses_no_generation(found, tmp_path):
    crash, path = tmp_path / "crash", tmp_path / "run.npz"
    problem = replace(NOISY, score=partial(agreement_unless, crash))

    def arrange(run):
        if run.generation == 4:
            crash.touch()

    config = replace(BRIEF, n_jobs=2, callbacks=[arrange])
    with pytest.raises(RuntimeError, match="worker"):
        search_scores(problem, replace(config, checkpoint=Checkpoint(path, every=100)))
    crash.unlink()
    whole = search_scores(
        problem, replace(BRIEF, checkpoint=Checkpoint(path, resume=True))
    )
    assert whole.tree == found.tree

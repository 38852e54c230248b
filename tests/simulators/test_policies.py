"""Policies for environments of gymnasium, and for a small one that needs nothing."""

import pickle
import sys
from dataclasses import replace
from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import parallel_config

from evotree import SearchConfig
from evotree.simulators.policies import (
    Environment,
    actor,
    choices_of,
    evolve_policy,
    imitations,
)
from evotree.simulators.scores import DEFAULT
from evotree.tree import ObliqueTree

BRIEF = SearchConfig(
    max_generations=8, random_state=1, evolution=replace(DEFAULT, population_size=16)
)


MADE = []  # all walkers of this process


class Track:
    """A walker on a line, in a gymnasium's clothes: it is paid for being near the middle."""

    def __init__(self, kind="discrete", start=0, most=12, paid=float):
        sample = SimpleNamespace(seed=self._seed, sample=self._sample)
        if kind == "discrete":
            self.action_space = SimpleNamespace(n=2, start=start, **vars(sample))
        else:
            n = {"number": 1, "numbers": 2}[kind]
            ends = {
                "low": np.full(n, -1.0),
                "high": np.ones(n),
                "shape": (n,),
                "dtype": float,
            }
            self.action_space = SimpleNamespace(**ends, **vars(sample))
        self.kind, self.start, self.most, self.paid = kind, start, most, paid
        self.rng = np.random.default_rng(0)
        self.is_open = True
        MADE.append(self)

    def close(self):
        assert self.is_open
        self.is_open = False

    def _seed(self, seed):
        self.rng = np.random.default_rng(seed)

    def _sample(self):
        if self.kind == "discrete":
            return self.start + int(self.rng.integers(2))
        return self.rng.uniform(-1.0, 1.0, len(self.action_space.low))

    def reset(self, seed):
        self.at, self.n_steps = float(np.random.default_rng(seed).uniform(-3.0, 3.0)), 0
        return self._seen(), {}

    def _seen(self):
        return (np.array([self.at, 1.0 + self.n_steps]), 7)

    def step(self, action):
        assert self.is_open
        if self.kind == "discrete":
            assert action in (self.start, self.start + 1)
            move = 2.0 * (action - self.start) - 1.0
        else:
            move = float(np.sum(action)) / len(action)
        self.at, self.n_steps = self.at + 0.5 * move, self.n_steps + 1
        reward = self.paid(-abs(self.at))
        return self._seen(), reward, False, self.n_steps == self.most, {}


@pytest.mark.parametrize(
    "kwargs",
    [
        {"start": 5},
        {"kind": "number"},
        {"kind": "numbers", "actions": list(product((-1.0, 0.0, 1.0), repeat=2))},
    ],
    ids=["actions", "one", "two"],
)
def test_a_walker_learns_to_turn_back(kwargs):
    policy = evolve_policy(Track, BRIEF, n_points=200, **kwargs)
    returns = policy.returns(30, 1)
    assert returns.mean() > -11.0
    np.testing.assert_array_equal(returns, policy.returns(30, 1))
    left, right = (policy.act((np.array([at, 1.0]), 7)) for at in (-3.0, 3.0))
    assert np.mean(left) > np.mean(right)
    again = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(again.returns(30, 1), returns)


@pytest.mark.slow
def test_a_teacher_is_a_first_individual():
    policy = evolve_policy(
        Track,
        replace(BRIEF, max_generations=0),
        teacher=lambda point: int(point[0] < 0.0),
    )
    assert any(one.origin == "initial" for one in policy.result.run.population)
    assert policy.tree.origin == "initial"


@pytest.mark.parametrize("kind", ["discrete", "number"])
def test_the_actor_is_the_tree(kind):
    policy = evolve_policy(Track, replace(BRIEF, max_generations=2), kind=kind)
    tree, X = policy.tree, np.random.default_rng(0).uniform(-3.0, 3.0, (50, 3))
    act = actor(tree, policy.actions)
    said = tree.predict_label(X) if kind == "discrete" else tree.predict_value(X)
    found = np.ravel([act(x) for x in X.tolist()])
    np.testing.assert_allclose(found, np.ravel(said), rtol=1e-6)


@pytest.mark.parametrize("max_steps", [1, 7])
def test_an_episode_without_an_end_is_cut_off(max_steps):
    policy = evolve_policy(
        partial(Track, most=None),
        replace(BRIEF, max_generations=1),
        n_points=20,
        n_episodes=2,
        max_steps=max_steps,
    )
    seen = []
    done = policy.environment.episode(actor(policy.tree, policy.actions), 3, seen)
    assert len(seen) == max_steps and done == -sum(
        abs(point[0] + (0.5 if policy.act(point) else -0.5)) for point in seen
    )
    with pytest.raises(ValueError, match="max_steps=0: allowed is a whole number"):
        evolve_policy(Track, BRIEF, max_steps=0)


def test_every_environment_that_a_search_makes_is_closed():
    MADE.clear()
    with parallel_config(backend="threading", n_jobs=3):
        policy = evolve_policy(Track, replace(BRIEF, max_generations=2), n_episodes=4)
    policy.returns(3, 0)
    assert len(MADE) > 3 and not any(one.is_open for one in MADE)
    with pytest.raises(ZeroDivisionError):
        evolve_policy(Track, BRIEF, teacher=lambda point: 1 // 0)
    assert not any(one.is_open for one in MADE)


def spaces():
    """Return spaces, and what a policy chooses from, or the bounds of what it answers, if any."""
    from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

    return [
        (Discrete(3, start=4), ([4, 5, 6], None)),
        (Box(np.float32(-1), np.float32(3), (1,)), (None, (-1.0, 3.0))),
        (Discrete(1), None),
        (MultiDiscrete([2, 3]), None),
        (MultiBinary(2), None),
        (Box(0, 2, (1,), dtype=np.int64), None),
        (Box(-np.inf, np.inf, (1,)), None),
        (Box(0.0, 1.0, (2,)), None),
        (Box(0.0, 1.0, ()), None),
    ]


def test_actions_are_those_of_the_space_or_are_listed():
    pytest.importorskip("gymnasium")
    for space, expected in spaces():
        if expected is None:
            with pytest.raises(ValueError, match="(?s)has the actions .*: allowed are"):
                choices_of(space, None)
        else:
            assert choices_of(space, None) == expected
        assert choices_of(space, [space.sample(), space.sample()])[1] is None
        with pytest.raises(ValueError, match="actions=\\[0\\].*: allowed are"):
            choices_of(space, [0])


@pytest.mark.parametrize("kind", [np.float32, np.array, lambda x: np.array([[x]])])
def test_rewards_are_one_number_of_any_kind(kind):
    paid, usual = (
        Environment(partial(Track, paid=one)).episode(lambda seen: 0, seed=3)
        for one in (kind, float)
    )
    assert paid == pytest.approx(usual, rel=1e-6) and type(paid) is float


@pytest.mark.parametrize("reward", [np.nan, -np.inf, [1.0, 2.0], np.array([])])
def test_rewards_that_are_no_number_are_refused(reward):
    with pytest.raises(ValueError, match="allowed is a finite|size 1"):
        evolve_policy(partial(Track, paid=lambda _: reward), BRIEF, n_points=20)


def test_what_is_no_numbers_is_refused():
    unseeded = replace(BRIEF, random_state=None, max_generations=0)
    policy = evolve_policy(Track, unseeded, n_points=20)
    assert policy.act([0, 0, 0]) == policy.act((np.array([0.0, 0.0]), np.int64(0)))
    for strange in ({"a": 1}, "ab", ((1, (2, 3)), 4), None):
        with pytest.raises(ValueError, match="seen as .*: allowed are arrays, numbers"):
            policy.act(strange)


@pytest.mark.slow
@pytest.mark.parametrize("used", [(0,), (0, 2)])
def test_a_teacher_may_leave_out_actions(used):
    actions = [[-1.0], [0.0], [1.0]]

    def taught(point):
        return used[int(point[0] < 0.0) * (len(used) - 1)]

    environment = Environment(partial(Track, kind="number"))
    trees, _ = imitations(
        environment, lambda at: actions[taught(at)], actions, np.zeros((9, 3)), 0, 4
    )
    points = np.random.default_rng(0).uniform(-3.0, 3.0, (200, 3))
    right = [tree.predict_label(points) == list(map(taught, points)) for tree in trees]
    assert max(map(np.mean, right)) > 0.9


def test_cart_pole_is_solved_by_few_leaves():
    pytest.importorskip("gymnasium")
    policy = evolve_policy(
        "CartPole-v1", replace(BRIEF, max_leaf_nodes=4, random_state=2), n_episodes=4
    )
    assert isinstance(policy.tree, ObliqueTree) and policy.tree.n_leaves <= 4
    assert policy.returns(10, 0).mean() > 150.0  # random actions reach 22


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"gymnasium: pip install 'treevolve\[pol"
    ):
        evolve_policy("CartPole-v1", SearchConfig(max_generations=1))

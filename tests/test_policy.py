"""Policies for environments of gymnasium, and for a small one that needs nothing."""

import pickle
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from evotree import SearchConfig
from evotree.engine.scores import DEFAULT
from evotree.export import export_c
from evotree.policy import Environment, actor, as_point, evolve
from evotree.tree import ObliqueTree

BRIEF = SearchConfig(
    max_generations=8, random_state=0, evolution=replace(DEFAULT, population_size=16)
)


class Track:
    """A walker on a line, in a gymnasium's clothes: it is paid for being near the middle."""

    def __init__(self, kind="discrete", start=0, render_mode=None):
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
        self.kind, self.start = kind, start
        self.rng = np.random.default_rng(0)

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
        if self.kind == "discrete":
            assert action in (self.start, self.start + 1)
            move = 2.0 * (action - self.start) - 1.0
        else:
            move = float(np.sum(action)) / len(action)
        self.at, self.n_steps = self.at + 0.5 * move, self.n_steps + 1
        return self._seen(), -abs(self.at), False, self.n_steps == 12, {}

    def render(self):
        return np.full((4, 6, 3), min(255, int(40 * abs(self.at))), dtype=np.uint8)


@pytest.mark.parametrize(
    "kwargs",
    [{"start": 5}, {"kind": "number"}, {"kind": "numbers"}],
    ids=["actions", "one", "two"],
)
def test_a_walker_learns_to_turn_back(kwargs):
    policy = evolve(Track, BRIEF, n_points=200, **kwargs)
    returns = policy.returns(30, 1)
    assert returns.mean() > -11.0 and policy.tree.n_leaves <= 4
    assert policy.result.cost == 12 * policy.result.n_scores
    np.testing.assert_array_equal(returns, policy.returns(30, 1))
    left, right = (policy.act((np.array([at, 1.0]), 7)) for at in (-3.0, 3.0))
    assert np.mean(left) > np.mean(right)
    again = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(again.returns(30, 1), returns)
    assert policy.feature_names == ["x0", "x1", "x2"] and "x0" in str(policy)


def test_a_teacher_is_a_first_individual(tmp_path):
    policy = evolve(
        Track, replace(BRIEF, max_generations=0), teacher=lambda point: int(point[0] < 0.0),
        feature_names=["place", "time", "seven"], action_names=["left", "right"],
    )  # fmt: skip
    assert any(one.origin == "initial" for one in policy.result.run.population)
    assert policy.tree.origin == "initial" and "class: right" in str(policy)
    policy.render(tmp_path / "walk.gif", 3)
    from PIL import Image

    with Image.open(tmp_path / "walk.gif") as film:
        assert film.size == (6, 4) and film.n_frames > 1


@pytest.mark.parametrize("kind", ["discrete", "number"])
def test_the_actor_is_the_tree_and_the_c_code(kind, tmp_path):
    policy = evolve(Track, replace(BRIEF, leaves="constant"), kind=kind)
    X = np.random.default_rng(0).uniform(-3.0, 3.0, (50, 3))
    act = actor(policy.tree, policy.actions)
    values = (
        policy.tree.predict_label(X)
        if kind == "discrete"
        else policy.tree.predict_value(X)
    )
    found = np.ravel([act(x) for x in X.tolist()])
    np.testing.assert_allclose(found, np.ravel(values), rtol=1e-6)
    shown = "%d" if kind == "discrete" else "%.17g"
    rows = "\n".join("{" + ", ".join(map(repr, x)) + "}," for x in X.tolist())
    main = f'int main(void) {{ for (int i = 0; i < 50; i++) printf("{shown}\\n", predict(X[i])); }}'
    points = f"double X[50][3] = {{\n{rows}\n}};"
    code = f"#include <stdio.h>\n{export_c(policy.tree)}\n{points}\n{main}\n"
    (tmp_path / "a.c").write_text(code)
    subprocess.run(["cc", "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    printed = subprocess.run(
        [tmp_path / "a"], capture_output=True, text=True, check=True
    ).stdout
    np.testing.assert_allclose(np.array(printed.split(), dtype=float), found, rtol=1e-6)


def test_environments_that_cannot_be_acted_in_are_named():
    def strange():
        made = Track()
        made.action_space = SimpleNamespace(
            low=np.zeros((2, 2)), high=np.ones((2, 2)), shape=(2, 2)
        )
        return made

    with pytest.raises(
        ValueError, match="allowed are Discrete, and a bounded Box of up to 4"
    ):
        _ = Environment(strange).actions
    assert as_point((1, np.array([2.0, 3.0]), np.int64(4))) == [1.0, 2.0, 3.0, 4.0]


def test_cart_pole_is_solved_by_few_leaves():
    pytest.importorskip("gymnasium")
    policy = evolve("CartPole-v1", replace(BRIEF, max_leaf_nodes=4), n_episodes=4)
    assert isinstance(policy.tree, ObliqueTree) and policy.tree.n_leaves <= 4
    assert policy.returns(10, 0).mean() > 150.0  # random actions reach 22

"""Policies: trees that act in gymnasium's environments, evolved by the returns of episodes."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from evotree.description.text import export_text
from evotree.engine.config import SearchConfig
from evotree.engine.scores import DEFAULT, ScoredProblem, ScoredResult, search_scores
from evotree.estimators.evolved import EvoTreeClassifier, EvoTreeRegressor
from evotree.export.code import export_python
from evotree.files import PathLike
from evotree.rng import seed_from
from evotree.tree import ObliqueTree

_STICKY, _LEVELS = (
    0.1,
    (-1.0, 0.0, 1.0),
)  # chance of another random action; levels of numbers
_ROUNDS, _STEPS, _MOST_LEAVES = 3, 1000, 16  # of imitation; of the trees that it makes
_MOST_FRAMES, _PIXELS, _of_thread = (
    1000,
    "rgb_array",
    threading.local(),
)  # of films; environments


class Return(float):
    """The sum of the rewards of an episode; its ``cost`` is the number of steps."""


@dataclass(frozen=True)
class Environment:
    """An environment that each worker makes for itself: its id, or what makes it."""

    made_by: Any
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def here(self) -> Any:
        """The environment of this thread."""
        known = vars(_of_thread).setdefault("environments", {})
        key = self.made_by, repr(self.kwargs)
        if key not in known and callable(self.made_by):
            known[key] = self.made_by(**self.kwargs)
        elif key not in known:
            import gymnasium  # an extra

            known[key] = gymnasium.make(self.made_by, **self.kwargs)
        return known[key]

    @property
    def actions(self) -> list[Any]:
        """What a policy may do: all actions, or of several numbers low, middle and high ones."""
        space = self.here.action_space
        if hasattr(space, "n"):
            return [int(getattr(space, "start", 0)) + i for i in range(int(space.n))]
        low, high = (
            getattr(space, "low", np.empty(0)),
            getattr(space, "high", np.empty(0)),
        )
        if (
            np.ndim(low) != 1
            or not 0 < low.size <= 4
            or not np.isfinite(high - low).all()
        ):
            allowed = "Discrete, and a bounded Box of up to 4 numbers"
            raise ValueError(
                f"environment has the actions {space}: allowed are {allowed}."
            )
        places = np.array(list(product(_LEVELS, repeat=low.size)))
        return list((low + 0.5 * (1.0 + places) * (high - low)).astype(space.dtype))

    def episode(
        self,
        act: Callable[[list[float]], Any],
        seed: int,
        seen: list[Any] | None = None,
    ) -> Return:
        """Act until an episode is over; append to `seen` what is seen."""
        environment, seen = self.here, [] if seen is None else seen
        observation, _ = environment.reset(seed=seed)
        rewards, is_over = [], False
        while not is_over:
            seen.append(as_point(observation))
            observation, reward, ends, stops, _ = environment.step(act(seen[-1]))
            rewards.append(float(reward))
            is_over = ends or stops
        result: Any = Return(sum(rewards))
        result.cost = float(len(rewards))
        return result

    def explore(self, n_points: int, seed: int) -> np.ndarray:
        """Return points that random actions lead to, each of which is kept up for a while."""
        rng, space, seen = (
            np.random.default_rng(seed),
            self.here.action_space,
            list[Any](),
        )
        space.seed(seed)
        last = [space.sample()]

        def act(point: list[float]) -> Any:
            if rng.uniform() < _STICKY:
                last[0] = space.sample()
            return last[0]

        while len(seen) < 2 * n_points:
            self.episode(act, int(rng.integers(2**31)), seen)
        return np.array(seen)[rng.permutation(len(seen))[:n_points]]


def as_point(observation: Any) -> list[float]:
    """Return an observation, an array, a number or a tuple of these, as numbers."""
    parts = observation if isinstance(observation, tuple) else (observation,)
    return [float(number) for part in parts for number in np.ravel(part).tolist()]


def actor(
    tree: ObliqueTree, actions: Sequence[Any] | None
) -> Callable[[list[float]], Any]:
    """Return a tree as a function of one point: its own Python, which takes microseconds."""
    scope: dict[str, Any] = {}
    exec(export_python(tree), scope)
    predict = scope["predict"]
    if actions is None:
        return lambda point: np.array([predict(point)], dtype=np.float32)
    return lambda point: actions[predict(point)]


@dataclass(frozen=True)
class Policy:
    """A tree that acts in an environment; what `evolve` returns.

    Attributes
    ----------
    tree : ObliqueTree
        The tree, for `evotree.export` and `evotree.plotting`, with the names below.
    environment : Environment
        Where it acts.
    actions : list or None
        What the classes of the tree stand for; None where it answers a number.
    feature_names, action_names : list of str, and list of str or None
        Names of what it sees and of what it does.
    result : ScoredResult
        The search. ``result.front`` has other trees, ``result.cost`` is the number of steps.
    """

    tree: ObliqueTree
    environment: Environment
    actions: list[Any] | None
    feature_names: list[str]
    action_names: list[str] | None
    result: ScoredResult

    @cached_property
    def _act(self) -> Callable[[list[float]], Any]:
        return actor(self.tree, self.actions)

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def act(self, observation: Any) -> Any:
        """Return the action for an observation."""
        return self._act(as_point(observation))

    def returns(self, n_episodes: int = 100, random_state: Any = None) -> np.ndarray:
        """Return the returns of new episodes, of shape (n_episodes,)."""
        seeds = np.random.default_rng(seed_from(random_state)).integers(
            2**31, size=n_episodes
        )
        return np.array(
            [self.environment.episode(self._act, seed) for seed in seeds.tolist()]
        )

    def __str__(self) -> str:
        return export_text(self.tree, self.feature_names, self.action_names).rstrip(
            "\n"
        )

    def render(self, path: PathLike, random_state: Any = None) -> None:
        """Write a film of one episode, a GIF."""
        from PIL import Image

        seen = replace(
            self.environment, kwargs=self.environment.kwargs | {"render_mode": _PIXELS}
        )
        frames = list[Any]()

        def act_and_draw(point: list[float]) -> Any:
            if len(frames) < _MOST_FRAMES:
                frames.append(Image.fromarray(seen.here.render()))
            return self._act(point)

        seen.episode(act_and_draw, seed_from(random_state) % 2**31)
        frames[0].save(
            path, save_all=True, append_images=frames[1:], loop=0, duration=40
        )  # in ms


def evolve(
    environment: str | Callable[..., Any],
    config: SearchConfig | None = None,
    *,
    n_episodes: int = 8,
    racing: bool = True,
    n_points: int = 1000,
    teacher: Callable[[list[float]], Any] | None = None,
    feature_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
    executor: Executor | None = None,
    **kwargs: Any,
) -> Policy:
    """Evolve a policy for an environment of gymnasium.

    Parameters
    ----------
    environment : str or callable
        The id of an environment, or what makes one. It is seen as vectors, numbers or tuples of
        these. Its actions are ``Discrete``; or a ``Box`` of one number, which leaves answer, or of
        up to 4, of which they choose low, middle and high ones.
    config : SearchConfig, optional
        What the search is told, as for `evotree.search_scores`. ``leaves="linear"`` has lines in
        leaves that answer a number.
    n_episodes, racing : int, and bool
        As for `evotree.ScoredProblem`.
    n_points : int, default=1000
        Number of points that random actions lead to.
    teacher : callable, optional
        A policy to begin with: ``teacher(point)`` returns an action for a list of numbers. Small
        trees learn what it does where it and they get, in three rounds (DAgger, Ross, Gordon and
        Bagnell 2011), and join the first population.
    feature_names, action_names : sequence of str, optional
        Names; by default ``x0``, ..., and the actions themselves.
    executor : concurrent.futures.Executor, optional
        Where episodes are played; by default processes, as many as `n_jobs` says.
    **kwargs
        For the environment.
    """
    made, config = Environment(environment, kwargs), config or SearchConfig()
    config = replace(config, random_state=seed_from(config.random_state))
    space, seed = made.here.action_space, config.random_state % 2**31
    is_number = getattr(space, "shape", None) == (1,)
    actions = None if is_number else made.actions
    points = made.explore(n_points, seed)
    if teacher is not None:
        most = min(config.max_leaf_nodes or _MOST_LEAVES, _MOST_LEAVES)
        trees, points = imitations(made, teacher, actions, points, seed, most)
        evolution = config.evolution or DEFAULT
        given = [] if evolution.init is None else evolution.init
        given = given if isinstance(given, list) else [given]
        init = [*given, *trees][: evolution.population_size]
        config = replace(config, evolution=replace(evolution, init=init))
    names = list(feature_names or (f"x{j}" for j in range(points.shape[1])))
    problem = ScoredProblem(
        score=partial(return_of, made, actions),
        actions=(space.low[0], space.high[0]) if actions is None else len(actions),
        observations=pd.DataFrame(points, columns=names),
        n_episodes=n_episodes,
        racing=racing,
    )
    result = search_scores(problem, config, executor)
    labels = None if actions is None else list(map(str, action_names or actions))
    return Policy(result.tree, made, actions, names, labels, result)


def return_of(
    environment: Environment, actions: Any, tree: ObliqueTree, seed: int
) -> Return:
    """Return what a tree gets in one episode, its score."""
    return environment.episode(actor(tree, actions), seed)


def imitations(
    environment: Environment,
    teacher: Callable[[list[float]], Any],
    actions: list[Any] | None,
    points: np.ndarray,
    seed: int,
    most: int,
) -> tuple[list[ObliqueTree], np.ndarray]:
    """Return trees of few leaves that do what a teacher does, and points that it leads to, too."""
    seen, act, trees = list[Any](), teacher, list[ObliqueTree]()
    kind: Any = EvoTreeRegressor if actions is None else EvoTreeClassifier
    for number in range(_ROUNDS):
        while len(seen) < (number + 1) * _STEPS:
            environment.episode(act, (seed + len(seen)) % 2**31, seen)
        done = [np.ravel(teacher(point)) for point in seen]
        if actions is not None:
            table = np.array([np.ravel(action) for action in actions])
            done = [np.abs(table - one).sum(axis=1).argmin() for one in done]
        model = kind(leaves="constant", max_leaf_nodes=most, max_generations=10)
        model.set_params(random_state=seed + number)
        model.fit(np.array(seen), np.ravel(done))
        trees = list(model.pareto_front_)
        if actions is not None:
            trees = [tree.labelled(model.classes_[tree.labels]) for tree in trees]
        act = actor(trees[-1], actions)
    some = np.random.default_rng(seed).permutation(len(seen))[: len(points)]
    return trees, np.concatenate([points, np.array(seen)[some]])

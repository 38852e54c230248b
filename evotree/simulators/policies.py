"""Policies: trees that act in gymnasium's environments, evolved by the returns of episodes."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from evotree._version import DISTRIBUTION
from evotree.engine.config import SearchConfig
from evotree.estimators.evolved import EvoTreeClassifier, EvoTreeRegressor
from evotree.export.code import export_python
from evotree.rng import seed_from
from evotree.simulators.scores import (
    DEFAULT,
    ScoredProblem,
    ScoredResult,
    WatchedTree,
    search_scores,
    trees_of_init,
)
from evotree.tree import ObliqueTree
from evotree.words import check_whole

_STICKY = 0.1  # chance of another random action in a step
_IMITATION_ROUNDS = 3
_STEPS_OF_ROUND = 1000
_MOST_IMITATION_LEAVES = 16


@dataclass(frozen=True)
class Environment:
    """What makes an environment; each episode has one of its own.

    An episode ends after `max_steps`, as if it were cut off there.
    """

    make: Callable[[], Any]
    max_steps: int = 10_000

    def episode(
        self,
        act: Callable[[list[float]], Any],
        seed: int,
        seen: list[Any] | None = None,
    ) -> float:
        """Act until an episode is over; append to `seen` what is seen; return the rewards' sum."""
        total = 0.0
        with closing(self.make()) as environment:
            observation, _ = environment.reset(seed=seed)
            for _ in range(self.max_steps):
                point = point_of(observation)
                if seen is not None:
                    seen.append(point)
                observation, reward, ends, stops, _ = environment.step(act(point))
                total += np.asarray(reward, dtype=float).item()
                if ends or stops:
                    break
        return total

    def explore(self, space: Any, n_points: int, seed: int) -> np.ndarray:
        """Return points that random actions lead to, each of which is kept up for a while."""
        rng = np.random.default_rng(seed)
        space.seed(seed)
        seen: list[Any] = []
        last = [space.sample()]

        def act(point: list[float]) -> Any:
            if rng.uniform() < _STICKY:
                last[0] = space.sample()
            return last[0]

        while len(seen) < 2 * n_points:
            self.episode(act, int(rng.integers(2**31)), seen)
        return np.array(seen)[rng.permutation(len(seen))[:n_points]]


def point_of(observation: Any) -> list[float]:
    """Return an observation as numbers."""
    parts = observation if isinstance(observation, tuple) else (observation,)
    try:
        return [float(one) for part in parts for one in np.ravel(part).tolist()]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"environment is seen as {observation!r}: allowed are arrays, numbers and tuples of "
            "these; gymnasium's FlattenObservation makes an array of other ones."
        ) from error


def _maker_of(environment: Any) -> Callable[..., Any]:
    """Return what makes an environment, of an id that of gymnasium."""
    if callable(environment):
        return environment
    try:
        return partial(import_module("gymnasium").make, environment)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"environments by their id need {error.name}: pip install '{DISTRIBUTION}[policy]'",
            name=error.name,
        ) from error


def choices_of(
    space: Any, actions: Sequence[Any] | None
) -> tuple[list[Any] | None, tuple[float, float] | None]:
    """Return the actions that a policy chooses from, or the bounds of the number it answers."""
    if actions is None and hasattr(space, "n") and hasattr(space, "start"):
        actions = range(int(space.start), int(space.start + space.n))
    if actions is not None and len(actions) > 1:
        return list(actions), None
    low, high = (np.asarray(getattr(space, name, ())) for name in ("low", "high"))
    is_number = low.shape == (1,) and np.issubdtype(space.dtype, np.floating)
    if actions is not None or not is_number or not np.isfinite(high - low).all():
        raise ValueError(
            f"environment has the actions {space}, and actions={actions!r}: allowed are spaces "
            "Discrete of 2 or more and a bounded Box of one number; of other spaces, a list of 2 "
            "or more actions to choose from."
        )
    return None, (low[0], high[0])


def actor(
    tree: ObliqueTree, actions: Sequence[Any] | None
) -> Callable[[list[float]], Any]:
    """Return a tree as a function of one point: its own Python, which takes microseconds."""
    if isinstance(tree, WatchedTree):  # which has to be asked itself
        return partial(answer, tree, actions)
    scope: dict[str, Any] = {}
    exec(export_python(tree), scope)
    predict = scope["predict"]
    if actions is None:
        return lambda point: np.array([predict(point)], dtype=np.float32)
    return lambda point: actions[predict(point)]


def answer(
    tree: ObliqueTree, actions: Sequence[Any] | None, point: Sequence[float]
) -> Any:
    """Return what a tree does at one point: an action, or a number in an array."""
    row = np.array([point])
    if actions is None:
        return tree.predict_value(row)[0].astype(np.float32)
    return actions[tree.predict_label(row)[0]]


def return_of(
    environment: Environment, actions: Any, tree: ObliqueTree, seed: int
) -> float:
    """Return what a tree gets in one episode, its score."""
    return environment.episode(actor(tree, actions), seed)


@dataclass(frozen=True)
class Policy:
    """A tree that acts in an environment; what `evolve_policy` returns.

    Attributes
    ----------
    tree : ObliqueTree
        The tree, for `evotree.export` and `evotree.plotting`, which take names of what it sees and
        does.
    environment : Environment
        Where it acts.
    actions : list or None
        What the classes of the tree stand for; None where it answers a number.
    result : ScoredResult
        The search. ``result.front`` has other trees.
    """

    tree: ObliqueTree
    environment: Environment = field(repr=False)
    actions: list[Any] | None = field(repr=False)
    result: ScoredResult = field(repr=False)

    def act(self, observation: Any) -> Any:
        """Return the action for an observation."""
        return answer(self.tree, self.actions, point_of(observation))

    def returns(self, n_episodes: int = 100, random_state: Any = None) -> np.ndarray:
        """Return the returns of new episodes, of shape (n_episodes,)."""
        rng = np.random.default_rng(seed_from(random_state))
        seeds = rng.integers(2**31, size=n_episodes).tolist()
        act = actor(self.tree, self.actions)
        return np.array([self.environment.episode(act, seed) for seed in seeds])


def evolve_policy(
    environment: str | Callable[..., Any],
    config: SearchConfig | None = None,
    *,
    actions: Sequence[Any] | None = None,
    n_episodes: int = 8,
    n_points: int = 1000,
    teacher: Callable[[list[float]], Any] | None = None,
    max_steps: int = 10_000,
    **kwargs: Any,
) -> Policy:
    """Evolve a policy for an environment of gymnasium.

    Parameters
    ----------
    environment : str or callable
        The id of an environment, or what makes one: each episode has one of its own, which is
        closed in the end. It is seen as vectors, numbers or tuples of these, always as many
        numbers.
    config : SearchConfig, optional
        Settings of the search, as for `evotree.search_scores`. ``leaves="linear"`` has lines in
        leaves that answer a number.
    actions : sequence, optional
        What leaves choose from, at least 2; by default all actions of a ``Discrete`` space. Of a
        bounded ``Box`` of one number leaves answer the number. Other spaces need a list, such as
        some vectors of a ``Box``, or the combinations of a ``MultiDiscrete``.
    n_episodes : int, default=8
        As for `evotree.ScoredProblem`.
    n_points : int, default=1000
        Number of points that random actions lead to.
    teacher : callable, optional
        A policy to begin with: ``teacher(point)`` returns an action for a list of numbers. Small
        trees learn what it does where it and they get, in three rounds (DAgger, Ross, Gordon and
        Bagnell 2011), and join the first population.
    max_steps : int, default=10000
        Most steps of an episode, for environments that do not end by themselves: where they have
        gone on for so long, it is over, and its return is the sum so far.
    **kwargs
        For the environment.
    """
    check_whole("max_steps", max_steps, 1)
    config = config or SearchConfig()
    seed = seed_from(config.random_state) % 2**31
    config = replace(config, random_state=seed)
    made = Environment(partial(_maker_of(environment), **kwargs), max_steps)
    with closing(made.make()) as first:
        space = first.action_space
    choices, bounds = choices_of(space, actions)
    points = made.explore(space, n_points, seed)
    if teacher is not None:
        n_leaves = config.max_leaf_nodes or _MOST_IMITATION_LEAVES
        trees, points = imitations(made, teacher, choices, points, seed, n_leaves)
        evolution = config.evolution or DEFAULT
        init = [*trees_of_init(evolution), *trees][: evolution.population_size]
        config = replace(config, evolution=replace(evolution, init=init))
    problem = ScoredProblem(
        score=partial(return_of, made, choices),
        actions=bounds if choices is None else len(choices),
        observations=points,
        n_episodes=n_episodes,
    )
    result = search_scores(problem, config)
    return Policy(result.tree, made, choices, result)


def imitations(
    environment: Environment,
    teacher: Callable[[list[float]], Any],
    actions: list[Any] | None,
    points: np.ndarray,
    seed: int,
    n_leaves: int,
) -> tuple[list[ObliqueTree], np.ndarray]:
    """Return trees of few leaves that do what a teacher does, and points that it leads to, too."""
    seen: list[Any] = []
    act = teacher
    kind: Any = EvoTreeRegressor if actions is None else EvoTreeClassifier
    for number in range(_IMITATION_ROUNDS):
        while len(seen) < (number + 1) * _STEPS_OF_ROUND:
            environment.episode(act, (seed + len(seen)) % 2**31, seen)
        done = [np.ravel(teacher(point)) for point in seen]
        if actions is not None:
            table = np.array([np.ravel(action) for action in actions])
            done = [np.abs(table - one).sum(axis=1).argmin() for one in done]
        model = kind(
            leaves="constant",
            max_leaf_nodes=min(n_leaves, _MOST_IMITATION_LEAVES),
            max_generations=10,
            random_state=seed + number,
        )
        model.fit(np.array(seen), np.ravel(done))
        trees = list(model.pareto_front_)
        if actions is not None:
            # A teacher may leave out actions.
            shares = np.eye(len(actions))[model.classes_]
            trees = [
                tree.predicting(tree.values @ shares).labelled(
                    model.classes_[tree.labels]
                )
                for tree in trees
            ]
        act = actor(trees[-1], actions)
    some = np.random.default_rng(seed).permutation(len(seen))[: len(points)]
    return trees, np.concatenate([points, np.array(seen)[some]])

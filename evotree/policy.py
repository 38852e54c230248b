"""Policies: trees that act in gymnasium's environments, evolved by the returns of episodes."""

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from evotree._version import DISTRIBUTION
from evotree.engine.config import SearchConfig
from evotree.engine.scored import DEFAULT, ScoredProblem, ScoredResult, search_scores
from evotree.estimators.evolved import EvoTreeClassifier, EvoTreeRegressor
from evotree.export.code import export_python
from evotree.files import PathLike
from evotree.rng import seed_from
from evotree.texts import export_text
from evotree.tree import ObliqueTree
from evotree.words import check_length, check_whole

_STICKY = 0.1  # chance of another random action in a step
# Where an action is several numbers, each is one of these shares of the way from low to high.
_LEVELS = (0.0, 0.5, 1.0)
_MOST_ACTION_NUMBERS = 4
_MOST_ACTIONS = 256
_IMITATION_ROUNDS = 3
_STEPS_OF_ROUND = 1000
_MOST_IMITATION_LEAVES = 16
_MOST_FRAMES = 1000
_FRAME_MILLISECONDS = 40

# Environments that are open in this process, by what makes them and by thread; and how many
# searches and policies use those of a kind: the last closes them. Where an executor has processes
# of its own, theirs stay open for later searches, as long as those processes live.
_open: defaultdict[Any, dict[int, Any]] = defaultdict(dict)
_n_users: Counter[Any] = Counter()
_users_lock = threading.Lock()


class Return(float):
    """The sum of the rewards of an episode; its ``cost`` is the number of steps."""


@dataclass(frozen=True)
class Environment:
    """An environment that each worker makes for itself: its id, or what makes it.

    An episode ends after `max_steps`, as if it were cut off there. It is always seen as
    `n_numbers`, once these are known.
    """

    made_by: Any
    kwargs: dict[str, Any] = field(default_factory=dict)
    max_steps: int = 10_000
    n_numbers: int | None = None

    @property
    def _kind(self) -> Any:
        return self.made_by, repr(self.kwargs)

    @property
    def here(self) -> Any:
        """The environment of this thread."""
        thread = threading.get_ident()
        by_thread = _open[self._kind]
        if thread not in by_thread:
            if callable(self.made_by):
                by_thread[thread] = self.made_by(**self.kwargs)
            else:
                by_thread[thread] = _gymnasium().make(self.made_by, **self.kwargs)
        return by_thread[thread]

    @contextmanager
    def used(self) -> Iterator[None]:
        """Close the environments of all threads when the last who uses them leaves."""
        kind = self._kind
        with _users_lock:
            _n_users[kind] += 1
        try:
            yield
        finally:
            with _users_lock:
                _n_users[kind] -= 1
                ended = {} if _n_users[kind] else _open.pop(kind, {})
            for one in ended.values():
                if hasattr(one, "close"):
                    one.close()

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Between which a policy answers a number; None where it chooses from `actions`."""
        space = self.here.action_space
        is_number = (
            hasattr(space, "low")
            and np.shape(space.low) == (1,)
            and not np.issubdtype(space.dtype, np.integer)
            and np.isfinite(space.high - space.low).all()
        )
        return (space.low[0], space.high[0]) if is_number else None

    @property
    def actions(self) -> list[Any]:
        """What a policy may choose from: all actions, or of numbers low, middle and high ones."""
        space = self.here.action_space
        shape = tuple(getattr(space, "shape", None) or ())
        actions: list[Any] = []
        if hasattr(space, "n") and not shape:
            first = int(getattr(space, "start", 0))
            actions = list(range(first, first + int(space.n)))
        elif len(shape) == 1 and shape[0] <= _MOST_ACTION_NUMBERS:
            levels = _levels(space)
            if levels and math.prod(map(len, levels)) <= _MOST_ACTIONS:
                actions = list(np.array(list(product(*levels)), dtype=space.dtype))
        if len(actions) < 2:
            raise ValueError(
                f"environment has the actions {space}: allowed are Discrete of 2 or more; a "
                f"bounded Box of up to {_MOST_ACTION_NUMBERS} numbers; and MultiDiscrete or "
                f"MultiBinary of up to {_MOST_ACTION_NUMBERS} numbers and {_MOST_ACTIONS} "
                "combinations."
            )
        return actions

    def point(self, observation: Any) -> list[float]:
        """Return an observation as numbers, as many as ever."""
        point = as_point(observation)
        if self.n_numbers not in (None, len(point)):
            raise ValueError(
                f"environment is seen as {len(point)} numbers: allowed are {self.n_numbers}, as "
                "when it was first seen."
            )
        return point

    def episode(
        self,
        act: Callable[[list[float]], Any],
        seed: int,
        seen: list[Any] | None = None,
    ) -> Return:
        """Act until an episode is over; append to `seen` what is seen."""
        environment = self.here
        observation, _ = environment.reset(seed=seed)
        rewards: list[float] = []
        is_over = False
        while not is_over and len(rewards) < self.max_steps:
            point = self.point(observation)
            if seen is not None:
                seen.append(point)
            observation, reward, ends, stops, _ = environment.step(act(point))
            rewards.append(float(reward))
            is_over = ends or stops
        result: Any = Return(sum(rewards))
        result.cost = float(len(rewards))
        return result

    def explore(self, n_points: int, seed: int) -> np.ndarray:
        """Return points that random actions lead to, each of which is kept up for a while."""
        rng = np.random.default_rng(seed)
        space = self.here.action_space
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


def _gymnasium() -> Any:
    """Import gymnasium, or say how to install it."""
    try:
        return import_module("gymnasium")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"environments by their id need {error.name}: pip install '{DISTRIBUTION}[policy]'",
            name=error.name,
        ) from error


def _levels(space: Any) -> list[Any]:
    """Return the values of each number of an action from which a policy chooses, none of others."""
    if hasattr(space, "n"):  # MultiBinary
        return [range(2)] * space.shape[0]
    if hasattr(space, "nvec"):  # MultiDiscrete
        starts = getattr(space, "start", np.zeros_like(space.nvec))
        pairs = zip(starts.tolist(), space.nvec.tolist(), strict=True)
        return [range(start, start + n) for start, n in pairs]
    low, high = getattr(space, "low", None), getattr(space, "high", None)
    if low is None or high is None or not np.isfinite(high - low).all():
        return []
    if np.issubdtype(space.dtype, np.integer):
        ends = list(zip(low.tolist(), high.tolist(), strict=True))
        if math.prod(last - first + 1 for first, last in ends) <= _MOST_ACTIONS:
            return [range(first, last + 1) for first, last in ends]
        return [sorted({a, (a + b) // 2, b}) for a, b in ends]
    return list(np.stack([low + level * (high - low) for level in _LEVELS], axis=1))


def as_point(observation: Any) -> list[float]:
    """Return an observation, an array, a number or a tuple of these, as numbers."""
    parts = observation if isinstance(observation, tuple) else (observation,)
    try:
        return [float(number) for part in parts for number in np.ravel(part).tolist()]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"environment is seen as {observation!r}: allowed are arrays, numbers and tuples of "
            "these; gymnasium's FlattenObservation makes an array of other ones."
        ) from error


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
        return self._act(self.environment.point(observation))

    def returns(self, n_episodes: int = 100, random_state: Any = None) -> np.ndarray:
        """Return the returns of new episodes, of shape (n_episodes,)."""
        seeds = np.random.default_rng(seed_from(random_state)).integers(
            2**31, size=n_episodes
        )
        with self.environment.used():
            return np.array(
                [self.environment.episode(self._act, seed) for seed in seeds.tolist()]
            )

    def __repr__(self) -> str:
        return f"Policy for {self.environment.made_by!r}: {self.tree!r}"

    def __str__(self) -> str:
        return export_text(self.tree, self.feature_names, self.action_names).rstrip(
            "\n"
        )

    def render(self, path: PathLike, random_state: Any = None) -> None:
        """Write a film of one episode, a GIF."""
        from PIL import Image

        seen = replace(
            self.environment,
            kwargs=self.environment.kwargs | {"render_mode": "rgb_array"},
        )
        frames: list[Any] = []

        def act_and_draw(point: list[float]) -> Any:
            if len(frames) < _MOST_FRAMES:
                frames.append(Image.fromarray(seen.here.render()))
            return self._act(point)

        with seen.used():
            seen.episode(act_and_draw, seed_from(random_state) % 2**31)
        frames[0].save(
            path,
            save_all=True,
            append_images=frames[1:],
            loop=0,
            duration=_FRAME_MILLISECONDS,
        )


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
    max_steps: int = 10_000,
    **kwargs: Any,
) -> Policy:
    """Evolve a policy for an environment of gymnasium.

    Parameters
    ----------
    environment : str or callable
        The id of an environment, or what makes one. It is seen as vectors, numbers or tuples of
        these, always as many numbers. Its actions are ``Discrete``; or a ``Box`` of one number,
        which leaves answer, or of up to 4, of which they choose low, middle and high ones; or up to
        4 whole numbers, a ``MultiDiscrete``, a ``MultiBinary`` or a ``Box`` of such, of which they
        choose any combination, of up to 256. It is closed in the end.
    config : SearchConfig, optional
        Settings of the search, as for `evotree.search_scores`. ``leaves="linear"`` has lines in
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
        Names; by default ``x0``, ..., and the actions themselves. Leaves that answer a number have
        no names of actions.
    executor : concurrent.futures.Executor, optional
        Where episodes are played; by default processes, as many as `n_jobs` says.
    max_steps : int, default=10000
        Most steps of an episode, for environments that do not end by themselves: where they have
        gone on for so long, it is over, and its return is the sum so far.
    **kwargs
        For the environment.
    """
    check_whole("max_steps", max_steps, 1)
    if not isinstance(environment, Hashable):
        raise ValueError(
            f"environment={environment!r} has no hash: allowed are an id, and a callable with one."
        )
    check_whole("n_points", n_points, 2)
    if teacher is not None and not callable(teacher):
        raise ValueError(f"teacher={teacher!r}: allowed is a callable.")
    made = Environment(environment, kwargs, max_steps)
    with made.used():
        config = config or SearchConfig()
        config = replace(config, random_state=seed_from(config.random_state))
        seed = config.random_state % 2**31
        first, _ = made.here.reset(seed=seed)
        made = replace(made, n_numbers=len(as_point(first)))
        bounds = made.bounds
        actions = None if bounds else made.actions
        points = made.explore(n_points, seed)
        features = [f"x{j}" for j in range(points.shape[1])]
        names = _named("feature_names", feature_names, features, "features")
        labels = None
        if actions is not None:
            labels = _named("action_names", action_names, actions, "actions")
        elif action_names is not None:
            raise ValueError(
                f"action_names={action_names!r}: allowed is None where leaves answer numbers."
            )
        if teacher is not None:
            most = min(
                config.max_leaf_nodes or _MOST_IMITATION_LEAVES, _MOST_IMITATION_LEAVES
            )
            trees, points = imitations(made, teacher, actions, points, seed, most)
            evolution = config.evolution or DEFAULT
            given = [] if evolution.init is None else evolution.init
            given = given if isinstance(given, list) else [given]
            init = [*given, *trees][: evolution.population_size]
            config = replace(config, evolution=replace(evolution, init=init))
        problem = ScoredProblem(
            score=partial(return_of, made, actions),
            actions=bounds if actions is None else len(actions),
            observations=pd.DataFrame(points, columns=names),
            n_episodes=n_episodes,
            racing=racing,
        )
        result = search_scores(problem, config, executor)
    return Policy(result.tree, made, actions, names, labels, result)


def _named(
    parameter: str, names: Sequence[str] | None, things: Sequence[Any], kind: str
) -> list[str]:
    """Return the names of features or actions, by default what they are."""
    if names is not None:
        check_length(parameter, names, len(things), kind)
    return list(map(str, things if names is None else names))


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
            max_leaf_nodes=most,
            max_generations=10,
            random_state=seed + number,
        )
        model.fit(np.array(seen), np.ravel(done))
        trees = list(model.pareto_front_)
        if actions is not None:
            trees = [
                _of_all_actions(tree, model.classes_, len(actions)) for tree in trees
            ]
        act = actor(trees[-1], actions)
    some = np.random.default_rng(seed).permutation(len(seen))[: len(points)]
    return trees, np.concatenate([points, np.array(seen)[some]])


def _of_all_actions(
    tree: ObliqueTree, classes: np.ndarray, n_actions: int
) -> ObliqueTree:
    """Return a tree of the actions that a teacher takes as one of all: it may leave out some."""
    values = np.zeros((len(tree), n_actions))
    values[:, classes] = tree.values
    return tree.predicting(values).labelled(classes[tree.labels])

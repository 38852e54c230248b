"""Fill numba's cache whole, so that no later fit compiles."""

from contextlib import suppress
from typing import Any

import numpy as np

from evotree import estimators
from evotree.engine.config import Evolution, Regularization, Variation
from evotree.estimators.compiling import start_python
from evotree.operators.initialization.growth import PRUNINGS
from evotree.operators.splitters.registry import SPLITTERS

TASKS = ("classification", "regression")
PRESETS = ("C4.5", "LMDT")  # those whose splitters have no name


def estimators_of(task: str) -> list[Any]:
    """Return estimators that together call every kernel of a task."""
    kind = "Classifier" if task == "classification" else "Regressor"
    names = ("EvoTree", "ObliqueTree", "TAO")
    evolved, greedy, tao = (getattr(estimators, f"{name}{kind}") for name in names)
    short: dict[str, Any] = {"max_generations": 3, "random_state": 0}
    presets = [estimators.ObliqueTreeClassifier.from_preset(name) for name in PRESETS]
    plain, nsga2 = (
        Regularization(C=1.0, penalty="l1", noise=0.0),
        Variation(algorithm="nsga2"),
    )
    refiners = [*SPLITTERS, "tao"]
    return [
        evolved(random_state=0),
        evolved(evolution=Evolution(variation=nsga2, regularization=plain), **short),
        evolved(
            evolution=Evolution(refinement=refiners, regularization=plain), **short
        ),
        *(greedy(splitter, random_state=0) for splitter in SPLITTERS),
        *(greedy("axis", pruning=pruning, random_state=0) for pruning in PRUNINGS),
        tao(random_state=0),
        *(presets if task == "classification" else []),
    ]


def compile_all(task: str) -> None:
    """Fit all estimators of a task to a few rows."""
    X = np.random.default_rng(0).normal(size=(90, 3))
    targets = X[:, 0] + X[:, 1] ** 2
    y = np.digitize(targets, (0.0, 1.0)) if task == "classification" else targets
    for estimator in estimators_of(task):
        with suppress(ValueError):
            estimator.fit(X, y).predict(X)


def warmup(background: bool = False) -> None:
    """Compile what fits need, in one process for each task; numba's cache keeps it.

    Parameters
    ----------
    background : bool, default=False
        Whether to return at once; fits meanwhile compile what is not there yet.

    Raises
    ------
    OSError
        If a process does not start, or, in the foreground, if it fails.
    """
    statement = "from evotree.estimators.warmup import compile_all; compile_all({!r})"
    processes = [start_python(statement.format(task)) for task in TASKS]
    if background:
        return
    for task, process in zip(TASKS, processes, strict=True):
        if process.wait() != 0:
            raise OSError(
                f"the process that compiles for {task} ended with {process.returncode}"
            )

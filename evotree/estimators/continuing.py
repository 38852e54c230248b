"""Fits that go on: from a checkpoint, or from the fit before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from evotree.estimators.settings import Setting

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from evotree.engine.evolution import Evolution
    from evotree.engine.sampling import GrowingSample
    from evotree.files import PathLike

FREE = frozenset(
    {
        "callbacks",
        "checkpoint",
        "checkpoint_every",
        "executor",
        "initial_trees",
        "keep_on_interrupt",
        "max_generations",
        "n_jobs",
        "patience",
        "random_state",
        "resume_from",
        "time_limit",
        "verbose",
        "warm_start",
    }
)
"""Parameters that may be others when a run goes on: limits, and what changes no later tree."""


class Told(NamedTuple):
    """What a run was told besides the parameters.

    Attributes
    ----------
    seed : int
        Seed of the run.
    setting : Setting
        The one that was given or chosen.
    size_penalty : float
        The charge for a node that was given or chosen.
    """

    seed: int
    setting: Setting
    size_penalty: float


class Beginning(NamedTuple):
    """What an evolution begins with.

    Attributes
    ----------
    told : Told
        What it is told.
    sample : GrowingSample
        The rows that it sees one after the other.
    stage : int
        Which of these samples it begins with.
    islands : list of Evolution or None
        The run that it goes on with, or its islands.
    """

    told: Told
    sample: GrowingSample
    stage: int = 0
    islands: list[Evolution] | None = None


class Continuation(NamedTuple):
    """What a later fit needs to go on.

    Attributes
    ----------
    told : Told
        What the run was told.
    parameters : dict
        From `compared`.
    data : str
        Checksum of the rows.
    islands : list of Evolution
        The run, or its islands.
    """

    told: Told
    parameters: dict[str, str]
    data: str
    islands: list[Evolution]


def compared(estimator: BaseEstimator) -> dict[str, str]:
    """Return the parameters that must be the same when a run goes on, as text."""
    parameters = estimator.get_params(deep=False)
    return {name: repr(value) for name, value in parameters.items() if name not in FREE}


def describe(estimator: BaseEstimator, told: Told, stage: int) -> dict[str, Any]:
    """Return what a checkpoint keeps of an estimator's fit, at one of its samples."""
    setting = told.setting._asdict()
    if not isinstance(setting["teacher"], str | None):
        setting["teacher"] = _GIVEN
    return {
        "parameters": compared(estimator),
        "seed": told.seed,
        "setting": setting,
        "size_penalty": told.size_penalty,
        "stage": stage,
    }


_GIVEN = {"given": True}


def read_told(
    settings: Mapping[str, Any], estimator: BaseEstimator, path: PathLike
) -> tuple[Told, int]:
    """Return what the run of a checkpoint was told, and at which of its samples it was.

    Parameters
    ----------
    settings : mapping
        What `describe` returned.
    estimator : estimator
        The one that goes on with the run.
    path : path-like
        The file, for messages.

    Returns
    -------
    told : Told
        Seed, setting and charge.
    stage : int
        At least 0.

    Raises
    ------
    ValueError
        If the estimator's parameters are others, or the file was not written by a fit.
    """
    try:
        before = {str(name): str(value) for name, value in settings["parameters"].items()}
        given = settings["setting"]
        C = given["C"]
        C = tuple(float(bound) for bound in C) if isinstance(C, list) else float(C)
        teacher = estimator.teacher if given["teacher"] == _GIVEN else given["teacher"]
        setting = Setting(C, str(given["penalty"]), float(given["noise"]), teacher)
        told = Told(int(settings["seed"]), setting, float(settings["size_penalty"]))
        stage = range(2**31).index(settings["stage"])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{path} was not written by a fit: {error!r}.") from error
    for name, value in compared(estimator).items():
        if before.get(name) != value:
            raise ValueError(
                f"{name}={value}: the run in {path} has {name}={before.get(name)}; it goes on with "
                "the same parameters alone, limits apart."
            )
    return told, stage

"""How strongly the hyperplanes of evolved trees are regularized, and by what: settings.

Classifiers that refine trees have a cost and a penalty; and the rows that the fitness is measured
on may have noise, or a teacher's labels (see `evotree.operators.initialization.resampling`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sklearn.frozen import FrozenEstimator

from evotree.estimators.teachers import ENSEMBLE, FrozenTeacher, make_teacher
from evotree.operators.initialization.resampling import blur, teach

if TYPE_CHECKING:
    import numpy as np

    from evotree.dataset import Dataset

_LEAST_RESAMPLED = 3000  # rows that a fitness is measured on, if they are resampled
_COPIES = 4  # of each row, at most
_MOST_TAUGHT = 1000  # more rows than that leave few gaps between them


class Setting(NamedTuple):
    """How strongly the hyperplanes of trees are regularized.

    Attributes
    ----------
    C : float or tuple of two floats
        Cost of a row's loss in the classifiers that refine trees.
    penalty : str
        Their penalty.
    noise : float
        Noise of the rows that the fitness is measured on.
    teacher : estimator, str or None
        What labels these rows, if not the data. A `FrozenEstimator` does so as it is, others are
        fitted.
    """

    C: float | tuple[float, float]
    penalty: str
    noise: float
    teacher: Any


SETTINGS = (
    Setting((0.3, 3.0), "l2", 0.1, None),
    Setting((0.03, 0.3), "l2", 0.2, None),
    Setting((3.0, 30.0), "l2", 0.05, None),
    Setting((0.3, 3.0), "l1", 0.1, None),
    Setting((0.03, 0.3), "l1", 0.0, None),
    Setting((0.3, 3.0), "l2", 0.1, ENSEMBLE),
)
"""The settings that ``"auto"`` stands for."""


def candidate_settings(given: Mapping[str, Any], n_rows: int) -> list[Setting]:
    """Return the settings that ``"auto"`` stands for where some of their parts are given.

    Parameters
    ----------
    given : mapping of str to object
        Parts that are not ``"auto"``, by name.
    n_rows : int
        Number of training rows. Where they are many no teacher is tried: they leave no gaps.

    Returns
    -------
    list of Setting
        Each once.
    """
    settings = []
    for candidate in SETTINGS:
        if candidate.teacher is not None and n_rows > _MOST_TAUGHT:
            continue
        setting = candidate._replace(**given)
        if setting not in settings:
            settings.append(setting)
    return settings


def resample(dataset: Dataset, setting: Setting, stream: np.ndarray) -> Dataset:
    """Return the rows that the fitness is measured on.

    Parameters
    ----------
    dataset : Dataset
        Training rows.
    setting : Setting
        Its noise and its teacher.
    stream : ndarray of shape (1,), uint64
        Random state, advanced.

    Returns
    -------
    Dataset
        In the units of `dataset`; itself where there is neither noise nor a teacher.
    """
    n_rows = dataset.X.shape[0]
    teacher = setting.teacher
    if teacher is not None:
        if isinstance(teacher, str):
            teacher = make_teacher(dataset.n_classes > 0)
        elif isinstance(teacher, FrozenEstimator):
            teacher = FrozenTeacher(teacher, dataset)
        return teach(dataset, teacher, max(_LEAST_RESAMPLED, n_rows), setting.noise, stream)
    if setting.noise > 0.0:
        n_copies = min(_COPIES, max(1, round(_LEAST_RESAMPLED / n_rows)))
        return blur(dataset, setting.noise, n_copies, stream)
    return dataset

"""The studies: papers' tables and figures run again, the benchmark, readable trees, the defaults.

Each module is one study and holds it as ``STUDY``; ``evotree experiment study NAME`` runs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evotree.experiments.studies.study import Study

STUDIES = (
    "benchmark",
    "cedt",
    "constraints",
    "costs",
    "dtsemnet",
    "forests",
    "gea_odt",
    "objectives",
    "oc1",
    "probabilities",
    "readable",
    "regression",
    "tao",
    "variants",
    "wodt",
)
"""Names of the studies."""


def load_study(name: str) -> Study:
    """Return a study.

    Parameters
    ----------
    name : str
        One of `STUDIES`.

    Returns
    -------
    Study
        Its tasks, its runs and its report.

    Raises
    ------
    ValueError
        If there is no such study.
    """
    if name not in STUDIES:
        raise ValueError(f"name={name!r}: allowed are {', '.join(STUDIES)}.")
    study: Study = import_module(f"evotree.experiments.studies.{name}").STUDY
    return study

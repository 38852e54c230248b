"""The studies: papers' tables and figures run again, the benchmark, the defaults.

Each module is one study and holds it as ``STUDY``; its text is a file of its name in
``experiments/texts``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.study import Study

STUDIES = (
    "benchmark",
    "cedt",
    "finds",
    "gea_odt",
    "oc1",
    "operators",
    "pmlb",
    "readable",
    "regression",
    "srbench",
    "steady",
    "survival",
    "tao",
    "wodt",
)
"""Names of the studies."""


def load_study(name: str) -> Study:
    """Return a study by its name."""
    if name not in STUDIES:
        raise ValueError(f"name={name!r}: allowed are {', '.join(STUDIES)}.")
    return import_module(f"experiments.studies.{name}").STUDY

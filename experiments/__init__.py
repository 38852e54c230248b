"""The library of experiments, whose modules are those of `evotree.experiments`, and the studies.

A study is a module of `experiments.studies`; ``python -m experiments NAME`` runs it, and so does
``from experiments import NAME`` with ``NAME.run("out", "data")``.
"""

from evotree.experiments.execution import run_experiment
from evotree.experiments.experiment import Experiment
from evotree.experiments.protocols import Protocol
from evotree.experiments.report import write_report
from evotree.experiments.rivals import compare
from experiments.studies import STUDIES, load_study

# What is run, on which folds; its runs and their report; models side by side on one table.
__all__ = ["Experiment", "Protocol", "run_experiment", "write_report", "compare"]
# Studies by their names.
__all__ += ["STUDIES", "load_study"]


def __getattr__(name: str) -> object:
    """Return a study by its name."""
    if name in STUDIES:
        return load_study(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

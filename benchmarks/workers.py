"""What a second worker gains an experiment, and that the rows are the same."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from benchmarks.measure import Table, by_turns
from evotree import EvoTreeClassifier
from evotree.experiments.execution import run_experiment
from evotree.experiments.experiment import Experiment
from evotree.experiments.protocols import Protocol

DATASETS = ("sklearn:breast_cancer", "sklearn:digits")
GENERATIONS, QUICK_GENERATIONS = 1_000, 5
N_FOLDS = 5
TARGET = 1.8
TIMES = ["seconds", "score_seconds", "peak_memory_mb", "finished"]

NOTES = (
    "`run_experiment` with one worker process and with two, by turns, from an empty folder to the "
    "last row, the start of the processes included. *Throughput* is that of two workers over that "
    "of one; *equal* says that all rows are the same, times and memory apart.",
)


class Runs:
    """Runs of one experiment by some workers, and the rows of the last."""

    def __init__(self, experiment: Experiment, jobs: int) -> None:
        self.experiment, self.jobs = experiment, jobs
        self.rows = pd.DataFrame()

    def __call__(self) -> float:
        with TemporaryDirectory() as folder:
            begin = time.perf_counter()
            rows = run_experiment(self.experiment, Path(folder), jobs=self.jobs)
            seconds = time.perf_counter() - begin
        self.rows = rows.drop(columns=TIMES)
        return seconds


def run(quick: bool = False) -> Table:
    """Measure an experiment with one worker and with two."""
    generations = QUICK_GENERATIONS if quick else GENERATIONS
    method = EvoTreeClassifier.from_preset("gea_odt", max_generations=generations)
    seeds = [0] if quick else [0, 1]
    experiment = Experiment(
        "workers", DATASETS, {"GEA-ODT": method}, Protocol(N_FOLDS), seeds
    )
    one, two = Runs(experiment, 1), Runs(experiment, 2)
    rounds = by_turns({"one": one, "two": two}, 1 if quick else 3)
    row = {
        "fits": len(experiment.tasks()),
        "one worker s": rounds.median("one"),
        "two workers s": rounds.median("two"),
        "throughput": rounds.ratio("one", "two"),
        "target": TARGET,
        "equal": "yes" if one.rows.equals(two.rows) else "NO",
    }
    return Table("workers", "what a second worker gains an experiment", [row], NOTES)

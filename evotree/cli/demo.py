"""What ``evotree demo`` shows: random trees that plain evolution turns into the best one."""

from typing import Any

import numpy as np
import pandas as pd

from evotree.engine.config import Evolution, Variation, evolution_of
from evotree.engine.evolution import keep_best_trees
from evotree.engine.history import to_frame
from evotree.estimators import EvoTreeClassifier
from evotree.experiments.problems import PROBLEMS, make_problem

# As in the paper, trees on dipoles are the first ones, and nothing refines them. Mutation is more
# likely than by default, and the best of parents and offspring live on.
_VARIATION = Variation(
    mutation_probability=0.3, term_mutation_probability=0.0, sparse_dipoles=False
)
_OPTIONS: dict[str, Any] = {"patience": None, "init": None, "refinement": None}
_OPTIONS |= {"variation": _VARIATION}
# The parameters of `EvoTreeClassifier` that differ from its defaults.
HYPERPARAMETERS: dict[str, Any] = {"size_penalty": 0.005, "term_penalty": 0.0}
HYPERPARAMETERS |= {"max_generations": 400, "callbacks": [keep_best_trees]}
HYPERPARAMETERS["evolution"] = Evolution(100, scaling="common", **_OPTIONS)

N_TEST_ROWS = 10_000
_SHARES = (0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the generations, which `course` tells of


def draw_rows(problem: str, seed: int) -> tuple[tuple[pd.DataFrame, np.ndarray], ...]:
    """Draw training rows and test rows of a problem."""
    samples = []
    for part, n_rows in enumerate((PROBLEMS[problem].default_samples, N_TEST_ROWS)):
        X, y = make_problem(problem, n_rows, np.random.default_rng([seed, part]))
        names = [f"x{j + 1}" for j in range(X.shape[1])]
        samples.append((pd.DataFrame(X, columns=names), y))
    return tuple(samples)


def course(classifier: EvoTreeClassifier) -> str:
    """Return in words how the best tree became what it is."""
    history = to_frame(classifier.history_)
    last = len(history) - 1
    shown = history.iloc[sorted({round(share * last) for share in _SHARES})]
    lines = [
        f"{evolution_of(classifier).population_size} random trees evolve; the best of generation"
    ]
    for row in shown.itertuples():
        right = f"{100.0 * row.quality_best:.1f} % of the training rows right"
        lines.append(f"{row.gen:11d} has {row.size_best:2d} nodes and gets {right}")
    return "\n".join(lines)

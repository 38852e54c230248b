"""What ``make demo`` shows: random trees that plain evolution turns into the best one."""

import argparse
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.animation import FuncAnimation

matplotlib.use("Agg")

from evotree import (
    Evolution,
    EvoTreeClassifier,
    Regularization,
    Variation,
    keep_best_trees,
    to_frame,
)
from evotree.plotting import (
    plot_decision_regions,
    plot_learning_curve,
    plot_tree,
)
from experiments.problems import PROBLEMS, make_problem

# As in the paper, trees on dipoles are the first ones, and nothing refines them. Mutation is more
# likely than by default, and the best of parents and offspring live on.
VARIATION = Variation(
    mutation_probability=0.3, term_mutation_probability=0.0, sparse_dipoles=False
)
OPTIONS: dict[str, Any] = {"patience": None, "init": None, "refinement": None}
OPTIONS |= {"variation": VARIATION, "regularization": Regularization(noise=0.0)}
HYPERPARAMETERS: dict[str, Any] = {
    "size_penalty": 0.005,
    "term_penalty": 0.0,
    "random_state": 0,
}
HYPERPARAMETERS |= {"evolution": Evolution(100, scaling="common", **OPTIONS)}
HYPERPARAMETERS |= {"leaves": "constant", "callbacks": [keep_best_trees]}
# Shares of the generations that are shown.
SHARES = (
    0.0,
    1 / 16,
    1 / 8,
    1 / 4,
    1 / 2,
    1.0,
)


def draw_rows(problem: str, n_rows: int, part: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw rows of a problem."""
    X, y = make_problem(problem, n_rows, np.random.default_rng([0, part]))
    return pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(X.shape[1])]), y


def film_of(model: EvoTreeClassifier, X: pd.DataFrame, y: np.ndarray) -> FuncAnimation:
    """Show the regions of each new best tree, or of up to 30, beside the learning curve."""
    trees = model.best_trees_
    *before, last = [*trees, model.n_generations_]
    chosen = np.linspace(0, len(before) - 1, min(len(before), 29)).round().astype(int)
    figure, (left, right) = plt.subplots(
        1, 2, width_ratios=(5, 6), figsize=(10.0, 4.4), layout="constrained"
    )
    history = to_frame(model.history_)
    plot_learning_curve(history, curves=("quality", "complexity"), ax=right)
    panels = [ax for ax in figure.axes if ax is not left]
    marks = [panel.axvline(0.0, color="black", linewidth=1.5) for panel in panels]

    def draw(gen: int) -> None:
        tree = trees[max(first for first in trees if first <= gen)]
        left.clear()
        plot_decision_regions(tree, X, y, ax=left)
        accuracy = np.mean(tree.predict_label(X.to_numpy()) == y)
        left.set_title(
            f"generation {gen}: {tree.n_leaves} leaves, accuracy {accuracy:.3f}"
        )
        for mark in marks:
            mark.set_xdata([gen, gen])

    draw(last)  # the layout of all
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    # The last picture stays for a while.
    frames = [*np.array(before)[chosen].tolist(), *[last] * 6]
    return FuncAnimation(figure, draw, frames=frames, interval=250)


def main() -> None:
    """Evolve, tell and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", choices=list(PROBLEMS), default="chessboard2")
    parser.add_argument("--generations", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    options = parser.parse_args()
    problem = PROBLEMS[options.problem]
    print(
        f"{problem.name}: {problem.description}; the best tree has {problem.optimal_nodes} nodes"
    )
    X, y = draw_rows(options.problem, problem.default_samples, 0)
    parameters = HYPERPARAMETERS | {"max_generations": options.generations}
    model = EvoTreeClassifier(**parameters).fit(X, y)
    history = to_frame(model.history_)
    shown = sorted({round(share * (len(history) - 1)) for share in SHARES})
    for row in history.iloc[shown].itertuples():
        right = f"{100.0 * row.quality_best:.1f} % of the training rows right"
        print(f"generation {row.gen:4d}: {row.size_best:2d} nodes, {right}")
    test = draw_rows(options.problem, 10_000, 1)
    print(
        f"{model.tree_}\naccuracy {model.score(*test):.4f} on {len(test[1])} test rows"
    )
    options.out.mkdir(parents=True, exist_ok=True)
    axes = {"learning-curve": plot_learning_curve(model), "tree": plot_tree(model)}
    if problem.n_features == 2:
        axes["decision-regions"] = plot_decision_regions(model, X, y)
        film = film_of(model, X, y)
        film.save(options.out / "evolution.gif", writer="pillow", dpi=80)
    for name, ax in axes.items():
        ax.figure.savefig(options.out / f"{name}.png", dpi=150, bbox_inches="tight")
    print(f"wrote pictures into {options.out}")


if __name__ == "__main__":
    main()

"""
Your own operator and your own objective
========================================

Compose the evolution from DEAP's toolbox: one line replaces an operator, the loop stays the same.
"""

# %%
# A data set holds the rows as the kernels want them. The toolbox holds one function for each
# role.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from evotree import (
    Dataset,
    Evolution,
    EvoTreeClassifier,
    Regularization,
    evolve,
    make_toolbox,
    with_tree,
)
from evotree.plotting import plot_decision_regions, plot_learning_curves
from evotree.rng import as_generator

X, y = make_moons(400, noise=0.2, random_state=0)
dataset = Dataset.from_arrays(X, y)


def make(name, operator):
    """Make a toolbox that grows random trees, with one operator of our own."""
    toolbox = make_toolbox(
        dataset, size_penalty=0.003, init=None, refinement=None, random_state=0
    )
    if operator is not None:
        toolbox.register(name, operator)
    return toolbox


# %%
# An operator draws from ``individual.stream`` and makes new arrays. This one turns every
# hyperplane a little, about a point on it.


def turn(individual):
    rng = as_generator(individual.stream)
    is_split = individual.subtree_size > 1
    noise = rng.normal(0.0, 0.2, individual.weights.shape) * is_split[:, None]
    weights = individual.weights + noise
    centre = dataset.X.mean(axis=0)
    thresholds = individual.thresholds + (weights - individual.weights) @ centre
    return (
        with_tree(individual, dataset, weights, thresholds, individual.subtree_size),
    )


runs = {}
for name, operator in {"default mutation": None, "turned hyperplanes": turn}.items():
    toolbox = make("mutate", operator)
    runs[name] = evolve(toolbox.population(n=48), toolbox, max_generations=60)
    print(
        f"{name:<19} quality {runs[name].best.quality:.3f}, {len(runs[name].best)} nodes"
    )

plot_learning_curves({name: [run] for name, run in runs.items()}, chapter="quality")

# %%
# A run becomes an estimator, with all that one has.

model = EvoTreeClassifier.from_run(
    runs["default mutation"], dataset, size_penalty=0.003
)
plot_decision_regions(model, X, y)

# %%
# An objective of your own is a function of the class weights of the leaves. Here a wrong row of
# class 0 counts three times.


def careful(counts):
    weighted = counts * np.array([3.0, 1.0])
    return weighted.max(axis=1).sum() / weighted.sum()


hyperparameters = {
    "size_penalty": 0.005,
    "term_penalty": 0.001,
    "evolution": Evolution(regularization=Regularization(noise=0.0)),
    "max_generations": 15,
    "random_state": 0,
}
fig, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
for ax, objective in zip(axes, ("accuracy", careful), strict=True):
    of_objective = EvoTreeClassifier(objective=objective, **hyperparameters).fit(X, y)
    plot_decision_regions(of_objective, X, y, ax=ax)
    ax.set_title(objective if isinstance(objective, str) else objective.__name__)

# sphinx_gallery_thumbnail_number = 2

"""
Sparse trees
============

Bound the terms of a split: one term makes axis-parallel trees, two terms splits that a plane shows.
"""

# %%
# Two classes lie on both sides of a slanted stripe. An axis-parallel tree climbs it in steps; a
# tree with two terms a split needs one hyperplane for each side of the stripe.

import matplotlib.pyplot as plt
import numpy as np

from evotree import Evolution, EvoTreeClassifier, Regularization
from evotree.plotting import plot_decision_regions

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (400, 2))
y = np.where(np.abs(X[:, 0] - X[:, 1]) < 0.5, "inside", "outside")

hyperparameters = {
    "size_penalty": 0.002,
    "term_penalty": 0.001,
    "evolution": Evolution(regularization=Regularization(noise=0.0)),
    "max_generations": 20,
    "random_state": 0,
}
fig, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for ax, width in zip(axes, (1, 2), strict=True):
    model = EvoTreeClassifier(max_split_terms=width, **hyperparameters).fit(X, y)
    tree = model.tree_
    plot_decision_regions(model, X, y, ax=ax)
    ax.set_title(
        f"{'one term' if width == 1 else 'two terms'} a split: {tree.n_leaves} leaves"
    )

# %%
# A penalty works without a bound: the greater ``term_penalty``, the fewer terms. Here are all 13
# measurements of the wine data, with three penalties.

from sklearn.datasets import load_wine

wine, cultivar = load_wine(return_X_y=True, as_frame=True)
for penalty in (0.0, 0.002, 0.01):
    of_penalty = EvoTreeClassifier(**{**hyperparameters, "term_penalty": penalty})
    tree = of_penalty.fit(wine, cultivar).tree_
    print(f"term_penalty={penalty:<6} {tree.n_leaves} leaves, {tree.n_terms} terms")

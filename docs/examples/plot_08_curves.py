"""
Learning curves and lineage
===========================

See how a search went: the best, the median and the quartiles of each generation, several seeds, and
what the population descends from.
"""

# %%
# The published algorithm begins with random trees on dipoles, so there is much to see. The
# chessboard is turned by 45 degrees: no axis-parallel split helps.

import numpy as np

from evotree import EvoTreeClassifier, keep_best_trees, to_frame
from evotree.plotting import (
    plot_decision_regions,
    plot_learning_curve,
    plot_learning_curves,
)

X = np.random.default_rng(0).random((600, 2))
y = ((X.sum(axis=1) > 1) != (X[:, 0] > X[:, 1])).astype(int)


def fit(seed, size_penalty=0.005):
    model = EvoTreeClassifier.from_preset(
        "gea_odt",
        size_penalty=size_penalty,
        max_generations=200,
        evolution__patience=None,
        callbacks=[keep_best_trees],
        random_state=seed,
    )
    return model.fit(X, y)


model = fit(seed=0)
plot_learning_curve(model)

# %%
# Several seeds belong together: the line is their median, the band reaches from quartile to
# quartile.

runs = {
    f"α = {size_penalty}": [fit(seed, size_penalty) for seed in range(4)]
    for size_penalty in (0.005, 0.02)
}
plot_learning_curves(runs, chapter="quality")

# %%
# ``keep_best_trees`` keeps each tree that became the best: here are the first, one in the middle
# and the last.

import matplotlib.pyplot as plt

generations = sorted(model.best_trees_)
shown = [generations[0], generations[len(generations) // 2], generations[-1]]
fig, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, generation in zip(axes, shown, strict=True):
    tree = model.best_trees_[generation]
    plot_decision_regions(tree, X, y, ax=ax)
    ax.set_title(f"generation {generation}: {tree.n_leaves} leaves")

# %%
# A default fit begins with optimized trees. The lineage says which share of the population
# descends from which kind of them.

history = to_frame(EvoTreeClassifier(random_state=0).fit(X, y).history_)
history.filter(like="origin_").plot.area(xlabel="generation")

# %%
# The history is a table.

table = to_frame(model.history_)
print(table[["gen", "nevals", "quality_best", "size_best"]].iloc[::40])

# sphinx_gallery_thumbnail_number = 2

"""
Islands and checkpoints
=======================

Evolve several populations that exchange their best, write the state of the search to a file, and
continue from it.
"""

# %%
# Four islands evolve apart, on two threads. The tree depends on the seed and on the number of
# islands, never on the threads.

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from evotree import Checkpoint, Evolution, EvoTreeClassifier, Islands, Regularization
from evotree.plotting import plot_learning_curve

X = np.random.default_rng(1).random((600, 2))
y = 2 * (X.sum(axis=1) > 1) + (X[:, 0] > X[:, 1])
path = Path(mkdtemp()) / "search.checkpoint"
hyperparameters = {
    "size_penalty": 0.002,
    "term_penalty": 0.0005,
    "random_state": 0,
}
evolution = Evolution(
    population_size=40,
    patience=None,
    init=None,
    refinement=None,
    regularization=Regularization(noise=0.0),
    islands=Islands(4, every=5),
)
with ThreadPoolExecutor(2) as threads:
    model = EvoTreeClassifier(
        evolution=evolution.set_params(islands__executor=threads),
        checkpoint=Checkpoint(path, every=20),
        max_generations=40,
        **hyperparameters,
    ).fit(X, y)
print(f"{model.n_generations_} generations, quality {model.score(X, y):.3f}")

# %%
# The file holds data and never code. The search goes on from it, here to twice as many
# generations.

print(f"{path.name}: {path.stat().st_size // 1024} KiB")
longer = EvoTreeClassifier(
    evolution=evolution,
    checkpoint=Checkpoint(path, every=20, resume=True),
    max_generations=80,
    **hyperparameters,
).fit(X, y)
print(f"{longer.n_generations_} generations, quality {longer.score(X, y):.3f}")

# %%
# It ends where a search that was never stopped ends, bit for bit.

at_once = EvoTreeClassifier(evolution=evolution, max_generations=80, **hyperparameters)
print(at_once.fit(X, y).tree_ == longer.tree_)

# %%
# Islands have no joint quartiles; the dashed line is the mean of all of them.

plot_learning_curve(longer)

"""
Seed the population by greedy trees
===================================

Begin with trees of the greedy algorithms, or with your own, and follow what becomes of them.
"""

# %%
# A first population may hold trees of any splitter, and fitted trees of scikit-learn.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

from evotree import Evolution, EvoTreeClassifier, Regularization, to_frame
from evotree.plotting import plot_learning_curve

X, y = load_digits(n_class=4, return_X_y=True)
cart = DecisionTreeClassifier(max_leaf_nodes=8, random_state=0).fit(X, y)

hyperparameters = {
    "size_penalty": 0.002,
    "term_penalty": 0.0002,
    "max_generations": 40,
    "random_state": 0,
}
evolution = Evolution(
    patience=None, refinement=None, regularization=Regularization(noise=0.0)
)
first_trees = {
    "random trees": None,
    "CART's tree": [cart],
    "WODT and OC1": {"wodt": 0.2, "oc1": 0.2},
}
models = {
    name: EvoTreeClassifier(
        evolution=evolution.set_params(init=init), **hyperparameters
    ).fit(X, y)
    for name, init in first_trees.items()
}
for name, model in models.items():
    tree = model.tree_
    print(
        f"{name:<14} accuracy {model.score(X, y):.3f}, {tree.n_leaves} leaves, {tree.n_terms} terms"
    )

# %%
# The lineage tells which share of the population descends from what.

fig, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
lineage = to_frame(models["WODT and OC1"].history_).filter(like="origin_")
lineage.plot.area(ax=axes[0], xlabel="generation", ylabel="share of the population")
plot_learning_curve(models["WODT and OC1"], curves="quality", ax=axes[1])

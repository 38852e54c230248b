"""
Imbalanced classes and costs
============================

Evolve trees for the score that counts, or for what errors cost.
"""

# %%
# One row of twelve is positive. A tree for accuracy may miss most of them; a tree for balanced
# accuracy may not.

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import ConfusionMatrixDisplay, balanced_accuracy_score
from sklearn.model_selection import train_test_split

from evotree import Cost, EvoTreeClassifier
from evotree.plotting import plot_tree

X, y = make_classification(
    n_samples=1200,
    n_features=6,
    n_informative=4,
    weights=[0.92],
    class_sep=0.7,
    flip_y=0.02,
    random_state=3,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

aims = {
    "accuracy": {},
    "balanced accuracy": {"objective": "balanced_accuracy"},
    # A false alarm costs 1, a positive row that is missed costs 5.
    "cost": {"objective": Cost([[0, 1], [5, 0]])},
}
hyperparameters = {"size_penalty": 0.003, "term_penalty": 0.001, "max_generations": 20}
fig, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
costs = {}
for ax, (name, aim) in zip(axes, aims.items(), strict=True):
    model = EvoTreeClassifier(**aim, **hyperparameters, random_state=0).fit(
        X_train, y_train
    )
    predicted = model.predict(X_test)
    ConfusionMatrixDisplay.from_predictions(
        y_test, predicted, ax=ax, colorbar=False, cmap="Blues"
    )
    balanced = balanced_accuracy_score(y_test, predicted)
    ax.set_title(f"evolved for {name}\nbalanced accuracy {balanced:.2f}")
    missed = ((y_test == 1) & (predicted == 0)).sum()
    alarms = ((y_test == 0) & (predicted == 1)).sum()
    costs[name] = (alarms + 5 * missed) / len(y_test)

# %%
# The mean cost of a held-out row by the costs above:

for name, cost in costs.items():
    print(f"evolved for {name:<18} {cost:.2f}")

# %%
# Features may cost something, too. A column is paid for once on the way to a leaf, and the tree
# asks for it only where it is worth its price.

thrifty = EvoTreeClassifier(
    Cost(matrix=[[0, 1], [5, 0]], features=[0.01, 0.01, 0.2, 0.2, 0.2, 0.01]),
    **hyperparameters,
    random_state=0,
).fit(X_train, y_train)
plot_tree(thrifty)
print(f"mean cost, errors and features: {thrifty.cost_score(X_test, y_test):.2f}")

# sphinx_gallery_thumbnail_number = 2

"""
A first tree
============

Fit a tree, print it, and draw it. What is printed is what predicts.
"""

# %%
# The wine data has 13 measurements of wines from three cultivars. A default fit chooses its
# hyperparameters by cross-validation, and keeps the tree small.

from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from evotree import EvoTreeClassifier
from evotree.export import export_text
from evotree.plotting import plot_tree

wine = load_wine(as_frame=True)
X, y = wine.data, wine.target_names[wine.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

model = EvoTreeClassifier(random_state=0).fit(X_train, y_train)
print(export_text(model))
print(f"Accuracy on held-out rows: {model.score(X_test, y_test):.3f}")

# %%
# A split is one inequality. Its most influential term comes first, with a weight of 1. A row that
# fulfils it goes on to the first branch.

plot_tree(model)

# %%
# Rows far from the hyperplanes are surer than rows beside them. The class of ``predict`` is
# always the most probable one.

probabilities = model.predict_proba(X_test)
print(model.classes_)
print(probabilities[:5].round(3))

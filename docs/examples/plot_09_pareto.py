"""
The Pareto front
================

Choose the size of the tree after the search: one run keeps the best tree of each complexity.
"""

# %%
# Complexity is the number of leaves and terms. The arrow marks the tree that predicts.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from evotree import Dataset, EvoTreeClassifier
from evotree.plotting import plot_pareto, plot_tree

cancer = load_breast_cancer(as_frame=True)
X, y = cancer.data, cancer.target_names[cancer.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

model = EvoTreeClassifier(random_state=0).fit(X_train, y_train)
print(model.pareto_front_)
print(f"held-out accuracy: {model.score(X_test, y_test):.3f}")

# %%
# Draw the front on the training rows and on rows held out. The band is one standard error wide.

rows = model.encode(X_test, bends=True)
held_out = Dataset.in_raw_units(rows, y_test, model.classes_)
plot_pareto(model, held_out=held_out)

# %%
# ``select_tree`` takes another tree of the front: by a bound, or by rows held out.

model.select_tree("complexity<=7")
print(f"held-out accuracy: {model.score(X_test, y_test):.3f}")
plot_tree(model)
plt.show()

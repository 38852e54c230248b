"""
A first tree
============

Fit a tree, print it, and draw it. The printed tree is the one that predicts.
"""

# %%
# Who repays a loan? These rows are drawn, so that what is found can be checked. An employee repays
# who keeps enough after rent and instalments, others if their savings last a year. No column says
# much by itself, and no sum of columns is right for all.

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evotree import EvoTreeClassifier
from evotree.experiments.problems import make_loans
from evotree.export import export_text
from evotree.plotting import plot_tree

X, y = make_loans(1000, random_state=0)
X_test, y_test = make_loans(5000, random_state=1)
X.head()

# %%
# A default fit chooses its hyperparameters by cross-validation, and keeps the tree small. The lines
# below the tree compare it with the best larger and smaller ones.

model = EvoTreeClassifier(random_state=0).fit(X, y)
print(export_text(model))

# %%
# A split is one inequality; a row that fulfils it goes on to the first branch. The tree has found
# both rules: 12 instalments and 3,000 of savings; rent and instalments twice.

plot_tree(model)

# %%
# Of the new loans, 3 % end otherwise than the rules say. A tree of single columns needs stairs for
# sums, and logistic regression has one sum for all.

numbers = X.assign(work=X["work"] == "employed")
new = X_test.assign(work=X_test["work"] == "employed")
sizes = {"max_leaf_nodes": [2, 4, 8, 16, 32, 64]}
cart = GridSearchCV(DecisionTreeClassifier(random_state=0), sizes).fit(numbers, y)
logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, y)
print(f"evotree, {model.tree_.n_leaves} leaves: {model.score(X_test, y_test):.3f}")
leaves = cart.best_estimator_.get_n_leaves()
print(f"CART, {leaves} leaves: {cart.score(new, y_test):.3f}")
print(f"logistic regression: {logistic.score(new, y_test):.3f}")

# %%
# Rows far from the hyperplanes are surer than rows beside them. The class of ``predict`` is
# always the most probable one.

print(model.classes_)
print(model.predict_proba(X_test[:5]).round(3))

# sphinx_gallery_thumbnail_number = 1

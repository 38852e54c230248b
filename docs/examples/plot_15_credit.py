"""
A credit model that keeps the rules
===================================

The risk may only rise with missed payments, and the post code must not count.
"""

# %%
# Drawn applicants: the post code says something about the risk, because income does.

import numpy as np
import pandas as pd
from sklearn.base import clone

from evotree import EvoTreeClassifier
from evotree.export import export_text
from evotree.inspection import compare_rows
from evotree.plotting import plot_tree

rng = np.random.default_rng(0)
n = 1500
income = rng.gamma(4.0, 10.0, n)
X = pd.DataFrame(
    {
        "income": income.round(1),
        "debt": (income * rng.uniform(0.0, 0.9, n)).round(1),
        "missed payments": rng.poisson(0.8, n),
        "years employed": rng.integers(0, 25, n),
        "post code": (10 + np.clip(income / 12 + rng.normal(0, 2.0, n), 0, 9)).round(),
    }
)
odds = (
    0.09 * X["debt"]
    - 0.07 * X["income"]
    + 0.9 * X["missed payments"]
    - 0.05 * X.iloc[:, 3]
)
risky = rng.random(n) < 1.0 / (1.0 + np.exp(-odds - 0.3))
y = np.where(risky, "default", "repaid")
X_train, X_test, y_train, y_test = X[:1000], X[1000:], y[:1000], y[1000:]

# %%
# The second of the classes is ``repaid``: its probability must never rise with missed payments or
# debt, nor fall as income rises. The tree is made so, for all applicants.

signs = {"missed payments": -1, "debt": -1, "income": 1}
first = EvoTreeClassifier(monotonic_cst=signs, random_state=0).fit(X_train, y_train)
print(export_text(first))
richer = X_test.assign(income=X_test["income"] * 2)
print(
    "less likely to repay with twice the income:",
    np.sum(
        first.predict_proba(richer)[:, 1] < first.predict_proba(X_test)[:, 1] - 1e-9
    ),
)

# %%
# Whether or not a split asks for the post code, the column leaves the table: then no fit to other
# rows can use it. That costs little.

allowed = X.columns.drop("post code").tolist()
X_train, X_test = X_train[allowed], X_test[allowed]
model = clone(first).fit(X_train, y_train)
print(export_text(model))
print(f"with the post code {first.score(X[1000:], y_test):.3f}")
print(f"without it         {model.score(X_test, y_test):.3f}")

# %%
# A clerk asks whether income covers the debt before anything else, and writes that split by hand.
# ``edit_cost_`` has the price. An edit that breaks a sign is refused.

editor = model.edit(X_train, y_train)
by_hand = editor.set_split(0, "income - 1.25 * debt >= 0")
print(by_hand.edit_cost_)
try:
    editor.set_split(0, "income + 1.25 * debt <= 60")
except ValueError as error:
    print(f"refused: {error}")

# %%
# `refit` lets the search go on below that split, which is held. On the training rows its tree is
# worth no less than the one before.

final = by_hand.refit(X_train, y_train, hold=[0])
print(export_text(final))
plot_tree(final)
for name, one in (("before", model), ("after", final)):
    print(f"{name}: {one.score(X_test, y_test):.3f} right, {one.get_n_leaves()} leaves")

# %%
# Why was one applicant refused, and another one not? Their paths part at one split, by these terms.

labels = final.predict(X_test)
refused, taken = (
    X_test.iloc[int(np.argmax(labels == one))] for one in ("default", "repaid")
)
print(compare_rows(final, refused, taken).terms)

"""
Regression with linear leaves
=============================

Predict numbers by lines of few terms in the leaves, with intervals that cover as they claim.
"""

# %%
# The target below is two lines that meet at a slanted edge, with noise.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from evotree import EvoTreeRegressor
from evotree.plotting import plot_tree

rng = np.random.default_rng(0)
X = rng.uniform(0.0, 10.0, (600, 2))
is_above = X[:, 1] > X[:, 0]
y = np.where(is_above, 20.0 - 1.5 * X[:, 1], 2.0 * X[:, 0]) + rng.normal(0.0, 0.7, 600)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

scores = {}
for leaves in ("constant", "linear"):
    model = EvoTreeRegressor(leaves=leaves, max_generations=20, random_state=0)
    scores[leaves] = model.fit(X_train, y_train).score(X_test, y_test)
    print(f"{leaves:<8} leaves: R² {scores[leaves]:.3f}, {model.tree_.n_leaves} leaves")

# %%
# The last tree has lines. Bars show the terms of a line: red ones raise the prediction.

plot_tree(model, feature_names=["depth", "width"])

# %%
# ``calibrate`` learns from held-out rows how wide intervals have to be; ``predict_interval`` then
# covers new targets with the probability that is asked for.

X_calibration, X_new, y_calibration, y_new = train_test_split(
    X_test, y_test, random_state=0
)
model.calibrate(X_calibration, y_calibration)
low, high = model.predict_interval(X_new, coverage=0.9)
predicted = model.predict(X_new)

fig, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
order = np.argsort(predicted)
ax.vlines(
    predicted[order], low[order], high[order], color="0.8", lw=3, label="90 % interval"
)
ax.scatter(predicted, y_new, s=14, zorder=3, label="held-out row")
ax.set(xlabel="prediction", ylabel="target")
ax.legend(frameon=False)
print(f"covered: {np.mean((low <= y_new) & (y_new <= high)):.2f}")

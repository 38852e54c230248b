"""
A rule for decisions, by their regret
=====================================

Whom to treat? Nobody is labelled: each person was treated or not, and only what then happened is
known. A rule is worth the mean effect on those whom it treats. The data are those of policytree's
introduction (Sverdrup, Kanodia, Zhou, Athey and Wager 2020, JOSS 5(50)): the effect depends on a
sum of two features, so that the best rule is oblique.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from evotree import ScoredProblem, SearchConfig, search_scores
from evotree.export import export_text

rng = np.random.default_rng(0)
n, names = 20_000, [f"x{j}" for j in range(5)]


def effect(X):
    return 1.0 / (1.0 + np.exp((X[:, 0] + X[:, 1]) / 2.0)) - 0.5


X = rng.normal(size=(n, 5))
chance = 1.0 / (1.0 + np.exp(X[:, 2]))  # of treatment, known by design
treated = rng.uniform(size=n) < chance
outcome = X[:, 2] + treated * effect(X) + rng.normal(size=n)

# %%
# Doubly robust scores say what treatment does to a person, on average over what is unknown: the
# difference of what a model expects with and without it, corrected by what the model missed
# (Robins, Rotnitzky and Zhao 1994).
forest = RandomForestRegressor(40, min_samples_leaf=50, random_state=0, n_jobs=2)
with_treatment = np.column_stack([X, treated])
predicted = cross_val_predict(forest, with_treatment, outcome, cv=3)
forest.fit(with_treatment, outcome)
gains = np.subtract(
    *(forest.predict(np.column_stack([X, np.full(n, w)])) for w in (1.0, 0.0))
)
gains += (treated - chance) / (chance * (1.0 - chance)) * (outcome - predicted)

# %%
# The score of a tree is the mean gain of those whom it treats. Gains are noisy, so that the rule
# may weigh two features and no more.


def mean_gain(tree, seed):
    return float((gains * tree.predict_label(X)).mean())


problem = ScoredProblem(
    score=mean_gain, actions=["leave", "treat"], observations=X[:1000]
)
result = search_scores(
    problem, SearchConfig(max_leaf_nodes=2, max_terms=2, random_state=0)
)
print(export_text(result.tree, names, ["leave", "treat"]))

# %%
# Beside it stands a greedy tree of depth 2, which classifies by the sign of the gains, weighted by
# their size: that has the same optimum. The regret is what a rule loses against the best one, on
# new people.
greedy = DecisionTreeClassifier(max_depth=2, random_state=0)
greedy.fit(X, gains > 0.0, sample_weight=np.abs(gains))
new = rng.normal(size=(100_000, 5))
best = np.maximum(effect(new), 0.0).mean()
for name, decided in (
    ("evolved", result.tree.predict_label(new)),
    ("greedy", greedy.predict(new)),
):
    print(
        f"regret of the {name} tree: {best - (effect(new) * decided).mean():.4f} of {best:.4f}"
    )

# %%
# The dashed line is the best rule.
fig, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
grid = np.linspace(-3.0, 3.0, 200)
points = np.zeros((200 * 200, 5))
points[:, :2] = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
treats = result.tree.predict_label(points).reshape(200, 200)
ax.contourf(grid, grid, treats, levels=[-0.5, 0.5, 1.5], alpha=0.4)
ax.plot(grid, -grid, "k--")
ax.set(
    xlabel="x0",
    ylabel="x1",
    xlim=(-3, 3),
    ylim=(-3, 3),
    title="whom the tree treats, others being 0",
)

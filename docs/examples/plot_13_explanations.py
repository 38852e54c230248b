"""
Explanations and counterfactuals
================================

Ask a tree why it predicts what it does, and what would have to change.
"""

# %%
# The disease progression of 442 people is fast or slow; the columns are in their own units.

import numpy as np
from sklearn.datasets import load_diabetes

from evotree import EvoTreeClassifier
from evotree.inspection import counterfactuals, shap_values
from evotree.plotting import plot_explanation, plot_tree

people, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
names = {"bp": "blood pressure", "s3": "HDL", "s5": "log triglycerides"}
people = people[["age", "bmi", *names]].rename(columns=names)
fast = np.where(progression > progression.median(), "fast", "slow")
model = EvoTreeClassifier(size_penalty=0.004, term_penalty=0.001, random_state=0).fit(
    people, fast
)
plot_tree(model)

# %%
# Importances distribute what each split gains over its terms.

model.importances(named=True).sort_values().plot.barh()

# %%
# On the way of one row, each term moves it to the right or to the left of the hyperplanes.

person = people.iloc[[9]]
print(person.to_string(index=False), "->", model.predict(person)[0])
plot_explanation(model, person)

# %%
# Shapley values say what each column adds to the probability of ``fast``, against other rows.

values = shap_values(model, person, people.iloc[::10]).values[0, :, 0]
for name, value in zip(people.columns, values, strict=True):
    print(f"{name:<18} {value:+.3f}")

# %%
# A counterfactual is the nearest row that is predicted otherwise, found exactly. Age cannot
# change.

other = "slow" if model.predict(person)[0] == "fast" else "fast"
nearest = counterfactuals(model, person, target=other, fixed=["age"])[0]
for name, (before, after) in nearest.changes.items():
    print(f"{name}: {before:.4g} -> {after:.4g}")

# sphinx_gallery_thumbnail_number = 1

"""
Mixed data and missing values
=============================

Pass data frames without a pipeline: numbers, categories, and cells that are missing.
"""

# %%
# We add a category to the diabetes data and take cells away. No pipeline is needed.

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from evotree import EvoTreeClassifier
from evotree.export import export_text
from evotree.plotting import plot_tree

people, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
people = people[["age", "sex", "bmi", "bp", "s5"]].rename(columns={"s5": "log lipids"})
people["sex"] = pd.Categorical(np.where(people["sex"] == 1, "first", "second"))

rng = np.random.default_rng(0)
fast = np.where(progression > progression.median(), "fast", "slow")
# Blood pressure is missing more often where the disease is slow: that it is missing says something.
is_lost = rng.random(len(people)) < np.where(fast == "slow", 0.4, 0.1)
people.loc[is_lost, "bp"] = np.nan
people.loc[rng.random(len(people)) < 0.1, "sex"] = None
print(people.head())

# %%
# A missing number becomes the median of the training rows, and the feature ``bp is missing`` lets
# a split ask for it. Each level of a category is a feature of 0 and 1.

model = EvoTreeClassifier(random_state=0).fit(people, fast)
print(model.feature_names_)
print(export_text(model))
plot_tree(model)

# %%
# Importances are of the columns: the features that a column makes count together.

model.importances(named=True).sort_values().plot.barh()

# %%
# Rows of which everything is missing can be predicted too. A warning names the columns that had no
# missing values in ``fit``.

import textwrap
import warnings

nothing = people.head(1).assign(age=np.nan, sex=None, bmi=np.nan, bp=np.nan)
nothing["log lipids"] = np.nan
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(model.predict(nothing), model.predict_proba(nothing).round(2))
print(textwrap.fill(f"warning: {caught[0].message}", 80))

# sphinx_gallery_thumbnail_number = 1

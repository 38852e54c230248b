"""What trees know of men whom they have not seen: who is in a union, of 545 men in eight years.

The data are those of Vella and Verbeek (1998), "Whose wages do unions raise?", as the package
linearmodels ships them: ``pip install linearmodels``. It takes minutes on one core.
"""

import numpy as np
import pandas as pd
from linearmodels.datasets import wage_panel
from sklearn.model_selection import StratifiedGroupKFold

from evotree import EvoTreeClassifier, ObliqueForestClassifier, ObliqueTreeClassifier

METHODS = {
    "greedy": ObliqueTreeClassifier(
        "axis", pruning="cross_validation", standard_errors=1.0
    ),
    "evolved": EvoTreeClassifier(),
    "forest": ObliqueForestClassifier(30, oob_score=True),
}

X = wage_panel.load().drop(columns="expersq")
X["occupation"] = X["occupation"].astype(str).astype("category")
men, y = X.pop("nr").to_numpy(), X.pop("union").to_numpy()
rows = []
for seed in range(2):
    folds = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
    for train, test in folds.split(X, y, men):
        for name, model in METHODS.items():
            model.set_params(random_state=seed)
            for groups in (None, men[train]):
                model.fit(X.iloc[train], y[train], groups=groups)
                tree = getattr(model, "tree_", None)
                row = {
                    "method": name,
                    "groups": "men" if groups is not None else "without",
                    "right on new men": model.score(X.iloc[test], y[test]),
                    "leaves": tree.n_leaves if tree else np.nan,
                    "leaves and terms": tree.complexity if tree else np.nan,
                    "right out of bag": getattr(model, "oob_score_", np.nan),
                }
                rows.append(row)
table = pd.DataFrame(rows)
print(table.groupby(["method", "groups"]).mean().round(3))
score = table.pivot(columns=["method", "groups"], values="right on new men")
score = score.apply(lambda column: pd.Series(column.dropna().to_numpy()))
for name in METHODS:
    gain = score[name]["men"] - score[name]["without"]
    print(f"{name}: {gain.mean():.3f} +- {gain.sem():.3f}")

"""Shapley values and counterfactuals of fitted estimators of all kinds."""

import numpy as np
import pandas as pd

from evotree import TAOClassifier
from evotree.inspection import counterfactuals, shap_values


def mixed_rows(seed=0):
    """Return rows with numbers, missing ones, and categories, and a class that depends on all."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": random.integers(18, 80, 240).astype(float),
            "size": random.normal(size=240),
            "kind": pd.Categorical(random.choice(["p", "q", "r"], 240)),
        }
    )
    score = (
        table.age / 20
        + table["size"]
        + 2.0 * (table.kind == "q")
        + random.normal(0, 0.2, 240)
    )
    table.loc[::7, "age"] = np.nan
    return table, score.to_numpy()


def test_tables_with_categories_and_missing_values():
    table, score = mixed_rows()
    y = np.array(["low", "middle", "high"])[
        np.digitize(score, np.quantile(score, [0.3, 0.7]))
    ]
    model = TAOClassifier(depth=3, random_state=0).fit(table, y)
    assert shap_values(model, table.head(2), table.head(10)).values.shape == (2, 3, 3)
    for at in (0, 1):  # the first has no age
        one = counterfactuals(model, table.iloc[[at]], bounds={"size": (-1, 1)})[0]
        assert model.predict(one.row)[0] != model.predict(table.iloc[[at]])[0]
        assert one.row["kind"].isin(["p", "q", "r"]).all()
        assert ("age" in one.changes) <= (at == 1)
        assert one.row["age"].isna().to_numpy().all() == (at == 0)

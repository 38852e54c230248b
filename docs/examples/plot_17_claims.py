"""
Claims with exposures
=====================

A tree of claims of drivers who were insured for a month or for two years, beside a generalized
linear model and boosting, by the deviance of other drivers.
"""

# %%
# The drivers are drawn, so that the best deviance is known. Claims rise with the power of the car
# and fall with the bonus; a young driver of a strong car has three times as many, and in town the
# power does not matter. The exposure is in years.

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evotree import EvoTreeRegressor
from evotree.export import export_text
from evotree.plotting import plot_tree


def draw(n, seed):
    """Return drivers, their claims, exposures and true rates."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "power": rng.gamma(6.0, 15.0, n).round(),
            "bonus": rng.integers(0, 11, n),
            "town": rng.integers(0, 2, n),
            "km": rng.gamma(4.0, 3.0, n).round(1),
        }
    )
    power = np.where(X["town"] == 1, 0.3, 0.006 * (X["power"] - 40.0))
    is_wild = (X["age"] < 26) & (X["power"] > 90)
    score = -1.4 + power - 0.12 * X["bonus"] + 0.03 * X["km"] + 1.1 * is_wild
    rate, years = np.exp(score.to_numpy()), rng.choice([1 / 12, 0.5, 1.0, 2.0], n)
    return X, rng.poisson(rate * years), years, rate


X, claims, years, _ = draw(4000, seed=0)
X.assign(claims=claims, years=years).head()

# %%
# Exposures are an argument of the fit. As a weight of rates, as the others take it, it would also
# be one for folds and standard errors: two years would count as 24 drivers of a month.

models = {
    "tree of rates": EvoTreeRegressor("poisson", random_state=0),
    "tree of models": EvoTreeRegressor("poisson", leaves="linear", random_state=0),
}
for model in models.values():
    model.fit(X, claims, exposure=years)
print(export_text(models["tree of models"]))
plot_tree(models["tree of models"], max_terms=3)

# %%
# The deviance of 40,000 other drivers, beside that of the true rates. The first model knows the
# mean rate alone.

others = {
    "mean rate": PoissonRegressor(alpha=1e12),
    "PoissonRegressor": make_pipeline(StandardScaler(), PoissonRegressor(alpha=1e-3)),
    "boosting": HistGradientBoostingRegressor(loss="poisson", random_state=0),
    "boosting, 50 rounds of 7 leaves": HistGradientBoostingRegressor(
        loss="poisson", max_iter=50, max_leaf_nodes=7, random_state=0
    ),
}
for model in others.values():
    last = model.steps[-1][0] + "__" if hasattr(model, "steps") else ""
    model.fit(X, claims / years, **{f"{last}sample_weight": years})

new, new_claims, new_years, new_rate = draw(40_000, seed=1)
rates = {name: model.predict(new) for name, model in (others | models).items()}
for name, rate in (rates | {"true rates": new_rate}).items():
    lost = mean_poisson_deviance(new_claims, rate * new_years)
    print(f"{name:32} {lost:.4f}")

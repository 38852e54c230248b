"""Loans, a table that is drawn by rules that one knows."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evotree.words import check_whole


def make_loans(
    n_samples: int = 1000,
    random_state: int | np.random.Generator | None = None,
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Draw a table of loans, whose columns matter together and not one by one.

    An employee repays who keeps 1,000 a month after twice the rent and twice the instalment:
    ``income - 2 * rent - 2 * instalment >= 1000``. Others repay who have a year of instalments, and
    3,000 besides: ``savings - 12 * instalment >= 3000``. Age says nothing. Of 100 loans, three end
    otherwise than these rules say, so no model can be right on more than 97 % of new ones.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    random_state : int, numpy Generator or None
        A seed; a Generator, which is advanced; or None for fresh entropy.

    Returns
    -------
    X : DataFrame of shape (n_samples, 6)
        Five columns of numbers, and the categories ``work``.
    y : array of shape (n_samples,)
        ``"repaid"`` or ``"late"``.

    Examples
    --------
    >>> X, y = make_loans(100, random_state=0)
    >>> list(X)
    ['income', 'rent', 'instalment', 'savings', 'age', 'work']
    """
    check_whole("n_samples", n_samples, 1)
    if not (random_state is None or isinstance(random_state, np.random.Generator)):
        check_whole("random_state", random_state, 0)
    rng, n = np.random.default_rng(random_state), int(n_samples)
    X = pd.DataFrame(
        {
            "income": rng.uniform(1500.0, 6000.0, n).round(-1),
            "rent": rng.uniform(300.0, 1800.0, n).round(-1),
            "instalment": rng.uniform(100.0, 1200.0, n).round(-1),
            "savings": rng.gamma(2.0, 6000.0, n).round(-2),
            "age": rng.integers(20, 70, n),
        }
    )
    works = ["employed", "self-employed"]
    X["work"] = pd.Categorical(rng.choice(works, n, p=[0.65, 0.35]), works)
    keeps = X["income"] - 2 * X["rent"] - 2 * X["instalment"] >= 1000
    lasts = X["savings"] - 12 * X["instalment"] >= 3000
    is_repaid = np.where(X["work"] == "employed", keeps, lasts)
    is_repaid ^= rng.random(n) < 0.03
    return X, np.where(is_repaid, "repaid", "late")

"""What a person reads of answers that are printed, in a few lines without arrays."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from evotree.inspection import (
    compare_rows,
    counterfactuals,
    shap_values,
    stability,
)
from tests.quick_models import brief, brief_text

X, Y = load_iris(return_X_y=True, as_frame=True)
MODEL = brief().fit(X, Y)
RESULTS = {
    "Stability": (
        lambda: stability(MODEL, X, Y, n=2, random_state=0),
        "2 refits: accuracy",
    ),
    "Counterfactual": (lambda: counterfactuals(MODEL, X.iloc[0])[0], " -> "),
    "ShapValues": (
        lambda: shap_values(MODEL, X, X.iloc[::20]),
        "150 rows, 4 columns, 3",
    ),
    "RowComparison": (lambda: compare_rows(MODEL, X[:1], X[-1:]), "they part at [0]"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_printed_in_a_few_lines(name):
    make, told = RESULTS[name]
    assert told in brief_text(make())


def test_what_is_long_is_cut():
    many = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 40))).add_prefix("c")
    found = stability(brief(), many, many.sum(axis=1) > 0.0, n=2, random_state=0)
    assert len(found.columns) > 10
    assert f"{len(found.columns) - 10} more" in repr(found)

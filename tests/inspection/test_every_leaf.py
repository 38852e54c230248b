"""Every kind of leaf in every question to a model."""

import numpy as np
import pytest

from evotree.inspection import (
    compare_rows,
    counterfactuals,
    shap_values,
)
from tests.kinds import (
    every,
    every_model,
    kind_of,
    outputs_of,
    rows,
)

pytestmark = pytest.mark.filterwarnings("error")


@every("lines", "score", without=("outputs",))
def test_two_rows_of_a_leaf_are_compared_by_one_question(name):
    kind, X = kind_of(name), rows(1, 60)
    leaves, labels = kind.model.apply(X), kind.model.predict(X)
    for a in range(10):
        for b in np.flatnonzero((leaves == leaves[a]) & (labels != labels[a])).tolist():
            node, terms, _ = compare_rows(kind.model, X.iloc[[a]], X.iloc[[b]])
            assert node == leaves[a]
            gap = terms.weight * (terms.value_b - terms.value_a)
            np.testing.assert_allclose(terms.difference, gap, atol=1e-9)
            if kind.classes is not None and len(kind.classes) == 2:
                assert terms.difference.sum() < 0.0  # less of the class of `a`


@every_model
def test_shapley_values_add_up(name):
    kind, X = kind_of(name), rows(1, 5)
    found = shap_values(kind.model, X, kind.X[:20])
    if kind.classes is None:
        predicted = kind.model.predict(X)
    else:
        predicted = kind.model.predict_proba(X)
    np.testing.assert_allclose(
        found.values.sum(axis=1) + found.base, predicted, atol=1e-9
    )


@every_model
def test_counterfactuals_are_predicted_so(name):
    kind = kind_of(name)
    row, predict = kind.X[:1], kind.model.predict
    if kind.classes is not None:
        before, seen = predict(row)[0], set(predict(kind.X).tolist())
        for target in seen:
            (found,) = counterfactuals(kind.model, row, target)
            assert predict(found.row).tolist() == [target]
            assert (found.distance == 0.0) == (target == before)
        if len(seen) > 1:
            (found,) = counterfactuals(kind.model, row)
            assert predict(found.row)[0] != before
        return
    for at, output in enumerate(outputs_of(kind)):
        predicted = predict(kind.X).reshape(len(kind.X), -1)[:, at]
        far = predicted[np.abs(predicted - predicted[0]).argmax()]
        goal = (far - 0.05, far + 0.05)
        (found,) = counterfactuals(kind.model, row, goal, output=output)
        value = predict(found.row).reshape(1, -1)[0, at]
        assert goal[0] - 1e-9 <= value <= goal[1] + 1e-9

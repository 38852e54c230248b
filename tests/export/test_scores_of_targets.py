"""Code of regression trees on a score."""

import numpy as np
import pytest

from evotree import EvoTreeRegressor
from evotree.export import export_python
from tests.test_scores import rows_of_targets


def test_code_has_the_score_of_targets_once():
    X, y = rows_of_targets(300)
    model = EvoTreeRegressor(leaves="score", random_state=0, max_generations=2)
    model.fit(X, y)
    assert model.get_n_leaves() > 1
    code, names = export_python(model), {}
    exec(code, names)
    told = [names["predict"](row) for row in model.encode(X).tolist()]
    assert told == pytest.approx(model.predict(X), rel=1e-9)
    largest = np.abs(model.tree_.models.score.coefficients).max()
    assert code.count(repr(float(largest))) == 1

"""Questions to trees whose columns may bend: the nearest points against all points of a grid."""

from itertools import product

import numpy as np
import pytest

from evotree import EvoTreeRegressor
from evotree.inspection import counterfactuals, shap_values
from evotree.schema import (
    ABOVE,
    BELOW,
    LOG,
    NUMBERS,
    WHOLE,
    Bend,
    NumericColumn,
    Schema,
)
from tests import made_up
from tests.random_trees import grid, random_tree
from tests.test_bends import fit_bent

STRAIGHT = ((), ())
BENDS = (Bend(LOG, 0.2), Bend(ABOVE, 2.0)), (Bend(BELOW, 2.5), Bend(ABOVE, 1.3))
KINDS = [{}, {"lines": True}, {"n_scores": 2}, {"n_scores": 3}]


def bent_model(random, kind, rows, holds=NUMBERS, bends_of=BENDS, depth=2):
    """Return an estimator of a random tree over two columns that bend."""
    columns = [
        NumericColumn(name, 1.0, holds=holds, bends=bends)
        for name, bends in zip("ab", bends_of, strict=True)
    ]
    features = Schema(columns).with_bends(rows)
    tree = random_tree(random, features.shape[1], depth=depth, **kind)
    inner = ~tree.is_leaf
    medians = np.median(features @ tree.weights[inner].T, axis=0)
    tree.thresholds[inner] = medians + 0.0123  # no row lies on a hyperplane
    if not kind:
        tree.values[~inner] = np.eye(3)[np.arange((~inner).sum()) % 3]
    n_classes = 0 if "lines" in kind else tree.values.shape[1]
    classes = tuple(range(n_classes)) or None
    return made_up.estimator(made_up.fitted(tree, columns, classes, features))


def found_and_best(model, points, rows, spread, **limits):
    """Yield for each row and target how far the point is that is found, and the best of a grid."""
    predicted, labels = model.predict(points), list(getattr(model, "classes_", []))
    for x, target in product(rows, labels or [(-1.0, 0.5), (1.5, np.inf)]):
        low, high = (target, target) if labels else target
        is_wanted = (predicted >= low) & (predicted <= high)
        away = (np.abs(points[is_wanted] - x) / spread).sum(axis=1)
        try:
            (one,) = counterfactuals(model, x, target, **limits)
        except ValueError as error:
            assert "no point within" in str(error) or "no leaf of" in str(error)
            yield np.inf, away.min(initial=np.inf)
            continue
        assert low <= model.predict(one.row)[0] <= high
        assert model.apply(one.row)[0] == one.leaf
        assert not limits.get("plausible") or not model.explain(one.row).rows.outside[0]
        own = (np.abs(one.row[0] - x) / spread).sum()
        np.testing.assert_allclose(one.distance, own, atol=1e-9)
        yield own, away.min(initial=np.inf)


# Leaves may be points, or lines.
@pytest.mark.filterwarnings("ignore:leaf .* is left out")
@pytest.mark.parametrize("plausible", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    ("bends", "depth"),
    [(BENDS, 2), (STRAIGHT, 2), (STRAIGHT, 0)],
    ids=["bends", "straight", "leaf"],
)
def test_columns_that_may_bend_move_and_no_point_is_nearer(
    bends, depth, kind, plausible
):
    pairs = []
    for seed in range(4):
        random = np.random.default_rng(seed)
        rows = random.uniform(0.0, 4.0, (30, 2))
        model = bent_model(random, kind, rows, NUMBERS, bends, depth)
        # Beyond the training rows, too: the grid is wider than they are.
        points = grid(*[np.linspace(-1, 5, 241)] * 2)
        if plausible:
            is_near = (points >= rows.min(axis=0)) & (points <= rows.max(axis=0))
            points = points[is_near.all(axis=1)]
        spread = model.tree_.spread[model.fitted_.schema.read_by_code]
        pairs += found_and_best(model, points, rows[:3], spread, plausible=plausible)
    assert all(own <= best + 1e-4 for own, best in pairs)
    assert depth == 0 or sum(0.0 < own < np.inf for own, _ in pairs) >= 5


@pytest.mark.filterwarnings("ignore:leaf .* is left out")
@pytest.mark.parametrize("is_bounded", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_whole_numbers_that_bend_are_the_nearest_of_all(kind, is_bounded):
    pairs, bounds = [], {"a": (-1, 9), "b": (2, None)}
    limits = {"fixed": ["a"], "bounds": bounds} if is_bounded else {}
    for seed in range(6):
        random = np.random.default_rng(seed)
        points = grid(np.arange(7.0), np.arange(7.0))
        model = bent_model(random, kind, points, WHOLE)
        for x in points[random.integers(49, size=3)]:
            is_free = (points[:, 0] == x[0]) & (points[:, 1] >= 2) | (not is_bounded)
            near, spread = points[is_free], model.tree_.spread[[0, 3]]
            pairs += found_and_best(model, near, x[np.newaxis], spread, **limits)
    np.testing.assert_allclose(*np.transpose(pairs), atol=1e-7)
    assert sum(0.0 < own < np.inf for own, _ in pairs) >= 5


def test_shapley_values_are_of_columns_and_add_up():
    model, X, _ = fit_bent(EvoTreeRegressor)
    shares = shap_values(model, X[:3], X[3:20])
    assert shares.values.shape == (3, 2)
    total = shares.values.sum(axis=1) + shares.base
    np.testing.assert_allclose(total, model.predict(X[:3]), atol=1e-9)

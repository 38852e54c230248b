"""The pictures of explanations: what is drawn is what the tables say."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from evotree import EvoTreeClassifier, EvoTreeRegressor
from evotree.inspection import stability
from evotree.plotting import plot_explanation, plot_importances, plot_stability
from evotree.plotting.style import TERM_COLORS
from evotree.schema import CategoricalColumn, NumericColumn
from tests.quick_models import brief
from tests.random_trees import estimator_of, grid, random_tree

why = plot_explanation


@pytest.fixture(params=[False, True], ids=["classes", "lines"])
def explained(request):
    random = np.random.default_rng(4)
    X = random.normal(size=(200, 4))
    tree = random_tree(random, 4, depth=3, lines=request.param)
    tree.thresholds[~tree.is_leaf] *= 0.1
    return estimator_of(tree, X), X[:12]


def bars_of(ax):
    """Return beginnings, lengths, places and colours of the bars, the upper ones first."""
    place = {bar: bar.get_y() + bar.get_height() / 2 for bar in ax.patches}
    bars = sorted(place, key=place.get)
    return [
        (bar.get_x(), bar.get_width(), place[bar], bar.get_facecolor()) for bar in bars
    ]


def axes_of(ax):
    """Return the axes of the splits, and those of the leaf's model if there are any."""
    others = [one for one in ax.figure.axes if one is not ax]
    return ax, (others[0] if others else None)


def test_bars_lead_from_the_mean_row_to_the_row(explained):
    model, X = explained
    explanation = model.explain(X)
    for row in range(len(X)):
        ax, below = axes_of(plot_explanation(explanation, row))
        terms = explanation.terms[explanation.terms.row == row]
        for side, drawn in (("split", bars_of(ax)), ("leaf", below and bars_of(below))):
            part = terms[(terms.side == "leaf") == (side == "leaf")]
            assert len(part) == len(drawn or [])
            before = part.groupby("step").contribution.cumsum() - part.contribution
            begin = part.centre + before
            for at, (x, width, _, color) in enumerate(drawn or []):
                lead = part.contribution.iloc[at]
                np.testing.assert_allclose(
                    [x, width], [begin.iloc[at], lead], atol=1e-9
                )
                assert to_hex(color) == TERM_COLORS[lead > 0.0].lower()


@pytest.mark.parametrize("kind", ["impurity", "influence"])
def test_importances_are_shown_from_the_largest_down(kind):
    size = NumericColumn("size", 0.0, indicator=True)
    columns = (
        size,
        CategoricalColumn("kind", ("p", "q", "r")),
        NumericColumn("age", 0.0),
    )
    X = grid(range(4), *[range(2)] * 4, range(4)).astype(float)
    model = estimator_of(random_tree(np.random.default_rng(1), 6), X, columns)
    shares = pd.Series(model.importances(kind), ["size", "kind", "age"])
    shares = shares.sort_values(ascending=False)
    ax = plot_importances(model, kind=kind, max_columns=2)
    assert [label.get_text() for label in ax.get_yticklabels()] == shares.index[
        :2
    ].tolist()
    np.testing.assert_allclose([bar[1] for bar in bars_of(ax)], shares[:2])
    assert [text.get_text() for text in ax.texts] == [
        f"{100 * one:.1f} %" for one in shares[:2]
    ]


@pytest.mark.parametrize(
    ("kind", "leaves", "max_leaf_nodes", "title"),
    [
        (EvoTreeClassifier, "constant", 3, "share in lowering the impurity"),
        (EvoTreeRegressor, "linear", 2, "share in what the model of the leaf says"),
        (EvoTreeRegressor, "linear", 6, "impurity and the models of leaves"),
        (EvoTreeRegressor, "constant", None, "share in nothing: no split"),
    ],
)
def test_the_title_of_importances_says_what_they_are_of(
    kind, leaves, max_leaf_nodes, title
):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    targets = {None: np.zeros(200), 2: X[:, 1]}  # one leaf
    y = targets.get(max_leaf_nodes, np.abs(X[:, 0]) + X[:, 1])
    y = X[:, 0] > random.normal(size=200) if kind is EvoTreeClassifier else y
    model = brief(kind, leaves=leaves, max_leaf_nodes=max_leaf_nodes).fit(X, y)
    assert title in plot_importances(model).get_xlabel()


def test_columns_of_refits_are_drawn():
    X = np.random.default_rng(0).normal(size=(90, 4))
    found = stability(brief(), X, X[:, 0] > 0.0, n=2, random_state=0)
    ax = plot_stability(found, max_columns=2)
    assert len(ax.patches) == min(2, len(found.columns))
    assert f"{found.summary.score:.3f}" in ax.get_title()


@pytest.mark.parametrize(
    ("kind", "message", "call"),
    [
        (
            ValueError,
            "row=12: allowed are positions from 0 to 11",
            lambda m, X: why(m.explain(X), 12),
        ),
        (ValueError, "row has shape", lambda m, X: why(m, X)),
        (ValueError, "max_terms", lambda m, X: why(m, X[0], max_terms=0)),
        (TypeError, "stability is a dict", lambda m, X: plot_stability({})),
        (TypeError, "explanation is a list", lambda m, X: why([], X[0])),
        (TypeError, "ax is a int", lambda m, X: why(m, X[0], ax=1)),
        (TypeError, "estimator is a list", lambda m, X: plot_importances([])),
        (ValueError, "kind='gain'", lambda m, X: plot_importances(m, kind="gain")),
    ],
)
def test_bad_input_is_refused(explained, kind, message, call):
    with pytest.raises(kind, match=message):
        call(*explained)
    assert not plt.get_fignums()

"""Pictures of columns that bend."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from evotree import EvoTreeClassifier, EvoTreeRegressor
from evotree.fitted import fitted_of
from evotree.plotting import plot_shapes
from evotree.texts import coefficient_table
from tests.kinds import on_score
from tests.test_bends import fit_bent


@pytest.fixture(scope="module", params=[EvoTreeRegressor, EvoTreeClassifier])
def fitted(request):
    return fit_bent(request.param)


def test_tables_and_pictures_add_up_the_terms_of_a_column(fitted):
    model, X, _ = fitted
    table = coefficient_table(model, ranges=True)
    named = fitted_of(model)
    named = named.scores or named
    ax = plot_shapes(model, X)
    ax.figure.canvas.draw()
    node = int(table.node.iloc[0])
    names = [panel.get_xlabel() for panel in ax.child_axes]
    for name, part in table[table.node == node].groupby("column"):
        c = list(X).index(name)
        lines = ax.child_axes[names.index(name)].get_lines()
        line = next(one for one in lines if len(one.get_xdata()) > 200)
        x, y = (np.asarray(one, dtype=float) for one in line.get_data())
        for row in part.itertuples():
            inside = (x >= row.low) & (x <= row.high)
            if inside.sum() > 1 and row.per_log == 0.0:
                slopes = np.diff(y[inside]) / np.diff(x[inside])
                np.testing.assert_allclose(slopes, row.per_unit, atol=1e-9)
        # The line is what the terms of the column add to the sum of the node.
        features = model.encode(X, bends=True)
        of = np.flatnonzero(named.schema.column_of == c)
        added = (features - model.training_rows_.means[node])[:, of]
        added = added @ named.factors[node, of]
        np.testing.assert_allclose(np.interp(X[name], x, y), added, atol=1e-6)
    plt.close("all")


def test_pictures_of_nodes_without_terms_are_refused(fitted):
    model, _, _ = fitted
    with pytest.raises(ValueError, match="node=True"):
        plot_shapes(model, node=True)
    with pytest.raises(ValueError, match="estimator is of the type list"):
        plot_shapes([])


def test_in_a_leaf_each_class_has_the_line_of_its_score():
    kind = on_score("three words")
    leaf = int(np.flatnonzero(kind.tree.is_leaf)[-1])
    names = [f"score of {label}" for label in kind.classes]
    for node, weights, named in (
        (leaf, kind.tree.models.score, names),
        (0, kind.tree.weights[:1], []),
    ):
        ax = plot_shapes(kind.model, node=node)
        for panel in ax.child_axes:
            slopes = weights[:, list(kind.X).index(panel.get_xlabel())]
            for slope, line in zip(slopes, panel.get_lines()[1:], strict=True):
                x, y = line.get_data()
                np.testing.assert_allclose(np.diff(y) / np.diff(x), slope, atol=1e-9)
        legend = ax.get_legend()
        texts = [] if legend is None else legend.get_texts()
        assert [text.get_text() for text in texts] == named
        plt.close("all")

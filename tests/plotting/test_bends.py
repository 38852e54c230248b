"""Pictures of columns that bend."""

import numpy as np
import pytest

from evotree import EvoTreeClassifier, EvoTreeRegressor
from evotree.fitted import fitted_of
from evotree.plotting import plot_shapes
from tests.kinds import on_score
from tests.test_bends import fit_bent


@pytest.fixture(scope="module", params=[EvoTreeRegressor, EvoTreeClassifier])
def fitted(request):
    return fit_bent(request.param)


def test_pictures_add_up_the_terms_of_a_column(fitted):
    model, X, _ = fitted
    named = fitted_of(model)
    named = named.scores or named
    ax = plot_shapes(model, X)
    ax.figure.canvas.draw()
    node = int(np.flatnonzero(named.factors.any(axis=1))[0])
    features = model.encode(X, bends=True)
    above = features - model.training_rows_.means[node]
    for panel in ax.child_axes:
        name, lines = panel.get_xlabel(), panel.get_lines()
        line = next(one for one in lines if len(one.get_xdata()) > 200)
        x, y = (np.asarray(one, dtype=float) for one in line.get_data())
        # The line is what the terms of the column add to the sum of the node.
        of = np.flatnonzero(named.schema.column_of == list(X).index(name))
        added = above[:, of] @ named.factors[node, of]
        np.testing.assert_allclose(np.interp(X[name], x, y), added, atol=1e-6)


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

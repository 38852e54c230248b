"""The pictures of explanations: what is drawn is what the tables say."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from evotree.plotting import plot_explanation
from evotree.plotting.style import TERM_COLORS
from tests.random_trees import estimator_of, random_tree

why = plot_explanation


@pytest.fixture(params=[False, True], ids=["classes", "lines"])
def explained(request):
    random = np.random.default_rng(4)
    X = random.normal(size=(200, 4))
    tree = random_tree(random, 4, depth=3, lines=request.param)
    tree.thresholds[~tree.is_leaf] *= 0.1
    return estimator_of(tree, X), X[:12]


def bars_of(panels):
    """Return beginnings, lengths and colours of the bars of panels, from above."""
    bars = [bar for panel in panels for bar in panel.patches]
    return [(bar.get_x(), bar.get_width(), bar.get_facecolor()) for bar in bars]


def test_bars_lead_from_the_mean_row_to_the_row(explained):
    model, X = explained
    explanation = model.explain(X)
    for row in range(len(X)):
        panels = plot_explanation(explanation, row).child_axes
        terms = explanation.terms[explanation.terms.row == row]
        n_leaves = int((terms.side == "leaf").any())
        n_splits = len(panels) - n_leaves
        for is_leaf, some in ((False, panels[:n_splits]), (True, panels[n_splits:])):
            part, drawn = terms[(terms.side == "leaf") == is_leaf], bars_of(some)
            assert len(part) == len(drawn)
            # To the right is what speaks for the answer.
            sign = np.where(part.side == "yes", -1.0, 1.0)
            before = part.groupby("step").contribution.cumsum() - part.contribution
            begin, leads = sign * (part.centre + before), sign * part.contribution
            for at, (x, width, color) in enumerate(drawn):
                lead = leads.iloc[at]
                np.testing.assert_allclose(
                    [x, width], [begin.iloc[at], lead], atol=1e-9
                )
                assert to_hex(color) == TERM_COLORS[lead > 0.0].lower()


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
        (TypeError, "explanation is a list", lambda m, X: why([], X[0])),
        (TypeError, "ax is a int", lambda m, X: why(m, X[0], ax=1)),
    ],
)
def test_bad_input_is_refused(explained, kind, message, call):
    with pytest.raises(kind, match=message):
        call(*explained)
    assert not plt.get_fignums()

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
            # To the right is what speaks for the answer.
            sign = np.where(part.side == "yes", -1.0, 1.0)
            before = part.groupby("step").contribution.cumsum() - part.contribution
            begin, leads = sign * (part.centre + before), sign * part.contribution
            for at, (x, width, _, color) in enumerate(drawn or []):
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

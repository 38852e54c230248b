"""Every kind of leaf in every picture."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import evotree.plotting
from tests.kinds import (
    every_model,
    expected,
    kind_of,
    outputs_of,
)

pytestmark = pytest.mark.filterwarnings("error")

DRAWN = {
    "class_colors": lambda draw, kind: draw(kind.tree.values.shape[1]),
    "plot_decision_regions": lambda draw, kind: draw(kind.model, kind.X, kind.y),
    "plot_evolution": lambda draw, kind: draw(kind.model, kind.X, kind.y),
    "plot_explanation": lambda draw, kind: draw(
        kind.model.explain(kind.X[:3], output=outputs_of(kind)[0]), 1
    ),
    "plot_survival": lambda draw, kind: draw(kind.model, kind.X, kind.y),
    "plot_learning_curves": lambda draw, kind: draw({"runs": [kind.model]}),
}
"""How functions are called that take more than a model."""


@pytest.mark.slow
@pytest.mark.parametrize("plot", evotree.plotting.__all__)
@every_model
def test_pictures_are_drawn(name, plot):
    kind = kind_of(name)
    if kind.classes is None and plot in ("plot_decision_regions", "plot_evolution"):
        pytest.skip("of classes")
    draw = getattr(evotree.plotting, plot)
    refused = {"plot_survival": "allowed is a fitted EvoTreeSurvival"}
    if getattr(kind.model, "choice_", None) is None:
        refused["plot_choice"] = "without a choice"
    call = DRAWN.get(plot, lambda draw, kind: draw(kind.model))
    if plot in refused:
        with pytest.raises(TypeError, match=refused[plot]):
            call(draw, kind)
        return
    try:
        found = call(draw, kind)
        if plot == "plot_evolution":
            found._draw_was_started = True  # else matplotlib warns: nobody shows it
        elif plot == "plot_decision_regions":
            assert_regions(kind, found)
        elif plot != "class_colors":
            found.figure.canvas.draw()
    finally:
        plt.close("all")


def assert_regions(kind, ax):
    """Compare the colours of the cells with the classes of their centres."""
    (image,) = ax.get_images()
    cells = np.asarray(image.get_array())
    left, right, bottom, top = image.get_extent()
    across = left + (np.arange(cells.shape[1]) + 0.5) / cells.shape[1] * (right - left)
    upwards = bottom + (np.arange(cells.shape[0]) + 0.5) / cells.shape[0] * (
        top - bottom
    )
    centres = np.stack(np.meshgrid(across, upwards), axis=-1).reshape(-1, 2)
    some = slice(None, None, len(centres) // 400)
    said = expected(kind, centres[some])
    colors = [tuple(cell) for cell in cells.reshape(len(centres), -1)[some]]
    assert (
        len(set(zip(said, colors, strict=True))) == len(set(said)) == len(set(colors))
    )

"""Pictures of models: words and bars, explanations, and every kind of leaf."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

import evotree.plotting
from evotree import (
    ObliqueTreeClassifier,
    ObliqueTreeRegressor,
)
from evotree.plotting import plot_explanation, plot_tree
from evotree.plotting.style import TERM_COLORS
from evotree.texts import export_text
from tests.exported import with_models
from tests.kinds import (
    every_model,
    expected,
    kind_of,
    outputs_of,
)
from tests.plotting.test_plotting import bars_of
from tests.random_trees import estimator_of, random_tree
from tests.survival import times
from tests.test_texts import (
    KINDS_OF_NOISE,
    assert_few_digits,
    clinic,
    fitted_to_noise,
    from_text,
)

# ---- words and bars ------------------------------------------------------------------------------


def without_shares(said):
    """Return what is said of a split without the shares of its terms."""
    return re.sub(r" \(x\d+ <?\d+ %[^()]*\)$", "", said)


def bare(said):
    """Return what all views say of a leaf of numbers, without the words and signs of some."""
    for word in ("predict ", "value: ", ",", ";"):
        said = said.replace(word, "")
    return re.sub(r" \([\d.]+ rows?\)$", "", said)


def texts_of(tree, **options):
    return [text.get_text() for text in plot_tree(tree, **options).texts]


def from_picture(tree):
    texts = [text for text in texts_of(tree) if text not in ("yes", "no")]
    signs = str.maketrans({"−": "-", "≤": "<=", "≥": ">=", "\n": " "})
    said = [text.translate(signs) for text in texts[1::2]]
    return {
        int(re.findall(r"\d+", k)[0]): without_shares(one)
        for k, one in zip(texts[::2], said, strict=True)
    }


@pytest.mark.parametrize("leaves", ["constant", "linear"])
@pytest.mark.parametrize("n_features", [1, 6])
def test_a_picture_says_what_the_text_does_and_has_bars(n_features, leaves):
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(90, n_features))
    model = ObliqueTreeRegressor("linear", max_depth=2, leaves="constant")
    tree = model.fit(X, rng.normal(size=90)).tree_
    tree = with_models(tree, rng) if leaves == "linear" else tree
    said, drawn = from_text(tree), from_picture(tree)
    assert tree.n_leaves > 2 and sorted(drawn) == list(range(tree.n_nodes))
    for k in range(len(tree)):
        assert bare(drawn[k]) == bare(said[k])
    bars = [bar.get_width() for bar in bars_of(plot_tree(tree))]
    wanted = []
    if tree.models is not None:
        influence = (tree.models.coefficients * tree.spread)[tree.is_leaf]
        wanted = [one[np.argsort(-np.abs(one))] for one in influence]
        wanted = [length for length in np.concatenate(wanted) if length]
    scale = max(map(abs, bars), default=1.0) / max(map(abs, wanted), default=1.0)
    np.testing.assert_allclose(bars, scale * np.array(wanted))


@pytest.mark.parametrize("kind", [*KINDS_OF_NOISE, "times"])
def test_no_number_has_more_digits_than_a_reader_takes_in(kind):
    fitted = times.fitted_to_noise() if kind == "times" else fitted_to_noise(kind)
    for said in texts_of(fitted[0]):
        assert_few_digits(said)


def test_leaves_and_missing_cells_are_as_in_the_text():
    X, y = clinic()
    model = ObliqueTreeClassifier("axis", max_depth=3, class_weight={"sick": 9.0})
    text, said = export_text(model.fit(X, y)), texts_of(model)
    assert re.search(r"\n(missing: .*)\n", text)[1] in said
    leaves = re.findall(r"\[(\d+)\] (class: \w+) \((.*?); (.*)\)", text)
    assert len(leaves) == model.get_n_leaves() > 2
    for leaf, label, n_rows, shares in leaves:
        lines = re.sub("[,;] ", "\n", f"{label}; {shares}")
        assert said[said.index(f"[{leaf}] {n_rows}") + 1] == lines


# ---- explanations --------------------------------------------------------------------------------


why = plot_explanation


@pytest.fixture(params=[False, True], ids=["classes", "lines"])
def explained(request):
    random = np.random.default_rng(4)
    X = random.normal(size=(200, 4))
    tree = random_tree(random, 4, depth=3, lines=request.param)
    tree.thresholds[~tree.is_leaf] *= 0.1
    return estimator_of(tree, X), X[:12]


def bars_of_panels(panels):
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
            part, drawn = terms[(terms.side == "leaf") == is_leaf], bars_of_panels(some)
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


# ---- every kind of leaf --------------------------------------------------------------------------


without_warnings = pytest.mark.filterwarnings("error")

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


@without_warnings
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
        refused["plot_choice"] = "a NoneType: allowed"
    call = DRAWN.get(plot, lambda draw, kind: draw(kind.model))
    if plot in refused:
        with pytest.raises(TypeError, match=refused[plot]):
            call(draw, kind)
        return
    found = call(draw, kind)
    if plot == "plot_evolution":
        found._draw_was_started = True  # else matplotlib warns: nobody shows it
    elif plot == "plot_decision_regions":
        assert_regions(kind, found)
    elif plot != "class_colors":
        found.figure.canvas.draw()


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

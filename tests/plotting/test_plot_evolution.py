"""Films of runs: a picture for each tree, and what a picture of many features shows."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from evotree.plotting import plot_evolution
from tests.plotting.test_plotting import make_run, make_tree

# ---- films ---------------------------------------------------------------------------------------


def make_model(n_features=2, **others):
    """Make up a classifier that has kept trees."""
    trees = {gen: make_tree(gen, 4, n_features) for gen in (0, 8)}
    fitted = {"tree_": trees[8], "best_trees_": trees, "history_": make_run(0)}
    return SimpleNamespace(
        **{**fitted, "classes_": np.array(["a", "b", "c"]), **others}
    )


def rows(n_features=2):
    return np.random.default_rng(0).random((30, n_features)), np.tile(
        ["a", "b", "c"], 10
    )


def test_a_film_has_a_picture_for_each_tree_and_the_end_and_the_curves_until_then(
    tmp_path,
):
    film = plot_evolution(make_model(5), *rows(5))
    film.save(tmp_path / "film.gif", writer="pillow", dpi=40)
    with Image.open(tmp_path / "film.gif") as image:
        assert image.n_frames == 3
    figure = film._fig
    last = figure.axes[0].get_title()
    for gen in (0, 8, int(last.split()[1].rstrip(":"))):
        film._func(gen)
        figure.canvas.draw()
        title = figure.axes[0].get_title()
        assert title.startswith(f"generation {gen}: 4 leaves, accuracy ")
        for panel in figure.axes[1:]:
            *curves, mark = panel.get_lines()
            assert mark.get_xdata() == [gen, gen]
            end, _ = panel.transData.transform((gen, 0.0))
            for artist in (*curves, *panel.collections):
                seen, frame = artist.clipbox, panel.bbox
                expected = frame.x0, frame.y0, end, frame.y1
                np.testing.assert_allclose(
                    [seen.x0, seen.y0, seen.x1, seen.y1], expected
                )
    assert title == last


@pytest.mark.parametrize(
    ("kind", "message", "others"),
    [
        (ValueError, "kept no trees.*keep_best_trees", {"best_trees_": {}}),
        (
            ValueError,
            r"X has shape \(30, 2\): the tree has n_features=3",
            {"n_features": 3},
        ),
        (ValueError, "n_features=1", {"n_features": 1}),
        (ValueError, "y has labels", {"classes_": np.array(["a", "b", "d"])}),
        (TypeError, "classifier is of the type SimpleNamespace", {"tree_": None}),
        (ValueError, "kept no trees of classes", {"classes_": None}),
    ],
)
def test_errors_name_what_is_wrong_and_leave_no_figure(kind, message, others):
    model = make_model(**others)
    if model.classes_ is None:  # as regressors have none
        del model.classes_
    with pytest.raises(kind, match=message):
        plot_evolution(model, *rows())
    assert not plt.get_fignums()

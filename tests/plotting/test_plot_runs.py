"""Pictures of runs: films, and quality against complexity."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_breast_cancer

from evotree import Dataset, make_toolbox
from evotree.engine.evolution import ParetoFront
from evotree.front import TreeChoice, held_out_quality, select
from evotree.plotting import plot_choice, plot_evolution, plot_pareto
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


# ---- fronts and choices --------------------------------------------------------------------------


def make_front(loaded, task):
    dataset = Dataset.from_arrays(*loaded, task=task)
    is_held_out = np.arange(dataset.X.shape[0]) % 3 == 0
    front = ParetoFront()
    toolbox = make_toolbox(dataset.take(~is_held_out), size_penalty=0.0, random_state=0)
    front.update(toolbox.population(n=12))
    front.add_prunings(dataset.take(~is_held_out))
    return front, dataset.take(is_held_out)


@pytest.fixture(scope="module")
def front_and_rows():
    return make_front(load_breast_cancer(return_X_y=True), "classification")


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_curves_are_the_front(front_and_rows):
    front, held_out = front_and_rows
    ax = plt.subplots()[1]
    assert plot_pareto(front, held_out=held_out, selected="simplest", ax=ax) is ax
    training, other = ax.get_lines()
    complexity = [member.complexity for member in front]
    for line, quality in (
        (training, [member.quality for member in front]),
        (other, held_out_quality(front, held_out)[0]),
    ):
        assert list(line.get_xdata()) == complexity
        np.testing.assert_array_equal(line.get_ydata(), quality)
        assert line.get_drawstyle() == "steps-post"
    chosen = select(front, "simplest", held_out=held_out)
    rings = ax.collections[-1].get_offsets()
    assert rings.shape == (2, 2) and (rings[:, 0] == chosen.complexity).all()
    assert rings[0, 1] == chosen.quality
    assert ax.get_ylabel() == "quality"


def test_what_carries_a_front_is_read(front_and_rows):
    front, held_out = front_and_rows
    plain = plot_pareto(front)
    assert labels(plain) == ["training"] and not plain.collections
    assert labels(plot_pareto(SimpleNamespace(pareto_front=front))) == ["training"]
    fitted = SimpleNamespace(pareto_front_=front, tree_=front[1].to_tree())
    assert plot_pareto(fitted).collections[0].get_offsets()[0, 0] == front[1].complexity
    found = labels(plot_pareto(front, selected="leaves<=2"))[1]
    assert found.startswith("leaves<=2: 2 leaves, ") and found.endswith(" terms")


def test_bad_arguments_are_named(front_and_rows):
    front, _ = front_and_rows
    for kind, message, arguments in (
        (TypeError, "front_or_estimator is a int", {"front_or_estimator": 3}),
        (ValueError, "without members", {"front_or_estimator": ParetoFront()}),
        (ValueError, "rule='simplest' needs", {"selected": "simplest"}),
        (TypeError, "ax is a int", {"ax": 3}),
    ):
        with pytest.raises(kind, match=message):
            plot_pareto(**{"front_or_estimator": front, **arguments})


def test_the_chosen_candidate_is_drawn_where_an_equal_one_stands_before_it():
    columns = {
        "kind": ["tree", "evolved", "evolved"],
        "complexity": [12.0, 10.0, 10.0],
        "leaves": [5.0, 4.0, 4.0],
        "loss": [0.4, 0.2, 0.2],
        "standard_error": [0.1, 0.0, 0.0],
        "chosen": [False, False, True],
        "at_most": [np.nan] * 3,
    }
    choice = TreeChoice("log_loss", 4, 6, {k: np.array(v) for k, v in columns.items()})
    ax = plot_choice(choice)
    assert labels(ax)[0] == "chosen: 4 leaves, 6 terms"
    front_and_rows = [
        bars for bars in ax.containers if bars.get_label() == "evolved trees"
    ]
    assert [len(bars[0].get_xdata()) for bars in front_and_rows] == [
        1
    ]  # the equal one once

"""The pictures: what is drawn is what was given, and nothing hides anything."""

from dataclasses import replace
from functools import cache
from itertools import combinations
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from sklearn.datasets import load_iris

from evotree.engine.evolution import make_logbook, to_frame
from evotree.fitted import fitted_of
from evotree.front import TreeChoice
from evotree.plotting import (
    plot_decision_regions,
    plot_learning_curve,
    plot_learning_curves,
    plot_lineage,
    plot_tree,
)
from evotree.tree import ObliqueTree, node_depths
from tests.exported import chain as make_chain
from tests.quick_models import brief
from tests.reference.pruning import random_sizes
from tests.test_bends import rows_with


@pytest.fixture
def ax():
    """Return axes that pyplot does not know."""
    return Figure(figsize=(6.0, 4.0)).subplots()


@cache
def make_run(seed, n_generations=12):
    """Return the records of a run."""
    free = {"max_generations": n_generations, "patience": None, "random_state": seed}
    return brief(**free).fit(*load_iris(return_X_y=True)).history_


def make_tree(seed, n_leaves, n_features=2, n_classes=3):
    """Draw a tree of any shape, whose hyperplanes pass near the middle of the unit cube."""
    rng = np.random.default_rng(seed)
    subtree_size = np.array(random_sizes(rng, n_leaves - 1), dtype=np.int32)
    weights = rng.normal(size=(len(subtree_size), n_features))
    thresholds = (weights * rng.uniform(0.2, 0.8, size=weights.shape)).sum(axis=1)
    weights[subtree_size == 1], thresholds[subtree_size == 1] = 0.0, 0.0
    values = rng.dirichlet(np.ones(n_classes), size=len(subtree_size))
    return ObliqueTree(weights, thresholds, subtree_size, values).validate()


def points_for(tree, n=40):
    """Draw points of the unit square, of all classes of a tree."""
    rng = np.random.default_rng(0)
    return rng.random((n, 2)), np.arange(n) % tree.values.shape[1]


def line_data(ax):
    """Return what the lines of some axes show, by their labels."""
    return {
        line.get_label(): (line.get_xdata(), line.get_ydata())
        for line in ax.get_lines()
    }


def other_axes(ax):
    """Return the second axes of a picture, such as the panel below a learning curve."""
    (panel,) = [other for other in ax.figure.axes if other is not ax]
    return panel


def corners_of(ax):
    """Return the corners of each band of some axes."""
    return [
        {tuple(corner) for corner in band.get_paths()[0].vertices}
        for band in ax.collections
    ]


def boxes_of(ax):
    """Return the boxes of a drawn tree, in the order of its nodes."""
    return [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]


def bars_of(ax):
    """Return the bars in the boxes of a drawn tree, in the order of its leaves."""
    return [bar for panel in ax.child_axes for bar in panel.patches]


def notes_of(ax):
    """Return the numbers of a drawn tree's nodes and their rows, in the order of the nodes."""
    return [text for text in ax.texts if text.get_text().startswith("[")]


def bodies_of(ax):
    """Return what the nodes of a drawn tree say, in their order."""
    others = [text for text in ax.texts if text.get_text() not in ("yes", "no")]
    return [text for text in others if not text.get_text().startswith("[")]


TREE, RUN = make_tree(0, 4), make_run(0)
X, Y = points_for(TREE)


@pytest.mark.parametrize("x", ["gen", "seconds", "evaluations"])
def test_lines_and_bands_are_the_records(x, ax):
    logbook = make_run(1)
    table = to_frame(logbook)
    positions = np.cumsum(table["nevals"]) if x == "evaluations" else table[x]
    below = other_axes(plot_learning_curve(logbook, x=x, ax=ax))
    for panel, chapters in ((ax, ("quality", "fitness")), (below, ("complexity",))):
        drawn = line_data(panel)
        assert len(drawn) == 2 * len(chapters) and len(panel.collections) == len(
            chapters
        )
        for chapter, corners in zip(chapters, corners_of(panel), strict=True):
            for field in ("best", "median"):
                expected = positions, table[f"{chapter}_{field}"]
                np.testing.assert_array_equal(drawn[f"{chapter}, {field}"], expected)
            for edge in ("q1", "q3"):
                assert corners.issuperset(
                    zip(positions, table[f"{chapter}_{edge}"], strict=True)
                )


def test_a_star_is_the_tree_that_is_returned(ax):
    """Which need not be one of the run."""
    X, y = load_iris(return_X_y=True)
    fitted = brief().fit(X, y)
    fitted.fitted_ = min(
        fitted.pareto_front_.models, key=lambda one: one.tree.complexity
    )
    below = other_axes(plot_learning_curve(fitted, ax=ax))
    last = fitted.n_generations_
    for panel, chapter in ((ax, "quality"), (below, "complexity")):
        (x,), (star,) = line_data(panel)[f"{chapter}, returned tree"]
        assert (x, star) == (last, getattr(fitted.tree_, chapter))
        assert star != line_data(panel)[f"{chapter}, best"][1][-1]
    assert "fitness, returned tree" not in line_data(ax)


@pytest.mark.parametrize("curve", ["size", "terms", "complexity"])
def test_counts_stand_below_others_and_means_for_missing_medians(curve, ax):
    """Runs on islands have no quartiles."""
    table = to_frame(make_run(1)).filter(regex="^(?!.*_(q1|median|q3)$)")
    below = other_axes(plot_learning_curve(table, curves=("quality", curve), ax=ax))
    for panel, chapter in ((ax, "quality"), (below, curve)):
        assert panel.get_ylabel() == chapter and not panel.collections
        np.testing.assert_array_equal(
            line_data(panel)[f"{chapter}, mean"][1], table[f"{chapter}_mean"]
        )
    alone = plot_learning_curve(table, curves=[curve])
    assert alone.get_ylabel() == curve and len(alone.figure.axes) == 1


@pytest.mark.parametrize("x", ["gen", "seconds", "evaluations"])
def test_runs_are_aligned_by_their_last_record(x, ax):
    runs = [make_run(seed, n) for seed, n in enumerate((5, 9, 12, 7))]
    plot_learning_curves({"a": runs}, x=x, ax=ax, chapter="fitness")
    records = []
    for run in runs:
        at = np.cumsum(run.select("nevals")) if x == "evaluations" else run.select(x)
        records.append(
            list(zip(at, run.chapters["fitness"].select("best"), strict=True))
        )
    positions, medians = line_data(ax)["a (n = 4)"]
    assert positions[0] == max(record[0][0] for record in records)
    (corners,) = corners_of(ax)
    for position, median in zip(positions, medians, strict=True):
        last = [
            [best for at, best in record if at <= position][-1] for record in records
        ]
        assert median == np.median(last)
        assert corners.issuperset(
            (position, edge) for edge in np.quantile(last, (0.25, 0.75))
        )


def test_lineage_fills_the_picture(ax):
    """The areas are the shares of the history, the survivor's at the bottom, and add up to 1."""
    shares = {"origin_dipole": [0.8, 0.5, 0.1], "origin_wodt": [0.2, 0.5, 0.9]}
    frame = pd.DataFrame({"gen": [0, 1, 2], "nevals": [10, 9, 8]} | shares)
    assert plot_lineage(frame, ax=ax) is ax
    assert [area.get_label() for area in ax.collections] == ["wodt", "dipole"]
    tops = [area.get_paths()[0].vertices[:, 1].max() for area in ax.collections]
    assert tops == pytest.approx([0.9, 1.0])
    assert ax.get_ylim() == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_a_segment_lies_in_the_region_of_its_node(seed, ax):
    """Points beside a line reach its node, and different children of it."""
    tree = make_tree(seed, 9)
    plot_decision_regions(tree, *points_for(tree), ax=ax)
    lines = [one for one in ax.collections if isinstance(one, ContourSet)]
    inner = np.flatnonzero(~tree.is_leaf)
    drawn = []
    for points in (one.get_paths()[0].vertices for one in lines):
        offsets = tree.weights[inner] @ points.T - tree.thresholds[inner, None]
        if not len(points):
            continue
        k = inner[np.abs(offsets).max(axis=1).argmin()]
        drawn.append(k)
        beside = 1e-7 * tree.weights[k] / np.linalg.norm(tree.weights[k])
        left, right = tree.apply(points - beside), tree.apply(points + beside)
        assert ((k < left) & (left < tree.right(k))).all()
        assert ((tree.right(k) <= right) & (right < k + tree.subtree_size[k])).all()
    # Every node that divides the picture is there, and each once.
    box = np.array([ax.get_xlim(), ax.get_ylim()])
    grid = np.stack(np.meshgrid(*np.linspace(*box.T, 300).T), -1).reshape(-1, 2)
    passed = tree.decision_path(grid).toarray().any(axis=0)
    divides = [k for k in inner if passed[k + 1] and passed[tree.right(k)]]
    assert set(divides) <= set(drawn) and len(drawn) == len(set(drawn)) >= 3


def test_regions_and_their_lines_are_those_of_columns_that_bend(ax):
    X, y = rows_with(lambda X: X.age, n=60)
    X, y = X.iloc[:, :2], (y > y.median()).astype(int)
    model = brief(shapes={X.columns[0]: [("log", 20.0)]}).fit(X, y)
    (image,) = plot_decision_regions(model, X, y, ax=ax).get_images()
    shades = image.get_array().reshape(-1, 3)
    assert len(np.unique(shades, axis=0)) == len(np.unique(model.predict(X))) > 1
    assert any(isinstance(one, ContourSet) for one in ax.collections)


LONG_NAMES = [f"the largest {name} of all measured cells" for name in "abcdefgh"]


@pytest.mark.parametrize(
    ("n_leaves", "given"), [(1, False), (5, True), (12, False), (12, True)]
)
def test_boxes_are_apart_and_hold_their_texts(n_leaves, given, ax):
    tree = make_tree(n_leaves, n_leaves, n_features=8)
    drawn = plot_tree(tree, ax=ax if given else None, feature_names=LONG_NAMES)
    # Text is hinted to whole pixels, which a small font feels.
    drawn.figure.set_dpi(400)
    drawn.figure.canvas.draw()
    boxes = [patch.get_window_extent() for patch in boxes_of(drawn)]
    assert len(boxes) == tree.n_nodes
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    notes, texts = (
        [text.get_window_extent().padded(-1.0) for text in some]
        for some in (notes_of(drawn), bodies_of(drawn))
    )
    assert given or bodies_of(drawn)[0].get_fontsize() >= 7.9
    whole = drawn.figure.bbox
    for box, note, text in zip(boxes, notes, texts, strict=True):
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and not note.overlaps(text)
        for inside in (note, text):
            assert box.x0 <= inside.x0 and inside.x1 <= box.x1
            assert box.y0 <= inside.y0 and inside.y1 <= box.y1
    for bar in bars_of(drawn):
        extent = bar.get_window_extent()
        assert any(
            box.fully_containsx(extent.x0) and box.y0 < extent.y0 for box in boxes
        )
        assert not any(extent.overlaps(text) for text in texts)


@pytest.mark.parametrize("n_leaves", [1, 2, 3, 8])
def test_lines_below_a_tree_are_within_the_picture(n_leaves):
    columns = {
        "complexity": np.array([30.0, 50.0, 70.0]),
        "leaves": np.array([10.0, 20.0, 30.0]),
        "loss": np.array([0.3, 0.1, 0.2]),
        "standard_error": np.array([0.01, 0.0, 0.02]),
        "chosen": np.array([False, True, False]),
        "at_most": np.full(3, np.nan),
    }
    tree = make_tree(n_leaves, n_leaves)
    choice = TreeChoice("log_loss", n_leaves, 20, columns)
    drawn = plot_tree(replace(fitted_of(tree), choice=f"chosen: {choice!r}"))
    drawn.figure.canvas.draw()
    lines, whole = drawn.texts[-1], drawn.figure.bbox
    words = lines.get_text().replace("\n", " ").split(" ")
    assert words == f"chosen: {choice!r}".split(" ")
    extent = lines.get_window_extent()
    assert whole.x0 <= extent.x0 and extent.x1 <= whole.x1
    boxes = [patch.get_window_extent() for patch in boxes_of(drawn)]
    assert whole.y0 <= extent.y0 and extent.y1 <= min(box.y0 for box in boxes)


@given(st.integers(1, 130), st.none() | st.integers(0, 12))
@settings(max_examples=15, deadline=None)
def test_the_lower_part_of_a_large_tree_is_folded(n_leaves, max_depth):
    tree = make_tree(n_leaves, n_leaves)
    drawn = plot_tree(tree, max_depth=max_depth)
    depths = node_depths(tree.subtree_size)
    folded = [box for box in boxes_of(drawn) if box.get_linestyle() == "--"]
    texts = [text.get_text() for text in bodies_of(drawn)]
    # No leaf is lost: each is drawn, or counted in a folded subtree.
    counted = [int(text.split()[0]) for text in texts if "leaves, " in text]
    assert len(counted) == len(folded)
    n_boxes = len(boxes_of(drawn))
    ends = (n_boxes + 1) // 2
    assert sum(counted) + ends - len(folded) == n_leaves
    if max_depth is not None:
        assert n_boxes == np.sum(depths <= max_depth)
    else:
        assert ends <= 24 and (not folded) == (n_leaves <= 24)
    plt.close(drawn.figure)


def test_the_points_of_a_class_have_its_name_and_features_those_of_the_table(ax):
    fitted = SimpleNamespace(tree_=TREE, classes_=np.array(["a", "b", "c"]))
    table = pd.DataFrame(X, columns=["depth", "width"])
    plot_decision_regions(fitted, table, fitted.classes_[Y], ax=ax)
    for code, points in enumerate(ax.collections[:3]):
        np.testing.assert_array_equal(points.get_offsets(), X[np.equal(Y, code)])
        assert points.get_label() == fitted.classes_[code]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("depth", "width")


def test_dollars_in_names_are_no_formulas_and_rows_that_hold_go_left():
    ax = plot_tree(make_tree(0, 2, n_classes=2), class_names=["no", "$5 to $9"])
    priced = [text for text in ax.texts if "$" in text.get_text()]
    assert priced and not any(text.get_parse_math() for text in priced)
    x = {text.get_text(): text.get_position()[0] for text in ax.texts}
    assert x["yes"] < x["no"]


curve, curves, regions = (
    plot_learning_curve,
    plot_learning_curves,
    plot_decision_regions,
)


@pytest.mark.parametrize(
    ("kind", "message", "call"),
    [
        (TypeError, "history is a list", lambda: curve([1.0])),
        (ValueError, "history has no records", lambda: curve(make_logbook())),
        (ValueError, "x='epoch'", lambda: curve(RUN, x="epoch")),
        (ValueError, "curves=.*cost_best", lambda: curve(RUN, curves="cost")),
        (TypeError, r"histories\['a'\]\[0\] is a dict", lambda: curves({"a": RUN})),
        (TypeError, r"histories\['a'\]\[0\] is a int", lambda: curves({"a": [1]})),
        (ValueError, "no 'cost_best'", lambda: curves({"a": [RUN]}, chapter="cost")),
        (
            ValueError,
            "n_features=3: .* 2 only; plot_tree draws any tree",
            lambda: regions(make_tree(0, 3, n_features=3), X, Y),
        ),
        (TypeError, "tree_or_classifier is of the type int", lambda: regions(1, X, Y)),
        (ValueError, "X has shape", lambda: regions(TREE, X[:, :1], Y)),
        (
            ValueError,
            "X contains NaN",
            lambda: regions(TREE, np.full_like(X, np.nan), Y),
        ),
        (ValueError, "inconsistent numbers", lambda: regions(TREE, X, Y[1:])),
        (ValueError, "y has labels", lambda: regions(TREE, X, np.arange(len(X)))),
        (ValueError, "feature_names has", lambda: plot_tree(TREE, feature_names=["a"])),
        (ValueError, "class_names='abc'", lambda: plot_tree(TREE, class_names="abc")),
        (ValueError, "max_terms=0", lambda: plot_tree(TREE, max_terms=0)),
        (
            ValueError,
            "max_depth=1999: .* 1000 ends .* 1002",
            lambda: plot_tree(make_chain(2003), max_depth=1999),
        ),
    ],
)
def test_errors_name_the_parameter_and_leave_no_figure(kind, message, call):
    with pytest.raises(kind, match=message):
        call()
    assert not plt.get_fignums()

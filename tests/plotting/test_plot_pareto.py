"""The picture of quality against complexity."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from evotree import Dataset, make_toolbox
from evotree.engine.evolution import ParetoFront
from evotree.front import TreeChoice, held_out_quality, select
from evotree.plotting import plot_choice, plot_pareto


@pytest.fixture(scope="module")
def drawn():
    dataset = Dataset.from_arrays(*load_breast_cancer(return_X_y=True))
    is_held_out = np.arange(dataset.X.shape[0]) % 3 == 0
    front = ParetoFront()
    toolbox = make_toolbox(dataset.take(~is_held_out), size_penalty=0.0, random_state=0)
    front.update(toolbox.population(n=12))
    front.add_prunings(dataset.take(~is_held_out))
    return front, dataset.take(is_held_out)


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_curves_are_the_front(drawn):
    front, held_out = drawn
    ax = plt.subplots()[1]
    chosen = select(front, "simplest", held_out=held_out)
    fitted = SimpleNamespace(pareto_front_=front, tree_=chosen)
    assert plot_pareto(fitted, held_out=held_out, ax=ax) is ax
    training, other = ax.get_lines()
    complexity = [member.complexity for member in front]
    for line, quality in (
        (training, [member.quality for member in front]),
        (other, held_out_quality(front, held_out)[0]),
    ):
        assert list(line.get_xdata()) == complexity
        np.testing.assert_array_equal(line.get_ydata(), quality)
        assert line.get_drawstyle() == "steps-post"
    rings = ax.collections[-1].get_offsets()
    assert rings.shape == (2, 2) and (rings[:, 0] == chosen.complexity).all()
    assert rings[0, 1] == chosen.quality
    assert ax.get_ylabel() == "quality"


def test_what_carries_a_front_is_read(drawn):
    front, held_out = drawn
    plain = plot_pareto(front)
    assert labels(plain) == ["training"] and not plain.collections
    tree = select(front, "leaves<=2")
    found = labels(plot_pareto(SimpleNamespace(pareto_front_=front, tree_=tree)))[1]
    assert found.startswith("selected: 2 leaves, ") and found.endswith(" terms")


def test_bad_arguments_are_named(drawn):
    front, _ = drawn
    for kind, message, arguments in (
        (TypeError, "front_or_estimator is a int", {"front_or_estimator": 3}),
        (ValueError, "without members", {"front_or_estimator": ParetoFront()}),
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
    drawn = [bars for bars in ax.containers if bars.get_label() == "evolved trees"]
    assert [len(bars[0].get_xdata()) for bars in drawn] == [1]  # the equal one once

"""What a person reads of results that are printed, in a few lines without arrays."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from evotree import Dataset
from evotree.engine.evolution import Run, evolve
from evotree.engine.toolbox import make_toolbox
from evotree.front import MENU, TreeChoice
from tests.quick_models import brief, brief_text

X, Y = load_iris(return_X_y=True, as_frame=True)
MODEL = brief().fit(X, Y)
ROWS = Dataset.from_arrays(X.to_numpy(), Y.to_numpy())


def a_run():
    toolbox = make_toolbox(ROWS, random_state=0)
    return evolve(toolbox.population(n=8), toolbox, max_generations=2)


RESULTS = {
    "Editor": (lambda: MODEL.edit(X, Y), "150 rows: splits 0"),
    "Run": (a_run, "8 individuals: generation 2"),
    "Run to come": (lambda: Run([]), "going on"),
    "Explanation": (lambda: MODEL.explain(X), "150 rows"),
    "Dataset": (lambda: ROWS, "150 rows, 149 distinct: 4 features, 3 classes"),
    "TrainingRows": (lambda: MODEL.training_rows_, "n_features=4"),
    "SoftSides": (
        lambda: brief(probability="soft").fit(X, Y).probabilities_,
        "n_classes=3",
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_printed_in_a_few_lines(name):
    make, told = RESULTS[name]
    assert told in brief_text(make())


def test_importances_have_names_and_stay_numbers():
    shares = MODEL.importances(named=True)
    np.testing.assert_array_equal(shares, MODEL.importances())
    assert shares.index.tolist() == X.columns.tolist()
    assert np.argmax(shares) in (2, 3) and sum(shares) == pytest.approx(1.0)
    np.testing.assert_array_equal(MODEL.feature_importances_, MODEL.importances())
    assert type(MODEL.feature_importances_) is type(MODEL.importances()) is np.ndarray


def choice_of(complexities, losses, at, n_terms, at_most=None, menu=()):
    """Return a choice among candidates of two leaves."""
    n = len(complexities)
    columns = {
        "complexity": np.array(complexities, dtype=float),
        "leaves": np.full(n, 2.0),
        "loss": np.array(losses),
        "standard_error": np.full(n, 0.05),
        "chosen": np.arange(n) == at,
        "at_most": np.full(n, np.nan) if at_most is None else np.array(at_most),
    }
    return TreeChoice("loss", 2, n_terms, columns, dict(menu))


@pytest.mark.parametrize("excess", [0.2, 0.002, 0.0002, 0.00002])
def test_digits_show_that_a_smaller_tree_lost_more(excess):
    losses = [0.5341 + excess, 0.5341, 0.5349]
    printed = repr(choice_of([2, 5, 9], losses, 1, 3, [3, np.nan, np.nan], {3: (2, 1)}))
    lost, larger, smaller = re.findall(r"(\.\d+)(?: ±|;)", printed)
    assert float(lost) < float(smaller) and len(lost) == len(smaller) == len(larger)
    assert len(lost) == 4 or excess < 0.001


@given(
    complexities=st.lists(st.floats(2.0, 40.0), min_size=1, max_size=8),
    at=st.integers(0, 7),
    n_terms=st.integers(1, 30),
    seed=st.integers(0, 99),
)
def test_a_choice_compares_the_chosen_candidate_with_larger_ones(
    complexities, at, n_terms, seed
):
    """By the sizes on folds, which losses are of; it is larger than the tree of all rows, too."""
    n, at = len(complexities), at % len(complexities)
    losses = np.random.default_rng(seed).permutation(n) / 100 + 0.111
    size, *others = repr(choice_of(complexities, losses, at, n_terms)).split("; ")
    rounded = np.round(complexities).astype(int)
    n_on_folds = max(rounded[at] - 2, 1)  # a split has a term
    on_folds = re.search(r"one split of (\d+) terms? on folds", size)
    assert (on_folds is not None) == (n_on_folds != n_terms)
    assert on_folds is None or int(on_folds[1]) == n_on_folds
    larger = np.flatnonzero(rounded > max(rounded[at], 2 + n_terms))
    assert len(others) == (len(larger) > 0)
    for text in others:
        best = larger[losses[larger].argmin()]
        assert text.startswith("best larger tree")
        assert f" {losses[best]:.3f} ± .050".replace(" 0.", " .") in text
        pays = losses[best] < losses[at]
        rule = f": select_tree('complexity<={rounded[best]}')"
        assert text.endswith(rule) == pays == ("select_tree" in text)


@st.composite
def menus(draw):
    """Draw a choice with a menu: its losses in thousandths, and numbers of terms."""
    losses = draw(st.lists(st.integers(100, 999), min_size=5, max_size=5))
    drawn = draw(st.lists(st.integers(1, 20), min_size=5, max_size=5))
    own = draw(st.integers(1, 30))
    n_terms = sorted(min(n, bound - 2) for n, bound in zip(drawn, MENU, strict=True))
    menu = {bound: (2, n) for bound, n in zip(MENU, n_terms, strict=True)}
    lost = [0.0505, *(loss / 1000 for loss in losses)]
    choice = choice_of([40, *MENU], lost, 0, own, [np.nan, *MENU], menu)
    return choice, losses, n_terms, own


@given(menus())
def test_the_menu_has_smaller_trees_that_lose_less_than_smaller_ones(drawn):
    """Sizes are those of the trees of the front, which `select_tree` takes."""
    choice, losses, n_terms, own = drawn
    expected = []
    for bound, loss, n in zip(MENU, losses, n_terms, strict=True):
        is_new = n not in [one[1] for one in expected]
        if n < own and is_new and all(loss < one[2] for one in expected):
            expected.append((bound, n, loss))
    line = r"complexity<=(\d+): \.(\d+) ± \S+ \(one split of (\d+)"
    found = [tuple(map(int, one)) for one in re.findall(line, repr(choice))]
    assert found == [(bound, loss, n) for bound, n, loss in expected]


@given(menus())
def test_sizes_that_were_judged_have_the_loss_of_their_first_line(drawn):
    choice, losses, n_terms, own = drawn
    expected = {(2, own): (0.0505, 0.05)}
    for n, loss in zip(n_terms, losses, strict=True):
        expected.setdefault((2, n), (loss / 1000, 0.05))
    assert choice.judged() == expected
    text = choice.judged_text(2, n_terms[0])
    assert text.startswith("held-out loss .") and text.endswith(" ± .050")
    assert choice.judged_text(3, 40) is None

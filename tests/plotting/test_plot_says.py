"""A drawn tree says of each node what its text does."""

import re

import numpy as np
import pytest

from evotree import ObliqueTreeClassifier, ObliqueTreeRegressor
from evotree.plotting import plot_tree
from evotree.texts import export_text
from tests.exported import with_models
from tests.plotting.test_plotting import bars_of
from tests.survival import times
from tests.test_texts import (
    KINDS_OF_NOISE,
    assert_few_digits,
    bare,
    clinic,
    fitted_to_noise,
    from_text,
    without_shares,
)


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

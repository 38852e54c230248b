"""All views of one tree agree: one inequality, one numbering, the same rows and class shares."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from sklearn.datasets import load_breast_cancer, load_iris

from evotree import ObliqueTreeClassifier
from evotree.cli.main import main
from evotree.export import export_graphviz, export_html, export_rules, export_text
from evotree.model_file import Model, save_model
from evotree.plotting import plot_tree
from evotree.tables.columns import NumericColumn
from evotree.tree import ObliqueTree
from tests.exported import tame, trees

# Each reads from a view what it says of each node, a split as "x0 - 0.5 x1 <= 1".
Reader = Callable[[ObliqueTree], dict[int, str]]


def nodes_of_text(text: str) -> dict[int, str]:
    """Read the indented rules."""
    text = re.sub(r"\n(?:\|   )*\|    (?=[-+(])", " ", text)
    nodes = re.findall(r"--- \[(\d+)\] (.*)", text)
    return {int(k): said.replace(" * ", " ") for k, said in nodes}


def from_text(tree: ObliqueTree) -> dict[int, str]:
    return nodes_of_text(export_text(tree))


def from_graphviz(tree: ObliqueTree) -> dict[int, str]:
    labels = re.findall(r'    (\d+) \[label="(.*?)", fill', export_graphviz(tree))
    nodes = {}
    for k, label in labels:
        number, *said = label.split("\\n")
        assert number.split()[0] == f"[{k}]"
        nodes[int(k)] = " ".join(said)
    return nodes


def from_html(tree: ObliqueTree) -> dict[int, str]:
    found = re.findall(r"\[(\d+)\][^<]*</span> (.*?)</(?:summary|div)>", export_html(tree))
    plain = {int(k): unescape(re.sub("<.*?>", "", said)) for k, said in found}
    return {k: said.replace(" * ", " ") for k, said in plain.items()}


def from_picture(tree: ObliqueTree) -> dict[int, str]:
    texts = [text.get_text() for text in plot_tree(tree).texts]
    texts = [text for text in texts if text not in ("yes", "no")]
    signs = str.maketrans({"−": "-", "≤": "<=", "≥": ">=", "\n": " "})
    said = [text.translate(signs) for text in texts[1::2]]
    return {int(re.findall(r"\d+", k)[0]): one for k, one in zip(texts[::2], said, strict=True)}


def opposite(said: str) -> str:
    return said.replace("<=", ">") if "<=" in said else said.replace(">=", "<")


@given(trees(tame))
def test_every_view_shows_the_same_inequality_under_the_same_number(tree: ObliqueTree) -> None:
    said = from_text(tree)
    assert sorted(said) == list(range(tree.n_nodes))
    splits = {k: said[k] for k in np.flatnonzero(~tree.is_leaf)}
    for read in (from_graphviz, from_html):
        nodes = read(tree)
        assert sorted(nodes) == sorted(said)
        assert {k: nodes[k] for k in splits} == splits
    # A rule has the inequalities above its leaf, but for those that a tighter one makes needless.
    blocks = re.sub(r"\n     ", " ", export_rules(tree)).rstrip("\n").split("\n\n")
    assert len(blocks) == tree.n_leaves
    for leaf, block in zip(np.flatnonzero(tree.is_leaf), blocks, strict=True):
        *conditions, last = block.replace(" * ", " ").split("\n")
        assert last == f"THEN [{leaf}] {said[leaf]}"
        above = [k for k in splits if k < leaf < k + tree.subtree_size[k]]
        held = {splits[k] if leaf < tree.right(k) else opposite(splits[k]) for k in above}
        assert {condition[5:] for condition in conditions} <= (held or {"anything"})
        assert bool(above) == (conditions != ["IF   anything"])


@pytest.mark.parametrize("n_features", [1, 4, 6])
def test_a_picture_shows_all_terms_as_the_text_does(n_features: int) -> None:
    rng = np.random.default_rng(n_features)
    model = ObliqueTreeClassifier("linear", max_depth=3)
    model.fit(rng.normal(size=(90, n_features)), rng.integers(0, 3, 90))
    tree = model.tree_
    said, drawn = from_text(tree), from_picture(tree)
    assert tree.n_leaves > 2 and sorted(drawn) == list(range(tree.n_nodes))
    for k in np.flatnonzero(~tree.is_leaf):
        assert drawn[k] == said[k]
        assert len(re.findall(r"x\d", drawn[k])) == n_features


def wdbc() -> tuple[ObliqueTreeClassifier, np.ndarray]:
    data = load_breast_cancer(as_frame=True)
    model = ObliqueTreeClassifier("linear", max_depth=2, random_state=0)
    return model.fit(data.data, data.target_names[data.target]), data.data.to_numpy()


def test_the_strongest_feature_comes_first_in_every_view(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, X = wdbc()
    tree = model.tree_
    strongest = np.abs(tree.weights * X.std(axis=0)).argmax(axis=1)
    splits = np.flatnonzero(~tree.is_leaf)
    # The weights alone would put another feature first.
    assert (np.abs(tree.weights).argmax(axis=1) != strongest)[splits].all()
    names = model.feature_names_in_
    columns = tuple(NumericColumn(str(name), 0.0) for name in names)
    save_model(tmp_path / "m.json", Model("kind", model.classes_, columns, tree))
    assert main(["show", str(tmp_path / "m.json")]) == 0
    shown = nodes_of_text(capsys.readouterr().out)
    views = [read(model) for read in (from_text, from_graphviz, from_html, from_picture)]
    for said in (*views, shown):
        for k in splits:
            assert said[k].startswith(f"{names[strongest[k]]} ")
    for k, said in nodes_of_text(str(tree)).items():
        assert k not in splits or said.startswith(f"x{strongest[k]} ")
    first = export_rules(model).splitlines()[0]
    assert first.startswith(f"IF   {names[strongest[0]]} ")


def test_every_view_shows_rows_and_class_shares_of_leaves() -> None:
    X, y = load_iris(return_X_y=True)
    model = ObliqueTreeClassifier("axis", max_depth=3).fit(X, y)
    leaves = model.apply(X)
    text, rules, dot = export_text(model), export_rules(model), export_graphviz(model)
    html, drawn = export_html(model), [text.get_text() for text in plot_tree(model).texts]
    for leaf in np.unique(leaves):
        counts = np.bincount(y[leaves == leaf], minlength=3)
        n, shares = counts.sum(), counts / counts.sum()
        order = [c for c in np.argsort(-shares, kind="stable") if shares[c] > 0.0]
        rows = f"{n} rows" if n != 1 else "1 row"
        said = [f"{c}: {shares[c]:.2f}" for c in order]
        line = f"[{leaf}] class: {order[0]} ({rows}; {', '.join(said)})"
        assert f"--- {line}\n" in text
        assert f"THEN {line}\n" in rules
        lines = "\\n".join(said)
        assert f'label="[{leaf}] {rows}\\n{lines}"' in dot
        assert f"[{leaf}] {rows}<" in html
        assert drawn[drawn.index(f"[{leaf}] {rows}") + 1] == "\n".join(said)


def test_html_draws_shares_and_escapes_names() -> None:
    tree = ObliqueTree(
        np.zeros((1, 1)), np.zeros(1), np.ones(1, dtype=np.int32), np.array([[0.25, 0.75]])
    )
    text = export_html(tree, class_names=["<b>&", "a"])
    assert "&lt;b&gt;&amp;: 0.25" in text
    assert re.findall(r"width:([\d.]+)%", text) == ["75.0", "25.0"]

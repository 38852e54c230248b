"""All views of one tree agree: one inequality, one numbering, the same rows and class shares."""

import re
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evotree import ObliqueTreeClassifier, ObliqueTreeRegressor
from evotree.cli.main import main
from evotree.export import export_graphviz, export_html, export_rules, export_sql, export_text
from evotree.export.named import rows_text, share_text
from evotree.model_file import Model, save_model
from evotree.plotting import plot_tree
from evotree.report import Subject, report
from evotree.tables.columns import CategoricalColumn, NumericColumn
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


# ---- weights, missing cells and categories -------------------------------------------------------


def clinic() -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows of a rare class, with categories and missing cells."""
    rng = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame({"T3": rng.normal(2.0, 1.0, n).round(1), "age": rng.integers(9, 90, n)})
    X["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], n))
    sick = (X.T3 < 2.0) & (X.colour == "red") & (rng.random(n) < 0.6)
    X.loc[rng.random(n) < 0.2, "T3"] = np.nan
    X.loc[rng.random(n) < 0.1, "colour"] = np.nan
    return X, np.where(sick, "sick", "negative")


def shown_by(path: Path, model: Any) -> str:
    """Return what the command line prints of a model."""
    save_model(path, Model("state", model.classes_, model.columns_, model.tree_))
    with redirect_stdout(StringIO()) as out:
        assert main(["show", str(path)]) == 0
    return out.getvalue()


@pytest.mark.parametrize("weighted", ["class_weight", "sample_weight"])
def test_every_view_counts_rows_once_and_names_weighted_shares(
    weighted: str, tmp_path: Path
) -> None:
    X, y = clinic()
    rare = y == "sick"
    weight = np.where(rare, 9.0, 1.0)
    model = ObliqueTreeClassifier("axis", max_depth=3, class_weight={"sick": 9.0})
    if weighted == "sample_weight":
        model = ObliqueTreeClassifier("axis", max_depth=3)
        weight[::7] = 0.0  # which are no training rows
    model.fit(X, y, weight if weighted == "sample_weight" else None)
    leaves = model.apply(X)
    page = model.report(X, y).data
    text, shown = export_text(model), shown_by(tmp_path / "m.json", model)
    drawn = [said.get_text() for said in plot_tree(model).texts]
    tree = next(one for one in page["trees"] if one["leaves"] == model.tree_.n_leaves)
    n_weighted = 0
    for leaf in np.unique(leaves[weight > 0.0]):
        there = (leaves == leaf) & (weight > 0.0)
        label, n = model.classes_[model.tree_.labels[leaf]], there.sum()
        share, heavy = (
            (y[there] == label).mean(),
            np.average(y[there] == label, weights=weight[there]),
        )
        said = [f"{label}: {share_text(share)}"]
        said += [
            f"{c}: {share_text(1.0 - share)}" for c in model.classes_ if c != label and share < 1
        ]
        also = (
            [f"weighted {label}: {share_text(heavy)}"]
            if share_text(heavy) != share_text(share)
            else []
        )
        n_weighted += len(also)
        line = "; ".join([rows_text(float(n)), ", ".join(said), *also])
        for view in (text, shown, export_rules(model)):
            assert f"[{leaf}] class: {label} ({line})\n" in view
        lines = [*said, *also]
        assert f'"[{leaf}] {rows_text(float(n))}\\n' + "\\n".join(lines) in export_graphviz(model)
        assert ", ".join(lines) in re.sub("</?b>", "", export_html(model))
        assert drawn[drawn.index(f"[{leaf}] {rows_text(float(n))}") + 1] == "\n".join(lines)
        node = tree["nodes"][leaf]
        shares = [np.mean(y[there] == c) for c in model.classes_]
        assert node["n"] == n
        np.testing.assert_allclose(node["r"], shares, atol=1e-6)
        np.testing.assert_allclose(node["v"], model.tree_.values[leaf], atol=1e-6)
    assert n_weighted > 0


@pytest.mark.parametrize("leaves", ["constant", "linear"])
def test_views_of_numbers_say_where_rows_are_weighted(leaves: str) -> None:
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    model = ObliqueTreeRegressor("axis", max_depth=2, leaves=leaves).fit(X, y, weight)
    reached = model.apply(X)
    for leaf in np.unique(reached[weight > 0]):
        rows = f"{((reached == leaf) & (weight > 0)).sum()} rows"
        assert re.search(rf"\[{leaf}\] [^(]*\({rows}, weighted\)", export_text(model))
        assert f"[{leaf}] {rows}, weighted" in export_graphviz(model)
    assert "weighted" not in export_text(model.fit(X, y, np.full(len(X), 7.0)))


def test_views_say_what_stands_for_missing_cells_of_the_columns_used(tmp_path: Path) -> None:
    X, y = clinic()
    model = ObliqueTreeClassifier("axis", max_depth=4).fit(X, y)
    line = f"missing: T3 = {model.columns_[0].fill}, colour = missing"
    for view in (export_text(model), shown_by(tmp_path / "m.json", model)):
        assert f"\n{line}\n" in view
    assert export_rules(model).endswith(f"\n\n{line}\n")
    assert f'label="{line}"' in export_graphviz(model)
    assert f">{line}</div>" in export_html(model)
    assert line in [said.get_text() for said in plot_tree(model).texts]
    others = model.fit(X[["age", "T3"]].fillna({"T3": 1.0}), y)
    assert "missing" not in export_text(others) + export_html(others) + export_graphviz(others)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_split_of_one_category_is_written_in_words(sign: float, tmp_path: Path) -> None:
    columns = NumericColumn("size", 1.0, indicator=True), CategoricalColumn("colour", ("red", "is"))
    for j, yes, no in (
        (1, "size is missing", "size is not missing"),
        (3, "colour is is", "colour is not is"),
    ):
        weights = np.zeros((3, 4))
        weights[0, j] = sign
        sizes = np.array([3, 1, 1], dtype=np.int32)
        tree = ObliqueTree(weights, np.array([sign / 2, 0.0, 0.0]), sizes, np.eye(2)[[0, 0, 1]])
        left, right = (no, yes) if sign > 0.0 else (yes, no)
        named = Model("y", np.array(["a", "b"]), columns, tree).named
        assert f"--- [0] {left}\n" in export_text(named)
        rules = export_rules(named)
        assert f"IF   {left}\nTHEN [1] " in rules and f"IF   {right}\nTHEN [2] " in rules
        assert f'0 [label="[0]\\n{left}"' in export_graphviz(named)
        assert f"</span> {left}</summary>" in export_html(named)
        assert left in [said.get_text() for said in plot_tree(named).texts]
        negations = report(Subject(named)).data["negations"]
        assert f"{columns[j // 2].name} is not" in " ".join(map(str, negations))
        # A bound that all rows meet is no answer, nor is a sum with another feature.
        far = replace(named, tree=tree.replaced(thresholds=np.array([2.0, 0.0, 0.0])))
        assert re.search(rf"\[0\] {yes} [<>]= [-2]+\n", export_text(far))
        weights[0, 0] = 0.25
        assert re.search(rf"\[0\] {yes} [-+] 0.25 \* size ", export_text(named))


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_printed_means_are_what_predicts(n_outputs: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    Y = 1e-5 * (X[:, :1] + rng.normal(size=(300, n_outputs))) + [1.0, 125474.0][:n_outputs]
    model = ObliqueTreeRegressor("axis", max_depth=3, leaves="constant")
    model.fit(X, Y if n_outputs > 1 else Y[:, 0])
    said = from_text(model)
    printed = [re.findall(r"(?:value:|=) ([-+.e\d]+)", said[leaf]) for leaf in model.apply(X)]
    np.testing.assert_array_equal(
        np.array(printed, dtype=float), model.predict(X).reshape(len(X), n_outputs)
    )


@pytest.mark.parametrize("view", [export_text, export_graphviz, export_sql, plot_tree])
def test_views_say_what_is_wrong_with_an_estimator(view: Any) -> None:
    X, y = load_iris(return_X_y=True)
    model = ObliqueTreeClassifier("axis", max_depth=1)
    with pytest.raises(NotFittedError, match="this ObliqueTreeClassifier is not fitted"):
        view(model)
    with pytest.raises(ValueError, match=r"pass its last step, such as pipeline\[-1\]"):
        view(make_pipeline(StandardScaler(), model).fit(X, y))

"""Trees as lists of rules and as drawings; all forms from the command line."""

import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree.cli.main import main
from evotree.export import export_graphviz, export_html, export_rules, export_text
from evotree.model_file import Model, save_model
from evotree.tables.columns import CategoricalColumn, NumericColumn
from evotree.tree import ObliqueTree
from tests.exported import chain, matching, stump, trees

eighths = st.integers(-64, 64).map(lambda n: n / 8.0)

# ---- rules and drawings --------------------------------------------------------------------------


@given(trees(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), n_classes=3), st.data())
def test_each_row_meets_one_rule(tree: ObliqueTree, data: st.DataObject) -> None:
    """Weights and rows of few digits, so that rows on hyperplanes are judged as well."""
    row = np.array(data.draw(st.lists(eighths, min_size=tree.n_features, max_size=tree.n_features)))
    text = export_rules(tree, decimals=12)
    if tree.n_nodes == 1:
        assert text.startswith("IF   anything\nTHEN [0] class: ")
        return
    (found,) = matching(text, row)
    assert found.split()[1] == f"[{tree.apply(row[np.newaxis])[0]}]"
    assert found.split()[3] == str(tree.predict_value(row[np.newaxis])[0].argmax())


def test_rules_name_the_tightest_bounds() -> None:
    # A path that goes right at each test, with a leaf on the left.
    weights = np.array([[1.0, 0.5], [0.0, 0.0]] * 3 + [[0.0, 0.0]])
    thresholds = np.array([0.0, 0.0, 1.0, 0.0, 2.0, 0.0, 0.0])
    sizes = np.array([7, 1, 5, 1, 3, 1, 1], dtype=np.int32)
    tree = ObliqueTree(weights, thresholds, sizes, np.arange(7.0)[:, np.newaxis] + 0.25)
    rules = export_rules(tree, ["a", "b"]).split("\n\n")
    assert rules[0] == "IF   a + 0.5 * b <= 0\nTHEN [1] value: 1.25"
    middle = "IF   a + 0.5 * b > 0\nAND  a + 0.5 * b <= 1\nTHEN [3] value: 3.25"
    assert rules[1] == middle
    assert rules[3] == "IF   a + 0.5 * b > 2\nTHEN [6] value: 6.25\n"
    names = [f"a rather long name of a feature {j}" for j in range(12)]
    assert max(map(len, export_rules(stump([1.0] * 12), names).splitlines())) <= 100


signs = st.text(max_size=6) | st.text('\\"n&\n<', max_size=6)


@given(st.lists(signs, min_size=4, max_size=4))
def test_awkward_names_stay_inside_of_quotation_marks(names: list[str]) -> None:
    drawing = export_graphviz(stump([1.0, 2.0]), names[:2], names[2:])
    plain = re.sub(r'"(?:[^"\\\n]|\\.)*"', "T", drawing)
    node = r"    \d \[label=T, fillcolor=T\]|    \d -> \d \[label=T\]"
    _, _, _, _, _, *nodes, end, last = plain.split("\n")
    assert (end, last) == ("}", "") and len(nodes) == 5
    assert all(re.fullmatch(node, line) for line in nodes)
    leaf = re.search(r'    1 \[label="\[1\]\\n(.*): 1.00", ', drawing)
    shown = re.sub(r"\\(.)", r"\1", leaf.group(1)).replace("&amp;", "&")
    assert shown == "".join(c if c.isprintable() else " " for c in names[2])


def test_drawings_have_all_nodes_and_the_most_influential_terms() -> None:
    tree = stump([0.5, 4.0, -1.0, 0.0])
    text = export_graphviz(tree, class_names=["no", "y&s"], max_terms=2)
    assert 'label="[0]\\nx1\\n- 0.25 x2\\n(+1 more)\\n<= 0.25"' in text
    assert 'label="[2]\\ny&amp;s: >0.99\\nno: <0.01"' in text and text.count(" -> ") == 2
    tree.weighted_n_node_samples = np.array([12.5, 1.0, 11.5])
    assert "[0] weight 12.5" in export_graphviz(tree) and "[1] 1 row\\n" in export_graphviz(tree)
    tree.spread = np.array([100.0, 1.0, 1.0, 1.0])
    text = export_graphviz(tree, max_terms=1)
    assert 'label="[0] weight 12.5\\nx0\\n(+2 more)\\n<= 2"' in text
    assert 'label="[0]\\n0\\n<= 1"' in export_graphviz(stump([0.0]))


@pytest.mark.parametrize(
    ("export", "arguments", "named"),
    [
        (export_graphviz, {"max_terms": 0}, "max_terms=0"),
        (export_graphviz, {"decimals": -1}, "decimals=-1"),
        (export_rules, {"decimals": 1.5}, "decimals=1.5"),
        (export_html, {"max_terms": True}, "max_terms=True"),
        (export_html, {"tree": chain(301)}, "depth 150"),
    ],
)
def test_bad_arguments_are_named(export: Any, arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        export(**{"tree": stump([1.0, 2.0]), **arguments})


# ---- the command line ----------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """Return a model of a numeric and a categorical column, and write its file."""
    columns = (
        NumericColumn("the size", 2.5, indicator=True),
        CategoricalColumn("colour", ("blue", "it's", None)),
    )
    tree = ObliqueTree(
        np.array([[1.0, 1.5, -2.0, 0.0, 3.0], [0.0] * 5, [0, 0, 0, 1.0, 0], [0.0] * 5, [0.0] * 5]),
        np.array([2.0, 0.0, 0.5, 0.0, 0.0]),
        np.array([5, 1, 3, 1, 1], dtype=np.int32),
        np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0, 1.0, 0], [0, 0, 1.0]]),
    )
    model = Model("kind", np.array(["a", "b", "c's"], dtype=object), columns, tree)
    save_model(tmp_path / "model.json", model)
    return model


def test_command_exports_every_form(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {}
    for form in ("rules", "dot", "python", "c", "sql"):
        assert main(["export", str(tmp_path / "model.json"), "--to", form]) == 0
        texts[form] = capsys.readouterr().out
        out = str(tmp_path / "out.txt")
        assert main(["export", str(tmp_path / "model.json"), "--to", form, "--out", out]) == 0
        assert Path(out).read_text("utf-8") == texts[form]
        assert capsys.readouterr().out == ""
    assert "class: c's" in texts["rules"] and "colour is blue" in texts["dot"]
    note = "1 where 'colour' is missing; else 0"
    assert f"# x[4] is {note}" in texts["python"] and f"// x[4] is {note}" in texts["c"]
    assert "x[0] is 'the size', or 2.5 where that is missing" in texts["python"]
    assert "x[1] is 1 where 'the size' is missing; else 0" in texts["python"]

    assert main(["export", str(tmp_path / "model.json"), "--to", "cobol"]) == 2
    assert "'cobol'" in capsys.readouterr().err


def test_exported_sql_reads_the_table(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["export", str(tmp_path / "model.json"), "--to", "sql"])
    expression = capsys.readouterr().out
    frame = pd.DataFrame(
        [
            (size, colour)
            for size in (-2.0, 0.5, 4.0, 6.0, None)
            for colour in ("blue", "it's", "red", "green", None)
        ],
        columns=["the size", "colour"],
    )
    with sqlite3.connect(":memory:") as base:
        frame.to_sql("things", base, index=False)
        found = base.execute(f"SELECT {expression} FROM things ORDER BY rowid").fetchall()
    base.close()
    wanted = model.predict(frame).tolist()
    assert [label for (label,) in found] == wanted and len(set(wanted)) == 3


def test_names_cannot_move_the_cursor() -> None:
    feature, label = "size\x1b[2J\nmore\u202e", "a\rb\u00e9"
    for export in (export_text, export_rules):
        text = export(stump([1.0], 0.5), [feature], [label, "z"])
        assert all(sign.isprintable() for line in text.split("\n") for sign in line)
        assert r"size\x1b[2J\nmore\u202e" in text and "a\\rb\u00e9" in text

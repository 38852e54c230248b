"""Trees as rules and as plain data."""

import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evotree.export import (
    export_graphviz,
    export_python,
    export_rules,
    export_text,
    tree_from_dict,
    tree_to_dict,
)
from evotree.tree import ObliqueTree
from tests.exported import assert_same, chain, mutate, predict_from, stump, tame, trees

# ---- rules ---------------------------------------------------------------------------------------


@given(trees(tame, n_classes=3), st.data())
def test_rules_predict_as_the_tree_does(tree: ObliqueTree, data: st.DataObject) -> None:
    row = np.array(data.draw(st.lists(tame, min_size=tree.n_features, max_size=tree.n_features)))
    margins = (tree.weights @ row - tree.thresholds)[~tree.is_leaf]
    assume((np.abs(margins) > 1e-6).all())
    expected = tree.predict_value(row[np.newaxis])[0].argmax()
    leaf = int(tree.apply(row[np.newaxis])[0])
    assert predict_from(export_text(tree, decimals=12), row, leaf) == str(expected)


@given(trees())
def test_rules_of_any_tree_have_a_line_for_each_branch(tree: ObliqueTree) -> None:
    lines = export_text(tree).splitlines()
    n_splits = tree.n_nodes - tree.n_leaves
    assert sum("--- else" in line for line in lines) == n_splits
    assert sum("<=" in line or ">=" in line for line in lines) == n_splits
    assert sum("class: " in line or "value: " in line for line in lines) == tree.n_leaves
    assert not any("nan" in line or "inf" in line for line in lines)


def test_terms_are_ordered_by_influence_and_zeros_left_out() -> None:
    tree = stump([0.5, 0.0, -2.0])
    names, classes = ["a", "b", "c"], ["no", "yes"]
    assert export_text(tree, names, classes) == (
        "|--- [0] c - 0.25 * a >= -0.5\n"
        "|   |--- [1] class: no (no: 1.00)\n"
        "|--- else\n"
        "|   |--- [2] class: yes (yes: >0.99, no: <0.01)\n"
    )
    tree.spread = np.array([100.0, 9.0, 1.0])
    assert export_text(tree, names).startswith("|--- [0] a - 4 * c <= 2")
    assert export_text(tree, names, max_terms=1).startswith("|--- [0] a (+1 more) <= 2")
    assert export_text(stump([0.0, 0.0]), ["a", "b"]).startswith("|--- [0] 0 <= 1\n")


def test_long_sums_go_on_below_their_first_term() -> None:
    names = [f"a rather long name of a feature {j}" for j in range(12)]
    lines = export_text(stump([1.0] * 12), names).splitlines()
    assert max(map(len, lines)) <= 100
    rule = lines[: lines.index("|   |--- [1] class: 0 (0: 1.00)")]
    assert len(rule) > 3
    assert all(line.startswith("|    + a rather long name of") for line in rule[1:])


def test_rules_take_the_names_of_a_classifier() -> None:
    class Fitted:
        tree_ = stump([1.0, 2.0])
        classes_ = np.array(["a", "b"])
        feature_names_ = np.array(["u", "v"], dtype=object)

    assert export_text(Fitted()) == export_text(stump([1.0, 2.0]), ["u", "v"], ["a", "b"])
    assert "w + " in export_text(Fitted(), feature_names=["u", "w"])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"feature_names": ["a"]}, "feature_names"),
        ({"class_names": ["a"]}, "class_names"),
        ({"decimals": -1}, "decimals"),
        ({"max_terms": 0}, "max_terms"),
        ({"decimals": 1.5}, "decimals"),
        ({"tree": "oak"}, "tree is of the type str"),
    ],
)
def test_rules_name_a_bad_argument(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        export_text(**{"tree": stump([1.0, 2.0]), **arguments})


@pytest.mark.parametrize("export", [export_text, export_rules])
def test_texts_that_grow_with_the_square_of_the_tree_are_refused(export: Any) -> None:
    tree = chain(49_999)
    tracemalloc.start()
    with pytest.raises(ValueError, match="the exports to code write any tree"):
        export(tree)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000_000
    assert str(49_998) in export_graphviz(tree)
    assert f"[{998}] class: " in export(chain(999))


# ---- plain data ----------------------------------------------------------------------------------


@given(trees())
def test_plain_data_gives_back_the_same_tree(tree: ObliqueTree) -> None:
    whole = tree.replaced(row_counts=np.rint(9.0 * tree.values).astype(np.int64))
    assert_same(tree_from_dict(json.loads(json.dumps(tree_to_dict(whole)))), whole)
    plain = json.loads(json.dumps(tree_to_dict(tree)))
    assert_same(tree_from_dict(plain), tree)
    # Older files have weights as the number of rows, or neither these nor the spread.
    old = {name.removeprefix("weighted_"): array for name, array in plain.items()}
    assert_same(tree_from_dict(old), tree)
    for name in ("spread", "weighted_n_node_samples"):
        plain.pop(name, None)
    bare = ObliqueTree(tree.weights, tree.thresholds, tree.subtree_size, tree.values)
    assert_same(tree_from_dict(plain), bare)


@given(trees(), st.data())
def test_changed_plain_data_are_refused_or_sound(tree: ObliqueTree, data: st.DataObject) -> None:
    plain = tree_to_dict(tree)
    mutate(data.draw, plain)
    try:
        changed = tree_from_dict(plain)
    except ValueError:
        return
    changed.validate()
    changed.predict_value(np.zeros((2, changed.n_features)))


@pytest.mark.parametrize(
    ("entry", "value", "named"),
    [
        ("version", 4, "newer"),
        ("version", "1", "version is a string"),
        ("subtree_size", [3, 1], "subtree_size"),
        ("subtree_size", [3, 1, 1.0], "subtree_size"),
        ("subtree_size", [3, 1, True], "subtree_size"),
        ("subtree_size", [1, 1, 1], "subtree_size"),
        ("subtree_size", [1] * 100_001, "subtree_size"),
        ("thresholds", [1.0, "0", 0.0], "thresholds.*a string"),
        ("thresholds", [1.0, float("nan"), 0.0], "thresholds.*not finite"),
        ("thresholds", [10**400, 0, 0], "thresholds.*too large"),
        ("weights", [[1.0], [0.0, 0.0], [0.0, 0.0]], "weights has rows of lengths"),
        ("weights", [[], [], []], "weights has rows of lengths"),
        ("weights", [[1.0, 2.0]], "weights has shape"),
        ("values", {"0": 1}, "values"),
        ("spread", [1.0], "spread has shape"),
        ("spread", "wide", "spread is a string"),
        ("n_node_samples", [3.0, 1.0, -2.0], "weighted_n_node_samples has values"),
        ("row_counts", [[3, 1], [1, 1.5], [2, 0]], "row_counts has an entry"),
        ("row_counts", [[3], [1], [2]], "row_counts: allowed are"),
        ("row_counts", [[3, 1], [-1, 1], [2, 0]], "row_counts: allowed are"),
    ],
)
def test_bad_plain_data_are_named(entry: str, value: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        tree_from_dict({**tree_to_dict(stump([1.0, 2.0])), entry: value})


def test_labels_that_are_not_the_most_frequent_are_kept():
    tree = ObliqueTree(
        np.array([[0.0, 0.0, 1.0, 0.0], [0.0] * 4, [0.0] * 4]),
        np.array([4.7, 0.0, 0.0]),
        np.array([3, 1, 1], dtype=np.int32),
        np.array([[0.3, 0.4, 0.3], [0.4, 0.5, 0.1], [0.0, 0.6, 0.4]]),
    ).labelled(np.array([1, 0, 2]))
    again = tree_from_dict(json.loads(json.dumps(tree_to_dict(tree))))
    assert again.labels.tolist() == [1, 0, 2] and again == tree
    assert "class: 2" in export_text(tree) and "class: 1" not in export_text(tree)
    names = {}
    exec(export_python(tree), names)
    assert names["predict"]([0.0, 0.0, 9.0, 0.0]) == 2
    for wrong in ([1, 0], [1, 0, 3], [1, 0, 0.5], [1, 0, -1]):
        with pytest.raises(ValueError, match="labels"):
            tree_from_dict({**tree_to_dict(tree), "labels": wrong})

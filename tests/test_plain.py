"""Trees as plain data, and what is read back of it."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree.leaf_models import OutputModels
from evotree.operators.pruning import prune_tree
from evotree.plain import TREE_VERSION, tree_from_dict, tree_to_dict
from tests.exported import assert_same, modelled_trees, stump, tame, trees, with_models


@st.composite
def trees_of_outputs(draw):
    """Draw a tree of two or three outputs, with or without lines."""
    tree = draw(trees(n_classes=draw(st.integers(2, 3))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    names = tuple(f"out {j}" for j in range(tree.values.shape[1]))
    tree = tree.replaced(
        values=10.0 * rng.normal(size=tree.values.shape), output_names=names
    )
    if draw(st.booleans()):
        each = [with_models(tree.of_output(j), rng).models for j in range(len(names))]
        tree = tree.with_models(OutputModels(tuple(each)))
    return tree.validate()


every_tree = trees() | modelled_trees() | trees_of_outputs()


def written(tree):
    return json.loads(json.dumps(tree_to_dict(tree)))


@given(every_tree)
def test_plain_data_gives_back_the_same_tree(tree):
    plain = written(tree)
    assert_same(tree_from_dict(plain), tree)
    assert ("models" in plain) == (tree.models is not None)
    assert ("output_names" in plain) == (tree.output_names is not None)
    optional = ("spread", "weighted_n_node_samples", "models")
    bare = tree.replaced(**dict.fromkeys(optional))
    assert_same(
        tree_from_dict({k: v for k, v in plain.items() if k not in optional}), bare
    )


@given(trees(n_classes=3), st.integers(0, 2))
def test_plain_data_keeps_labels_and_numbers_of_rows(tree, label):
    counts = np.rint(9.0 * tree.values).astype(np.int64)
    whole = tree.replaced(row_counts=counts, labels=np.full(len(tree), label))
    again = tree_from_dict(written(whole))
    assert_same(again, whole)
    assert set(again.labels) == {label}


CONSTANT = stump([1.0, 2.0])
LINES = with_models(
    stump([0.5, 0.0, -2.0]).predicting(np.ones((3, 1))), np.random.default_rng(0)
)
OUTPUTS = CONSTANT.replaced(output_names=("height", "width"))


@pytest.mark.parametrize(
    ("tree", "entry", "value", "named"),
    [
        (CONSTANT, "version", TREE_VERSION + 1, "another evotree"),
        (CONSTANT, "version", "1", "version 1: allowed is"),
        (CONSTANT, "subtree_size", [1, 1, 1], "subtree_size"),
        (CONSTANT, "thresholds", [1.0, float("nan"), 0.0], "thresholds.*not finite"),
        (CONSTANT, "thresholds", [10**400, 0, 0], "thresholds does not hold numbers"),
        (
            CONSTANT,
            "weights",
            [[1.0], [0.0, 0.0], [0.0, 0.0]],
            "weights does not hold .* lists of one length",
        ),
        (CONSTANT, "weights", [[1.0, 2.0]], "weights has shape"),
        (CONSTANT, "values", {"0": 1}, "values"),
        (CONSTANT, "spread", "wide", "spread does not hold"),
        (
            CONSTANT,
            "weighted_n_node_samples",
            [3.0, 1.0, -2.0],
            "weighted_n_node_samples has values",
        ),
        (CONSTANT, "row_counts", [[3, 1], [-1, 1], [2, 0]], "row_counts"),
        (CONSTANT, "labels", [1, 0, 2], "labels"),
        (LINES, "models", {}, "there is no intercepts"),
        (LINES, "intercepts", [1.0, 2.0], "intercepts has shape"),
        (LINES, "coefficients", [[1.0, 0.0, 0.0]] * 3, "internal nodes"),
        (LINES, "lowest", [1e9, 1e9, 1e9], "lowest has values above"),
        (LINES, "values", [[0.5, 0.5]] * 3, "values has 2 columns"),
        (OUTPUTS, "output_names", ["a"], "1 entries"),
        (OUTPUTS, "models", [], "2 columns for 0 models"),
    ],
)
def test_bad_plain_data_are_named(tree, entry, value, named):
    plain = tree_to_dict(tree)
    place = plain["models"] if entry in plain.get("models", ()) else plain
    place[entry] = value
    with pytest.raises(ValueError, match=named):
        tree_from_dict(plain)


@given(modelled_trees(tame), st.integers(0, 2**32))
def test_pruned_trees_predict_the_means_of_collapsed_nodes(tree, seed):
    rng = np.random.default_rng(seed)
    marks = (rng.random(len(tree)) < 0.3) & ~tree.is_leaf
    pruned = prune_tree(tree, marks).validate()
    rows = rng.normal(size=(20, tree.n_features))
    way = np.asarray(tree.decision_path(rows).todense()).astype(bool)
    for row, passed, found in zip(
        rows, way, pruned.predict_value(rows)[:, 0], strict=True
    ):
        collapsed = np.flatnonzero(passed & marks)
        wanted = tree.predict_value(row[np.newaxis])[0, 0]
        assert found == (tree.values[collapsed[0], 0] if collapsed.size else wanted)
    assert tree.predict_value(rows[:0]).shape == (0, 1)
    assert tree.predicting(tree.values).models is None

"""Model files."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError

from evotree import EvoTreeRegressor
from evotree.fitted import summarize
from evotree.model_file import VERSION, Model, digest_of, load_model, save_model
from evotree.plain import parts_to_dict, tree_to_dict
from evotree.schema import CategoricalColumn, NumericColumn, Schema
from evotree.tree import SoftSides
from tests import made_up
from tests.exported import assert_same, stump

FRAME = pd.DataFrame({"size": [0.1, 7.0, None, 9.0], "b": ["x", "y", None, "z"]})


def make_model(classes=None):
    columns = (
        NumericColumn("size", 0.1 + 0.2, True),
        CategoricalColumn("b", ("x",)),
    )
    tree = stump([1.0 / 3.0, 0.0, -2.0])
    return Model(
        "species",
        (made_up.fitted(tree, columns, classes or ["ja", "nö"]),),
        training={"rows": 10, "accuracy": 0.9, "base_rate": 0.5, "generations": 3}
        | {"hyperparameters": {"C": "(0.3, 3.0)", "noise": 0.0}}
        | {"seconds": {"evolving": 1.5}, "stop_reason": "patience"},
    )


def changed(model, **facts):
    """Return a model each of whose trees has other facts."""
    members = tuple(replace(member, **facts) for member in model.members)
    return replace(model, members=members)


def make_soft_model():
    shares = np.array([[0.0, 0.0], [0.9, 0.1], [0.3, 0.7]])
    sides = SoftSides(
        np.array([1.0 / 3.0, 0.0, 0.0]), np.array([-0.1, 0.0, 0.0]), shares
    )
    return changed(make_model(), sides=sides)


def make_explained_model():
    model, rows = make_model(), np.random.default_rng(0).normal(size=(20, 3))
    return changed(model, training=summarize(model.tree, rows, np.ones(20)))


def make_model_of_numbers():
    tree = stump([1.0 / 3.0, 0.0, -2.0]).predicting(
        np.array([[0.25], [-1.0], [1.0 / 3.0]])
    )
    training = {"rows": 9, "r2": 0.5, "rmse": 1.25, "others": {"the mean": [-0.1, 2.0]}}
    model = changed(make_model(), tree=tree, classes=None)
    return replace(model, training=training)


def make_forest():
    model = make_model()
    (one,) = model.members
    other = replace(one, tree=stump([0.0, 1.0, 1.0], 0.5))
    return replace(model, members=(one, other, one), training={})


KINDS = [
    make_model,
    make_soft_model,
    make_explained_model,
    make_model_of_numbers,
    make_forest,
]


def write_sealed(path, model, **entries):
    """Write the file of a model with some other entries, and the digest of all."""
    save_model(path, model)
    data = {**json.loads(path.read_text("utf-8")), **entries}
    path.write_text(json.dumps({**data, "digest": digest_of(data)}), "utf-8")


@pytest.mark.parametrize("make", KINDS)
def test_a_model_file_gives_back_the_model(make, tmp_path):
    model, path = make(), tmp_path / "m.json"
    save_model(path, model)
    again = load_model(path)
    for tree, twin in zip(again.trees, model.trees, strict=True):
        assert_same(tree, twin)
    for name in ("target", "schema", "training", "feature_names", "labels"):
        assert getattr(again, name) == getattr(model, name)
    assert again.predict(FRAME).tolist() == model.predict(FRAME).tolist()
    assert len(set(again.predict(FRAME))) == 2
    np.testing.assert_array_equal(
        again.predict_proba(FRAME), model.predict_proba(FRAME)
    )
    assert again.rules() == model.rules() and again.summary() == model.summary()
    save_model(tmp_path / "n.json", again)
    assert path.read_bytes() == (tmp_path / "n.json").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.json", "n.json"]


def test_models_say_what_they_know(tmp_path):
    soft, model = make_soft_model(), make_model()
    assert not np.isin(soft.predict_proba(FRAME), soft.tree.values).any()
    np.testing.assert_array_equal(soft.predict(FRAME), model.predict(FRAME))
    save_model(tmp_path / "m.json", make_explained_model())
    found = load_model(tmp_path / "m.json").explain(FRAME)
    for table, wanted in zip(found, make_explained_model().explain(FRAME), strict=True):
        pd.testing.assert_frame_equal(table, wanted)
    with pytest.raises(ValueError, match="knows nothing of its training rows"):
        model.explain(FRAME)
    assert "training   R² 0.5000, RMSE 1.25 on 9 rows" in (
        make_model_of_numbers().summary()
    )
    assert "accuracy 0.9000 on 10 rows" in model.summary()
    assert make_forest().rules().startswith("tree 1 of 3\n")


@pytest.mark.parametrize(
    "make", [make_model, make_soft_model, make_model_of_numbers, make_forest]
)
def test_tables_may_lack_columns_that_no_tree_asks_for(make):
    """What is in them changes nothing either."""
    model = make()
    schema = Schema((*model.schema, NumericColumn("age", 3.0, True)))
    members = (
        replace(
            one,
            tree=one.tree.replaced(weights=np.pad(one.tree.weights, ((0, 0), (0, 2)))),
            schema=schema,
        )
        for one in model.members
    )
    model = replace(model, members=tuple(members))
    expected = model.predict_proba(FRAME.assign(age=7.0))
    for frame in (FRAME, FRAME.assign(age="old"), FRAME.iloc[:, ::-1]):
        np.testing.assert_array_equal(model.predict_proba(frame), expected)
        assert model.predict(frame).tolist() == make().predict(FRAME).tolist()
    for name in model.used_columns:
        with pytest.raises(ValueError, match=f"lack 1 of .* columns .*: '{name}'"):
            model.predict(FRAME.drop(columns=name))


def test_columns_of_models_in_leaves_are_asked_for():
    X = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 7, "c": 1.0})
    fitted = EvoTreeRegressor(
        leaves="linear", max_leaf_nodes=2, max_generations=1, random_state=0
    ).fit(X, 3.0 * X["b"] + (X["a"] > 20))
    model = Model.of(fitted, "y")
    assert "b" in model.used_columns and "c" not in model.used_columns


def test_what_no_file_can_keep_is_named(tmp_path):
    model = DummyClassifier()
    with pytest.raises(NotFittedError):
        save_model(tmp_path / "m.json", model)
    with pytest.raises(ValueError, match="is a DummyClassifier"):
        save_model(tmp_path / "m.json", model.fit([[0.0], [1.0]] * 9, [0, 1] * 9))
    assert not [*tmp_path.iterdir()]


CLASSES = [["a", "b"], [1, 2], [-(2**63), 2**63 - 1], [False, True], [0.5, 1.0]]


@pytest.mark.parametrize("classes", CLASSES)
def test_a_model_file_keeps_the_type_of_the_classes(tmp_path, classes):
    save_model(tmp_path / "m.json", make_model(classes))
    labels = load_model(tmp_path / "m.json").classes
    assert labels.tolist() == classes
    assert [type(label) for label in labels.tolist()] == [
        type(label) for label in classes
    ]


CONSTANT = tree_to_dict(stump([1.0, 2.0, 3.0]))


SIDES = {"slopes": [1.0] * 3, "intercepts": [0.0] * 3, "shares": [[0.5, 0.5]] * 3}
ROWS = parts_to_dict(make_explained_model().members[0].training)


@pytest.mark.parametrize(
    ("entry", "value", "named"),
    [
        ("format", "gguf", "not a model"),
        ("version", VERSION + 1, "the evotree that made it"),
        ("version", 2, "fit the model again"),
        *((entry, None, "as it was written") for entry in ("target", "digest", "tree")),
        ("new", 1, "as it was written"),
    ],
)
def test_a_file_that_was_changed_is_refused(tmp_path, entry, value, named):
    path = tmp_path / "m.json"
    save_model(path, make_model())
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), entry: value}))
    with pytest.raises(ValueError, match=rf"m\.json.*{named}"):
        load_model(path)


def test_a_file_may_be_laid_out_in_another_way(tmp_path):
    path = tmp_path / "m.json"
    save_model(path, make_forest())
    data = json.loads(path.read_text("utf-8"))
    mark = "\ufeff"  # of the order of bytes, as some editors write it
    path.write_text(mark + json.dumps(data, indent=3, sort_keys=True), "utf-8")
    assert load_model(path).rules() == make_forest().rules()


@pytest.mark.parametrize(
    ("entry", "value", "named"),
    [
        ("tree", [], ""),
        ("tree", {**CONSTANT, "subtree_size": [9, 1, 1]}, "subtree_size"),
        ("tree", None, ""),
        ("columns", [{}], "bends"),
        ("probabilities", {**SIDES, "slopes": [1.0]}, "slopes"),
        ("probabilities", {**SIDES, "shares": [[0.5, 0.4]] * 3}, "shares"),
        ("training_rows", {**ROWS, "means": [[0.0]]}, "means has shape"),
        ("training_rows", {**ROWS, "spreads": [1.0, 1.0, 0.0]}, "above 0"),
    ],
)
def test_kernels_read_no_tree_that_is_none(tmp_path, entry, value, named):
    path = tmp_path / "m.json"
    write_sealed(path, make_model(), **{entry: value})
    with pytest.raises(ValueError, match=rf"m\.json.*{named}"):
        load_model(path)


def test_hostile_files_are_refused(tmp_path):
    path, long_number = tmp_path / "m.json", b'{"format": ' + b"9" * 10_000 + b"}"
    for content in (b"[" * 200_000, b"\xff\xfe\x00", long_number, b"", b"[]", b"NaN"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"m\.json"):
            load_model(path)

"""Model files, and the encoding of tables without scikit-learn."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import StandardScaler

from evotree.cli.model_file import VERSION, Model, load_model, save_model
from evotree.experiments.datasets import make_preprocessor
from evotree.export import tree_to_dict
from evotree.tables.columns import CategoricalColumn, NumericColumn, describe_columns, encode
from evotree.tree import ObliqueTree
from tests.exported import assert_same, mutate, stump

# ---- columns -------------------------------------------------------------------------------------

TRAINING = pd.DataFrame(
    {
        "size": [0.1, np.nan, 0.7, 1e9],
        "count": [1, 2, 3, 5],
        "nothing": [np.nan] * 4,
        "colour": pd.Series(["red", "blue", np.nan, "red"], dtype=object),
        "code": pd.Series(["1", "x", "07", np.nan], dtype=object),
        "flag": [True, False, True, True],
    }
)
LATER = pd.DataFrame(
    {
        "flag": [False, True, True],
        "extra": ["is", "not", "read"],
        "code": pd.Series([np.nan, "2", "x"], dtype=object),
        "colour": pd.Series(["green", np.nan, "blue"], dtype=object),
        "nothing": [1.5, np.nan, 2.0],
        "count": [7.5, np.nan, -1.0],
        "size": [np.nan, 0.3, -0.0],
    }
)


@pytest.mark.parametrize("later", [TRAINING, LATER], ids=["training", "later"])
def test_columns_encode_as_the_transformer_does(later: pd.DataFrame) -> None:
    transformer = make_preprocessor(TRAINING).fit(TRAINING)
    expected = transformer.transform(later)
    features = encode(describe_columns(transformer), later)
    assert features.dtype == expected.dtype == np.float64
    np.testing.assert_array_equal(features, expected)


@pytest.mark.filterwarnings("ignore:Skipping features:UserWarning")
def test_columns_of_an_imputer_that_drops_empty_columns() -> None:
    transformer = make_preprocessor(TRAINING)
    for _, step, _ in transformer.transformers:
        imputer = step if hasattr(step, "keep_empty_features") else step[0]
        imputer.keep_empty_features = False
    expected = transformer.fit_transform(TRAINING)
    columns = describe_columns(transformer)
    assert "nothing" not in [column.name for column in columns]
    np.testing.assert_array_equal(encode(columns, TRAINING), expected)


def test_a_code_is_known_by_how_it_is_written() -> None:
    column = CategoricalColumn("code", "1", ("1", "2", "x"))
    for cells in ([1, 2, 2], [1.0, 2.0, np.nan], ["1", "2", None]):
        first = column.encode(pd.Series(cells))
        assert first[:2].tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_none_is_missing_and_no_category() -> None:
    column = CategoricalColumn("code", "1", ("1", "x"))
    assert column.encode(pd.Series([None, np.nan, pd.NA], dtype=object))[:, 0].tolist() == [1.0] * 3
    frame = pd.DataFrame({"code": pd.Series(["x", None, "y"], dtype=object)})
    with pytest.raises(ValueError, match="'code' has None as a category"):
        describe_columns(make_preprocessor(frame).fit(frame))


def test_columns_refuse_other_transformers() -> None:
    frame = TRAINING[["count"]]
    transformer = ColumnTransformer([("scaled", StandardScaler(), ["count"])]).fit(frame)
    with pytest.raises(ValueError, match="'scaled' is made of StandardScaler"):
        describe_columns(transformer)


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        (pd.DataFrame({"a": [1.0]}), "lack 1 of the 2 columns.*'b'"),
        (pd.DataFrame({"a": [1.0, "many"], "b": "x"}), "'a': 'many' in data row 2"),
        (pd.DataFrame({"a": [1.0, 2.0, -np.inf], "b": "x"}), "'a': -inf in data row 3"),
        (pd.DataFrame([[1, 2, "x"]], columns=["a", "a", "b"]), "'a' more than once"),
    ],
)
def test_columns_name_bad_cells(frame: pd.DataFrame, named: str) -> None:
    columns = (NumericColumn("a", 0.5), CategoricalColumn("b", "x", ("x", "y")))
    with pytest.raises(ValueError, match=named):
        encode(columns, frame)


def replace_values(values: list[float]) -> ObliqueTree:
    tree = stump([1.0, 2.0, 3.0])
    return ObliqueTree(tree.weights, tree.thresholds, tree.subtree_size, np.array([values] * 3))


# ---- model files ---------------------------------------------------------------------------------


def make_model(classes: list[Any] | None = None) -> Model:
    return Model(
        target="species",
        classes=np.array(classes or ["ja", "nö"], dtype=None if classes else object),
        columns=(NumericColumn("size", 0.1 + 0.2), CategoricalColumn("b", "x", ("x", "y"))),
        tree=stump([1.0 / 3.0, 0.0, -2.0]),
        spreads=(1.0, 0.5, 0.25),
        training={"rows": 10, "accuracy": 0.9, "seconds": 1.5, "stop_reason": "patience"},
    )


@pytest.mark.parametrize(
    "classes", [["a", "b"], [1, 2], [-(2**63), 2**63 - 1], [False, True], [0.5, 1.0]]
)
def test_a_model_file_keeps_the_type_of_the_classes(tmp_path: Path, classes: list[Any]) -> None:
    save_model(tmp_path / "m.json", make_model(classes))
    labels = load_model(tmp_path / "m.json").classes
    assert labels.tolist() == classes
    assert [type(label) for label in labels.tolist()] == [type(label) for label in classes]


def test_a_model_file_gives_back_the_model(tmp_path: Path) -> None:
    model, path = make_model(), tmp_path / "m.json"
    save_model(path, model)
    again = load_model(path)
    assert_same(again.tree, model.tree)
    for name in ("target", "columns", "spreads", "training", "feature_names"):
        assert getattr(again, name) == getattr(model, name)
    frame = pd.DataFrame({"b": ["x", "y", "z", None], "size": [0.0, 9.0, 9.0, np.nan]})
    assert again.predict(frame).tolist() == model.predict(frame).tolist()
    assert set(again.predict(frame)) == {"ja", "nö"}
    assert again.rules() == model.rules()
    save_model(tmp_path / "n.json", again)
    assert path.read_bytes() == (tmp_path / "n.json").read_bytes()
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".tmp"] == []


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.json"
    save_model(path, make_model())
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"cannot write .*m\.json: No space left"):
        save_model(path, replace(make_model(), target="other"))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "m.json")
    save_model(tmp_path / "link.json", make_model())
    assert (tmp_path / "link.json").is_symlink()
    assert load_model(tmp_path / "m.json").target == "species"


def test_devices_and_folders_are_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not a regular file"):
        save_model(os.devnull, make_model())
    with pytest.raises(OSError, match="is a folder"):
        save_model(tmp_path, make_model())
    with pytest.raises(OSError, match="no folder"):
        save_model(tmp_path / "no" / "m.json", make_model())


@pytest.mark.parametrize(
    ("entry", "value", "named"),
    [
        ("format", "gguf", "another kind"),
        ("version", VERSION + 1, "install a newer"),
        ("version", 1.0, "version"),
        ("target", 3, "target"),
        ("classes", ["a", 1], "classes"),
        ("classes", ["a", "a"], "twice"),
        ("classes", ["a", "b", "c"], "3 classes"),
        ("classes", [2**64, 1], "64 bits"),
        ("columns", [], "columns"),
        ("columns", [{"name": "size", "kind": "numeric", "mean": "0"}], "mean"),
        ("columns", [{"name": "size", "kind": "ordinal"}], "kind"),
        ("columns", [{"name": "size", "kind": "numeric", "mean": 0.0}] * 3, "same name"),
        ("columns", [{"name": "size", "kind": "numeric", "mean": 0.0}], "3 features"),
        ("columns", [{"name": "b", "kind": "categorical", "fill": 1}], "fill"),
        ("columns", [{"name": "b", "kind": "categorical", "fill": "", "categories": [1]}], "categ"),
        ("columns", [{"name": "b", "kind": "categorical", "fill": "", "categories": []}], "none"),
        ("feature_names", ["size", "b=x", "c"], "feature_names"),
        ("spreads", [1.0], "spreads"),
        ("training", {"accuracy": 2.0}, "accuracy"),
        ("training", [], "training"),
        ("tree", [], "the tree is a list"),
        ("tree", tree_to_dict(replace_values([2.0, -1.0])), "no class shares"),
        ("tree", tree_to_dict(replace_values([0.5, 0.4])), "no class shares"),
    ],
)
def test_a_bad_model_file_is_named(tmp_path: Path, entry: str, value: Any, named: str) -> None:
    path = tmp_path / "m.json"
    save_model(path, make_model())
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), entry: value}))
    with pytest.raises(ValueError, match=rf"m\.json.*{named}"):
        load_model(path)


HOSTILE = {
    "nested": b"[" * 200_000,
    "binary": b"\xff\xfe\x00",
    "long number": b'{"format": ' + b"9" * 10_000 + b"}",
    "empty": b"",
    "list": b"[]",
    "not a number": b"NaN",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"m\.json"):
        load_model(path)


in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@in_one_folder
@given(st.data())
def test_changed_model_files_are_refused_or_sound(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "m.json"
    save_model(path, make_model())
    plain = json.loads(path.read_text("utf-8"))
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(data.draw, plain)
    path.write_text(json.dumps(plain), "utf-8")
    try:
        model = load_model(path)
    except ValueError as error:
        assert "m.json" in str(error)
        return
    model.rules()
    model.predict(pd.DataFrame({column.name: [None] for column in model.columns}))


@in_one_folder
@given(st.data())
def test_cut_off_model_files_are_refused(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "m.json"
    save_model(path, make_model())
    content = path.read_bytes().rstrip()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(ValueError, match=r"m\.json"):
        load_model(path)


@in_one_folder
@given(st.data())
def test_overwritten_bytes_are_refused_or_sound(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "m.json"
    save_model(path, make_model())
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        load_model(path).rules()
    except ValueError as error:
        assert "m.json" in str(error)

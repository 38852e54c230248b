"""Files as strangers may send them: every loader gives something sound or an error that says why.

Valid files are damaged at random: bytes, lines, fields, and the structure of JSON and ``.npz``.
``EVOTREE_FUZZ_EXAMPLES`` sets how many examples a loader gets; 5,000 take some minutes.
"""

import bz2
import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree.cli.model_file import load_model, save_model
from evotree.cli.table import check_features, features_and_target, hold_out, without_constants
from evotree.experiments.datasets import load, make_preprocessor, read_csv
from evotree.tables.columns import describe_columns, encode
from tests.damage import damaged, fuzz, npy, npz, pack, sound_or_refused
from tests.exported import mutate
from tests.test_model_file import make_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


# ---- model files ---------------------------------------------------------------------------------

MODELS = [make_model(), make_model([1, 2]), make_model([False, True])]
FRAME = pd.DataFrame({"size": [0.5, None, -3.0], "b": ["x", None, "z"]}, dtype=object)


def use_model(model: Any) -> None:
    frame = pd.DataFrame({c.name: [None, "1", "x"][:2] for c in model.columns}, dtype=object)
    shares = model.predict_proba(frame)
    assert shares.shape == (2, len(model.classes)) and np.isfinite(shares).all()
    assert set(model.predict(frame)) <= set(model.classes)
    assert model.rules().endswith("\n")


@pytest.fixture(scope="module")
def model_texts(folder: Path) -> list[bytes]:
    for model in MODELS:
        save_model(folder / "sound.json", model)
    texts = []
    for model in MODELS:
        save_model(folder / "sound.json", model)
        texts.append((folder / "sound.json").read_bytes())
    return texts


@fuzz
@given(data=st.data())
def test_model_files_as_text(folder: Path, model_texts: list[bytes], data: st.DataObject) -> None:
    path = folder / "model.json"
    path.write_bytes(data.draw(damaged(model_texts)))
    sound_or_refused(path, lambda: load_model(path), use_model)


@fuzz
@given(data=st.data())
def test_model_files_as_json(folder: Path, model_texts: list[bytes], data: st.DataObject) -> None:
    plain = json.loads(data.draw(st.sampled_from(model_texts)))
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(data.draw, plain)
    path = folder / "model.json"
    path.write_text(json.dumps(plain), "utf-8")
    sound_or_refused(path, lambda: load_model(path), use_model)


@fuzz
@given(
    sizes=st.lists(st.integers(-2, 9) | st.sampled_from([2**31, 2**40, -(2**31)]), max_size=9),
    n_rows=st.integers(0, 9),
)
def test_trees_of_any_shape(
    folder: Path, model_texts: list[bytes], sizes: list[int], n_rows: int
) -> None:
    """Circles, subtrees that leave the tree, arrays of other lengths."""
    plain = json.loads(model_texts[0])
    tree = plain["tree"]
    tree["subtree_size"] = sizes
    tree["thresholds"] = [0.5] * n_rows
    tree["weights"] = [[1.0, 0.5, -1.0]] * n_rows
    tree["values"] = [[0.25, 0.75]] * n_rows
    path = folder / "model.json"
    path.write_text(json.dumps(plain), "utf-8")
    sound_or_refused(path, lambda: load_model(path), use_model)


# ---- tables of users -----------------------------------------------------------------------------

TABLES = [
    b"size,b,kind\n0.5,x,ja\n,y,nein\n1.5,,ja\n-2e3,x,nein\n7,z,ja\n1,x,nein\n",
    b'size,b,kind\r\n"0.5","x, y",1\r\n1,"a ""b""",2\r\n3,"\n",1\r\n4,x,2\r\n',
    b"kind,size,b,flag\n1,1,x,true\n0,2,y,false\n1,3,x,true\n0,4,y,false\n",
]


def train_on(frame: pd.DataFrame) -> None:
    """Do what ``evotree fit`` does before the evolution; its errors need not name the file."""
    assert len(frame) and frame.columns.is_unique
    try:
        X, y = features_and_target(frame, "kind" if "kind" in frame else frame.columns[-1])
        check_features(X)
        X, y, (X_test, _) = hold_out(X, y, 0.25, 0)
        X, _ = without_constants(X)
        columns = describe_columns(make_preprocessor(X).fit(X))
    except ValueError:
        return
    for part in (X, X_test):
        assert np.isfinite(encode(columns, part)).all()


def predict_from(frame: pd.DataFrame) -> None:
    try:
        shares = MODELS[0].predict_proba(frame)
    except ValueError:
        return
    assert shares.shape == (len(frame), 2) and np.isfinite(shares).all()


@fuzz
@given(data=st.data())
def test_tables_of_users(folder: Path, data: st.DataObject) -> None:
    content, ending = data.draw(damaged(TABLES)), data.draw(st.sampled_from([".csv", ".csv.gz"]))
    if ending == ".csv.gz":
        content = pack(data.draw, content, gzip.compress)
    path = folder / f"table{ending}"
    path.write_bytes(content)
    sound_or_refused(path, lambda: read_csv(path), train_on)
    sound_or_refused(path, lambda: read_csv(path), predict_from)


# ---- data sets of experiments --------------------------------------------------------------------

ARFF = b"""% a comment
@relation toy
@attribute 'the age' integer
@attribute "number" real [0, 9]
@attribute digit {0, 1, 'a b'}
@attribute place string
@attribute class {1, 2, 3}
@data
1,0.5,0,'a, b',1
2,?,1,"c",2
?,7,'a b',d\\'e,3
"""
SPARSE = b"""@relation toy
@attribute a numeric
@attribute b {x, y}
@attribute class {u, v}
@data
{0 1.5, 2 v}
{1 y}
{}
"""
LIBSVM = b"1 1:0.5 2:-3\n-1 2:1e3 # note\n1 qid:3 1:1 3:0.25\n-1\n"
TEXTS = {
    ".csv": [t.replace(b"kind", b"target") for t in TABLES[:2]] + [b"a,target\n1,x\n2,y\n"],
    ".arff": [ARFF, SPARSE],
    ".svm": [LIBSVM],
}
PACKED = {".csv.gz": ".csv", ".arff.gz": ".arff", ".svm.gz": ".svm", ".svm.bz2": ".svm"}


def use_dataset(data: Any) -> None:
    assert len(data.X) == len(data.y) > 0 and data.X.shape[1] > 0
    assert not pd.isna(data.y).any() and data.y.dtype.kind in "biufO"
    assert data.X.columns.is_unique
    made = make_preprocessor(data.X)
    try:
        assert len(made.fit_transform(data.X)) == len(data.y)
    except ValueError as error:  # infinity, which scikit-learn names
        assert "infinity" in str(error) or "too large" in str(error), error


def load_damaged(folder: Path, name: str, content: bytes) -> None:
    """Load the only data set of a folder."""
    home = folder / "data"
    home.mkdir(exist_ok=True)
    path = home / name
    path.write_bytes(content)
    try:
        sound_or_refused(path, lambda: load("toy", home), use_dataset)
    finally:
        path.unlink()


@pytest.mark.parametrize("ending", [*TEXTS, *PACKED])
@fuzz
@given(data=st.data())
def test_data_sets_of_text(folder: Path, ending: str, data: st.DataObject) -> None:
    content = data.draw(damaged(TEXTS[PACKED.get(ending, ending)]))
    if ending in PACKED:
        content = pack(
            data.draw, content, bz2.compress if ending.endswith("bz2") else gzip.compress
        )
    load_damaged(folder, f"toy{ending}", content)


def saved(compressed: bool = False, **arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


X, Y = np.arange(12.0).reshape(4, 3), np.array([0, 1, 1, 0])
OBJECTS = np.array([[1, "a"], [2, None]], dtype=object)
NPZ = [
    saved(data=X, target=Y),
    saved(True, data=X.astype(np.uint8), target=Y.astype(float)),
    saved(data=np.asfortranarray(X), target=np.array(["a", "b", "a", "b"])),
]
ODD_ARRAYS = [
    OBJECTS,
    np.array(["a", "b"], dtype="S1"),
    np.array([1, 2], dtype="M8[D]"),
    np.array([1j, 2.0]),
    np.array([(1, 2.0)] * 4, dtype="i4,f8"),
    np.zeros((4, 2), dtype="V3"),
    np.array([True, False] * 2),
    np.zeros((4, 2), dtype=np.longdouble),
    np.zeros((4, 2), dtype=">f4"),
    np.zeros((4, 2), dtype="f2"),
    np.array(5.0),
    np.array([np.nan] * 4),
    np.array([np.inf] * 4),
    np.array(["", "a", "b", "c"]),
    X,
    Y,
]
DESCR = ["'<f8'", "'|O'", "'<U4'", "'|S3'", "'<U1000000000'", "'<i8'", "[('a', '<f8')]", "'x'"]
DESCR += ["'<c16'", "'<M8[D]'", "'<f8', 'x': 1", "('<f8', (1000000, 1000000))", "'|V0'", "1", "1L"]
SHAPES = ["(4, 3)", "(4,)", "(12,)", "()", "(1000000000000,)", "(1000000000, 1000000000)"]
SHAPES += [
    "(-4, 3)",
    "(0, 3)",
    "(4, 0)",
    "(4L,)",
    "(1.5,)",
    "(True,)",
    "(4, 10**9)",
    "4",
    "((4,),)",
]
SHAPES += ["(" * 500 + ")" * 500, "(18446744073709551616,)", "(4, 9223372036854775807)"]


@st.composite
def npz_files(draw: st.DrawFn) -> bytes:
    """Draw an .npz file with odd arrays, false headers or damaged bytes."""
    kind = draw(st.sampled_from(["bytes", "arrays", "headers", "members"]))
    if kind == "bytes":
        return draw(damaged(NPZ))
    if kind == "arrays":
        one, other = draw(st.sampled_from(ODD_ARRAYS)), draw(st.sampled_from(ODD_ARRAYS))
        return saved(draw(st.booleans()), data=one, target=other)
    compression = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED] * 3 + [12, 14]))
    if kind == "members":
        names = st.sampled_from(["data.npy", "target.npy", "data", "../data.npy", "x.npy", "data/"])
        sound = npy("'<f8'", "(4, 3)", "False", X.tobytes())
        contents = st.sampled_from([sound, b"", b"text", b"\x80\x04K\x01.", sound + b"more"])
        return npz(draw(st.dictionaries(names, contents, max_size=4)), compression)
    headers = {}
    for name in ("data", "target"):
        shape = "(4, 3)" if name == "data" else "(4,)"
        headers[f"{name}.npy"] = npy(
            draw(st.sampled_from(["'<f8'"] * 5 + DESCR)),
            draw(st.sampled_from([shape] * 9 + SHAPES)),
            draw(st.sampled_from(["False", "True", "0"])),
            draw(st.sampled_from([b"", bytes(96), bytes(32), X.tobytes()])),
            draw(st.sampled_from([1, 2, 3, 9])),
        )
    return npz(headers, compression)


@fuzz
@given(content=npz_files())
def test_data_sets_of_arrays(folder: Path, content: bytes) -> None:
    load_damaged(folder, "toy.npz", content)


@fuzz
@given(content=damaged([b"0" * 64 + b"  toy.csv\n" + b"1" * 64 + b" *other.csv\n"]))
def test_lists_of_checksums(folder: Path, content: bytes) -> None:
    home = folder / "listed"
    home.mkdir(exist_ok=True)
    (home / "toy.csv").write_bytes(TEXTS[".csv"][-1])
    (home / "checksums.txt").write_bytes(content)
    sound_or_refused(home, lambda: load("toy", home), use_dataset)

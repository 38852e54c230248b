"""Trees as source code, compiled and run, beside the trees themselves."""

import ctypes
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from evotree import ObliqueTreeClassifier, ObliqueTreeRegressor
from evotree.export import export_c, export_python, export_sql
from evotree.export.named import clauses
from evotree.tree import ObliqueTree
from tests.exported import stump, trees

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="there is no gcc")

# Sums of few small multiples of 1/8 are exact in every order, so rows on thresholds are judged too.
eighths = st.integers(-64, 64).map(lambda n: n / 8.0)
AWKWARD = [
    "a \"b\" 'c'",
    "back\\slash\\",
    "new\nline\r\n",
    "*/ // -- ; ??/",
    "ünïcode 漢 \u2028 \u202e",
    "",
    "%s {x} \\N \\n &lt; <b>",
    "\x01\x7f\ttab",
]
awkward = st.sampled_from(AWKWARD) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8
)


def chain(depth: int, goes_left: bool) -> ObliqueTree:
    """Return a tree that is one long path: each test has a leaf on one side."""
    sizes, values = [], []
    if goes_left:
        sizes = [2 * n + 1 for n in range(depth, 0, -1)] + [1] * (depth + 1)
    else:
        for n in range(depth, 0, -1):
            sizes += [2 * n + 1, 1]
        sizes.append(1)
    inner = np.array(sizes) > 1
    weights, thresholds = np.zeros((len(sizes), 2)), np.zeros(len(sizes))
    weights[inner] = [1.0, 0.5]
    steps = np.arange(depth, dtype=float)
    thresholds[inner] = steps[::-1] if goes_left else steps
    values = np.arange(len(sizes), dtype=float)[:, np.newaxis] + 0.25
    return ObliqueTree(weights, thresholds, np.array(sizes, dtype=np.int32), values).validate()


@st.composite
def cases(draw: st.DrawFn) -> tuple[ObliqueTree, np.ndarray]:
    """Draw a tree and rows, many of which lie on its hyperplanes."""
    tree = draw(trees(eighths))
    d = tree.n_features
    rows = draw(st.lists(st.lists(eighths, min_size=d, max_size=d), min_size=1, max_size=12))
    return tree, np.array(rows)


def run_python(tree: Any, rows: np.ndarray, **names: Any) -> list[Any]:
    space: dict[str, Any] = {"__builtins__": {}}
    exec(export_python(tree, **names), space)
    return [space["predict"](row) for row in rows.tolist()]


def run_sql(tree: Any, rows: np.ndarray, features: Sequence[str], **names: Any) -> list[Any]:
    quoted = ['"' + name.replace('"', '""') + '"' for name in features]
    with sqlite3.connect(":memory:") as base:
        base.execute(f"CREATE TABLE data ({', '.join(f'{name} REAL' for name in quoted)})")
        marks = ", ".join("?" * len(features))
        base.executemany(f"INSERT INTO data VALUES ({marks})", rows.tolist())
        expression = export_sql(tree, "data", features, **names)
        found = base.execute(f"SELECT {expression} FROM data ORDER BY rowid").fetchall()
    base.close()
    return [value for (value,) in found]


def compile_c(sources: Sequence[str], folder: Path) -> ctypes.CDLL:
    """Compile programs into one library; every warning is an error."""
    for at, source in enumerate(sources):
        (folder / f"tree{at}.c").write_text(source, "utf-8")
    options = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wno-overlength-strings"]
    files = [f"tree{at}.c" for at in range(len(sources))]
    command = [str(GCC), "-O2", "-ffp-contract=off", *options, "-shared", "-fPIC", *files]
    done = subprocess.run([*command, "-o", "trees.so"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "trees.so"))


def run_c(library: ctypes.CDLL, name: str, rows: np.ndarray, is_class: bool) -> list[Any]:
    function = getattr(library, name)
    function.restype = ctypes.c_int if is_class else ctypes.c_double
    pointer = ctypes.POINTER(ctypes.c_double)
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    return [function(row.ctypes.data_as(pointer)) for row in rows]


def c_labels(library: ctypes.CDLL, name: str, n: int) -> list[str]:
    found = (ctypes.c_char_p * n).in_dll(library, f"{name}_classes")
    return [(label or b"").decode() for label in found]


def expected(tree: ObliqueTree, rows: np.ndarray) -> list[Any]:
    values = tree.predict_value(rows)
    return values.argmax(axis=1).tolist() if values.shape[1] > 1 else values[:, 0].tolist()


def random_tree(rng: np.random.Generator, n_splits: int, n_outputs: int) -> ObliqueTree:
    """Return a random tree whose weights have all their digits."""

    def sizes(n: int) -> list[int]:
        left = int(rng.integers(0, n)) if n else 0
        return [2 * n + 1, *sizes(left), *sizes(n - 1 - left)] if n else [1]

    size, d = np.array(sizes(n_splits), dtype=np.int32), int(rng.integers(1, 30))
    inner = (size > 1)[:, np.newaxis]
    weights = rng.normal(size=(len(size), d)) * 10.0 ** rng.integers(-4, 4, d)
    weights *= inner & (rng.random(weights.shape) < 0.7)
    values = rng.dirichlet(np.ones(n_outputs), len(size)) if n_outputs > 1 else None
    thresholds = rng.normal(size=len(size)) * inner[:, 0]
    if values is None:
        values = rng.normal(size=(len(size), 1))
    return ObliqueTree(weights, thresholds, size, values).validate()


# ---- equal predictions ---------------------------------------------------------------------------


@given(cases())
def test_python_and_sql_predict_as_the_tree_does(case: tuple[ObliqueTree, np.ndarray]) -> None:
    tree, rows = case
    wanted = expected(tree, rows)
    assert run_python(tree, rows) == wanted
    assert run_sql(tree, rows, [f"x{j}" for j in range(tree.n_features)]) == wanted


@needs_gcc
def test_c_predicts_as_the_tree_does(tmp_path: Path) -> None:
    drawn: list[tuple[ObliqueTree, np.ndarray]] = []

    @settings(max_examples=60, database=None)
    @given(cases())
    def collect(case: tuple[ObliqueTree, np.ndarray]) -> None:
        drawn.append(case)

    collect()
    sources = [export_c(tree, name=f"tree{at}") for at, (tree, _) in enumerate(drawn)]
    library = compile_c(sources, tmp_path)
    for at, (tree, rows) in enumerate(drawn):
        found = run_c(library, f"tree{at}", rows, tree.values.shape[1] > 1)
        assert found == expected(tree, rows), sources[at]


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_all_digits_are_written(n_outputs: int, tmp_path: Path) -> None:
    """Rows in general position, and values to the last bit."""
    rng = np.random.default_rng(n_outputs)
    forest = [random_tree(rng, n_splits, n_outputs) for n_splits in (0, 1, 2, 40, 200)]
    samples = [rng.normal(size=(300, tree.n_features)) for tree in forest]
    library = None
    if GCC:
        sources = [export_c(tree, name=f"tree{at}") for at, tree in enumerate(forest)]
        library = compile_c(sources, tmp_path)
    for at, (tree, rows) in enumerate(zip(forest, samples, strict=True)):
        wanted = expected(tree, rows)
        assert run_python(tree, rows) == wanted
        assert run_sql(tree, rows, [f"x{j}" for j in range(tree.n_features)]) == wanted
        if library:
            assert run_c(library, f"tree{at}", rows, n_outputs > 1) == wanted


@needs_gcc
def test_python_and_c_agree_on_hyperplanes_to_the_last_bit(tmp_path: Path) -> None:
    """Thresholds that are the rounded sums of rows: both add in the order of the features."""
    rng = np.random.default_rng(0)
    n, d = 400, 25
    rows, weights = rng.normal(size=(n, d)), rng.normal(size=d)
    sums = np.zeros(n)
    for j in range(d):
        sums += weights[j] * rows[:, j]
    forest = [
        stump(weights.tolist(), bound) for bound in [*sums[:40], *np.nextafter(sums[:40], -np.inf)]
    ]
    library = compile_c([export_c(t, name=f"tree{k}") for k, t in enumerate(forest)], tmp_path)
    for k, tree in enumerate(forest):
        wanted = [0 if s <= tree.thresholds[0] else 1 for s in sums]
        assert run_python(tree, rows) == wanted
        assert run_c(library, f"tree{k}", rows, True) == wanted
        assert run_sql(tree, rows, [f"x{j}" for j in range(d)]) == wanted


@pytest.mark.parametrize("goes_left", [False, True])
def test_deep_trees_nest_little(goes_left: bool, tmp_path: Path) -> None:
    tree = chain(200, goes_left)
    assert tree.depth == 200 and max(level for _, level, _ in clauses(tree)) == 1
    first = np.arange(-2.0, 203.0, 0.5)
    rows = np.column_stack([first, np.zeros(len(first))])
    wanted = expected(tree, rows)
    assert len(set(wanted)) == 201
    assert run_python(tree, rows) == wanted
    assert run_sql(tree, rows, ["a", "b"]) == wanted
    if GCC:
        assert run_c(compile_c([export_c(tree)], tmp_path), "predict", rows, False) == wanted


def test_many_terms(tmp_path: Path) -> None:
    n = 980
    rng = np.random.default_rng(0)
    tree, rows = stump(rng.integers(-8, 9, n).astype(float).tolist()), rng.integers(-9, 9, (50, n))
    rows = rows.astype(float)
    wanted = expected(tree, rows)
    assert set(wanted) == {0, 1}
    assert run_python(tree, rows) == wanted
    assert run_sql(tree, rows, [f"x{j}" for j in range(n)]) == wanted
    if GCC:
        assert run_c(compile_c([export_c(tree)], tmp_path), "predict", rows, True) == wanted
    wide = stump([1.0] * 5000)
    assert run_python(wide, np.zeros((1, 5000))) == [0]


@given(trees())
def test_nesting_is_logarithmic(tree: ObliqueTree) -> None:
    order = list(clauses(tree))
    assert sorted(k for k, _, _ in order) == list(range(tree.n_nodes))
    assert 2 ** max(level for _, level, _ in order) <= tree.n_leaves


@given(trees())
def test_any_tree_makes_sound_code(tree: ObliqueTree) -> None:
    """Extreme weights included, and products that overflow."""
    rows = np.full((1, tree.n_features), 2.0)
    features = [f"x{j}" for j in range(tree.n_features)]
    assert run_python(tree, rows)[0] in [*range(3), *tree.values[:, 0].tolist()]
    run_sql(tree, rows, features)
    compile(export_python(tree, feature_names=features), "tree", "exec")


def test_estimators_give_their_names_and_labels() -> None:
    X, y = load_wine(return_X_y=True, as_frame=True)
    X.columns = [f'{name} "{at}"' for at, name in enumerate(X.columns)]
    for labels in (y, y - 1, y == 1, np.array(["a'b", "c\\", "d\ne"])[y], y + 0.0):
        model = ObliqueTreeClassifier("axis", random_state=0).fit(X, labels)
        wanted = model.predict(X).tolist()
        found = run_python(model, X.to_numpy())
        assert found == wanted and {type(v) for v in found} == {type(v) for v in wanted}
        assert run_sql(model, X.to_numpy(), list(X.columns)) == wanted
    regressor = ObliqueTreeRegressor(random_state=0).fit(X, X.iloc[:, 0] ** 2)
    wanted = regressor.predict(X).tolist()
    assert run_python(regressor, X.to_numpy()) == wanted
    assert run_sql(regressor, X.to_numpy(), list(X.columns)) == wanted


# ---- names ---------------------------------------------------------------------------------------


@given(st.lists(awkward, min_size=2, max_size=2, unique_by=str.lower), st.data())
def test_awkward_names_in_python_and_sql(classes: list[str], data: st.DataObject) -> None:
    features = data.draw(
        st.lists(awkward.filter(bool), min_size=2, max_size=2, unique_by=str.casefold)
    )
    tree, rows = stump([1.0, 2.0]), np.array([[0.5, 0.25], [0.5, 0.5]])
    assert run_python(tree, rows, feature_names=features, class_names=classes) == classes
    assert run_sql(tree, rows, features, class_names=classes) == classes


@needs_gcc
def test_awkward_names_in_c(tmp_path: Path) -> None:
    tree = ObliqueTree(
        np.zeros((1, 8)), np.zeros(1), np.ones(1, dtype=np.int32), np.full((1, 8), 0.125)
    )
    library = compile_c([export_c(tree, "f", AWKWARD, AWKWARD)], tmp_path)
    assert c_labels(library, "f", 8) == AWKWARD
    # A library of this name is loaded already: the next one needs a folder of its own.
    (tmp_path / "next").mkdir()
    split = compile_c([export_c(stump([1.0, 2.0]), "g", AWKWARD[2:4])], tmp_path / "next")
    assert run_c(split, "g", np.array([[0.5, 0.25], [0.5, 0.5]]), True) == [0, 1]


def test_weights_of_zero_do_not_appear() -> None:
    tree = stump([0.5, 0.0, -2.0])
    for code in (export_python(tree), export_c(tree)):
        assert "x[0]" in code and "x[2]" in code and "x[1]" not in code
    assert '"x1"' not in export_sql(tree)


def test_rows_with_null_have_no_prediction() -> None:
    tree = stump([0.5, 0.0, -2.0])
    rows = np.array([[1.0, 1, 1], [None, 1, 1], [1, None, 1], [1, 1, None]], dtype=object)
    assert run_sql(tree, rows, ["a", "b", "c"]) == [0, None, 0, None]


def test_sql_reads_text_as_numbers_and_misses_no_column() -> None:
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE data (a TEXT)")
        base.executemany("INSERT INTO data VALUES (?)", [("9",), ("10",), ("1e1",)])
        expression = export_sql(stump([1.0], 9.5), "data", ["a"])
        assert base.execute(f"SELECT {expression} FROM data").fetchall() == [(0,), (1,), (1,)]
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            base.execute(f"SELECT {export_sql(stump([1.0]), 'data', ['b'])} FROM data")
    base.close()


@pytest.mark.parametrize(
    ("export", "arguments", "named"),
    [
        (export_python, {"name": "a b"}, "name='a b'"),
        (export_python, {"name": "class"}, "name='class'"),
        (export_python, {"name": 3}, "name=3"),
        (export_c, {"name": "größe"}, "name='größe'"),
        (export_c, {"name": "double"}, "name='double'"),
        (export_c, {"name": "__f"}, "name='__f'"),
        (export_c, {"class_names": ["a", "b\0"]}, "NUL"),
        (export_c, {"class_names": ["a", "\ud800"]}, "UTF-8"),
        (export_sql, {"class_names": ["a", "b\0"]}, "NUL"),
        (export_sql, {"feature_names": ["a", "b\0"]}, "NUL"),
        (export_sql, {"feature_names": ["a", "a"]}, "'a' twice"),
        (export_sql, {"class_names": [0.5, float("nan")]}, r"class_names\[1\]"),
        (export_python, {"class_names": ["a", None]}, r"class_names\[1\] is None"),
        (export_python, {"feature_names": ["a"]}, "feature_names"),
        (export_c, {"tree": "oak"}, "tree is of the type str"),
    ],
)
def test_bad_arguments_are_named(export: Any, arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        export(**{"tree": stump([1.0, 2.0]), **arguments})


# ---- probabilities -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def soft() -> tuple[ObliqueTreeClassifier, np.ndarray]:
    """Return a classifier of soft sides, and rows near to its hyperplanes and far from them."""
    X, y = load_wine(return_X_y=True)
    labels = np.array(["a", 'b"', "ü"])[y]
    model = ObliqueTreeClassifier("linear", max_depth=3, probability="soft", random_state=0)
    return model.fit(X, labels), np.concatenate([X, 1e4 * (X - X.mean(axis=0))])


def test_python_returns_the_probabilities(soft: Any) -> None:
    model, rows = soft
    scope: dict[str, Any] = {}
    exec(export_python(model, "chances", probability=True), scope)
    found = [scope["chances"](row) for row in rows.tolist()]
    np.testing.assert_allclose(found, model.predict_proba(rows), rtol=0.0, atol=1e-12)
    classes = model.classes_[[scope["chances_class"](row) for row in rows.tolist()]]
    np.testing.assert_array_equal(classes, model.predict(rows))


@needs_gcc
def test_c_writes_the_probabilities(soft: Any, tmp_path: Path) -> None:
    model, rows = soft
    source = tmp_path / "chances.c"
    source.write_text(export_c(model, "chances", probability=True), "utf-8")
    library = tmp_path / "chances.so"
    flags = [
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
    ]
    subprocess.run([GCC, *flags, "-o", library, source, "-lm"], check=True)
    function = ctypes.CDLL(str(library)).chances
    found = np.empty((len(rows), 3))
    pointer = ctypes.POINTER(ctypes.c_double)
    rows = np.ascontiguousarray(rows)
    for row, out in zip(rows, found, strict=True):
        function(row.ctypes.data_as(pointer), out.ctypes.data_as(pointer))
    np.testing.assert_allclose(found, model.predict_proba(rows), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("export", [export_python, export_c])
def test_probabilities_need_soft_sides(export: Any) -> None:
    for tree in (stump([1.0]), ObliqueTreeClassifier("axis").fit([[0.0], [1.0]], [0, 1])):
        with pytest.raises(ValueError, match="probability=True"):
            export(tree, probability=True)

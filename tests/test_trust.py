"""Files take no more memory than they are worth, and nothing is written but where it was asked."""

import bz2
import gzip
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evotree.cli.model_file import save_model
from evotree.cli.table import check_features
from evotree.experiments.datasets import load, read_csv
from evotree.experiments.experiment import read_experiment
from evotree.experiments.rows import read_rows
from evotree.experiments.store import FILE, Store, read_definition, read_runs
from evotree.tables.columns import NumericColumn, encode
from tests.damage import npy, npz
from tests.experiments.test_store import COLUMNS, DEFINITION, row
from tests.test_model_file import make_model

ROOT = Path(__file__).resolve().parent.parent
MEBIBYTE = 2**20


def run_python(code: str, *arguments: object, **environment: str) -> str:
    """Run code in a process of its own and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- memory --------------------------------------------------------------------------------------

# Bytes that a process may take on top of its imports, and of which the loaders believe that they
# are the memory of the machine.
ALLOWED, BELIEVED = 100 * MEBIBYTE, 32 * MEBIBYTE

LOADING = """
import faulthandler, json, resource, sys
faulthandler.dump_traceback_later(80, exit=True)
from pathlib import Path
from evotree.experiments import array_files, readers, unpacking
from evotree.experiments.datasets import load, read_csv
from evotree.experiments.experiment import read_experiment
from evotree.experiments.store import read_curves, read_definition, read_runs
from evotree.experiments.rows import read_rows
from evotree.cli.model_file import load_model
folder, allowed, believed = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
array_files.memory = readers._memory = unpacking.memory = lambda: believed
def results(path):
    return read_runs(path.parent), read_definition(path.parent), read_curves(path.parent)
def experiment(path):
    return read_experiment(path).tasks()
def data(path):
    return load(path.name.partition(".")[0], path.parent)
READERS = {"table": read_csv, "model": load_model, "experiment": experiment, "rows": read_rows,
           "results": results}
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + allowed
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
found = {}
for path in sorted(p for p in folder.rglob("*") if p.is_file()):
    try:
        READERS.get(path.name.partition(".")[0], data)(path)
        found[path.name] = "read"
    except Exception as error:
        found[path.name] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


def hungry_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield files that announce more than they hold, or unpack to more than they should."""
    numbers, sound = bytes(32), npy("'<f8'", "(4,)", "False", bytes(32))
    for name, shape in (("many", "(1000000000000,)"), ("wide", "(4, 100000000000)")):
        yield (
            f"{name}.npz",
            npz({"data.npy": npy("'<f8'", shape, "False", numbers), "target.npy": sound}),
        )
    large = npy("'<f8'", "(4, 1000000)", "False", bytes(32 * 10**6))
    yield "zeros.npz", npz({"data.npy": large, "target.npy": sound}, compression=8)
    wide = npy("'|u1'", "(4, 2000000)", "False", bytes(8 * 10**6))
    yield "columns.npz", npz({"data.npy": wide, "target.npy": sound}, compression=8)
    yield (
        "long_header.npz",
        npz(
            {"data.npy": b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 10**8, "target.npy": sound},
            8,
        ),
    )
    yield "index.svm", b"1 1:1\n2 1152921504606846976:1\n"
    yield "last_index.svm", b"1 1:1\n2 9223372036854775806:1\n"
    yield "billion.svm", b"1 1:1\n2 1000000000:1\n"
    yield "broad.svm", b"1 1:1\n2 2000000:1\n"
    yield (
        "sparse.arff",
        (
            b"@relation r\n"
            + b"".join(b"@attribute a%d numeric\n" % k for k in range(3_000))
            + b"@attribute class {u, v}\n@data\n"
            + b"{}\n" * 10_000
        ),
    )
    yield "place.arff", b"@relation r\n@attribute a numeric\n@data\n{1000000000000 1}\n"
    # Streams that follow each other are one file.
    packed = {
        "long_line.csv.gz": (gzip.compress, b"a,target\n", b"1,"),
        "long_name.arff.gz": (gzip.compress, b"@relation ", b"r"),
        "long_value.svm.bz2": (bz2.compress, b"1 1:", b"1"),
        "many_lines.csv.gz": (gzip.compress, b"a,target\n", b"1,2\n"),
        "table.csv.gz": (gzip.compress, b"a,target\n", b"1,2\n"),
        "rows.csv.gz": (gzip.compress, b"dataset,system\n", b"1,2\n"),
    }
    for name, (compress, start, rest) in packed.items():
        yield name, compress(start) + compress(rest * (MEBIBYTE // len(rest))) * 60
    save_model(folder / "model.json", make_model())
    plain = json.loads((folder / "model.json").read_text("utf-8"))
    plain["tree"]["subtree_size"] = [10**9, 1, 1]
    yield "model.json", json.dumps(plain).encode()
    experiment = 'name = "a"\ndatasets = ["iris"]\nmethods.CART.preset = "gea_odt"\n'
    yield "experiment.toml", (experiment + "protocol.n_folds = 1_000_000_000\n").encode()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
def test_sizes_are_checked_before_memory_is_taken(tmp_path: Path) -> None:
    names = {"results.sqlite"}
    for name, content in hungry_files(tmp_path):
        names.add(name)
        (tmp_path / name).write_bytes(content)
    Store(tmp_path, COLUMNS, DEFINITION).add(row())
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("ALTER TABLE curves ADD COLUMN more AS (hex(zeroblob(400000000)))")
        database.execute("INSERT INTO curves (dataset, curve) VALUES ('a', '{}')")
    # Threads of a BLAS, and of malloc, would take addresses of their own.
    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX"), "1")
    found = json.loads(run_python(LOADING, tmp_path, ALLOWED, BELIEVED, **alone))
    assert set(found) == names
    for name, error in found.items():
        assert error.startswith(("ValueError: ", "MemoryError: ")), f"{name}: {error}"
        assert name in error and len(error) < 1_000, f"{name}: {error[:1_000]}"


FOUND = {
    "nul.csv": b"\x00,target\n1,x\n2,y\n",
    "quote.csv": b'a,b,"\n1,2,x\n',
    "long_name.csv": b"a," + b"t" * 20_000 + b"\n1,x\n",
    "array.npz": b"\x93NUMPY\x01\x00" + bytes(20),
    "text.npz": npz({"data.npy": b"text", "target.npy": b"text"}),
    "method.npz": npz({"data.npy": b"text", "target.npy": b"text"}, 12),
    "last_index.svm": b"1 1:1\n2 9223372036854775807:1\n",
    "long_label.svm": b"a" * 20_000 + b"\n",
}


@pytest.mark.parametrize("name", FOUND)
def test_what_damage_at_random_has_found(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FOUND[name])
    with pytest.raises((ValueError, MemoryError)) as caught:
        load(name.partition(".")[0], tmp_path)
    assert str(tmp_path / name) in str(caught.value) and len(str(caught.value)) < 1_000


def test_damaged_rows_of_a_study_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    for content, message in (
        (b"dataset,score\niris,1\nwine,", "ends within a row"),
        (b"data,score\niris,1\n", "has no column dataset"),
        (b"dataset,score\niris,1,2\n", "cannot be read as a table of runs"),
        (b"\xff\xfe,score\niris,1\n", "cannot be read as a table of runs"),
        (b"", "cannot be read as a table of runs"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"runs\.csv {message}"):
            read_rows(path, ("dataset",))


def test_a_folder_of_results_may_have_any_name(tmp_path: Path) -> None:
    """Also one that means something in the addresses of SQLite; reading changes nothing."""
    folder = tmp_path / "a?mode=memory&b=%41#c"
    Store(folder, COLUMNS, DEFINITION).add(row())
    before = (folder / FILE).read_bytes()
    assert len(read_runs(folder)) == 1 and read_definition(folder) == DEFINITION
    assert (folder / FILE).read_bytes() == before and len(list(folder.iterdir())) == 1
    with sqlite3.connect(folder / FILE) as database:
        database.execute("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END")
    with pytest.raises(ValueError, match="has triggers"):
        Store(folder, COLUMNS, DEFINITION)


def test_a_number_beyond_all_floats_is_named(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b,target\n" + "".join(f"{k},0,{k % 2}\n" for k in range(30)))
    for cell in ("1" * 400, "-" + "1" * 400, "1e999"):
        frame = read_csv(path).astype({"a": object})
        frame.loc[3, "a"] = cell
        for check in (check_features, lambda X: encode([NumericColumn("a", 0.0)], X)):
            with pytest.raises(ValueError, match=r"column 'a': '-?1.* in data row 4 is .*finite"):
                check(frame)


# ---- what is never done --------------------------------------------------------------------------


def test_the_interpreter_runs_nothing_that_an_experiment_names(tmp_path: Path) -> None:
    """Functions are not called, and commands and the standard library are not imported."""
    path = tmp_path / "experiment.toml"
    for address in (
        "os.abort",
        "antigravity.fly",
        "pytest.__main__.x",
        "sklearn.datasets.load_iris",
        "numpy.show_config",
        "sklearn.tree.export_text",
        "pandas.DataFrame",
        "..tree",
        "a/b.c",
    ):
        path.write_text(f'name = "a"\ndatasets = ["b"]\nmethods.c.estimator = "{address}"\n')
        with pytest.raises(ValueError, match=r"experiment\.toml: \[methods\.c\]: estimator="):
            read_experiment(path)
    assert "antigravity" not in sys.modules


def test_a_pickle_in_a_file_is_not_opened(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "exploded"),)

    objects = np.array([[Bomb()]], dtype=object)
    np.savez(tmp_path / "toy.npz", data=objects, target=objects[0])
    with pytest.raises(ValueError, match=r"toy\.npz.*'data' holds objects, which are not read"):
        load("toy", tmp_path)
    (tmp_path / "toy.npz").write_bytes(objects.dumps())
    with pytest.raises(ValueError, match=r"toy\.npz"):
        load("toy", tmp_path)
    assert not (tmp_path / "exploded").exists()


# ---- writing -------------------------------------------------------------------------------------

COMMANDS = """
import os, sys
from pathlib import Path
allowed = [os.path.realpath(path) for path in sys.argv[1].split(os.pathsep)]
data, out = Path(sys.argv[2]), Path(sys.argv[3])
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {"os.mkdir": 1, "os.remove": 1, "os.rmdir": 1, "os.rename": 2, "os.truncate": 1,
           "os.chmod": 1, "os.utime": 1, "os.link": 2, "os.symlink": 2, "shutil.move": 2}
strays = set()
def watch(event, arguments):
    paths = arguments[:CHANGES.get(event, 0)]
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
        paths = arguments[:1]
    for path in paths:
        if isinstance(path, str | bytes | os.PathLike):
            real = os.path.realpath(os.fsdecode(path))
            if not any(os.path.commonpath([real, home]) == home for home in allowed):
                strays.add(f"{event} {real}")
sys.addaudithook(watch)
from evotree.cli.main import main
quick = ["--generations", "2", "--population", "4", "--size-penalty", "0.01"]
table, model = data / "table.csv", out / "model.json"
for command in (
    ["fit", table, "--target", "target", "--out", model, "--plots", out / "plots", *quick],
    ["predict", model, table],
    ["predict", model, table, "--out", out / "predictions.csv", "--proba"],
    ["show", model, "--plot", out / "tree.png"],
    ["demo", "--out", out / "demo", *quick],
    ["experiment", "run", data / "experiment.toml", "--data-home", data, "--out", out / "results"],
    ["experiment", "report", out / "results"],
    ["experiment", "study", "cedt", "--data-home", data, "--out", out / "study",
     "--datasets", "iris", "--methods", "DT, pruned", "--max-seconds", "0.001"],
):
    status = main([str(word) for word in command])
    assert status == 0, (status, command)
assert not strays, sorted(strays)
"""
EXPERIMENT = """
name = "small"
datasets = ["table"]
protocol.n_folds = 2
methods.CART.estimator = "sklearn.tree.DecisionTreeClassifier"
methods.EvoTree = {preset = "gea_odt", max_generations = 2}
"""


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return time and bytes of all files of a folder, and its folders."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes()) if path.is_file() else (0, b"")
        for path in folder.rglob("*")
    }


def test_nothing_is_written_outside_the_paths_that_were_given(tmp_path: Path) -> None:
    names = ("work", "home", "data", "out", "matplotlib", "tmp" + 90 * "-")  # too long for sockets
    work, home, data, out, matplotlib, temporary = (tmp_path / name for name in names)
    for folder in (work, home, data, out, matplotlib, temporary):
        folder.mkdir()
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    frame = pd.DataFrame(y[:, None] + 0.4 * rng.normal(size=(40, 2)), columns=["a", "b"])
    frame.assign(target=np.array(["x", "y"])[y]).to_csv(data / "table.csv", index=False)
    frame.assign(target=y).to_csv(data / "iris.csv", index=False)
    (data / "experiment.toml").write_text(EXPERIMENT)
    (work / "mine.txt").write_text("not to be touched")
    before = {folder: contents(folder) for folder in (work, home, data, temporary)}
    allowed = (out, matplotlib, temporary, os.environ["NUMBA_CACHE_DIR"], "/dev", "/proc")
    code = f"import os; os.chdir({str(work)!r})\n{COMMANDS}"
    run_python(
        code,
        os.pathsep.join(map(str, allowed)),
        data,
        out,
        HOME=str(home),
        TMPDIR=str(temporary),
        MPLCONFIGDIR=str(matplotlib),
        PYTHONDONTWRITEBYTECODE="1",
    )
    for folder, was in before.items():
        assert contents(folder) == was, folder
    written = {path.relative_to(out).parts[0] for path in out.rglob("*")}
    assert {"model.json", "plots", "predictions.csv", "tree.png", "demo", "results"} <= written

"""What the first fit on a machine compiles, and what happens where nothing can be kept."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from numba import config
from numba.core.event import Event, EventStatus, broadcast

import evotree
from evotree._version import DISTRIBUTION
from evotree.estimators import warmup
from tests.test_jit import python

# Lists what numba compiles: function, types without the width of integers and without whether
# arrays are read-only, and the types as they are.
COMPILING = """
import atexit, json, sys
from numba import types
from numba.core import event

compiled = []

def loose(kind):
    if isinstance(kind, types.Integer):
        return "integer"
    if isinstance(kind, types.Array):
        return [loose(kind.dtype), kind.ndim, kind.layout]
    if isinstance(kind, types.BaseTuple):
        return [loose(part) for part in kind]
    return str(kind)

class Listed(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        name = function.__module__ + "." + function.__qualname__
        args = event.data["args"]
        compiled.append([name, str(list(map(loose, args))), str(args)])

    def on_end(self, event):
        pass

event.register("numba:compile", Listed())
atexit.register(lambda: print(json.dumps(compiled)))
"""
FIT = {
    "classification": """
from sklearn.datasets import load_iris
from evotree import EvoTreeClassifier
EvoTreeClassifier(random_state=0).fit(*load_iris(return_X_y=True))
""",
    "regression": """
from sklearn.datasets import load_iris
from evotree import EvoTreeRegressor
X, _ = load_iris(return_X_y=True)
EvoTreeRegressor(random_state=0).fit(X[:, :3], X[:, 3])
""",
}
COMPILING_STARTS = Event("numba:compile", EventStatus.START, data={})
# Lines in leaves have kernels of their own.
MOST_KERNELS = {
    "classification": 120,
    "regression": 126,
}


@pytest.mark.slow
@pytest.mark.parametrize("task", FIT)
def test_a_first_fit_compiles_little_and_nothing_twice(task, tmp_path):
    beside = COMPILING + (
        f"from evotree.estimators.warmup import compile_all\ncompile_all({task!r}, 1)"
    )
    compiled = []
    for code in (beside, COMPILING + FIT[task]):
        compiled.append(json.loads(python(code, NUMBA_CACHE_DIR=str(tmp_path)).stdout))
    first, then = compiled
    # The process beside knows the types that a fit calls with: that compiles other functions.
    names = {name.removeprefix("evotree.operators.") for name, *_ in first}
    assert names >= {
        "structure.splice.partition_tree",
        "variation.mutate_nodes",
    }
    assert names >= {"variation.graft", "pruning.collapse"}
    assert "splitters.dipole.dipole_split" in names
    of_kernels = Counter((n, k) for n, k, _ in first + then if n.startswith("evotree."))
    assert {key: n for key, n in of_kernels.items() if n > 1} == {}
    assert of_kernels.total() <= MOST_KERNELS[task]


@pytest.fixture
def started(monkeypatch):
    """Let two processors be free, and record what would be started."""
    started = []
    process = SimpleNamespace(
        kill=lambda: started.append("kill"), communicate=lambda: None
    )
    monkeypatch.setattr(
        warmup, "start_python", lambda code, **_: started.append(code) or process
    )
    monkeypatch.setattr(warmup, "cpu_count", lambda: 2)
    monkeypatch.setattr(warmup, "parent_process", lambda: None)
    monkeypatch.setattr(config, "DISABLE_JIT", False)
    monkeypatch.delenv("EVOTREE_NO_WARMUP", raising=False)
    return started


@pytest.mark.parametrize("says_so", [True, False])
def test_the_first_compilation_starts_a_process_that_ends_with_the_block_and_says_so(
    started, capsys, says_so
):
    with warmup.compiling_beside("regression", says_so):
        assert not started and capsys.readouterr().err == ""
        broadcast(COMPILING_STARTS)
        broadcast(COMPILING_STARTS)
        assert len(started) == 1 and "'regression'" in started[0]
    assert capsys.readouterr().err.count("compiling kernels, once, ") == says_so
    assert started[1:] == ["kill"]
    broadcast(COMPILING_STARTS)
    assert len(started) == 2


def fail(statement, **options):
    raise FileNotFoundError("no interpreter")


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (os, "environ", os.environ | {"EVOTREE_NO_WARMUP": "1"}),
        (warmup, "cpu_count", lambda: 1),
        (config, "DISABLE_JIT", True),
        (warmup, "parent_process", lambda: "a process"),
        (warmup, "is_cached", lambda: False),
        (sys, "executable", "/usr/bin/blender"),
        (sys, "executable", None),
        (warmup, "start_python", fail),
    ],
)
def test_no_process_starts_where_none_helps(started, monkeypatch, owner, name, value):
    """Nor is one missed that cannot start."""
    monkeypatch.setattr(owner, name, value)
    with warmup.compiling_beside("classification"):
        broadcast(COMPILING_STARTS)
    assert not started


BESIDE = """
import os, time
from numba.core.event import Event, EventStatus, broadcast
from evotree.estimators import warmup
warmup.cpu_count = lambda: 2
start = warmup.start_python

def start_python(*statement, **options):
    process = start(*statement, **options)
    print(process.pid, flush=True)
    return process

warmup.start_python = start_python
with warmup.compiling_beside("classification"):
    broadcast(Event("numba:compile", EventStatus.START, data={}))
    time.sleep(60)
"""


def is_alive(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 5.0], ids=["imports", "compiles"])
def test_the_process_that_compiles_ends_with_its_parent(seconds, tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    environment.pop("EVOTREE_NO_WARMUP", None)
    parent = subprocess.Popen(
        [sys.executable, "-c", BESIDE], env=environment, stdout=subprocess.PIPE
    )
    with parent:
        child = psutil.Process(int(parent.stdout.readline()))
        time.sleep(seconds)
        assert is_alive(child)
        parent.kill()
    end = time.monotonic() + 1.0
    while time.monotonic() < end and is_alive(child):
        time.sleep(0.02)
    assert not is_alive(child)


def test_another_distribution_in_the_same_folder_is_named_and_breaks_nothing(tmp_path):
    package = Path(evotree.__file__).parent
    (tmp_path / "evotree").mkdir()
    for name in ("__init__.py", "_version.py"):
        shutil.copy(package / name, tmp_path / "evotree")
    (tmp_path / f"{DISTRIBUTION}-{evotree.__version__}.dist-info").mkdir()
    code = f"import sys; sys.path[0] = {str(tmp_path)!r}\n"
    code += "import evotree; print(evotree.__file__)"
    alone = python(code)
    assert Path(alone.stdout.strip()).is_relative_to(tmp_path) and not alone.stderr
    (tmp_path / "evotree-0.0.0.3.dist-info").mkdir()
    beside = python(code)
    assert beside.stdout == alone.stdout
    assert f"distribution {DISTRIBUTION}; evotree 0.0.0.3" in beside.stderr

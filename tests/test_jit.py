"""How kernels are compiled, and what the first fit on a machine compiles."""

import gc
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import psutil
import pytest
from llvmlite.binding import get_host_cpu_features
from numba import config
from numba.core.event import Event, EventStatus, broadcast

import evotree
from evotree import _jit
from evotree._shipped import FOLDER, PROCESSOR
from evotree._version import DISTRIBUTION
from evotree.estimators import warmup

LOCKED = [Event("numba:compiler_lock", status) for status in EventStatus]


def python(code, **environment):
    """Run code in a new process; return what it writes."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"EVOTREE_NO_WARMUP": "1"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.parametrize("is_on", [True, False])
def test_the_compiler_is_timed_without_collection_whatever_threads_compile_at_once(
    is_on,
):
    compiler = _jit._Compiler()
    compiler.notify(LOCKED[1])  # it began before the import

    def compile_twice():
        for event in (LOCKED[0], LOCKED[0], LOCKED[1]):
            compiler.notify(event)
            assert not gc.isenabled()
        compiler.notify(LOCKED[1])

    was_on = gc.isenabled()
    try:
        (gc.enable if is_on else gc.disable)()
        with ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(compile_twice) for _ in range(200)]:
                done.result()
        assert gc.isenabled() is is_on
    finally:
        (gc.enable if was_on else gc.disable)()
    assert compiler.seconds() == compiler.seconds() > 0.0


CALLEE = """
from evotree._jit import kernel

@kernel
def {name}({arguments}):
    total = {value}
    for k in range(x.shape[0]):
        if x[k] > 0.0 and k != 3 and abs(x[k]) < 1e9:
            total += x[k] * (k + 1) - x[k] / (k + 2) + x[0] * x[k] - x[k] * (k + 3) / (k + 4)
        elif x[k] < -1.0 and k != 5:
            total -= x[k] * (k + 5) - x[k] / (k + 6) + x[0] * x[k] - x[k] * (k + 7) / (k + 8)
    return total
"""
CALLER = """
import callee
from evotree._jit import kernel

called = getattr(callee, "called", None) or callee.other

@kernel
def short(x):
    return called(x)

@kernel
def caller(x):
    return 2 * short(x)
"""
CALL = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from caller import caller
print(caller(np.zeros(2)), sum(caller.stats.cache_hits.values()))
"""
AS_BEFORE = {"name": "called", "arguments": "x", "value": "1.0"}


class Folder:
    """A folder with a kernel, one that calls it from another file, and numba's cache of both."""

    def __init__(self, path):
        self.path = path
        self.cache = path / "cache"
        self.cache.mkdir()
        (path / "caller.py").write_text(CALLER)

    def run(self, before="", variables=(), **changed):
        """Return what the caller returns, how many were in the cache, and what is warned of."""
        callee, text = self.path / "callee.py", CALLEE.format(**AS_BEFORE | changed)
        if not callee.exists() or callee.read_text() != text:
            callee.write_text(text)  # numba looks when a file was written
        code = before + CALL.format(folder=str(self.path))
        done = python(code, **{"NUMBA_CACHE_DIR": str(self.cache)} | dict(variables))
        return done.stdout.strip(), done.stderr


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        {"value": "1.0j"},  # another type comes back, so that the caller is another one
        {"arguments": "x, y=1.0"},
        {"name": "other"},
    ],
)
def test_a_kernel_from_the_cache_calls_the_one_that_is_there_now(folder, changed):
    assert folder.run() == ("2.0 0", "")
    assert folder.run() == ("2.0 1", "")
    assert folder.run(value="10.5") == ("21.0 1", "")
    expected = "2j" if "value" in changed else "2.0"
    for _ in range(2):
        shown, warned = folder.run(**changed)
        assert shown.split()[0] == expected and not warned
    assert shown == f"{expected} 1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "damaged"),
    [
        ("nbi", lambda data: b""),
        ("nbi", lambda data: bytes(255 - byte for byte in data)),
        ("nbc", lambda data: data[: len(data) // 2]),
    ],
    ids=["no index", "another index", "half the code"],
)
def test_damaged_files_of_the_cache_are_written_again_and_warned_of_once(
    folder, kind, damaged
):
    assert folder.run(value="10.5") == ("21.0 0", "")
    files = list(folder.cache.rglob(f"*.{kind}"))
    before = [path.read_bytes() for path in files]
    after = list(map(damaged, before))
    assert before != after
    for path, data in zip(files, after, strict=True):
        path.write_bytes(data)
    shown, warned = folder.run(value="10.5")
    assert shown.split()[0] == "21.0"
    assert warned.count("RuntimeWarning") == 1 and str(folder.cache) in warned
    assert folder.run(value="10.5") == ("21.0 1", "")


@pytest.fixture(scope="module")
def shipping(tmp_path_factory):
    """A folder whose kernels were compiled elsewhere, as those of a wheel."""
    folder = Folder(tmp_path_factory.mktemp("wheel"))
    elsewhere = {"NUMBA_CPU_NAME": PROCESSOR, "NUMBA_CPU_FEATURES": ""}
    elsewhere |= {"NUMBA_CACHE_DIR": "", "PYTHONDONTWRITEBYTECODE": "1"}
    assert folder.run("", elsewhere, value="10.5") == ("21.0 0", "")
    (folder.path / "__pycache__").rename(folder.path / FOLDER)
    return folder


NO_FOLDER = (
    "from numba.core.caching import CacheImpl\nCacheImpl._locator_classes = []\n"
)
OTHER_NUMBA = "import numba\nnumba.__version__ = '0.0.0'\n"
GENERIC = {"NUMBA_CPU_NAME": "generic"}
# What runs before, variables, damage of a kind of files; how many are found, what is warned of.
ELSEWHERE = {
    "here": ("", {}, None, "1", None),
    # The trial kernels of `_jit.py` are not shipped here.
    "nowhere to write": (NO_FOLDER, {}, None, "1", "NUMBA_CACHE_DIR"),
    "another processor": ("", GENERIC, None, "0", None),
    "no AVX": ("", {"NUMBA_ENABLE_AVX": "0"}, None, "0", None),
    "another numba": (OTHER_NUMBA, {}, None, "0", None),
    "another processor, nowhere to write": (
        NO_FOLDER,
        GENERIC,
        None,
        "0",
        "NUMBA_CACHE_DIR",
    ),
    "half the code": ("", {}, ("nbc", lambda data: data[:99]), "0", "damaged"),
    "half an index": ("", {}, ("nbi", lambda data: data[:99]), "0", "damaged"),
    "an empty index": ("", {}, ("nbi", lambda data: b""), "0", "damaged"),
}


@pytest.mark.slow
@pytest.mark.skipif(not get_host_cpu_features().get("avx2"), reason="an old processor")
@pytest.mark.parametrize("case", ELSEWHERE)
def test_kernels_of_a_wheel_are_read_where_they_fit_and_else_compiled(
    shipping, tmp_path, case
):
    before, variables, damage, found, warned_of = ELSEWHERE[case]
    folder = Folder(tmp_path)
    copytree(shipping.path / FOLDER, tmp_path / FOLDER)
    if damage is not None:
        for path in (tmp_path / FOLDER).glob(f"*.{damage[0]}"):
            path.write_bytes(damage[1](path.read_bytes()))
    shown, warned = folder.run(before, variables, value="10.5")
    assert shown == f"21.0 {found}"
    assert warned.count("RuntimeWarning") == (warned_of is not None)
    assert (warned_of or "") in warned


def test_a_full_disk_is_warned_of_once(folder):
    pytest.importorskip("resource")
    full = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))  # bytes of a file
"""
    shown, warned = folder.run(full)
    assert shown == "2.0 0"
    assert warned.count("RuntimeWarning") == 1 and "NUMBA_CACHE_DIR" in warned
    assert str(folder.cache) in warned


# Names of numba's that are not there when `_jit.py` asks for them; numba's own files find them.
GONE = """
import sys
import numba
from numba.core import base, caching, callconv, codegen, compiler, dispatcher, funcdesc

def is_asked_by_us():
    return sys._getframe(2).f_globals.get("__name__") == "evotree._jit"

class Gone:
    def __init__(self, owner, name):
        owner = next((kind for kind in owner.__mro__ if name in vars(kind)), owner)
        self.name, self.found = name, vars(owner).get(name)
        setattr(owner, name, self)

    def __get__(self, it, kind=None):
        if is_asked_by_us():
            raise AttributeError(self.name)
        return self.found.__get__(it, kind) if self.found else vars(it)[self.name]

    def __set__(self, it, value):
        vars(it)[self.name] = value

"""
BROKEN = {
    "call_template": "Gone(dispatcher._DispatcherBase, 'get_call_template')",
    "cache": "Gone(dispatcher.Dispatcher, '_cache')",
    "module": "Gone(codegen.JITCodeLibrary, '_final_module')",
    "pointer": "Gone(codegen.JITCodeLibrary, 'get_pointer_to_function')",
    "define": "Gone(base.BaseContext, 'insert_func_defn')",
    "call": "Gone(callconv.CPUCallConv, 'call_function')",
    "reload": "Gone(compiler.CompileResult, 'reload_init')",
    "option": """
real = numba.njit
def njit(*args, **options):
    if "no_cfunc_wrapper" in options:
        raise KeyError("Unrecognized options")
    return real(*args, **options)
numba.njit = njit
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_another_numba_compiles_slower_and_says_so_once(folder, name):
    shown, warned = folder.run(GONE + BROKEN[name] + "\n")
    assert shown == "2.0 0"
    assert warned.count("RuntimeWarning") == 1 and "is not as this" in warned


# ---- the first fit -------------------------------------------------------------------------------


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

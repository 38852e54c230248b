"""Set the process up for the tests: numba's cache, matplotlib's backend, hypothesis' profile.

The environment is set before anything imports numba or matplotlib, which read it only once.
"""

import hashlib
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
CACHES_KEPT = 4
SECONDS_IN_USE = 3600.0


def source_key() -> str:
    """Return a hash of the files with kernels and of the versions compiled code depends on."""
    digest = hashlib.sha256()
    for part in (platform.python_version(), version("numpy"), version("numba")):
        digest.update(part.encode() + b"\0")
    for path in sorted((ROOT / "evotree").rglob("*.py")):
        source = path.read_bytes()
        if b"evotree._jit import" in source or path.name in ("_jit.py", "criteria.py"):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + source)
    return digest.hexdigest()[:16]


def use_cache_of_these_sources() -> None:
    """Point numba to a cache folder of its own for each state of the sources.

    Numba compiles a cached function again when its own file changes, but not when a function it
    calls was edited in another file: a shared folder would go on serving the old code.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    home = ROOT / ".numba_cache"
    folder = home / source_key()
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    remove_old_caches(home)


def remove_old_caches(home: Path) -> None:
    """Keep the newest folders, and those that another run may still be writing to."""
    ages = [
        (time.time() - path.stat().st_mtime, path)
        for path in home.iterdir()
        if path.is_dir()
    ]
    for age, path in sorted(ages)[CACHES_KEPT:]:
        if age > SECONDS_IN_USE:
            shutil.rmtree(path, ignore_errors=True)


use_cache_of_these_sources()
os.environ["MPLBACKEND"] = "Agg"
# Tests compile by themselves: a process beside each would compile the same for all of them.
os.environ["EVOTREE_NO_WARMUP"] = "1"

# The first call of a kernel compiles it, which no deadline for one example could allow for.
_slow = [HealthCheck.too_slow]
settings.register_profile("default", deadline=None, suppress_health_check=_slow)
settings.register_profile(
    "ci", deadline=None, derandomize=True, suppress_health_check=_slow
)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def iris():
    """The iris data as the engine sees it."""
    from sklearn.datasets import load_iris

    from evotree import Dataset

    return Dataset.from_arrays(*load_iris(return_X_y=True))


@pytest.fixture(autouse=True)
def no_figure_stays_open() -> Iterator[None]:
    """Close what a test has drawn; the next one counts its own figures."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")

"""Wheels of a copy of the sources; ``python -m tests.wheels`` builds one with kernels into dist/.

A build leaves files among the sources. The kernels are those of default fits, compiled for
processors that all machines of the last ten years have; elsewhere users' machines compile.
"""

import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path
from shutil import copy, copytree, ignore_patterns
from tempfile import TemporaryDirectory

import numba

from evotree._shipped import FOLDER, PROCESSOR

ROOT = Path(__file__).resolve().parent.parent
BUILT = ("__pycache__", "*.nbi", "*.nbc")


def run(*command, **options):
    """Run a program; return what it prints."""
    # A path to the sources would tell pip that they are installed.
    environment = {**os.environ, **options.pop("env", {})}
    environment.pop("PYTHONPATH", None)
    options["env"] = environment
    options |= {"capture_output": True, "text": True, "check": False, "timeout": 600}
    done = subprocess.run([*map(str, command)], **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def compile_kernels(sources):
    """Compile what fits need, beside the sources, and name the wheel after this machine's kind."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise OSError(f"kernels are built on x86-64, not on {platform.machine()}")
    variables = {
        "NUMBA_CPU_NAME": PROCESSOR,
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_DISABLE_INTEL_SVML": "1",
        "NUMBA_CACHE_DIR": "",
        "EVOTREE_NO_WARMUP": "1",  # a second process may leave half a file
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    run(sys.executable, "-m", "evotree", "warmup", cwd=sources, env=variables)
    for compiled in list(sources.rglob("__pycache__")):
        compiled.rename(compiled.with_name(FOLDER))
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    with (sources / "setup.cfg").open("a", encoding="utf-8") as setup:
        setup.write(
            f"[bdist_wheel]\npython_tag = {python}\nplat_name = {sysconfig.get_platform()}\n"
            f"build_number = 0numba{numba.__version__}\n"
        )


def build(out, with_kernels=False):
    """Build a wheel into a folder, and return its path."""
    with TemporaryDirectory() as folder:
        sources = Path(folder).resolve()
        copytree(ROOT / "evotree", sources / "evotree", ignore=ignore_patterns(*BUILT))
        for name in ("pyproject.toml", "setup.cfg", "README.md", "LICENSE"):
            copy(ROOT / name, sources)
        if with_kernels:
            compile_kernels(sources)
        offline = ("--no-deps", "--no-build-isolation", "--no-index")
        pip = (sys.executable, "-m", "pip", "wheel", *offline)
        run(*pip, "--wheel-dir", sources / "wheel", sources)
        (built,) = (sources / "wheel").iterdir()
        return Path(copy(built, out))


if __name__ == "__main__":
    (ROOT / "dist").mkdir(exist_ok=True)
    print(build(ROOT / "dist", with_kernels=True))

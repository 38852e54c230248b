"""The wheel, installed where nothing of the repository can be seen."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import copy, copytree, ignore_patterns
from venv import EnvBuilder
from zipfile import ZipFile

import pytest
from sklearn.datasets import load_iris

from evotree._version import DISTRIBUTION, __version__

pytest.importorskip("setuptools", minversion="77", reason="builds the wheel")
pytest.importorskip("pip", reason="installs the wheel")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
BUILT = ("__pycache__", "*.nbi", "*.nbc")
QUICK = ("--max-generations", "3", "--population-size", "12", "--size-penalty", "0.01")


def run(*command, **options):
    """Run a program; return what it prints."""
    # A path to the sources would tell pip that they are installed.
    environment = {**os.environ, **options.pop("env", {})}
    environment.pop("PYTHONPATH", None)
    options["env"] = environment
    options |= {"capture_output": True, "text": True, "check": False, "timeout": 300}
    done = subprocess.run([*map(str, command)], **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel of a copy of the sources: a build leaves files among them."""
    sources, out = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    copytree(ROOT / "evotree", sources / "evotree", ignore=ignore_patterns(*BUILT))
    for name in ("pyproject.toml", "setup.cfg", "README.md", "LICENSE"):
        copy(ROOT / name, sources)
    offline = ("--no-deps", "--no-build-isolation", "--no-index")
    run(sys.executable, "-m", "pip", "wheel", *offline, "--wheel-dir", out, sources)
    (built,) = out.iterdir()
    assert built.name.startswith(f"{DISTRIBUTION}-{__version__}-")
    return built


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    """Install the wheel; return the folder of the programs of its environment.

    The libraries are those of the tests. Paths of a .pth file come last, and .pth files that lie
    there are not read: an evotree that the tests see is not seen.
    """
    home = tmp_path_factory.mktemp("home")
    builder = EnvBuilder()
    context = builder.ensure_directories(home)
    builder.create(home)
    pip = (
        "-m",
        "pip",
        "--python",
        context.env_exe,
        "install",
        "--no-deps",
        "--no-index",
    )
    run(sys.executable, *pip, wheel)
    libraries = [path for path in sys.path if Path(path).name.endswith("-packages")]
    inside = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(run(context.env_exe, "-c", inside).strip())
    (own / "libraries.pth").write_text("\n".join(libraries))
    return Path(context.bin_path)


def test_the_wheel_holds_the_files_of_the_package_and_no_others(wheel):
    with ZipFile(wheel) as content:
        held = set(content.namelist())
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "evotree").rglob("*")
        if path.is_file() and not any(path.match(one) for one in (*BUILT, "*.pyc"))
    }
    assert "evotree/report/templates/d3/LICENSE" in package
    assert {name for name in held if ".dist-info/" not in name} == package
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in held)


def test_the_commands_work_without_the_repository(programs, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    # Compiling the installed kernels would take twice as long as running them as they are.
    environment = {"NUMBA_DISABLE_JIT": "1"}

    def call(program, *arguments):
        return run(programs / program, *arguments, cwd=work, env=environment)

    where = call("python", "-c", "import evotree; print(evotree.__file__)").strip()
    assert Path(where).is_relative_to(programs.parent)
    named = f"from importlib.metadata import version; print(version({DISTRIBUTION!r}))"
    assert call("python", "-c", named).strip() == __version__
    assert DISTRIBUTION in call("evotree", "--version")

    bunch = load_iris(as_frame=True)
    iris = bunch.data.assign(species=bunch.target_names[bunch.target])
    iris.to_csv(work / "iris.csv", index=False)
    fit = (
        "evotree",
        "fit",
        "iris.csv",
        "--target",
        "species",
        "--out",
        "model.json",
        *QUICK,
    )
    call(*fit, "--report", "fit.html", "--test-size", "0.2")
    text, templates = (
        (work / "fit.html").read_text("utf-8"),
        ROOT / "evotree/report/templates",
    )
    for part in ("report.css", "model.js", "report.js", "d3/d3.min.js", "d3/LICENSE"):
        assert (templates / part).read_text("utf-8") in text
    call("evotree", "show", "model.json", "--plot", "tree.png")
    assert (work / "tree.png").stat().st_size > 0

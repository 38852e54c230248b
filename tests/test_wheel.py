"""The wheel, installed where nothing of the repository can be seen."""

import json
import sys
from pathlib import Path
from venv import EnvBuilder
from zipfile import ZipFile

import pytest
from llvmlite.binding import get_host_cpu_features
from sklearn.datasets import load_iris

from evotree._version import DISTRIBUTION, __version__
from tests.golden.test_golden import RUNS, grow
from tests.test_jit import COMPILING
from tests.wheels import BUILT, ROOT, build, run

pytest.importorskip("setuptools", minversion="77", reason="builds the wheel")
pytest.importorskip("pip", reason="installs the wheel")
pytestmark = pytest.mark.slow

QUICK = ("--max-generations", "3", "--population-size", "12", "--size-penalty", "0.01")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    built = build(tmp_path_factory.mktemp("wheel"))
    assert built.name.startswith(f"{DISTRIBUTION}-{__version__}-")
    return built


def installed(wheel, home):
    """Install a wheel; return the folder of the programs of its environment.

    The libraries are those of the tests. Paths of a .pth file come last, and .pth files that lie
    there are not read: an evotree that the tests see is not seen.
    """
    builder = EnvBuilder()
    context = builder.ensure_directories(home)
    builder.create(home)
    pip = ("-m", "pip", "--python", context.env_exe, "install")
    run(sys.executable, *pip, "--no-deps", "--no-index", wheel)
    libraries = [path for path in sys.path if Path(path).name.endswith("-packages")]
    inside = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(run(context.env_exe, "-c", inside).strip())
    (own / "libraries.pth").write_text("\n".join(libraries))
    return Path(context.bin_path)


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    return installed(wheel, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def with_kernels(tmp_path_factory):
    if not get_host_cpu_features().get("avx2"):
        pytest.skip("the processor is too old for the kernels of a wheel")
    wheel = build(tmp_path_factory.mktemp("wheel"), with_kernels=True)
    return installed(wheel, tmp_path_factory.mktemp("home"))


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
    told = call("evotree", "--version").strip()
    assert told == f"evotree {__version__} (distribution {DISTRIBUTION})"

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


@pytest.mark.parametrize(
    "name", ["default", "default regression", "preset WODT-groups"]
)
def test_a_first_fit_by_the_kernels_of_a_wheel_compiles_nothing(
    with_kernels, tmp_path, name
):
    """And its tree is the one that grows where kernels are compiled, bit for bit."""
    code = COMPILING + (
        f"import sys; sys.path.append({str(ROOT)!r})\n"
        "from tests.golden.test_golden import RUNS, grow\n"
        f"tree = grow(*RUNS[{name!r}])\n"
        "atexit.register(lambda: print(json.dumps(tree)))"
    )
    shown = run(with_kernels / "python", "-c", code, cwd=tmp_path)
    tree, compiled = map(json.loads, shown.splitlines())
    assert [one for one, *_ in compiled if one.startswith("evotree.")] == []
    assert tree == grow(*RUNS[name])

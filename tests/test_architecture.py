"""The rules of the code that a machine can check: floors, flags, randomness, sizes, docstrings.

The sources are parsed, never imported, so that a file which does not import is judged all the same.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "evotree"
FUNCTION_LINES = 80

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef

COMPILERS = {"jit", "njit", "vectorize", "guvectorize", "cfunc", "stencil", "jitclass"}

# Names of `random` and `numpy.random` that hold a state of their own. RandomState is the type of
# scikit-learn's `random_state`: it may be named, not made.
STATED = {"default_rng", "Generator", "SeedSequence", "RandomState", "BitGenerator"}
STATED |= {"PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937", "Random"}

# The operators and loops of DEAP draw from Python's global `random`, save these few.
DEAP_DRAWS = re.compile(r"deap\.(tools\.(sel|cx|mut|migRing)|algorithms\.(var|ea))")
DEAP_DRAWS_NOT = {"deap.tools.selBest", "deap.tools.selWorst", "deap.tools.selNSGA2"}


def python_files(*folders: str) -> list[Path]:
    """List the Python files of some folders of the repository, those that exist."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


PACKAGE_FILES = python_files("evotree")
ALL_FILES = python_files("evotree", "experiments", "tests", "benchmarks", "docs")


def name_of(path: Path) -> str:
    """Return a path as the repository's readers write it."""
    return path.relative_to(ROOT).as_posix()


def for_each(paths: list[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Make one test of a check of single files, which names the faults of all of them."""

    def decorate(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            faults = []
            for path in paths:
                try:
                    check(path)
                except AssertionError as error:
                    faults.append(str(error))
            assert paths and not faults, "\n".join(faults)

        test.__doc__ = check.__doc__
        return test

    return decorate


@cache
def parse(path: Path) -> ast.Module:
    """Parse a file once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def at(path: Path, node: ast.AST, fault: str) -> str:
    """Name a fault and its place."""
    return f"{name_of(path)}:{getattr(node, 'lineno', 0)}: {fault}"


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Map each name that an import binds anywhere in a file to what it stands for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                names[alias.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted(node: ast.AST, names: dict[str, str]) -> str | None:
    """Return the full dotted name that an expression stands for, None if it is not an import's."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value, names)
        return owner and f"{owner}.{node.attr}"
    return None


def library_names(path: Path) -> Iterator[tuple[ast.AST, str]]:
    """Yield each use of an imported name in a file, with what it stands for in full."""
    names = imported_names(parse(path))
    for node in ast.walk(parse(path)):
        if (name := dotted(node, names)) is not None:
            yield node, name


def definitions(
    body: list[ast.stmt], owner: ast.ClassDef | None = None
) -> Iterator[tuple[Definition, ast.ClassDef | None]]:
    """Yield the classes, functions and methods of a module, with the class they stand in."""
    for node in body:
        if isinstance(node, Definition):
            yield node, owner
        if isinstance(node, ast.ClassDef):
            yield from definitions(node.body, node)
        elif isinstance(node, ast.If | ast.Try):
            yield from definitions(node.body + node.orelse, owner)


def lines_without_docstring(node: Function) -> int:
    """Count the lines of a function from `def` to its end, less those of its docstring."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node) is not None:
        text = node.body[0]
        lines -= (text.end_lineno or text.lineno) - text.lineno + 1
    return lines


def has_mark(node: Function, *marks: str) -> bool:
    """Tell whether a decorator of a function is written as one of the marks or ends with it."""
    return any(ast.unparse(decorator).endswith(marks) for decorator in node.decorator_list)


def is_kernel(node: Function, names: dict[str, str]) -> bool:
    """Tell whether a function is compiled: whether a decorator is one of `evotree._jit`."""
    decorators = [dotted(decorator, names) or "" for decorator in node.decorator_list]
    return any(decorator.startswith("evotree._jit.") for decorator in decorators)


def parameters(node: Function, is_method: bool) -> list[str]:
    """Return the names of a signature's parameters as numpydoc writes them."""
    given = node.args
    names = [argument.arg for argument in given.posonlyargs + given.args]
    if is_method and not has_mark(node, "staticmethod"):
        names = names[1:]
    if given.vararg:
        names.append(f"*{given.vararg.arg}")
    names += [argument.arg for argument in given.kwonlyargs]
    if given.kwarg:
        names.append(f"**{given.kwarg.arg}")
    return names


def documented_parameters(docstring: str) -> list[str] | None:
    """Return the names in a docstring's "Parameters" section, None if it has no such section."""
    lines = docstring.splitlines()
    heads = [k for k in range(1, len(lines)) if re.fullmatch(r"-{3,}", lines[k])]
    starts = [k + 1 for k in heads if lines[k - 1].strip() == "Parameters"]
    if not starts:
        return None
    end = min([k - 1 for k in heads if k > starts[0]], default=len(lines))
    names = []
    for line in lines[starts[0] : end]:
        if line and not line.startswith(" "):
            listed = re.split(r"\s+:(?:\s|$)", line)[0]
            names += [name.strip().replace("\\", "") for name in listed.split(",")]
    return names


def is_public(path: Path) -> bool:
    """Tell whether all the names on a file's way are public; `__init__` and the like are."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return all(not part.startswith("_") or part.startswith("__") for part in parts)


def test_imports_go_down_only() -> None:
    """The contracts in setup.cfg hold."""
    if not (PACKAGE / "__init__.py").exists():
        pytest.skip("the package has no __init__.py")
    command = "from importlinter.cli import lint_imports_command as run; run()"
    done = subprocess.run(
        [sys.executable, "-c", command, "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@for_each(PACKAGE_FILES)
def test_numba_compiles_in_one_file_only(path: Path) -> None:
    """The flags of compilation are chosen in `_jit` alone; everyone else uses its decorators."""
    if path == PACKAGE / "_jit.py":
        return
    faults = [
        at(path, node, f"{name}: use evotree._jit.kernel")
        for node, name in library_names(path)
        if name.startswith("numba.") and name.rpartition(".")[2] in COMPILERS
    ]
    assert not faults, "\n".join(faults)


@for_each(PACKAGE_FILES)
def test_all_but_kernels_is_annotated(path: Path) -> None:
    """A kernel's types are inferred by numba; every other function states its own."""
    names = imported_names(parse(path))
    faults = []
    for node, owner in definitions(parse(path).body):
        if isinstance(node, ast.ClassDef) or is_kernel(node, names):
            continue
        given = node.args
        arguments = given.posonlyargs + given.args + given.kwonlyargs
        arguments = arguments[owner is not None and not has_mark(node, "staticmethod") :]
        arguments += [argument for argument in (given.vararg, given.kwarg) if argument]
        bare = [argument.arg for argument in arguments if argument.annotation is None]
        # A constructor's result needs no words where its arguments have some.
        if node.returns is None and not (node.name == "__init__" and arguments):
            bare.append("the result")
        if bare:
            faults.append(at(path, node, f"{node.name}: no type for {', '.join(bare)}"))
    assert not faults, "\n".join(faults)


@for_each(PACKAGE_FILES)
def test_library_does_not_print(path: Path) -> None:
    """Only the command line speaks on standard output."""
    if PACKAGE / "cli" in path.parents:
        return
    faults = [
        at(path, node, "print")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert not faults, "\n".join(faults)


@for_each(PACKAGE_FILES)
def test_no_global_random_state(path: Path) -> None:
    """A run is a function of its seed alone: nothing draws from a state that all share."""
    faults = []
    for node, name in library_names(path):
        owner, _, last = name.rpartition(".")
        if owner in {"random", "numpy.random"} and last not in STATED:
            faults.append(at(path, node, f"{name} draws from the global state"))
        if DEAP_DRAWS.match(name) and name not in DEAP_DRAWS_NOT:
            faults.append(at(path, node, f"{name} draws from the global state"))
    names = imported_names(parse(path))
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Call) and dotted(node.func, names) == "numpy.random.RandomState":
            faults.append(at(path, node, "RandomState: make a Generator"))
    assert not faults, "\n".join(faults)


@for_each(ALL_FILES)
def test_functions_are_short(path: Path) -> None:
    """A function has at most 80 lines without its docstring."""
    faults = [
        at(path, node, f"{node.name} has {lines_without_docstring(node)} lines")
        for node in ast.walk(parse(path))
        if isinstance(node, Function) and lines_without_docstring(node) > FUNCTION_LINES
    ]
    assert not faults, "\n".join(faults)


@for_each(PACKAGE_FILES)
def test_public_names_are_documented(path: Path) -> None:
    """Every public module, class, function and method has a docstring."""
    if not is_public(path):
        return
    tree = parse(path)
    faults = [] if ast.get_docstring(tree) or not tree.body else [f"{name_of(path)}: no docstring"]
    for node, owner in definitions(tree.body):
        private = node.name.startswith("_") or (owner is not None and owner.name.startswith("_"))
        repeats = isinstance(node, Function) and has_mark(node, ".setter", ".deleter", "overload")
        if not private and not repeats and ast.get_docstring(node) is None:
            faults.append(at(path, node, f"{node.name} has no docstring"))
    assert not faults, "\n".join(faults)


@for_each(PACKAGE_FILES)
def test_documented_parameters_are_those_of_the_signature(path: Path) -> None:
    """A "Parameters" section names the parameters, all of them, in their order."""
    faults = []
    for node, owner in definitions(parse(path).body):
        function: Definition | None = node
        if isinstance(node, ast.ClassDef):
            inits = [item for item in node.body if isinstance(item, Function)]
            function = next((item for item in inits if item.name == "__init__"), None)
        documented = documented_parameters(ast.get_docstring(node) or "")
        if documented is None or not isinstance(function, Function):
            continue
        expected = parameters(function, is_method=function is not node or owner is not None)
        if documented != expected:
            faults.append(at(path, node, f"{node.name}: {documented} is not {expected}"))
    assert not faults, "\n".join(faults)


def test_no_absolute_paths() -> None:
    """No file of the repository names a folder of the machine it was written on."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    absolute = re.compile(r"(?<![\w.:/~<>*)}\]-])/(?:home|root|tmp|work|Users|mnt)\b")
    faults = []
    for path in (ROOT / name for name in listed.split("\0") if name):
        if path.is_symlink() or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if absolute.search(line):
                faults.append(f"{name_of(path)}:{number}: {line.strip()[:80]}")
    assert not faults, "\n".join(faults)


def test_rooms_for_users_are_attributes_of_the_package() -> None:
    rooms = ["export", "inspection", "operators", "plotting", "report"]
    code = f"import evotree; print(*(getattr(evotree, room).__name__ for room in {rooms}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout.decode().split() == [f"evotree.{room}" for room in rooms]

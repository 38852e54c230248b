"""The rules of the code that only a test checks: flags, types, randomness, sizes, parameters.

The sources are parsed, never imported, so that a file which does not import is judged all the same.
"""

import ast
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import evotree
from tests.size import AROUND, characters_per_line, count_statements, rooms_of

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "evotree"
FUNCTION_LINES = 80
LINE_CHARACTERS = 48

Function = ast.FunctionDef | ast.AsyncFunctionDef

COMPILERS = {"jit", "njit", "vectorize", "guvectorize", "cfunc", "stencil", "jitclass"}

# Names of `random` and `numpy.random` that hold a state of their own. RandomState is the type of
# scikit-learn's `random_state`: it may be named, not made.
STATED = {"default_rng", "Generator", "SeedSequence", "RandomState", "BitGenerator"}
STATED |= {"PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937", "Random"}

# The operators and loops of DEAP draw from Python's global `random`, save these few.
DEAP_DRAWS = re.compile(r"deap\.(tools\.(sel|cx|mut|migRing)|algorithms\.(var|ea))")
DEAP_DRAWS_NOT = {"deap.tools.selBest", "deap.tools.selWorst", "deap.tools.selNSGA2"}


def python_files(*folders):
    """List the Python files of some folders of the repository, those that exist."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


PACKAGE_FILES = python_files("evotree")
ALL_FILES = python_files(
    *("evotree", "experiments", "operators", "fitness", "tests", "benchmarks", "docs")
)


def for_each(paths):
    """Make one test of a function that yields the faults of a file, each as a node and words."""

    def decorate(faults_of):
        def test():
            faults = [
                f"{path.relative_to(ROOT).as_posix()}:{node.lineno}: {fault}"
                for path in paths
                for node, fault in faults_of(path)
            ]
            assert paths and not faults, "\n".join(faults)

        test.__doc__ = faults_of.__doc__
        return test

    return decorate


@cache
def parse(path):
    """Parse a file once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported_names(tree):
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


def dotted(node, names):
    """Return the full dotted name that an expression stands for, None if it is not an import's."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value, names)
        return owner and f"{owner}.{node.attr}"
    return None


def library_names(path):
    """Yield each use of an imported name in a file, with what it stands for in full."""
    names = imported_names(parse(path))
    for node in ast.walk(parse(path)):
        if (name := dotted(node, names)) is not None:
            yield node, name


def definitions(body, owner=None):
    """Yield the classes, functions and methods of a module, with the class they stand in."""
    for node in body:
        if isinstance(node, Function | ast.ClassDef):
            yield node, owner
        if isinstance(node, ast.ClassDef):
            yield from definitions(node.body, node)
        elif isinstance(node, ast.If | ast.Try):
            yield from definitions(node.body + node.orelse, owner)


def n_lines(node):
    return node.end_lineno - node.lineno + 1


def lines_without_docstring(node):
    """Count the lines of a function from `def` to its end, less those of its docstring."""
    return n_lines(node) - (
        n_lines(node.body[0]) if ast.get_docstring(node) is not None else 0
    )


def has_mark(node, *marks):
    """Tell whether a decorator of a function is written as one of the marks or ends with it."""
    return any(
        ast.unparse(decorator).endswith(marks) for decorator in node.decorator_list
    )


def is_kernel(node, names):
    """Tell whether a function is compiled: whether a decorator is one of `evotree._jit`."""
    decorators = [dotted(decorator, names) or "" for decorator in node.decorator_list]
    return any(decorator.startswith("evotree._jit.") for decorator in decorators)


def parameters(node, is_method):
    """Return the names of a signature's parameters as numpydoc writes them."""
    signature = node.args
    names = [argument.arg for argument in signature.posonlyargs + signature.args]
    if is_method and not has_mark(node, "staticmethod"):
        names = names[1:]
    if signature.vararg:
        names.append(f"*{signature.vararg.arg}")
    names += [argument.arg for argument in signature.kwonlyargs]
    if signature.kwarg:
        names.append(f"**{signature.kwarg.arg}")
    return names


def documented_parameters(docstring):
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


@for_each(PACKAGE_FILES)
def test_numba_compiles_in_one_file_only(path):
    """The flags of compilation are chosen in `_jit` alone; everyone else uses its decorators."""
    for node, name in library_names(path):
        compiles = name.startswith("numba.") and name.rpartition(".")[2] in COMPILERS
        if compiles and path != PACKAGE / "_jit.py":
            yield node, f"{name}: use evotree._jit.kernel"


@for_each(PACKAGE_FILES)
def test_all_but_kernels_is_annotated(path):
    """A kernel's types are inferred by numba; every other function states its own."""
    names = imported_names(parse(path))
    for node, owner in definitions(parse(path).body):
        if isinstance(node, ast.ClassDef) or is_kernel(node, names):
            continue
        signature = node.args
        arguments = signature.posonlyargs + signature.args + signature.kwonlyargs
        arguments = arguments[
            owner is not None and not has_mark(node, "staticmethod") :
        ]
        arguments += [
            argument for argument in (signature.vararg, signature.kwarg) if argument
        ]
        bare = [argument.arg for argument in arguments if argument.annotation is None]
        # A constructor's result needs no words where its arguments have some.
        if node.returns is None and not (node.name == "__init__" and arguments):
            bare.append("the result")
        if bare:
            yield node, f"{node.name}: no type for {', '.join(bare)}"


@for_each(PACKAGE_FILES)
def test_no_global_random_state(path):
    """A run is a function of its seed alone: nothing draws from a state that all share."""
    for node, name in library_names(path):
        owner, _, last = name.rpartition(".")
        is_global = owner in {"random", "numpy.random"} and last not in STATED
        if is_global or (DEAP_DRAWS.match(name) and name not in DEAP_DRAWS_NOT):
            yield node, f"{name} draws from the global state"
    names = imported_names(parse(path))
    for node in ast.walk(parse(path)):
        if (
            isinstance(node, ast.Call)
            and dotted(node.func, names) == "numpy.random.RandomState"
        ):
            yield node, "RandomState: make a Generator"


@for_each(ALL_FILES)
def test_functions_are_short(path):
    """A function has at most 80 lines without its docstring."""
    for node in ast.walk(parse(path)):
        if (
            isinstance(node, Function)
            and lines_without_docstring(node) > FUNCTION_LINES
        ):
            yield node, f"{node.name} has {lines_without_docstring(node)} lines"


def test_lines_of_the_package_are_not_packed():
    assert characters_per_line(PACKAGE) <= LINE_CHARACTERS


def test_statements_are_counted_without_docstrings(tmp_path):
    source = tmp_path / "some.py"
    source.write_text(
        '"""A module."""\n\ndef f():\n    """A function."""\n    x = 1; return x\n'
    )
    assert count_statements(source) == count_statements(tmp_path) == 3


@for_each(PACKAGE_FILES)
def test_documented_parameters_are_those_of_the_signature(path):
    """A "Parameters" section names the parameters, all of them, in their order."""
    for node, owner in definitions(parse(path).body):
        function = node
        if isinstance(node, ast.ClassDef):
            inits = [item for item in node.body if isinstance(item, Function)]
            function = next((item for item in inits if item.name == "__init__"), None)
        documented = documented_parameters(ast.get_docstring(node) or "")
        if documented is None or not isinstance(function, Function):
            continue
        expected = parameters(
            function, is_method=function is not node or owner is not None
        )
        if documented != expected:
            yield node, f"{node.name}: {documented} is not {expected}"


def test_no_absolute_paths():
    """No file of the repository names a folder of the machine it was written on."""
    absolute = r"(?<![\w.:/~<>*)}\]-])/(?:home|root|tmp|work|Users|mnt)\b"
    command = ["git", "grep", "--untracked", "-nIP", "-e", absolute]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if found.returncode > 1:
        pytest.skip("not a git checkout")
    assert found.stdout == ""


def test_type_checkers_see_the_names_that_are_imported_on_first_use():
    blocks = [
        node for node in parse(PACKAGE / "__init__.py").body if isinstance(node, ast.If)
    ]
    seen = {
        alias.name: line.module
        for block in blocks
        for line in block.body
        for alias in line.names
    }
    assert seen == evotree._MODULE_OF


def test_rooms_for_users_are_attributes_of_the_package():
    rooms = ["export", "inspection", "operators", "plotting", "report"]
    code = (
        f"import evotree; print(*(getattr(evotree, room).__name__ for room in {rooms}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True
    )
    assert done.stdout.decode().split() == [f"evotree.{room}" for room in rooms]


@pytest.mark.parametrize("face", ["operators", "fitness", "experiments"])
def test_packages_at_the_root_show_objects_by_their_one_module(face):
    """Not others of the same text, nor the same ones by a second name of a module."""
    shown = imported_names(parse(ROOT / face / "__init__.py"))
    code = (
        f"import sys, {face}\n"
        f"print(*{face}.__all__)\n"
        f"print(*(name for name, module in sys.modules.items()"
        f" if name.partition('.')[0] == '{face}' and module.__name__ != name))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True
    )
    names, aliases = done.stdout.decode().splitlines()
    assert sorted(names.split()) == sorted(shown) and not aliases
    for name, whole in shown.items():
        module = whole.removesuffix(f".{name}")
        assert module.startswith(("evotree.", "experiments.")), whole
        part = getattr(import_module(module), name)
        assert getattr(part, "__module__", module) == module, whole


def test_each_room_stands_in_the_core_or_around_it():
    assert set(AROUND) < set(rooms_of(PACKAGE))

"""The size of the code: statements, and characters of a line; ``make size`` prints them.

Lines are free: a budget of lines is met by packing them, one of statements is not.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("evotree", "tests", "experiments", "benchmarks")
AROUND = (
    *("__main__", "cli", "dask", "experiments", "export", "forests", "inspection"),
    *("plotting", "report", "simulators", "survival"),
)
"""The rooms of the package around its core, which imports none of them."""


def count_statements(path):
    """Count the statements of a Python file, or of all files of a folder, without docstrings."""
    if path.is_dir():
        return sum(map(count_statements, path.rglob("*.py")))
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return sum(isinstance(node, ast.stmt) and not is_text(node) for node in nodes)


def is_text(node):
    """Tell whether a statement is a text and nothing else: a docstring."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def characters_per_line(folder):
    """Return the mean length of the lines of a folder's Python files; blank ones do not count."""
    lengths = [
        len(line)
        for path in folder.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    return sum(lengths) / len(lengths)


def rooms_of(package):
    """Return the files and folders of a package, by their names as modules."""
    paths = [path.relative_to(package).parts[0] for path in package.rglob("*.py")]
    return {Path(part).stem: package / part for part in sorted(paths)}


def main():
    """Print the size of each folder, of each room of the package, and the length of a line."""
    for name in FOLDERS:
        print(f"{count_statements(ROOT / name):7,} {name}")
    rooms = rooms_of(ROOT / "evotree")
    for title, is_around in (("the core", False), ("around it", True)):
        sizes = {
            path.name: count_statements(path)
            for room, path in rooms.items()
            if (room in AROUND) is is_around
        }
        print(f"\n{sum(sizes.values()):7,} {title}")
        for name, size in sizes.items():
            print(f"{size:7,} evotree/{name}")
    length = characters_per_line(ROOT / "evotree")
    print(f"\n{length:7.1f} characters of a line of the package that is not blank")


if __name__ == "__main__":
    main()

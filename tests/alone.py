"""The tests of the core, run where no room around it is: ``make core``.

The sources are copied, the rooms deleted in the copy, and no process there can import one.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.size import AROUND, ROOT, rooms_of

BESIDE = ("benchmarks", "docs", "experiments", "tests/benchmarks", "tests/studies")
# Tests of the whole house: of the pages, of the sources of all rooms, of what is released.
OF_ALL = ("agents_page", "architecture", "readme", "wheel")


def copy_sources(folder):
    """Copy the files that git knows, as they are now, and return the copy's root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def delete_all_but_the_core(root):
    """Delete the rooms around the core with their tests, and what is about the whole house."""
    rooms = rooms_of(root / "evotree")
    paths = [rooms[room] for room in AROUND]
    paths += [root / "tests" / room for room in AROUND]
    paths += [root / name for name in BESIDE]
    paths += [root / "tests" / f"test_{name}.py" for name in OF_ALL]
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    # An installed package that is edited in place lends the copy the rooms that it lacks.
    names = [f"evotree.{room}" for room in AROUND]
    code = f"import sys\nsys.modules.update(dict.fromkeys({names}))\n"
    (root / "sitecustomize.py").write_text(code, encoding="utf-8")


def main():
    """Run the quick tests of the core alone, all or those named, and return pytest's status."""
    with TemporaryDirectory(prefix="core-") as folder:
        root = Path(folder).resolve()
        copy_sources(root)
        delete_all_but_the_core(root)
        command = [sys.executable, "-m", "pytest", "--numprocesses", "2"]
        command += ["--dist", "loadfile", "-m", "not slow", *sys.argv[1:]]
        # For processes of tests as well, whatever folder they work in.
        environment = os.environ | {"PYTHONPATH": str(root)}
        return subprocess.run(command, cwd=root, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())

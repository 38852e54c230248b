"""Files that are written whole, and what killed processes leave beside them."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evotree.files import check_writable, write_whole

WRITES_FOR_EVER = """
import sys, time
from evotree.files import write_whole

def write(file):
    file.write(b"half")
    file.flush()
    print("begun", flush=True)
    time.sleep(60)

write_whole(sys.argv[1], write)
"""


def killed_writer(path):
    """Kill a process in the middle of writing a file; return what it has left."""
    before = set(path.parent.iterdir())
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITES_FOR_EVER, path], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout.readline() == "begun\n"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    (left,) = set(path.parent.iterdir()) - before
    return left


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of Unix")
@pytest.mark.parametrize("name", ["run.npz", "a[b]*.x", "plain"])
def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path, name):
    path = tmp_path / name
    write_whole(path, lambda file: file.write(b"whole"))
    others = {f".{name}.notes.tmp", f".other-{name}.1.tmp", f".{name}.{os.getppid()}.tmp"}
    others |= {f".{name}.{'0' * 12}.tmp.old", f".x{name}.{'0' * 12}.tmp"}
    for other in others:
        (tmp_path / other).touch()
    for _ in range(2):
        left = killed_writer(path)
        assert path.read_bytes() == b"whole" and left.read_bytes() == b"half"
    write_whole(path, lambda file: file.write(b"again"))
    assert path.read_bytes() == b"again"
    assert {one.name for one in tmp_path.iterdir()} == others | {name}


def test_what_a_process_of_the_same_number_has_left_is_in_nobodys_way(tmp_path, monkeypatch):
    """In a container all processes may have the number 1."""
    path = tmp_path / "run.npz"
    monkeypatch.setattr(os, "fsync", divmod)  # fails
    monkeypatch.setattr(Path, "unlink", lambda _: None)
    with pytest.raises(TypeError):
        write_whole(path, lambda file: file.write(b"half"))
    left = list(tmp_path.iterdir())
    assert left and path not in left
    monkeypatch.undo()
    assert check_writable(path) == path
    write_whole(path, lambda file: file.write(b"whole"))
    assert [one.name for one in tmp_path.iterdir()] == ["run.npz"]


def test_threads_write_the_same_file(tmp_path):
    """Whole, each of them, and the last one stays."""
    path, barrier = tmp_path / "run.npz", threading.Barrier(4, timeout=20.0)

    def write(content):
        def half_by_half(file):
            file.write(content[:1000])
            barrier.wait()
            file.write(content[1000:])

        write_whole(path, half_by_half)

    contents = [bytes([k]) * 2000 for k in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, contents))
    assert path.read_bytes() in contents
    assert [one.name for one in tmp_path.iterdir()] == ["run.npz"]


def test_a_check_is_in_no_other_writers_way(tmp_path, monkeypatch):
    """Nor do writers that end at any moment of a check take what it has made for a left-over."""
    path, unlink = tmp_path / "run.npz", Path.unlink

    def unlink_late(self):
        monkeypatch.setattr(Path, "unlink", unlink)
        with ThreadPoolExecutor(1) as others:
            others.submit(write_whole, path, lambda file: file.write(b"other")).result()
        unlink(self)

    monkeypatch.setattr(Path, "unlink", unlink_late)
    assert check_writable(path) == path
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: write_whole(path, lambda file: file.write(b"x")), range(200)))
    assert [one.name for one in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="rights of Unix")
def test_rights_are_those_of_a_new_file(tmp_path):
    (tmp_path / "plain").touch()
    write_whole(tmp_path / "whole", lambda file: file.write(b"whole"))
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        check_writable(tmp_path / "missing" / "file")
    with pytest.raises(FileNotFoundError, match="cannot write ''"):
        check_writable("")
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        check_writable(tmp_path)

    def fail(_):
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(OSError, match=r"cannot write .*file: No space left"):
        write_whole(tmp_path / "file", fail)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"

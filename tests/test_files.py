"""Files that are written whole."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from evotree.files import check_writable, write_whole


def test_threads_write_the_same_file(tmp_path):
    """Whole, each of them, and the last one stays."""
    path, barrier = tmp_path / "run.npz", threading.Barrier(4, timeout=20.0)

    def half_by_half(file, content):
        file.write(content)
        barrier.wait()
        file.write(content)

    contents = [bytes([k]) * 1000 for k in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(
            threads.map(
                lambda c: write_whole(path, partial(half_by_half, content=c)), contents
            )
        )
    assert path.read_bytes() in [content * 2 for content in contents]
    assert [one.name for one in tmp_path.iterdir()] == ["run.npz"]


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    for path, error, message in (
        (tmp_path / "missing" / "file", FileNotFoundError, "No such file or directory"),
        ("", OSError, "it is a folder"),
        (tmp_path, OSError, "it is a folder"),
        (os.devnull, OSError, "no regular file"),
    ):
        with pytest.raises(error, match=message):
            check_writable(path)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", lambda file: file.write(b"whole"))
    assert (tmp_path / "link").is_symlink() and (
        tmp_path / "target"
    ).read_bytes() == b"whole"
    for name in ("link", "target"):
        (tmp_path / name).unlink()

    def fail(_):
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(OSError, match=r"cannot write .*file: No space left"):
        write_whole(tmp_path / "file", fail)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"

"""Files that are written whole, and what killed processes leave beside them."""

import os
import signal
import subprocess
import sys

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
    """Return the number of a process that was killed in the middle of writing a file."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITES_FOR_EVER, path], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout.readline() == "begun\n"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    return writer.pid


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of Unix")
@pytest.mark.parametrize("name", ["run.npz", "a[b]*.x", "plain"])
def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path, name):
    path = tmp_path / name
    write_whole(path, lambda file: file.write(b"whole"))
    others = {f".{name}.notes.tmp", f".other-{name}.1.tmp", f".{name}.{os.getppid()}.tmp"}
    for other in others:
        (tmp_path / other).touch()
    for _ in range(2):
        pid = killed_writer(path)
        assert path.read_bytes() == b"whole"
        assert (tmp_path / f".{name}.{pid}.tmp").read_bytes() == b"half"
    write_whole(path, lambda file: file.write(b"again"))
    assert path.read_bytes() == b"again"
    assert {one.name for one in tmp_path.iterdir()} == others | {name}


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        check_writable(tmp_path / "missing" / "file")
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        check_writable(tmp_path)

    def fail(_):
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(OSError, match=r"cannot write .*file: No space left"):
        write_whole(tmp_path / "file", fail)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"

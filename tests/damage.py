"""Damage to the bytes of files, and the check that a damaged one is read or refused."""

import io
import os
import re
import signal
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

N_EXAMPLES = int(os.environ.get("EVOTREE_FUZZ_EXAMPLES", "30"))
SECONDS = 10
fuzz = settings(
    max_examples=N_EXAMPLES,
    suppress_health_check=list(HealthCheck),
    database=None,
    print_blob=True,
)


class Hang(BaseException):
    """A loader that takes too long; nothing may catch it."""


@contextmanager
def time_limit() -> Iterator[None]:
    """Raise `Hang` after some seconds, where the system has alarms."""

    def stop(*_: object) -> None:
        raise Hang

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def sound_or_refused(
    path: Path, read: Callable[[], Any], use: Callable[[Any], None] = lambda _: None
) -> None:
    """Check that a file is read and can be used, or is refused by an error that names it."""
    with time_limit(), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = read()
        except (ValueError, OSError, MemoryError) as error:
            assert str(path) in str(error), f"{error!r} does not name {path.name}"
            assert len(str(error)) < 5_000, "an error as long as the file"
            return
        use(found)


# ---- damage --------------------------------------------------------------------------------------

EVIL = [
    *(b"", b"0", b"-1", b"-0.0", b"1e999", b"-1e999", b"1e308", b"5e-324", b"NaN", b"nan", b"inf"),
    *(b"Infinity", b"9223372036854775807", b"9223372036854775808", b"1152921504606846976"),
    *(b"4294967296", b"2147483648", b"1000000000", b"1" * 400, b"1" * 5_000, b"0x10", b"1_0", b"+"),
    *(b"true", b"True", b"null", b"None", b"NA", b"?", b"''", b'""', b'"', b"'", b"\\", b"\\u0000"),
    *(b'"\\ud800"', b"\x00", b"\x1b[31m", b"\x85", b"\x1c", b"\r", b"\r\n", b"\n", b"\n\n", b"\t"),
    *(b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f\x8c\xb3", b"\xe2\x80\xa8", b" "),
    *(b",", b",,", b";", b":", b"#", b"%", b"%d", b"{", b"}", b"{}", b"[", b"]", b"[" * 9_999),
    *(b"{0 1}", b"{0 1, 0 1}", b"{1000000000 1}", b"1:1", b"0:1", b"1152921504606846976:1"),
    *(b"qid:x", b"@data", b"@relation", b"@attribute", b"@end", b"date", b"relational", b"string"),
    *(b"numeric", b"real [0, 1]", b"target", b"class", b"../x", b"/etc/passwd", b"a" * 20_000),
    *(
        b"'a, b'",
        b"'a\\'b'",
        b'"a""b"',
        b"a b",
        b"1,",
        b"=",
        b"==",
        b'"""',
        b"1979-05-27T07:32:00Z",
    ),
    *(b"os.abort", b"builtins.exit", b"1.5", b"1e5", b"3", b"x" * 300 + b"=1"),
]
FIELD = re.compile(rb"[^\s,:;=\[\]{}\"]+")
evil = st.sampled_from(EVIL) | st.binary(max_size=6)


def damage_once(draw: st.DrawFn, content: bytes) -> bytes:
    """Return content with one fault."""
    kind = draw(
        st.sampled_from(["byte", "cut", "gap", "repeat", "insert", "line", "lines", "field"] * 2)
        if content
        else st.just("insert")
    )
    at = draw(st.integers(0, len(content)))
    if kind == "byte":
        return content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]
    if kind == "cut":
        return content[:at] if draw(st.booleans()) else content[at:]
    if kind in ("gap", "repeat"):
        end = min(len(content), at + draw(st.integers(1, 60)))
        if kind == "gap":
            return content[:at] + content[end:]
        return content[:end] + content[at:end] * draw(st.integers(1, 50)) + content[end:]
    if kind == "insert":
        return content[:at] + draw(evil) + content[at:]
    if kind in ("line", "lines"):
        lines = content.splitlines(keepends=True)
        one, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        if kind == "line":
            lines[one] = draw(st.sampled_from([b"", lines[one] * 2, draw(evil) + b"\n"]))
        else:
            lines[one], lines[other] = lines[other], lines[one]
        return b"".join(lines)
    fields = list(FIELD.finditer(content))
    if not fields:
        return content + draw(evil)
    one, other = (draw(st.sampled_from(fields)) for _ in range(2))
    new = draw(evil | st.just(other.group()))
    return content[: one.start()] + new + content[one.end() :]


@st.composite
def damaged(draw: st.DrawFn, contents: list[bytes]) -> bytes:
    """Draw one of the contents with one to three faults."""
    content = draw(st.sampled_from(contents))
    for _ in range(draw(st.integers(1, 3))):
        content = damage_once(draw, content)
    return content


def pack(draw: st.DrawFn, content: bytes, compress: Callable[[bytes], bytes]) -> bytes:
    """Compress content; the result may be damaged as well."""
    packed = compress(content)
    return damage_once(draw, packed) if draw(st.booleans()) else packed


# ---- arrays --------------------------------------------------------------------------------------


def npy(descr: str, shape: str, order: str, body: bytes, version: int = 1) -> bytes:
    """Return an .npy file with the header that is asked for, true or not."""
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode(
        "latin1"
    )
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + body


def npz(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()

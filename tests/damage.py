"""Damage to the bytes of files, and the check that a damaged one is read or refused."""

import os
import re
import warnings

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

N_EXAMPLES = int(os.environ.get("EVOTREE_FUZZ_EXAMPLES", "30"))
fuzz = settings(
    max_examples=N_EXAMPLES,
    suppress_health_check=list(HealthCheck),
    database=None,
    print_blob=True,
)


def sound_or_refused(path, read, use=lambda _: None):
    """Check that a file is read and can be used, or is refused by an error that names it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = read()
        except (ValueError, OSError) as error:
            assert str(path) in str(error), f"{error!r} does not name {path.name}"
            assert len(str(error)) < 5_000, "an error as long as the file"
            return
        use(found)


EVIL = [
    *(
        b"",
        b"0",
        b"-1",
        b"-0.0",
        b"1e999",
        b"-1e999",
        b"1e308",
        b"5e-324",
        b"NaN",
        b"nan",
        b"inf",
    ),
    *(
        b"Infinity",
        b"9223372036854775808",
        b"1152921504606846976",
        b"4294967296",
        b"1" * 400,
    ),
    *(
        b"1" * 5_000,
        b"0x10",
        b"1_0",
        b"+",
        b"true",
        b"null",
        b"None",
        b"NA",
        b"?",
        b'""',
        b'"',
    ),
    *(
        b"'",
        b"\\",
        b"\\u0000",
        b'"\\ud800"',
        b"\x00",
        b"\x1b[31m",
        b"\x85",
        b"\r",
        b"\r\n",
    ),
    *(
        b"\n\n",
        b"\t",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\xf0\x9f\x8c\xb3",
        b",",
    ),
    *(
        b",,",
        b";",
        b":",
        b"#",
        b"%",
        b"%d",
        b"{",
        b"}",
        b"[",
        b"]",
        b"[" * 9_999,
        b"{0 1}",
    ),
    *(
        b"1000000000:1",
        b"1:1",
        b"0:1",
        b"qid:x",
        b"@data",
        b"@relation",
        b"@attribute",
        b"date",
    ),
    *(
        b"relational",
        b"string",
        b"numeric",
        b"target",
        b"class",
        b"../x",
        b"a" * 20_000,
        b"a b",
    ),
]
FIELD = re.compile(rb"[^\s,:;=\[\]{}\"]+")
evil = st.sampled_from(EVIL) | st.binary(max_size=6)


def damage_once(draw, content):
    """Return content with one fault: of bytes, a line or a field."""
    kind = draw(st.sampled_from(["byte", "cut", "repeat", "insert", "line", "field"]))
    at = draw(st.integers(0, len(content)))
    end = min(len(content), at + draw(st.integers(1, 60)))
    lines, fields = content.splitlines(keepends=True), list(FIELD.finditer(content))
    if kind == "byte":
        return content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]
    if kind == "cut":
        return content[:at] if draw(st.booleans()) else content[at:]
    if kind == "repeat":
        return (
            content[:end] + content[at:end] * draw(st.integers(1, 50)) + content[end:]
        )
    if kind == "line" and lines:
        one, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        lines[one] = draw(
            st.sampled_from([b"", lines[one] * 2, lines[other], draw(evil) + b"\n"])
        )
        return b"".join(lines)
    if kind == "field" and fields:
        one, other = (draw(st.sampled_from(fields)) for _ in range(2))
        return (
            content[: one.start()]
            + draw(evil | st.just(other.group()))
            + content[one.end() :]
        )
    return content[:at] + draw(evil) + content[at:]


@st.composite
def damaged(draw, contents, pack=bytes):
    """Draw one of the contents with one to three faults, packed, and perhaps a fault of that."""
    content = draw(st.sampled_from(contents))
    for _ in range(draw(st.integers(1, 3))):
        content = damage_once(draw, content)
    packed = pack(content)
    return packed if pack is bytes or draw(st.booleans()) else damage_once(draw, packed)

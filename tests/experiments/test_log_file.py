"""Log records in a file, a line each."""

import logging
import re
from pathlib import Path

import pytest

from evotree.experiments.log_file import log_to_file


def messages(path: Path) -> list[str]:
    """Return the message of each line, all of which have to be whole."""
    pattern = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ \d+ (.*)"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [re.fullmatch(pattern, line).group(1) for line in lines]  # type: ignore[union-attr]


def test_unknown_levels_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="level .*INFO.*'LOUD'"):
        log_to_file(tmp_path, "LOUD").__enter__()


def test_a_file_has_a_line_for_each_record(tmp_path: Path) -> None:
    path = tmp_path / "study.log"
    apart = logging.Logger("apart")  # pytest-xdist cannot send half a pair that pytest has seen
    with log_to_file(path, "DEBUG", apart):
        apart.debug("one\ntwo\r\nthree\u2028four \ud800")
        try:
            print(1 / 0)
        except ZeroDivisionError:
            apart.exception("failed")
    apart.error("after")
    with pytest.raises(KeyError), log_to_file(path, logging.ERROR, apart):
        apart.warning("too low")
        apart.error("appended")
        raise KeyError
    first, second, third = messages(path)
    assert first == r"one\ntwo\nthree\nfour \ud800"
    assert re.fullmatch(r"failed\\nTraceback.*\\nZeroDivisionError: division by zero", second)
    assert third == "appended"

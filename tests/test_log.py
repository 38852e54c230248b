"""One log of a run, whoever works: nothing lost, no line mixed, and the same results."""

import logging
import multiprocessing
import os
import re
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import pytest
from sklearn.datasets import load_iris

from evotree import EvoTreeClassifier
from evotree.engine.config import Evolution, Islands
from evotree.log import log_to_file, logger
from evotree.parallel import run_tasks

LOG = logger("evotree.tests")
STARTS = ["fork", pytest.param("spawn", marks=pytest.mark.slow)]
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ([A-Z]+) (\d+) (.*)")


def lines_of(path):
    """Return level, process and text of each line; every one is whole."""
    matches = [LINE.fullmatch(line) for line in path.read_text().splitlines()]
    assert all(matches)
    return [match.groups() for match in matches]


def chatter(worker):
    for k in range(100):
        LOG.info("w%d line %d %s.", worker, k, "x" * (50_000 if k % 50 == 7 else k))
    LOG.debug("too low")
    return worker


def in_executor(start, tasks):
    context = multiprocessing.get_context(start)
    with ProcessPoolExecutor(3, mp_context=context) as executor:
        return run_tasks(chatter, tasks, executor, "tests")


def counts_of(path):
    texts = [text for _, _, text in lines_of(path) if re.match(r"w\d line", text)]
    assert all(text.endswith(".") for text in texts)
    return Counter(tuple(text.split()[:3:2]) for text in texts)


def assert_no_record_is_lost(run, start, path):
    """Check that a log has every record of three tasks, each on a line, and leaves no handler."""
    logger = logging.getLogger("evotree")
    before = logger.level, logger.handlers[:]
    with log_to_file(path):
        assert sorted(run(start, range(3))) == [0, 1, 2]
        LOG.info("parent")
    assert (logger.level, logger.handlers) == before
    expected = {(f"w{worker}", str(k)): 1 for worker in range(3) for k in range(100)}
    assert counts_of(path) == expected
    assert "too low" not in path.read_text()


@pytest.mark.parametrize("start", STARTS)
def test_workers_lose_no_record_and_mix_none(start, tmp_path):
    assert_no_record_is_lost(in_executor, start, tmp_path / "a.log")


def test_a_record_is_one_line(tmp_path):
    path = tmp_path / "a.log"
    with log_to_file(path):
        LOG.info("one\ntwo\r\nthree\u2028four")
        try:
            print(1 / 0)
        except ZeroDivisionError:
            LOG.exception("failed")
    LOG.error("after")
    with pytest.raises(KeyError), log_to_file(path):
        LOG.error("appended")
        raise KeyError
    first, second, third = (text for *_, text in lines_of(path))
    assert first == r"one\ntwo\r\nthree\u2028four" and third == "appended"
    assert re.fullmatch(
        r"failed\\nTraceback.*\\nZeroDivisionError: division by zero", second
    )


def test_warnings_are_logged_and_shown(tmp_path):
    path = tmp_path / "a.log"
    with pytest.warns(UserWarning, match="odd"), log_to_file(path):
        warnings.warn("odd\nrows", UserWarning, stacklevel=1)
    ((level, _, text),) = lines_of(path)
    assert (level, text) == ("WARNING", r"UserWarning: odd\nrows")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full disk")
def test_a_full_disk_costs_no_work(capsys):
    with log_to_file("/dev/full"):
        LOG.error("line")
    assert "No space left" in capsys.readouterr().err


# ---- what a fit says -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def iris_rows():
    return load_iris(return_X_y=True)


def fitted(X, y, **options):
    options = {
        "size_penalty": 0.01,
        "term_penalty": 0.0,
        "leaves": "constant",
    } | options
    return EvoTreeClassifier(
        max_generations=6, random_state=0, verbose=0, **options
    ).fit(X, y)


def evolution(executor=None):
    islands = Islands(n=2, every=3, size=1, executor=executor)
    return Evolution(init="oc1", population_size=8, islands=islands, refinement="tao")


def test_a_fit_tells_its_course(iris_rows, tmp_path):
    path = tmp_path / "a.log"
    X, y = iris_rows
    with log_to_file(path, logging.DEBUG):
        tree = fitted(X, y, evolution=evolution())
    texts = [text for _, _, text in lines_of(path)]
    assert texts[0] == "fit of a tree begun: 150 rows, 4 columns, 3 classes"
    assert texts[1].startswith("chosen: ") and texts[-1].startswith("fit ended after ")
    assert texts[-1].endswith(repr(tree.tree_))
    for island in range(2):
        own = [text for text in texts if text.startswith(f"island {island}, ")]
        found = [re.search(r"generation (\d+): best", text) for text in own]
        assert [int(one[1]) for one in found if one] == list(range(7))
        assert any(": refined {'tao_tried':" in text for text in own)
    assert any(
        text.startswith("migration: 1 trees of island 1 move to island 0")
        for text in texts
    )


def test_blocks_in_each_other_log_a_warning_once_and_a_fit_that_fails_one(
    iris_rows, tmp_path
):
    X, y = iris_rows
    paths = [tmp_path / "a.log", tmp_path / "b.log"]
    with pytest.warns(UserWarning, match="of all"), log_to_file(paths[0]):
        with log_to_file(paths[1], logging.DEBUG):
            LOG.debug("low")
            warnings.warn("of all", stacklevel=1)
            with pytest.raises(ValueError, match="inconsistent"):
                fitted(X, y[1:])
        LOG.info("last")
    outer, inner = ([text for _, _, text in lines_of(path)] for path in paths)
    assert inner[0] == "low" and outer[-1] == "last"
    assert inner[1:] == outer[:-1] and len(outer) == 3
    assert outer[0] == "UserWarning: of all"
    assert outer[1].startswith("fit failed: ValueError: Found input variables")


def test_nothing_is_written_without_a_handler(iris_rows, capfd):
    tree = fitted(*iris_rows)
    LOG.error("nobody listens")
    assert capfd.readouterr() == ("", "")
    assert tree.tree_.n_leaves > 1

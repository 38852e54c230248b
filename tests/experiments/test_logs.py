"""The log of an experiment: whole lines of all processes, and the story that they tell."""

import logging
import multiprocessing
import re
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

from evotree.experiments.execution import run_experiment
from evotree.experiments.experiment import Experiment, Protocol
from evotree.experiments.logs import LOG_FILE, log_to_file

LOG = logging.getLogger("evotree.experiments.tests")
CONTEXTS = ["fork", *(pytest.param(one, marks=pytest.mark.slow) for one in ("spawn", "forkserver"))]


@pytest.fixture(autouse=True)
def unheard_by_pytest(request):
    """Keep odd characters from the reports that test processes send to each other as UTF-8."""
    handler = request.config.pluginmanager.getplugin("logging-plugin").report_handler

    def hear_nothing(record):
        return False

    handler.addFilter(hear_nothing)
    yield
    handler.removeFilter(hear_nothing)


def fields(path):
    """Return level, process and message of each line, all of which have to be whole."""
    pattern = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ([A-Z]+) (\d+) (.*)"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [re.fullmatch(pattern, line).groups() for line in lines]


def chatter(worker):
    for k in range(200):
        # Some lines are longer than what a pipe takes at once.
        LOG.info("w%d line %d %s.", worker, k, "x" * (100_000 if k % 50 == 7 else k))
    LOG.debug("too low")


@pytest.mark.parametrize("method", CONTEXTS)
def test_workers_lose_nothing_and_mix_nothing(method, tmp_path):
    context, logger = multiprocessing.get_context(method), logging.getLogger("evotree")
    before = logger.level, logger.handlers[:]
    path = tmp_path / "a.log"
    with log_to_file(path, context) as first:
        call = (first.function, first.arguments) if first else (None, ())
        with ProcessPoolExecutor(3, context, *call) as pool:
            done = [pool.submit(chatter, worker) for worker in range(3)]
            LOG.info("parent")
            for future in done:
                future.result()
    assert (logger.level, logger.handlers) == before
    found = fields(path)
    assert {level for level, *_ in found} == {"INFO"}
    expected = Counter((f"w{worker}", str(k)) for worker in range(3) for k in range(200))
    lines = [text.split() for *_, text in found if text != "parent"]
    assert Counter((words[0], words[2]) for words in lines) == expected
    assert all(text == "parent" or text.endswith(".") for *_, text in found)
    for worker in range(3):  # the lines of each come in their order
        numbers = [int(words[2]) for words in lines if words[0] == f"w{worker}"]
        assert numbers == list(range(200))


def test_a_record_is_one_line(tmp_path):
    path, context = tmp_path / "a.log", multiprocessing.get_context()
    with log_to_file(path, context):
        LOG.info("one\ntwo\r\nthree\u2028four \udcff")
        try:
            print(1 / 0)
        except ZeroDivisionError:
            LOG.exception("failed")
    LOG.error("after")
    with pytest.raises(KeyError), log_to_file(path, context):
        LOG.error("appended")
        raise KeyError
    first, second, third = (text for *_, text in fields(path))
    assert first == r"one\ntwo\nthree\nfour \udcff"
    assert re.fullmatch(r"failed\\nTraceback.*\\nZeroDivisionError: division by zero", second)
    assert third == "appended"


class Loud(ClassifierMixin, BaseEstimator):
    """Warns twice of one thing, then fails if it is told to."""

    def __init__(self, fails=False):
        self.fails = fails

    def fit(self, X, y):
        """Warn."""
        for _ in range(2):
            warnings.warn("odd\nrows", RuntimeWarning, stacklevel=1)
        if self.fails:
            raise ValueError("cannot open '\udcff.csv'")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        """Return the first class."""
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("method", CONTEXTS)
def test_one_log_tells_the_story_of_a_run(method, tmp_path):
    methods = {"CART": DecisionTreeClassifier(), "loud": Loud(), "bad": Loud(fails=True)}
    made = Experiment("try", ["sklearn:iris"], methods, Protocol(2))
    context = multiprocessing.get_context(method)
    runs = run_experiment(made, tmp_path, mp_context=context, progress=False)
    row = runs[(runs["method"] == "CART") & (runs["fold"] == 0)].iloc[0]
    assert runs["error"].str.contains(r"\\udcff").sum() == 2
    found = fields(tmp_path / LOG_FILE)
    assert found[0][2] == "try: 6 of 6 fits to do"
    assert len({process for _, process, _ in found}) == 2  # of this process and of the worker
    where = "sklearn:iris, {}, fold 0, seed 0: {}"
    story = [(level, text) for level, _, text in found if ", fold 0" in text]
    assert story == [
        ("INFO", where.format("CART", "begun")),
        ("INFO", where.format("CART", f"done in {row.seconds:.2f} s, accuracy {row.accuracy:.4f}")),
        ("INFO", where.format("loud", "begun")),
        ("WARNING", where.format("loud", r"RuntimeWarning: odd\nrows")),
        ("INFO", where.format("loud", story[4][1].split(": ")[-1])),
        ("INFO", where.format("bad", "begun")),
        ("WARNING", where.format("bad", r"RuntimeWarning: odd\nrows")),
        ("ERROR", where.format("bad", r"failed: ValueError: cannot open '\udcff.csv'")),
    ]
    assert re.fullmatch(r"done in \d\.\d\d s, accuracy 0\.3333", story[4][1].split(": ")[-1])

"""What a report says of its experiment: data, methods, machine, and what is left out."""

import hashlib

import pandas as pd
import pytest
from scipy.stats import loguniform, randint
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evotree.experiments.datasets import load
from evotree.experiments.experiment import as_code, describe, searches
from evotree.experiments.what_was_run import what_is_left_out, what_was_run

SEARCHED = RandomizedSearchCV(
    make_pipeline(StandardScaler(), LogisticRegression()),
    {"logisticregression__C": loguniform(0.01, 10.0)},
    n_iter=4,
    cv=3,
)


@pytest.fixture
def runs():
    """Two methods on two data sets, three folds, two seeds; all done."""
    key = [
        (dataset, method, fold, seed)
        for dataset in ("iris", "wine")
        for method in ("A", "B_b")
        for fold in range(3)
        for seed in (4, 7)
    ]
    runs = pd.DataFrame(key, columns=["dataset", "method", "fold", "seed"])
    return runs.assign(
        status="done",
        error="",
        leaves=3.0,
        versions='{"python": "3.11.7"}',
        revision="abc",
        finished="2026-01-0" + (1 + runs.fold).astype(str) + "T10:00:00",
    )


DEFINITION = {
    "methods": {"A": {}, "B_b": {}},
    "datasets": ["iris", "wine"],
    "seeds": [4, 7],
    "protocol": {"kind": "Protocol", "n_folds": 3, "official": False},
    "shown": ["Protocol: 3 folds."],
    "data": {"iris": {"rows": 150, "columns": 4, "classes": 3}, "wine": {"rows": 9, "columns": 13}},
    "sources": {"iris": "iris_x.csv, SHA-256 ab", "wine": "scikit-learn"},
    "machines": ["Linux, 2 logical cores; 1 process, one thread a fit"],
}


def left_out(runs, definition=DEFINITION):
    return "\n".join(what_is_left_out(runs, definition, {"leaves": "leaves of trees"}))


def test_all_is_told(runs):
    text = "\n".join(what_was_run(runs, DEFINITION))
    for said in (
        "- Protocol: 3 folds.",
        "- Seeds: 4, 7; fits of a method on a data set: 6.",
        "- Versions: python 3.11.7.",
        "- Machine: Linux, 2 logical cores; 1 process, one thread a fit.",
        "- Run 2026-01-01 to 2026-01-03.",
        "| data set | source | rows | features | classes |",
        r"| iris | iris\_x.csv, SHA-256 ab | 150 | 4 | 3 |",
        "| wine | scikit-learn | 9 | 13 | – |",
    ):
        assert said in text
    older = {name: DEFINITION[name] for name in ("methods", "shown")}
    assert "| data set" not in "\n".join(what_was_run(runs, older))


def test_nothing_may_be_left_out(runs):
    assert left_out(runs) == "## What is left out\nNothing: all 24 fits are done."
    assert left_out(runs, {"methods": {"A": {}, "B_b": {}}}).endswith("all 24 fits are done.")


def test_fits_that_ended_otherwise_are_counted_by_their_errors(runs):
    of_b = runs.method.eq("B_b")
    bad, slow = of_b & runs.dataset.eq("wine"), of_b & runs.dataset.eq("iris") & runs.fold.eq(0)
    runs.loc[bad, "status"] = "failed"
    runs.loc[bad, "error"] = [f"Traceback\n  x\nValueError: row {i} | bad" for i in range(6)]
    runs.loc[slow, "status"], runs.loc[slow, "error"] = "timeout", "stopped after 2.1 of 2 s"
    text = left_out(runs)
    assert "8 of 24 fits are in no table:" in text
    assert r"| B\_b | wine | failed | 6 | ValueError: row 0 \| bad |" in text
    assert r"| B\_b | iris | timeout | 2 | limit of 2 s |" in text
    assert r"iris (B\_b without fits on some folds); wine (B\_b without fits" in text


def test_what_was_not_run_is_told(runs):
    text = left_out(runs[~(runs.method.eq("A") & runs.dataset.eq("wine") & runs.fold.gt(0))])
    assert "- Not run: A: 4 of 6 on wine." in text and "wine (A without fits on some" in text
    stopped = left_out(runs[runs.seed == 4])
    assert r"Not run: A: 3 of 6 on iris, 3 of 6 on wine; B\_b: 3 of 6 on iris" in stopped


def test_methods_without_a_figure_are_named(runs):
    runs.loc[runs.method == "B_b", "leaves"] = None
    assert r"- Tables of leaves of trees are without B\_b: no such figures." in left_out(runs)
    assert "Nothing: all 24" in left_out(runs.assign(leaves=None))


def test_a_file_is_told_by_its_sum(tmp_path):
    path = tmp_path / "toy.csv"
    path.write_text("a,target\n1,0\n2,1\n")
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    assert load("toy", tmp_path).source == f"toy.csv, SHA-256 {expected}"
    assert load("sklearn:wine").source == "scikit-learn's load_wine"


# ---- methods -------------------------------------------------------------------------------------


def test_code_makes_the_method_again():
    grid = {"max_depth": list(range(1, 60)), "criterion": ["gini", "entropy"]}
    method = GridSearchCV(DecisionTreeClassifier(min_samples_leaf=2), [grid], cv=3)
    names = {one.__name__: one for one in (DecisionTreeClassifier, GridSearchCV)}
    made = eval(as_code(method), names)
    assert made.param_grid == method.param_grid and describe(made) == describe(method)
    assert as_code(SEARCHED) == (
        "RandomizedSearchCV(cv=3, estimator=Pipeline(steps=[('standardscaler', StandardScaler()), "
        "('logisticregression', LogisticRegression())]), n_iter=4, "
        "param_distributions={'logisticregression__C': loguniform(0.01, 10.0)})"
    )
    assert as_code((1,)) == "(1,)" and as_code(randint(low=1, high=4)) == "randint(low=1, high=4)"


def test_distributions_tell_methods_apart():
    other = {"logisticregression__C": loguniform(0.01, 20.0)}
    texts = [describe(SEARCHED), describe(clone(SEARCHED).set_params(param_distributions=other))]
    assert texts[0] != texts[1] and "0x" not in str(texts)


def test_searches_are_told_however_deep():
    (text,) = searches(make_pipeline(StandardScaler(), SEARCHED))
    assert (
        "RandomizedSearchCV: 4 settings at random, compared by its own score over 3 folds" in text
    )
    grid = {"max_depth": [1, 2], "criterion": ["gini", "entropy"]}
    (text,) = searches(GridSearchCV(DecisionTreeClassifier(), grid, scoring="f1_macro"))
    assert "all 4 settings of its grid, compared by 'f1_macro' over 5 folds" in text
    assert searches(DecisionTreeClassifier()) == []

"""Methods in files: pipelines and searches at any depth, and what is refused."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import loguniform, randint
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from evotree import ObliqueTreeClassifier
from evotree.experiments.execution import run_experiment
from evotree.experiments.experiment import as_code, describe, read_experiment
from evotree.experiments.method_tables import MAX_DEPTH, make_method
from evotree.experiments.report import write_report

NESTED = Path(__file__).resolve().parents[2] / "docs" / "experiments" / "nested.toml"


def made(text):
    return make_method(tomllib.loads(text), "methods.m")


def same(text, expected):
    """Tell whether a table makes an estimator."""
    found = made(text)
    return describe(found) == describe(expected) and as_code(found) == as_code(expected)


# ---- round trips ---------------------------------------------------------------------------------


def test_a_pipeline_has_named_steps():
    text = """
    svc__gamma = 0.5
    memory = "cache"
    [[steps]]
    estimator = "sklearn.preprocessing.StandardScaler"
    with_mean = false
    [[steps]]
    name = "best"
    estimator = "sklearn.feature_selection.SelectKBest"
    k = 2
    [[steps]]
    estimator = "sklearn.svm.SVC"
    C = 3.0
    """
    steps = [
        ("standardscaler", StandardScaler(with_mean=False)),
        ("best", SelectKBest(k=2)),
        ("svc", SVC(C=3.0, gamma=0.5)),
    ]
    assert same(text, Pipeline(steps, memory="cache"))
    by_path = 'estimator = "sklearn.pipeline.Pipeline"\n' + text
    assert same(by_path, Pipeline(steps, memory="cache"))


def test_searches_nest():
    text = """
    estimator = "sklearn.model_selection.GridSearchCV"
    cv = 4
    scoring = "balanced_accuracy"
    param_grid = {bag__n_estimators = [2, 3], scale__with_std = [true, false]}
    [[of.steps]]
    name = "scale"
    estimator = "sklearn.preprocessing.StandardScaler"
    [[of.steps]]
    name = "bag"
    estimator = "sklearn.ensemble.BaggingClassifier"
    [of.steps.of]
    estimator = "sklearn.model_selection.RandomizedSearchCV"
    n_iter = 3
    of = {estimator = "sklearn.tree.DecisionTreeClassifier", min_samples_leaf = 2}
    [of.steps.of.param_distributions]
    max_depth = {distribution = "randint", low = 1, high = 5}
    ccp_alpha = {distribution = "loguniform", a = 0.001, b = 0.1}
    criterion = ["gini", "entropy"]
    """
    space = {
        "max_depth": randint(low=1, high=5),
        "ccp_alpha": loguniform(a=0.001, b=0.1),
        "criterion": ["gini", "entropy"],
    }
    inner = RandomizedSearchCV(DecisionTreeClassifier(min_samples_leaf=2), space, n_iter=3)
    steps = [("scale", StandardScaler()), ("bag", BaggingClassifier(inner))]
    grid = {"bag__n_estimators": [2, 3], "scale__with_std": [True, False]}
    outer = GridSearchCV(Pipeline(steps), grid, cv=4, scoring="balanced_accuracy")
    assert same(text, outer)


def test_estimators_may_stand_in_grids_and_lists():
    text = """
    estimator = "sklearn.model_selection.GridSearchCV"
    of = {steps = [{name = "scale", estimator = "sklearn.preprocessing.StandardScaler"},
                   {name = "model", estimator = "sklearn.svm.SVC"}]}
    [[param_grid]]
    scale = [{estimator = "sklearn.preprocessing.StandardScaler"},
             {estimator = "sklearn.preprocessing.MinMaxScaler"}]
    [[param_grid]]
    model = [{preset = "WODT"}]
    model__max_depth = [2, 3]
    """
    pipeline = Pipeline([("scale", StandardScaler()), ("model", SVC())])
    wodt = ObliqueTreeClassifier.from_preset("WODT")
    grids = [
        {"scale": [StandardScaler(), MinMaxScaler()]},
        {"model": [wodt], "model__max_depth": [2, 3]},
    ]
    assert same(text, GridSearchCV(pipeline, grids))
    text = """
    estimator = "sklearn.ensemble.VotingClassifier"
    estimators = [{estimator = "sklearn.svm.SVC"}, {name = "tree", preset = "WODT", max_depth = 2}]
    weights = [1, 2]
    """
    tree = ObliqueTreeClassifier.from_preset("WODT", max_depth=2)
    assert same(text, VotingClassifier([("svc", SVC()), ("tree", tree)], weights=[1, 2]))
    assert same('estimator = "sklearn.ensemble.RandomForestClassifier"', RandomForestClassifier())


def test_the_nested_example_runs_and_is_reported(tmp_path):
    experiment = read_experiment(NESTED)
    svm, logistic = experiment.methods["SVM"], experiment.methods["logistic"]
    assert isinstance(svm.estimator.named_steps["svm"], SVC)
    assert isinstance(logistic.named_steps["logisticregression"], LogisticRegression)
    runs = run_experiment(
        type(experiment)(
            experiment.name,
            ["sklearn:iris"],
            experiment.methods,
            type(experiment.protocol)(2),
        ),
        tmp_path,
        jobs=1,
    )
    assert (runs["status"] == "done").all() and (runs["accuracy"] > 0.85).all()
    assert runs.loc[runs.method == "WODT", "leaves"].ge(3).all()
    write_report(tmp_path, "SVM")
    text = (tmp_path / "report.md").read_text()
    assert "SVM: nested search by RandomizedSearchCV: 8 settings at random" in text
    assert "WODT: nested search by GridSearchCV: all 3 settings of its grid" in text
    assert "'svm__C': loguniform(a=0.01, b=100)" in text
    again = run_experiment(read_experiment(NESTED), tmp_path / "again", jobs=1, max_seconds=1e-9)
    assert again.empty


# ---- what is refused -----------------------------------------------------------------------------

SEARCH = """
estimator = "sklearn.model_selection.GridSearchCV"
[of]
steps = [
    {name = "scale", estimator = "sklearn.preprocessing.StandardScaler"},
    {name = "svm", estimator = "sklearn.svm.SVC", C = 2.0},
]
[param_grid]
svm__C = [1.0, 10.0]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("svm__C =", "svm__c =", r"\[methods.m.param_grid\]: .*'svm__c'. Did you mean svm__C"),
        ("[1.0, 10.0]", "3.0", r"\[methods.m.param_grid\]: svm__C=3.0: allowed are lists"),
        ("[1.0, 10.0]", "[]", r"svm__C=\[\]: allowed are lists"),
        (
            "[1.0, 10.0]",
            "[1.0, -1.0]",
            r"svm__C=-1.0: The 'C' parameter of SVC must be .* Got -1.0",
        ),
        (
            "[1.0, 10.0]",
            '{distribution = "loguniform", a = 0.1, b = 1}',
            "allowed are lists of values",
        ),
        (
            "[1.0, 10.0]",
            "[{estimator = 'sklearn.svm.SV'}]",
            r"\[methods.m.param_grid.svm__C\[0\]\]",
        ),
        ("C = 2.0", "c = 2.0", r"\[methods.m.of.steps\[1\]\]: Invalid parameter 'c'"),
        ("C = 2.0", "C = -2.0", r"\[methods.m.of.steps\[1\]\]: .*'C' parameter .*Got -2.0"),
        ("svm.SVC", "svm.SVX", r"\[methods.m.of.steps\[1\]\]: .*SVX"),
        ('"svm"', '"scale"', r"\[methods.m.of.steps\]: 2 have the name 'scale'"),
        ('"svm"', '"a__b"', "name='a__b': allowed are strings"),
        ('"svm"', "3", "name=3: allowed are strings"),
        (
            "preprocessing.StandardScaler",
            "svm.LinearSVC",
            r"\[methods.m.of.steps\[0\]\]: scale is a LinearSVC, which transforms nothing",
        ),
        ("preprocessing.StandardScaler", "datasets.load_iris", r"\[methods.m.of.steps\[0\]\]"),
        ("sklearn.preprocessing.StandardScaler", "os.abort", r"steps\[0\]\]: estimator='os.abort'"),
        ("steps =", "stages =", r"\[methods.m\.of\] needs an 'estimator', a 'preset' or 'steps'"),
        ("[of]", "[off]", "GridSearchCV needs the table 'of'"),
        ("[param_grid]", "[grid]", "GridSearchCV needs 'param_grid'"),
        ("GridSearchCV", "GridSearch", r"\[methods.m\]: .*GridSearch"),
        ('GridSearchCV"', 'GridSearchCV"\ncv = 1', "'cv' parameter of GridSearchCV"),
        ('GridSearchCV"', 'GridSearchCV"\ncv = true', "'cv' parameter of GridSearchCV .*Got True"),
        ('GridSearchCV"', 'GridSearchCV"\ncv = [3]', r"cv=\[3\]: allowed are integers"),
        ('GridSearchCV"', 'GridSearchCV"\nscoring = "best"', "'scoring' parameter"),
        ('GridSearchCV"', 'GridSearchCV"\nn_iter = 3', "Invalid parameter 'n_iter'"),
        ("[1.0, 10.0]", f"{[1.0] * 400}\nsvm__gamma = {[1.0] * 400}", "160,000 settings: allowed"),
    ],
)
def test_mistakes_are_named_with_their_place(old, new, message):
    assert SEARCH.count(old) >= 1
    with pytest.raises(ValueError, match=message) as caught:
        made(SEARCH.replace(old, new, 1))
    assert str(caught.value).startswith("[methods.m") and len(str(caught.value)) < 1500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps = []", r"\[methods.m.steps\] is \[\]: a list of tables"),
        ("steps = 3", r"\[methods.m.steps\] is 3: a list of tables"),
        ('steps = ["a"]', r"\[methods.m.steps\] is \['a'\]: a list of tables"),
        ("steps = [{}]", r"\[methods.m.steps\[0\]\] needs an 'estimator'"),
        ('preset = "WODT"\nsteps = []', "one of them"),
        ('preset = "WODT"\nof = {preset = "WODT"}', r"\[methods.m\]: .*of"),
        ('estimator = "sklearn.svm.SVC"\nof = {preset = "WODT"}', "of: SVC is made of no other"),
        ('estimator = "sklearn.tree.DecisionTreeClassifier"\nmax_depth = -1', "max_depth.*Got -1"),
        ('estimator = "evotree.EvoTreeClassifier"\nmax_generations = -1', "max_generations.*-1"),
        ("max_depth = 3", "needs an 'estimator', a 'preset' or 'steps'"),
    ],
)
def test_mistakes_in_single_tables_are_named(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        made(text)
    assert str(caught.value).startswith("[methods.m")


RANDOM = """
estimator = "sklearn.model_selection.RandomizedSearchCV"
of = {{estimator = "sklearn.svm.SVC"}}
param_distributions = {{C = {{{}}}}}
"""


@pytest.mark.parametrize(
    ("distribution", "message"),
    [
        ('distribution = "cauchy"', "distribution='cauchy': allowed are beta, expon"),
        ("distribution = 3", "distribution=3: allowed are"),
        ('distribution = "loguniform", a = 1', "loguniform with .*parameters are a, b, loc"),
        ('distribution = "loguniform", a = 2, b = 1', "loguniform with .*parameters are a, b, loc"),
        ('distribution = "loguniform", a = 1, c = 2', "c=2: allowed are finite numbers as a, b"),
        ('distribution = "loguniform", a = "1", b = 2', "a='1': allowed are finite numbers"),
        ('distribution = "uniform", loc = nan', "loc=nan: allowed are finite numbers"),
        ('distribution = "randint", low = 1, high = 3, scale = 2', "scale=2: allowed .*high, loc"),
        (
            'distribution = "norm", loc = -9, scale = 0.1',
            r"C=.*-8\.8.*: The 'C' parameter of SVC must",
        ),
    ],
)
def test_mistakes_in_distributions_are_named(distribution, message):
    with pytest.raises(ValueError, match=message) as caught:
        made(RANDOM.format(distribution))
    assert str(caught.value).startswith("[methods.m.param_distributions")


def test_draws_are_those_of_the_distribution():
    search = made(RANDOM.format('distribution = "uniform", loc = 2, scale = 3'))
    draws = search.param_distributions["C"].rvs(500, random_state=0)
    assert draws.min() >= 2.0 and draws.max() <= 5.0 and np.ptp(draws) > 2.5


def test_tables_may_not_be_too_deep():
    def nested(n):
        table = {"estimator": "sklearn.tree.DecisionTreeClassifier"}
        for _ in range(n):
            table = {"estimator": "sklearn.ensemble.BaggingClassifier", "of": table}
        return table

    assert isinstance(make_method(nested(MAX_DEPTH - 1), "methods.m"), BaggingClassifier)
    for table in (nested(MAX_DEPTH + 1), nested(5000)):
        with pytest.raises(ValueError, match=rf"lies in {MAX_DEPTH + 1} tables: allowed are"):
            make_method(table, "methods.m")
    plain = value = {}
    for _ in range(5000):
        value["x"] = value = {}
    with pytest.raises(ValueError, match="tables: allowed are at most"):
        make_method({"preset": "WODT", "max_depth": plain}, "methods.m")

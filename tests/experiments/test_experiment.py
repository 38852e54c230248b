"""Experiments: what may be defined, in Python and in TOML, at any depth, and what is refused."""

import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from evotree import (
    Evolution,
    EvoTreeClassifier,
    ObliqueTreeClassifier,
)
from evotree.experiments.execution import run_experiment
from evotree.experiments.experiment import (
    Experiment,
    as_code,
    describe_method,
    make_method,
    read_experiment,
    tree_sizes,
)
from evotree.experiments.protocols import Protocol, Task
from evotree.experiments.report import write_report
from tests.damage import damaged, fuzz, sound_or_refused

TREE = DecisionTreeClassifier(max_depth=3)
NESTED = Path(__file__).resolve().parents[2] / "docs" / "experiments" / "nested.toml"


def double(X):
    return 2 * X


def experiment(**changed):
    arguments = {"name": "try", "datasets": ["iris"], "methods": {"CART": TREE}}
    return Experiment(**arguments | changed)


def test_tasks_are_all_combinations_and_balanced():
    methods = {"x": TREE, "y": TREE}
    made = experiment(
        datasets=["a", "b"], methods=methods, seeds=[3, 1], protocol=Protocol(4)
    )
    tasks = made.tasks()
    assert len(tasks) == len(set(tasks)) == 2 * 2 * 2 * 4
    assert tasks[0] == Task("a", "x", 0, 3)
    for n in (4, 8, 16):  # what is done first has all data sets and methods alike
        assert len({(task.dataset, task.method) for task in tasks[:n]}) == 4


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("datasets", "iris"),
        ("datasets", ["iris", "iris"]),
        ("seeds", [0.5]),
        ("metrics", []),
        ("metrics", ["log_loss"]),
        ("methods", {}),
        ("methods", {"scale": StandardScaler()}),
        ("n_folds", 1),
    ],
)
def test_bad_definitions_are_named(name, wrong):
    with pytest.raises(ValueError, match=name):
        experiment(
            **{name: wrong} if name != "n_folds" else {"protocol": Protocol(wrong)}
        )


def test_definitions_tell_experiments_apart():
    same = experiment(methods={"CART": DecisionTreeClassifier(max_depth=3)})
    assert experiment().definition() == same.definition()
    for changed in (
        {"methods": {"CART": DecisionTreeClassifier(max_depth=4)}},
        {"methods": {"CART": DummyClassifier()}},
        {"metrics": ["balanced_accuracy"]},
        {"metrics": [], "scorers": {"length": len}},
        {"protocol": Protocol(3)},
        {"protocol": Protocol(target="area")},
    ):
        assert experiment(**changed).definition() != same.definition()
    space = {"logisticregression__C": loguniform(0.01, 10.0)}
    search = RandomizedSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()), space, cv=3
    )
    space = {"logisticregression__C": loguniform(1, 2)}
    assert describe_method(search) != describe_method(
        clone(search).set_params(param_distributions=space)
    )
    # Functions are told by their names, not by where they lie, which no second start would know.
    functions = [FunctionTransformer(np.log1p), FunctionTransformer(double)]
    method = make_pipeline(*functions, TREE)
    for text in (describe_method(method), as_code(method), describe_method(search)):
        assert "0x" not in str(text)


@pytest.mark.parametrize("name", ["C", "logisticregression__C"])
def test_methods_of_scikit_learn_are_described_by_what_is_not_its_default(name):
    """Rows of one of its versions count in another, which has more parameters."""
    method = (
        LogisticRegression() if name == "C" else make_pipeline(LogisticRegression())
    )
    assert describe_method(method) == describe_method(
        clone(method).set_params(**{name: 1.0})
    )
    changed = describe_method(clone(method).set_params(**{name: 2.0}))
    assert changed != describe_method(method)
    assert "'C': 2.0" in changed["parameters"] and "solver" not in str(changed)


def test_a_method_is_described_by_its_public_name():
    """Its rows count wherever the package keeps its class."""
    tree = ObliqueTreeClassifier()
    assert describe_method(tree)["estimator"] == "evotree.ObliqueTreeClassifier"
    kind, own = DummyClassifier, type("Own", (DummyClassifier,), {})
    assert describe_method(kind())["estimator"] == f"{kind.__module__}.DummyClassifier"
    assert describe_method(own())["estimator"] == f"{__name__}.Own"


TOML = """
name = "small"
datasets = ["iris", "wine"]
seeds = [0, 1]
metrics = ["accuracy", "train_accuracy"]

[protocol]
n_folds = 3

[methods.CART]
estimator = "sklearn.tree.DecisionTreeClassifier"
max_depth = 3

[methods.WODT]
preset = "WODT"
max_depth = 4

[methods.GEA-ODT]
preset = "gea_odt"
size_penalty = 0.01
"""


def read(tmp_path, text):
    path = tmp_path / "experiment.toml"
    path.write_text(text)
    return read_experiment(path)


def test_a_file_says_the_same_as_python(tmp_path):
    methods = {
        "CART": DecisionTreeClassifier(max_depth=3),
        "WODT": ObliqueTreeClassifier.from_preset("WODT", max_depth=4),
        "GEA-ODT": EvoTreeClassifier.from_preset("gea_odt", size_penalty=0.01),
    }
    metrics = ["accuracy", "train_accuracy"]
    expected = Experiment(
        "small", ["iris", "wine"], methods, Protocol(3), [0, 1], metrics
    )
    assert read(tmp_path, TOML).definition() == expected.definition()
    assert read(tmp_path, TOML).tasks() == expected.tasks()
    named = read(tmp_path, TOML.replace("= 3", '= 3\ntarget = "area"', 1))
    assert named.protocol == Protocol(3, target="area")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "small"', "name = small", "line 2"),
        ("seeds", "seed", "has 'seed': allowed are"),
        ('name = "small"', "", "'name'"),
        ("n_folds = 3", "target = 3", "The 'target' parameter of Protocol .* Got 3"),
        ("n_folds = 3", "folds = 3", r"\[protocol\] has 'folds'"),
        ("max_depth = 3", "depth = 3", r"\[methods.CART\]: .*'depth'"),
        (
            "max_depth = 3",
            "max_depth = -1",
            r"\[methods.CART\]: .*'max_depth' .*Got -1",
        ),
        (
            '"WODT"\n',
            '"WODTT"\n',
            r"\[methods.WODT\]: preset='WODTT': allowed are card, gea",
        ),
        ("sklearn.tree", "sklearn.trees", r"\[methods.CART\]: No module named"),
        ("estimator =", "kind =", "needs an 'estimator', a 'preset' or 'steps'"),
        ("= 0.01", "= 1\nevolution__population_size = 0", "'population_size' .* Got 0"),
        ("max_depth = 3", f"x = {600 * '[' + 600 * ']'}", "nested|recursion"),
    ],
)
def test_mistakes_in_files_are_named(tmp_path, old, new, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path, TOML.replace(old, new, 1))
    assert str(tmp_path / "experiment.toml") in str(caught.value)


def test_the_nested_example_runs_and_is_reported(tmp_path):
    made = read_experiment(NESTED)
    small = Experiment(made.name, ["sklearn:iris"], made.methods, Protocol(2))
    runs = run_experiment(small, tmp_path, jobs=1)
    assert (runs["status"] == "done").all() and (runs["accuracy"] > 0.85).all()
    assert runs.loc[runs.method == "WODT", "leaves"].ge(3).all()
    write_report(tmp_path, "SVM")
    assert "'svc__C': [0.1, 1, 10]" in (tmp_path / "report.md").read_text()


SEARCH = """
estimator = "sklearn.model_selection.GridSearchCV"
of.steps = [
    {estimator = "sklearn.preprocessing.StandardScaler"},
    {estimator = "sklearn.svm.SVC", C = 2.0},
]
param_grid.svc__C = [1.0, 10.0]
"""
BAG = """
estimator = "sklearn.ensemble.BaggingClassifier"
n_estimators = 3
of = {preset = "WODT", min_samples_leaf = 2}
"""
INNER = """
estimator = "evotree.EvoTreeClassifier"
evolution__population_size = 9
"""
WODT = ObliqueTreeClassifier.from_preset("WODT", min_samples_leaf=2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            SEARCH,
            GridSearchCV(
                make_pipeline(StandardScaler(), SVC(C=2.0)), {"svc__C": [1.0, 10.0]}
            ),
        ),
        (BAG, BaggingClassifier(WODT, n_estimators=3)),
        (INNER, EvoTreeClassifier(evolution=Evolution(population_size=9))),
    ],
)
def test_tables_nest(text, expected):
    method = make_method(tomllib.loads(text), "methods.m")
    assert describe_method(method) == describe_method(expected)
    assert as_code(method) == as_code(expected)


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (SEARCH, "C = 2.0", "c = 2.0", r"\[methods.m.of.steps\[1\]\]: .*'c'"),
        (SEARCH, "C = 2.0", "C = -2.0", "'C' parameter of SVC .* Got -2.0"),
        (SEARCH, "of.steps", "off.steps", "'off'"),
        (SEARCH, 'CV"', 'CV"\ncv = 1', "'cv' parameter of GridSearchCV"),
        (SEARCH, '{estimator = "sklearn.svm.SVC", C = 2.0}', "3", "it is 3"),
        (INNER, "evolution__", "", "'population_size'"),
        (BAG, "preset", "presets", r"\[methods.m.of\] needs an 'estimator'"),
    ],
)
def test_mistakes_in_tables_are_named_with_their_place(text, old, new, message):
    with pytest.raises(ValueError, match=message) as caught:
        make_method(tomllib.loads(text.replace(old, new, 1)), "methods.m")
    assert str(caught.value).startswith("[methods.m")


def test_sizes_of_trees_and_forests():
    X, y = load_iris(return_X_y=True)
    cart = DecisionTreeClassifier(random_state=0).fit(X, y)
    leaves = cart.get_n_leaves()
    assert tree_sizes(cart) == {
        "leaves": leaves,
        "nodes": 2 * leaves - 1,
        "terms": leaves - 1,
        "complexity": 2 * leaves - 1,
        "depth": cart.get_depth(),
    }
    oblique = ObliqueTreeClassifier("linear", max_depth=2).fit(X, y)
    sizes = tree_sizes(oblique)
    assert sizes["nodes"] == 2 * sizes["leaves"] - 1 == len(oblique.tree_)
    assert sizes["terms"] == 4 * (sizes["leaves"] - 1)
    assert sizes["complexity"] == oblique.tree_.complexity
    for member in (TREE, ObliqueTreeClassifier("axis", max_depth=2)):
        bag = BaggingClassifier(member, 3, random_state=0).fit(X, y)
        sizes = [tree_sizes(tree) for tree in bag.estimators_]
        for name, size in tree_sizes(bag).items():
            joined = max if name == "depth" else sum
            assert size == joined(tree[name] for tree in sizes)
    assert tree_sizes(SVC().fit(X, y)) == {}


def test_the_interpreter_runs_nothing_that_an_experiment_names(tmp_path):
    """Functions are not called, and commands and the standard library are not imported."""
    path = tmp_path / "experiment.toml"
    modules = (
        "os.abort antigravity.fly pytest.__main__.x numpy.show_config ..tree a/b.c"
    )
    others = "sklearn.datasets.load_iris sklearn.tree.export_text pandas.DataFrame"
    for address in f"{modules} {others}".split():
        path.write_text(
            f'name = "a"\ndatasets = ["b"]\nmethods.c.estimator = "{address}"\n'
        )
        with pytest.raises(
            ValueError, match=r"experiment\.toml: \[methods\.c\]: estimator="
        ):
            read_experiment(path)
    assert "antigravity" not in sys.modules


# ---- files as strangers may send them ------------------------------------------------------------


SOUND = b"""
name = "small"
datasets = ["sklearn:iris", "wine"]
seeds = [0, 1]
metrics = ["accuracy", "train_accuracy"]
protocol.n_folds = 2
[methods.CART]
estimator = "sklearn.tree.DecisionTreeClassifier"
max_depth = 3
[methods.EvoTree]
preset = "gea_odt"
max_generations = 3
"""


def use_experiment(experiment):
    assert 0 < len(experiment.tasks()) <= 10_000_000
    json.dumps(experiment.definition())
    assert all(isinstance(column, str) for column in experiment.columns())


@fuzz
@given(content=damaged([SOUND]))
def test_experiments(tmp_path, content):
    path = tmp_path / "experiment.toml"
    path.write_bytes(content)
    sound_or_refused(path, lambda: read_experiment(path), use_experiment)

"""Experiments: what may be defined, in Python and in TOML, and what is refused."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evotree import EvoTreeClassifier, ObliqueTreeClassifier
from evotree.experiments.experiment import Experiment, read_experiment
from evotree.experiments.protocols import OFFICIAL, Protocol, Task

TREE = DecisionTreeClassifier(max_depth=3)


def double(X):
    return 2 * X


def experiment(**changed):
    given = {"name": "try", "datasets": ["iris"], "methods": {"CART": TREE}}
    return Experiment(**given | changed)


def test_tasks_are_all_combinations_and_balanced():
    made = experiment(
        datasets=["a", "b"], methods={"x": TREE, "y": TREE}, seeds=[3, 1], protocol=Protocol(4)
    )
    tasks = made.tasks()
    assert len(tasks) == len(set(tasks)) == 2 * 2 * 2 * 4
    assert tasks[0] == Task("a", "x", 0, 3)
    for n in (4, 8, 16):  # what is done first has all data sets and methods alike
        assert len({(task.dataset, task.method) for task in tasks[:n]}) == 4
    official = experiment(protocol=Protocol(official=True)).tasks()
    assert official == [Task("iris", "CART", OFFICIAL, 0)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "name=''"),
        ({"datasets": []}, r"datasets=\[\]: at least one"),
        ({"datasets": "iris"}, "datasets='iris': at least one is needed, in a list"),
        ({"datasets": ["iris", "iris"]}, "each is allowed once"),
        ({"seeds": [-1]}, "seeds has -1"),
        ({"seeds": [0.5]}, "seeds has 0.5"),
        ({"metrics": []}, r"metrics=\[\]: at least one"),
        ({"metrics": "accuracy"}, "metrics='accuracy': at least one is needed, in a list"),
        ({"metrics": ["accurac"]}, "metrics has 'accurac'.*accuracy"),
        ({"methods": {}}, "methods={}"),
        ({"methods": {"CART": 3}}, r"methods\['CART'\]=3: allowed are classifiers"),
        ({"methods": {"scale": StandardScaler()}}, "allowed are classifiers and regressors"),
    ],
)
def test_bad_definitions_are_named(changed, message):
    with pytest.raises(ValueError, match=message):
        experiment(**changed)


def test_scorers_alone_are_enough():
    made = experiment(metrics=[], scorers={"found": len})
    assert "found" in made.columns() and "accuracy" not in made.columns()


def test_what_cannot_be_sent_is_refused_at_once():
    method = EvoTreeClassifier(callbacks=[lambda run: None])
    with pytest.raises(ValueError, match=r"methods\['mine'\].*cannot be sent to a worker"):
        experiment(methods={"mine": method})


@pytest.mark.parametrize("value", [1, 2.5, True])
def test_bad_folds_are_named(value):
    with pytest.raises(ValueError, match=f"n_folds={value}"):
        Protocol(value)


def test_definitions_tell_experiments_apart():
    same = experiment(methods={"CART": DecisionTreeClassifier(max_depth=3)})
    assert experiment().definition() == same.definition()
    for changed in (
        {"methods": {"CART": DecisionTreeClassifier(max_depth=4)}},
        {"methods": {"CART": DummyClassifier()}},
        {"metrics": ["balanced_accuracy"]},
        {"protocol": Protocol(3)},
    ):
        assert experiment(**changed).definition() != same.definition()
    nested = make_pipeline(StandardScaler(), LogisticRegression(C=2.0))
    other = make_pipeline(StandardScaler(), LogisticRegression(C=3.0))
    made = [experiment(methods={"line": method}).definition() for method in (nested, other)]
    assert made[0] != made[1]


def test_functions_are_told_by_their_names():
    """Not by where they lie, which no second start would know again."""
    method = make_pipeline(FunctionTransformer(np.log1p), FunctionTransformer(double), TREE)
    text = str(experiment(methods={"line": method}).definition()["methods"]["line"])
    assert "double" in text and "0x" not in text


# ---- files ---------------------------------------------------------------------------------------

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
    found = read(tmp_path, TOML)
    methods = {
        "CART": DecisionTreeClassifier(max_depth=3),
        "WODT": ObliqueTreeClassifier.from_preset("WODT", max_depth=4),
        "GEA-ODT": EvoTreeClassifier.from_preset("gea_odt", size_penalty=0.01),
    }
    expected = Experiment(
        "small", ["iris", "wine"], methods, Protocol(3), [0, 1], ["accuracy", "train_accuracy"]
    )
    assert found.definition() == expected.definition()
    assert found.tasks() == expected.tasks()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "small"', "name = small", "is not a TOML file: .*line 2"),
        ("seeds = [0, 1]", "seeds = [0,, 1]", "is not a TOML file: .*line 4"),
        ("seeds", "seed", "has 'seed': allowed are"),
        ('name = "small"', "", "has no 'name'"),
        ("n_folds = 3", "n_folds = 1", "n_folds=1: allowed are"),
        ("n_folds = 3", "folds = 3", r"\[protocol\] has 'folds'"),
        ('"accuracy"', '"precise"', "metrics has 'precise'"),
        ("max_depth = 3", "depth = 3", r"\[methods.CART\]: Invalid parameter 'depth'"),
        ('"WODT"\n', '"WODTT"\n', r"\[methods.WODT\]: preset='WODTT': allowed are gea_odt"),
        ("tree.Decision", "tree.Indecision", r"\[methods.CART\]: .*IndecisionTreeClassifier"),
        ("sklearn.tree", "sklearn.trees", r"\[methods.CART\]: No module named"),
        ("sklearn.tree.DecisionTreeClassifier", "CART", "allowed are import paths"),
        ("estimator =", "kind =", "needs an 'estimator', a 'preset' or 'steps'"),
        ("[methods.CART]\n", "[methods.CART]\npreset = 'WODT'\n", "one of them"),
    ],
)
def test_mistakes_in_files_are_named(tmp_path, old, new, message):
    assert TOML.count(old) >= 1
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path, TOML.replace(old, new, 1))
    assert str(tmp_path / "experiment.toml") in str(caught.value)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_experiment(tmp_path / "none.toml")


def test_any_estimator_will_do(tmp_path):
    text = TOML.replace("sklearn.tree.DecisionTree", "sklearn.ensemble.RandomForest")
    assert isinstance(read(tmp_path, text).methods["CART"], RandomForestClassifier)
    assert np.all([isinstance(name, str) for name in read(tmp_path, text).columns()])

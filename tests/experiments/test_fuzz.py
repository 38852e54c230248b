"""Lists of checksums and experiments as strangers may send them: sound, or refused by name."""

import json

import pandas as pd
from hypothesis import given

from evotree.experiments.datasets import load
from evotree.experiments.experiment import read_experiment
from tests.damage import damaged, fuzz, sound_or_refused


def use_dataset(data):
    assert len(data.X) == len(data.y) > 0 and data.X.shape[1] > 0
    assert not pd.isna(data.y).any() and data.X.columns.is_unique


@fuzz
@given(content=damaged([b"0" * 64 + b"  toy.csv\n" + b"1" * 64 + b" *other.csv\n"]))
def test_lists_of_checksums(tmp_path, content):
    home = tmp_path / "listed"
    home.mkdir(exist_ok=True)
    (home / "toy.csv").write_bytes(b"a,target\n1,x\n2,y\n")
    (home / "checksums.txt").write_bytes(content)
    sound_or_refused(home, lambda: load("toy", home), use_dataset)


TOML = b"""
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
@given(content=damaged([TOML]))
def test_experiments(tmp_path, content):
    path = tmp_path / "experiment.toml"
    path.write_bytes(content)
    sound_or_refused(path, lambda: read_experiment(path), use_experiment)

"""Experiments as strangers may send them: sound, or refused by name."""

import json

from hypothesis import given

from evotree.experiments.experiment import read_experiment
from tests.damage import damaged, fuzz, sound_or_refused

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

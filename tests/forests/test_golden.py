"""Forests, bit for bit; ``python -m tests.forests.test_golden`` writes their first trees again."""

from pathlib import Path

import pytest
from sklearn.datasets import load_diabetes, load_wine

from evotree import ObliqueForestClassifier, ObliqueForestRegressor
from tests.golden.test_golden import check, discrete, weighted, write

FILE = Path(__file__).with_name("trees.json")
RUNS = {
    "forest": (ObliqueForestClassifier(random_state=0), load_wine),
    "forest, discrete": (ObliqueForestClassifier(random_state=0), discrete),
    "forest, weighted": (ObliqueForestClassifier(random_state=0), weighted),
    "forest regression": (ObliqueForestRegressor(10, random_state=0), load_diabetes),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_forest_is_the_one_that_was_written(name):
    check(RUNS, FILE, name)


if __name__ == "__main__":
    write(RUNS, FILE)

"""Trees of every algorithm, bit for bit, so that a change of numbers is seen.

``python -m tests.golden.test_golden`` writes them again, where a change is meant. The last bits of
sums depend on the processor and on the libraries: elsewhere than where the trees were written, they
need only be as good.
"""

import json
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from llvmlite.binding import get_host_cpu_name
from sklearn.datasets import load_diabetes, load_iris, load_wine

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    Islands,
    ObliqueTreeClassifier,
    ObliqueTreeRegressor,
    Regularization,
    TAOClassifier,
    TAORegressor,
    Variation,
)
from evotree.estimators import GREEDY_PRESETS
from tests.quick_models import evolved


def discrete(return_X_y=True):
    """Wine in three levels a column: rows and columns tie."""
    X, y = load_wine(return_X_y=return_X_y)
    low, high = np.quantile(X, [1 / 3, 2 / 3], axis=0)
    return ((low < X).astype(float) + (high < X))[:, :4], y


def weighted(return_X_y=True):
    """Wine whose rows are seldom of one weight."""
    X, y = load_wine(return_X_y=return_X_y)
    return X, y, np.random.default_rng(0).exponential(size=len(y))


FILE = Path(__file__).with_name("trees.json")
LIBRARIES = ("deap", "numba", "numpy", "scikit-learn", "scipy")
FIXED = {
    "precision": None,
    "size_penalty": 0.005,
    "term_penalty": 0.0005,
    "population_size": 16,
    "max_generations": 12,
    "random_state": 0,
    "regularization": Regularization(C=1.0, noise=0.1),
}
NSGA2 = Variation(algorithm="nsga2")
greedy = partial(ObliqueTreeClassifier.from_preset, max_depth=4, random_state=0)
RUNS = {
    **{f"preset {name}": (greedy(name), load_iris) for name in GREEDY_PRESETS},
    "regression axis": (ObliqueTreeRegressor("axis", max_depth=3), load_diabetes),
    "TAO": (TAOClassifier(depth=3, random_state=0), load_wine),
    "TAO regression": (TAORegressor(depth=3, random_state=0), load_diabetes),
    "gea_odt": (
        EvoTreeClassifier.from_preset("gea_odt", max_generations=40, random_state=0),
        load_iris,
    ),
    "evolution": (evolved(EvoTreeClassifier, **FIXED), load_wine),
    "evolution regression": (
        evolved(EvoTreeRegressor, leaves="constant", **FIXED),
        load_diabetes,
    ),
    "nsga2": (evolved(EvoTreeClassifier, variation=NSGA2, **FIXED), load_iris),
    "islands": (
        evolved(EvoTreeClassifier, islands=Islands(2, every=4), **FIXED),
        load_iris,
    ),
    # What a user gets who sets nothing.
    "default": (EvoTreeClassifier(random_state=0), load_wine),
    "shares": (EvoTreeClassifier(leaves="constant", random_state=0), load_wine),
    "shares, discrete": (
        EvoTreeClassifier(leaves="constant", random_state=0),
        discrete,
    ),
    "shares, weighted": (
        EvoTreeClassifier(leaves="constant", random_state=0),
        weighted,
    ),
    "default regression": (EvoTreeRegressor(random_state=0), load_diabetes),
}


def place():
    """Return what the last bits depend on."""
    return {"cpu": get_host_cpu_name()} | {name: version(name) for name in LIBRARIES}


def grow(model, load):
    """Fit a model; return its tree as plain data, and its score on the training rows."""
    X, y, *weight = load(return_X_y=True)
    model.fit(X, y, *weight)
    first = model.trees_[0] if hasattr(model, "trees_") else model.tree_
    parts = ("weights", "thresholds", "subtree_size", "values")
    tree = {part: getattr(first, part).tolist() for part in parts}
    proba = getattr(model, "predict_proba", model.predict)(X[:5])
    return tree | {"score": model.score(X, y), "said": proba.tolist()}


def check(runs, file, name):
    """Compare the tree of a run with the one of a file, which has those of all runs."""
    written = json.loads(file.read_text(encoding="utf-8"))
    tree, expected = grow(*runs[name]), written["trees"][name]
    if written["place"] == place():
        assert tree == expected
    else:
        assert tree["score"] == pytest.approx(expected["score"], abs=0.05)
    assert np.isfinite(tree["thresholds"]).all() and set(written["trees"]) == set(runs)


def write(runs, file):
    """Write the trees of all runs to a file."""
    trees = {name: grow(*run) for name, run in runs.items()}
    content = json.dumps({"place": place(), "trees": trees})
    file.write_text(content + "\n", encoding="utf-8")


@pytest.mark.parametrize("name", RUNS)
def test_the_tree_is_the_one_that_was_written(name):
    check(RUNS, FILE, name)


if __name__ == "__main__":
    write(RUNS, FILE)

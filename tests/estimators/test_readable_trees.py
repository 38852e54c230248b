"""Trees of few terms, which a reader can check."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from evotree import EvoTreeClassifier, EvoTreeRegressor
from evotree.engine.choice import NOISES, TERM_MULTIPLES
from evotree.export import export_text
from tests.quick_models import evolved


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return train_test_split(X, y, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def readable(cancer):
    X, _, y, _ = cancer
    return EvoTreeClassifier(random_state=0).fit(X, y)


def test_a_reader_finds_few_terms_and_no_less_accuracy_than_an_axis_parallel_tree(cancer, readable):
    X, X_test, y, y_test = cancer
    cart = DecisionTreeClassifier(ccp_alpha=0.005, random_state=0).fit(X, y)
    assert readable.tree_.complexity <= 25
    assert readable.score(X_test, y_test) >= cart.score(X_test, y_test)
    shown = re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", export_text(readable))
    assert np.mean([len(number.strip("-").replace(".", "")) for number in shown]) < 5


def test_both_penalties_are_chosen_relative_to_the_rows(cancer, readable):
    n_rows = len(cancer[0])
    unit = np.log(n_rows) / n_rows
    assert 0.01 * unit < readable.size_penalty_ < unit
    assert readable.term_penalty_ / readable.size_penalty_ in TERM_MULTIPLES
    assert readable.regularization_.noise in NOISES


def test_axis_parallel_trees_are_evolved():
    X, y = load_iris(return_X_y=True)
    parameters = {"max_split_terms": 1, "random_state": 0}
    model = evolved(EvoTreeClassifier, **parameters).fit(X, y)
    assert (np.count_nonzero(model.tree_.weights, axis=1) <= 1).all()
    assert model.tree_.complexity == model.tree_.n_nodes
    assert model.score(X, y) > 0.94


def test_the_same_seed_gives_the_same_tree_for_any_number_of_workers():
    X, y = load_iris(return_X_y=True)
    one, two, islands = (
        evolved(EvoTreeClassifier, random_state=3, **how).fit(X, y)
        for how in ({"n_jobs": 1}, {"n_jobs": 2}, {"islands": 2, "max_generations": 5})
    )
    assert one.tree_ == two.tree_ and one.n_generations_ == two.n_generations_
    assert islands.score(X, y) > 0.9


def test_targets_too():
    X, y = load_diabetes(return_X_y=True)
    model = EvoTreeRegressor(max_generations=10, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.4 and model.tree_.complexity < 40

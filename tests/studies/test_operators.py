"""The study of operators: what its variants change, and what its rows are read to say."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from evotree.configuration import check_parameters
from evotree.experiments.experiment import describe_method
from evotree.experiments.store import checksum
from experiments.studies import operators
from experiments.studies.operators import (
    BASE,
    FACTORS,
    METHODS,
    at_end,
    fitness_within,
    method_name,
)


def model_of(records, seconds):
    """Return a fitted model whose search has these records of seconds and best fitness."""
    gens, at, fitness = range(len(records)), *zip(*records, strict=True)
    columns = {"gen": gens, "seconds": at, "fitness_best": fitness}
    history = [
        dict(zip(columns, one, strict=True))
        for one in zip(*columns.values(), strict=True)
    ]
    return SimpleNamespace(
        history_=history,
        seconds_={"making first trees": 1.0, "evolving": seconds - 1.0},
    )


def test_fitness_is_read_at_budgets(monkeypatch):
    monkeypatch.setattr(operators, "to_frame", pd.DataFrame)
    # The clock of the records began 0.5 seconds after the search.
    model = model_of([(1.0, 0.25), (2.0, 0.5), (4.0, 0.75)], seconds=4.5)
    by_generation = [fitness_within(model, "gen", n) for n in (0, 1, 2, 3)]
    np.testing.assert_array_equal(by_generation, [0.25, 0.5, 0.75, np.nan])
    by_second = [fitness_within(model, "seconds", s) for s in (1.4, 1.5, 2.5, 9.0)]
    np.testing.assert_array_equal(by_second, [np.nan, 0.25, 0.5, 0.75])
    assert at_end(model, "gen") == 2 and at_end(model, "seconds", 0) == 1.5


@pytest.mark.parametrize("factor", FACTORS)
def test_a_variant_differs_from_the_base_in_what_it_says_alone(factor):
    base = METHODS[BASE]
    values = base.get_params()
    for name, changed in FACTORS[factor].items():
        variant = METHODS[method_name(factor, name)]
        check_parameters(variant)
        assert describe_method(variant) != describe_method(base)
        back = clone(variant).set_params(**{key: values[key] for key in changed})
        assert describe_method(back) == describe_method(base)


def test_no_two_methods_are_the_same():
    first = {}
    described = operators.EXPERIMENT.definition()["methods"].items()
    twins = {name: first.setdefault(checksum(one), name) for name, one in described}
    assert twins == {name: name for name in METHODS}

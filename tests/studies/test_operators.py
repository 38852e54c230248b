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
    FIRST_TREES,
    METHODS,
    NO_EVOLUTION,
    SECONDS,
    at_end,
    fitness_within,
    method_name,
    report,
)
from experiments.study import Results


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


ROW = {"complexity": 10.0, "seeded": 0.5, "fitness_first": 0.25, "generations": 60.0}
ROW |= {"fitness_10": 0.25, "fitness_50": 0.5, "first_seconds": 0.5, "end": SECONDS}


def results_of(figures, tmp_path):
    """Return results of two data sets, of which methods are better on the second."""
    runs = [
        {
            "dataset": dataset,
            "method": method,
            "fold": fold,
            "seed": 0,
            **ROW,
            **changed,
        }
        | {"accuracy": (1.0 + 0.02 * rank) * accuracy, "fitness_last": last}
        for method, (accuracy, last, changed) in figures.items()
        for rank, dataset in enumerate(("heart", "sonar"))
        for fold in range(operators.N_FOLDS)
    ]
    return Results(pd.DataFrame(runs), tmp_path)


def test_the_tables_say_what_variants_differ_in(tmp_path):
    slow, cart = "variation: no mutation", method_name(FIRST_TREES, "CART")
    late = "refinement: OC1"
    figures = {
        BASE: (0.5, 0.5, {}),
        slow: (0.5, 0.25, {"generations": 12.0, "fitness_50": np.nan}),
        cart: (0.6, 0.25, {"first_seconds": 0.1}),
        method_name(NO_EVOLUTION, "CART"): (0.4, 0.25, {}),
        late: (0.5, 0.25, {"end": SECONDS + 2.0}),
    }
    made = report(results_of(figures, tmp_path))
    (row,) = made["variation"].splitlines()[2:]
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells[:3] == [
        "no mutation",
        "+0.00 ± 0.00 (0 / 2 / 0)",
        "-25.00 ± 0.00 (0 / 0 / 2)",
    ]
    assert cells[3:] == ["+0.00 ± 0.00", "-", "× 0.20", "+0.0"]
    (row,) = made["first_trees"].splitlines()[2:]
    assert "| CART | +10.10 ± 0.10 (2 / 0 / 0) |" in row
    assert row.endswith("0.1 | 50 % |")
    (row,) = made["no_evolution"].splitlines()[2:]
    assert row.endswith("| +20.20 ± 0.20 (2 / 0 / 0) |")
    assert "60 generations" in made["base"] and "on 2 data sets" in made["base"]
    assert made["late"] == f"{late} ({SECONDS + 2.0:.1f} s)"

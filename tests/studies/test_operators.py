"""The study of operators: what its variants change, and what its curves are read to say."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from evotree.configuration import check_parameters
from evotree.experiments.experiment import describe_method
from evotree.experiments.store import checksum
from experiments.studies import operators
from experiments.studies.operators import (
    BASE,
    CURVE_STEP,
    FACTORS,
    FIRST_TREES,
    GENERATIONS,
    METHODS,
    NO_EVOLUTION,
    PATHS,
    SECONDS,
    clear_differences,
    method_name,
    read_at,
    report,
    thinned,
)
from experiments.study import Results

# Steps in milliseconds, many of which end just where a budget does, and by how much the best
# fitness rises in them.
STEPS = st.tuples(
    st.sampled_from(range(50, 950, 50)), st.sampled_from([0.0, 0.0, 0.125, 0.5])
)


def curve_of(steps):
    """Return a curve of some steps; the first generation is there after the first one."""
    milliseconds, rises = zip(*steps, strict=True)
    return pd.DataFrame(
        {
            "gen": range(len(steps)),
            "seconds": np.cumsum(milliseconds) / 1000.0,
            "fitness_best": np.cumsum(rises),
        }
    )


def naive(curve, column, budget):
    """Return the fitness of the last record within a budget."""
    within = curve[curve[column] <= budget]
    is_over = column == "gen" and budget > curve["gen"].max()
    return np.nan if within.empty or is_over else within["fitness_best"].iloc[-1]


@given(st.lists(STEPS, min_size=1, max_size=70))
def test_a_thinned_curve_says_at_all_budgets_what_the_whole_one_does(steps):
    whole = curve_of(steps)
    budgets = {
        "gen": [0, *GENERATIONS],
        "seconds": np.arange(0.0, SECONDS + CURVE_STEP, CURVE_STEP),
    }
    for column, at in budgets.items():
        expected = [naive(whole, column, budget) for budget in at]
        np.testing.assert_array_equal(read_at(whole, column, at), expected)
        np.testing.assert_array_equal(read_at(thinned(whole), column, at), expected)
    kept = thinned(whole)
    ends = kept[["gen", "seconds"]].iloc[[0, -1]].to_numpy()
    np.testing.assert_array_equal(ends, whole[["gen", "seconds"]].iloc[[0, -1]])
    n_rises = 1 + (whole["fitness_best"].diff() > 0.0).sum()
    assert len(kept) <= n_rises + len(GENERATIONS) + 1


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


def results_of(figures, tmp_path):
    """Return results of two data sets: accuracy and fitness, by method, rise from set to set."""
    runs, curves = [], {}
    for method, (accuracy, steps) in figures.items():
        for rank, dataset in enumerate(("heart", "sonar")):
            for fold in range(operators.N_FOLDS):
                key = dataset, method, fold, 0
                named = zip(("dataset", "method", "fold", "seed"), key, strict=True)
                measured = {"accuracy": accuracy + 0.02 * rank * accuracy}
                measured |= {"complexity": 10.0, "seeded": 0.5}
                runs.append(dict(named) | measured)
                curves[key] = thinned(curve_of(steps))
    return Results(pd.DataFrame(runs), curves, tmp_path)


def test_the_tables_say_what_variants_differ_in(tmp_path):
    slow, cart = "variation: no mutation", method_name(FIRST_TREES, "CART")
    start = method_name(NO_EVOLUTION, "CART")
    figures = {
        BASE: (0.5, [(500, 0.25)] + [(100, 0.0)] * 39 + [(100, 0.25)] + [(20, 0)] * 20),
        slow: (0.5, [(500, 0.25)] + [(400, 0.0)] * 12),
        cart: (0.6, [(100, 0.25)] + [(100, 0.0)] * 55),
        start: (0.4, [(100, 0.25)]),
    }
    late = "refinement: OC1"
    figures[late] = 0.5, [(500, 0.25), (1000 * int(SECONDS) + 1500, 0.75)]
    made = report(results_of(figures, tmp_path))
    (row,) = made["variation"].splitlines()[2:]
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    fell = "-25.00 ± 0.00 (0 / 0 / 2)"
    assert cells[:5] == ["no mutation", "+0.00 ± 0.00 (0 / 2 / 0)", fell, *cells[3:5]]
    assert cells[3:] == ["+0.00 ± 0.00", "-", "× 0.20", "+0.0"]
    assert (
        f"Fitness, {SECONDS:g} s: of 1 variants 1 clearly below: no mut"
        in made["variation_found"]
    )
    (row,) = made["first_trees"].splitlines()[2:]
    assert "| CART | +10.10 ± 0.10 (2 / 0 / 0) |" in row and row.endswith(
        "0.1 | 50 % |"
    )
    (row,) = made["no_evolution"].splitlines()[2:]
    assert row.endswith("| +20.20 ± 0.20 (2 / 0 / 0) |")
    assert "60 generations" in made["base"] and "on 2 data sets" in made["base"]
    assert made["late"] == f"{late} ({SECONDS + 2.0:.1f} s)"
    assert (tmp_path / "operators_gaps.png").stat().st_size > 5000
    gaps = operators.gaps(
        results_of(figures, tmp_path), FIRST_TREES, np.array([0.25, 0.5, SECONDS])
    )
    assert gaps["CART"].tolist() == [25.0, 25.0, 25.0]
    assert gaps[PATHS].tolist() == [np.inf, 25.0, 0.0]


def test_clear_differences_are_beyond_two_standard_errors():
    gains = pd.DataFrame({"a": [1.0, 1.2], "b": [-1.0, -1.2], "c": [3.0, -1.0]})
    said = "of 3 variants 1 clearly below: b (-1.10); 1 clearly above: a (+1.10)."
    assert clear_differences(gains) == said
    alike = pd.DataFrame({"d": [0.0, 0.0]})
    assert (
        clear_differences(alike)
        == "of 1 variants none clearly below; none clearly above."
    )

"""The study of operators: what each part of the search of `EvoTreeClassifier` is worth.

One part at a time differs from a base: first trees, refinement, variation. All searches have the
same seconds, in which their first trees are made, too. It is measured how fit the best tree was
after these seconds and after some generations, so that one fit answers for both budgets.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from evotree.engine.evolution import to_frame
from evotree.estimators import EvoTreeClassifier
from evotree.operators.initialization.population import DIPOLE, PATH_SHARE
from evotree.operators.refinement import Refinement
from experiments.study import ClassesProtocol, Results, Study, define
from experiments.tables import MISSING, fold_means, named, paired, table

N_FOLDS = 3
SECONDS = 5.0
"""Of a search, first trees among them."""
EARLIER = {10: "fitness_10", 50: "fitness_50"}
"""The columns of the fitness after so many generations."""
AT_END = {"test accuracy": "accuracy", f"fitness, {SECONDS:g} s": "fitness_last"}
"""The columns in which variants are compared with the base, by title."""
SIZE_PENALTY, TERM_PENALTY = 0.002, 0.0005
KINDS = {
    "heart": "few rows, two classes",
    "sonar": "few rows, 60 columns",
    "balance-scale": "one oblique split",
    "monks-2": "columns that act together",
    "car": "ordered columns",
    "vehicle": "four classes",
    "cardiotocography-10": "ten classes",
    "wall-following": "axis-parallel, 3,600 rows",
    "dna": "180 columns",
    "pendigits": "ten classes, 7,300 rows",
}
DATASETS = tuple(KINDS)
DESCRIBED = [f"{name} ({kind})" for name, kind in KINDS.items()]
ALGORITHMS: Mapping[str, Any] = {
    "CART": "axis",
    "OC1": "oc1",
    "CART-LC": "cart_lc",
    "annealing": "annealing",
    "WODT": "wodt",
    "cross-entropy": "cross_entropy",
    "linear": "linear",
    "TAO": "tao",
}
"""What makes first trees, and refines, besides the base's operators."""
GREEDY_MIX = ("axis", "oc1", "wodt", "linear")
INITS: Mapping[str, Any] = {
    "random dipoles": None,
    **{name: {kind: PATH_SHARE} for name, kind in ALGORITHMS.items()},
    "four algorithms": dict.fromkeys(GREEDY_MIX, PATH_SHARE / 4),
    "paths and four": {
        "widths": PATH_SHARE / 2,
        **dict.fromkeys(GREEDY_MIX, PATH_SHARE / 8),
    },
}
REFINERS = {
    "no refinement": Refinement("sparse", probability=0.0),  # all else as in the base
    "dipole": DIPOLE,
    **ALGORITHMS,
}
_VARIATION = "evolution__variation__"
NO_NODES = {f"{_VARIATION}mutation_probability": 0.0}
NO_TERMS = {f"{_VARIATION}term_mutation_probability": 0.0}
NO_CROSSOVER = {f"{_VARIATION}crossover_probability": 0.0}
PATHS = "paths of widths"
FIRST_TREES, REFINEMENT, NO_EVOLUTION = "first trees", "refinement", "no evolution"
FACTORS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    FIRST_TREES: {name: {"evolution__init": init} for name, init in INITS.items()},
    REFINEMENT: {
        name: {"evolution__refinement": refiner} for name, refiner in REFINERS.items()
    },
    "variation": {
        "no mutation of nodes": NO_NODES,
        "no dipoles in mutation": {f"{_VARIATION}dipolar_probability": 0.0},
        "no mutation of terms": NO_TERMS,
        "no mutation": NO_NODES | NO_TERMS,
        "no crossover": NO_CROSSOVER,
        "refinement alone": NO_NODES | NO_TERMS | NO_CROSSOVER,
    },
    NO_EVOLUTION: {
        PATHS: {"max_generations": 0},
        **{
            name: {"max_generations": 0, "evolution__init": INITS[name]}
            for name in ("random dipoles", "CART", "OC1", "TAO")
        },
    },
}
"""The overrides of each variant, by what they change."""
BASE = "base"


def make_model(**changed: Any) -> EvoTreeClassifier:
    """Return the base, or a variant: only the seconds end its evolution."""
    return EvoTreeClassifier(
        leaves="constant",
        size_penalty=SIZE_PENALTY,  # so that there is nothing to choose by folds
        term_penalty=TERM_PENALTY,
        max_generations=1_000_000,
        time_limit=SECONDS / 0.75,  # of which three quarters are for the search
    ).set_params(evolution__patience=None, **changed)


def method_name(factor: str, variant: str) -> str:
    """Return the name of a variant, which another factor may have, too."""
    return f"{factor}: {variant}"


def curve_of(model: Any) -> pd.DataFrame:
    """Return generations, seconds and best fitness of a search.

    Seconds are those since the search began, those of its first trees among them.
    """
    curve = to_frame(model.history_)[["gen", "seconds", "fitness_best"]]
    searched = model.seconds_["making first trees"] + model.seconds_["evolving"]
    curve["seconds"] += searched - curve["seconds"].iloc[-1]
    return curve


def fitness_within(model: Any, column: str, budget: float) -> float:
    """Return the best fitness within a budget of generations or seconds; NaN where none is known.

    None is before the first trees are there, and after the last generation; after the last second
    the search has what it ended with.
    """
    curve = curve_of(model)
    within = curve[curve[column] <= budget]
    is_over = column == "gen" and curve["gen"].iloc[-1] < budget
    return np.nan if within.empty or is_over else float(within["fitness_best"].iloc[-1])


def at_end(model: Any, column: str, position: int = -1) -> float:
    """Return what stands in the last record of a search, or in the first one."""
    return float(curve_of(model)[column].iloc[position])


def compiling(model: Any) -> float:
    """Return the seconds in which kernels were compiled: the search had so much less."""
    return float(model.seconds_["compiling"])


def seeded(model: Any) -> float:
    """Return the share of the first trees that are not random."""
    return 1.0 - to_frame(model.history_).get(f"origin_{DIPOLE}", [0.0])[0]


METHODS = {BASE: make_model()} | {
    method_name(factor, name): make_model(**changed)
    for factor, variants in FACTORS.items()
    for name, changed in variants.items()
}
EXPERIMENT = define(
    "operators",
    DATASETS,
    METHODS,
    ClassesProtocol(N_FOLDS),
    measures={
        "seeded": seeded,
        "compiling": compiling,
        "fitness_first": partial(fitness_within, column="gen", budget=0),
        **{
            name: partial(fitness_within, column="gen", budget=n)
            for n, name in EARLIER.items()
        },
        "fitness_last": partial(fitness_within, column="seconds", budget=SECONDS),
        "first_seconds": partial(at_end, column="seconds", position=0),
        "generations": partial(at_end, column="gen"),
        "end": partial(at_end, column="seconds"),
    },
)


def means_of(fits: pd.DataFrame, column: Any, unit: float = 1.0) -> pd.DataFrame:
    """Return means over folds, data set by method."""
    return unit * fold_means(fits, column, DATASETS, METHODS, N_FOLDS)


def gains_of(fits: pd.DataFrame, column: Any, factor: str) -> pd.DataFrame:
    """Return the variants of a factor less the base in points, data set by variant."""
    means = means_of(fits, column, 100.0)
    methods = {method_name(factor, name): name for name in FACTORS[factor]}
    own = means[named(methods, means)].rename(columns=methods)
    return own.sub(means[BASE], axis=0).dropna(axis=1, how="all")


def factor_table(fits: pd.DataFrame, factor: str) -> str:
    """Return what the variants of a factor differ in from the base."""
    gains = {title: gains_of(fits, name, factor) for title, name in AT_END.items()}
    columns = {f"fitness, generation {n}": name for n, name in EARLIER.items()}
    if factor == FIRST_TREES:
        columns = {"at first": "fitness_first", **columns}
    earlier = {title: gains_of(fits, name, factor) for title, name in columns.items()}
    accuracy = means_of(fits, "accuracy", 100.0)
    complexity = means_of(fits, "complexity")
    log_generations = np.log(means_of(fits, "generations").clip(lower=1.0))
    first_seconds = means_of(fits, "first_seconds")
    seeds = means_of(fits, "seeded", 100.0)
    rows = []
    for name in gains["test accuracy"]:
        method = method_name(factor, name)
        row = {"variant": name}
        row |= {title: paired(of_title[name]) for title, of_title in gains.items()}
        if factor != NO_EVOLUTION:
            for title, of_title in earlier.items():
                known = of_title.get(name, pd.Series(dtype=float))
                row[title] = paired(known).partition(" (")[0] or MISSING
            times = (log_generations[method] - log_generations[BASE]).mean()
            row["generations"] = f"× {np.exp(times):.2f}"
        more = complexity[method] - complexity[BASE]
        row["complexity"] = f"{more.mean():+.1f}"
        evolved = BASE if name == PATHS else method_name(FIRST_TREES, name)
        if factor == NO_EVOLUTION and evolved in accuracy:
            row["evolution adds"] = paired(accuracy[evolved] - accuracy[method])
        if factor == FIRST_TREES:
            row["seconds"] = f"{first_seconds[method].mean():.1f}"
            row["not random"] = f"{seeds[method].mean():.0f} %"
        rows.append(row)
    return table(rows)


def base_sentence(fits: pd.DataFrame) -> str:
    """Return the figures of the base."""
    means = pd.DataFrame(
        {
            name: means_of(fits, name)[BASE]
            for name in ("accuracy", "complexity", "generations", "first_seconds")
        }
    )
    return (
        f"The base, on {len(means)} data sets: accuracy {100.0 * means['accuracy'].mean():.2f}, "
        f"complexity {means['complexity'].mean():.1f}. Its first trees take "
        f"{means['first_seconds'].mean():.1f} seconds, and it breeds "
        f"{means['generations'].min():.0f} to {means['generations'].max():.0f} generations."
    )


def late_searches(fits: pd.DataFrame) -> str:
    """Return which searches ended a second late or more, as a step was under way."""
    ends = fits.groupby("method")["end"].max().sort_values(ascending=False)
    late = ends[ends >= SECONDS + 1.0]
    return ", ".join(f"{name} ({end:.1f} s)" for name, end in late.items()) or "none"


def report(results: Results) -> dict[str, Any]:
    """Return the tables."""
    fits = results.runs
    return {
        "base": base_sentence(fits),
        "late": late_searches(fits),
        **{f.replace(" ", "_"): factor_table(fits, f) for f in FACTORS},
    }


STUDY = Study(EXPERIMENT, report)

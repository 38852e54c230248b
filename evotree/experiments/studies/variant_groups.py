"""The variants of `EvoTreeClassifier` that its study compares, in groups.

A variant overrides some of the defaults, whatever these are at the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evotree.engine.config import ENSEMBLE, Regularization
from evotree.engine.hyperparameters import CANDIDATES
from evotree.estimators import EvoTreeClassifier
from evotree.experiments.experiment import checksum, describe
from evotree.operators.refinement.policy import Refinement, as_refinement

DEFAULT = "default"
REFINERS = ("sparse", "tao", "linear", "oc1", "cross_entropy", "wodt", "centre", "prune")
SMALL = ("iris", "glass", "heart", "ionosphere", "wdbc", "vehicle", "segment")
"""The data sets of the comparisons."""
TEN = (*SMALL, "dna", "satimage", "wine")
"""The data sets of the ablation."""

PARTS: Mapping[str, dict[str, Any]] = {
    "without refinement": {"refinement": None},
    "no evolution": {"max_generations": 0},
    "greedy seeds": {"init": ("linear", "axis")},
    "dense seeds": {"init": "tao"},
    "no mutation of terms": {"variation__term_mutation_probability": 0.0},
    "dense dipoles": {"variation__sparse_dipoles": False},
    "generational survival": {"variation__survival": "generational"},
    "no penalty for terms": {"term_penalty": 0.0},
    "no rounding": {"precision": None},
    "no teacher": {"regularization__teacher": None},
    "no noise, no teacher": {"regularization__noise": 0.0, "regularization__teacher": None},
}
"""Without a part of the default, by name."""

SEEDINGS: Mapping[str, Any] = {
    "no seeds": None,
    "tao 0.1": {"tao": 0.1},
    "tao 0.5": {"tao": 0.5},
    "tao, axis, linear": ("tao", "axis", "linear"),
    "axis, linear, oc1, wodt": ("axis", "linear", "oc1", "wodt"),
}
"""Seedings by name."""


@dataclass(frozen=True)
class Group:
    """Variants that are compared with each other.

    Attributes
    ----------
    title : str
        Heading.
    sentence : str
        What they differ in.
    variants : mapping of str to mapping
        Overrides of the default parameters, by the variant's name.
    datasets : tuple of str
        The data sets.
    """

    title: str
    sentence: str
    variants: Mapping[str, dict[str, Any]]
    datasets: tuple[str, ...] = SMALL


# ---- variants ------------------------------------------------------------------------------------


def default_parameters() -> dict[str, Any]:
    """Return the parameters of `EvoTreeClassifier` and their defaults, by the names of searches."""
    found = EvoTreeClassifier().get_params()
    # A refinement is one value: none has no parameters.
    return {name: one for name, one in found.items() if not name.startswith("refinement__")}


def refinements() -> dict[str, dict[str, Any]]:
    """Return the variants of the refinement: none, without each refiner, each refiner alone.

    All else of the refinement, how many are refined and which, stays that of the default. Without a
    refiner that the default has not, a variant is the default.
    """
    default = as_refinement(default_parameters()["refinement"])
    found: dict[str, dict[str, Any]] = {"no refinement": {"refinement": None}}
    shares = {} if default is None else default.shares()
    for name in REFINERS:
        others = {refiner: share for refiner, share in shares.items() if refiner != name}
        if default is None or others == shares:
            without = default
        else:
            without = replace(default, operators=others) if others else None
        found[f"without {name}"] = {"refinement": without}
    for name in REFINERS:
        alone = replace(default or Refinement(), operators={name: 1.0})
        found[f"{name} alone"] = {"refinement": alone}
    return found


def setting_text(setting: Regularization) -> str:
    """Return the name of the variant that has a regularization."""
    C = setting.C if isinstance(setting.C, tuple) else (setting.C,)
    between = " to ".join(f"{bound:g}" for bound in C)
    return f"C {between}, {setting.penalty}, noise {setting.noise:g}"


def _each(parameter: str, values: Sequence[Any], text: str = "{}") -> dict[str, dict[str, Any]]:
    """Return a variant for each value of a parameter, named by text with the value in it."""
    return {text.format(value): {parameter: value} for value in values}


def make_groups() -> tuple[Group, ...]:
    """Return the groups of variants, relative to the present defaults."""
    return (
        Group(
            "Parts",
            "The default without one of its parts: the refinement of offspring; the evolution, "
            "which leaves the best seed; the optimization of the seeds, or their falling widths; "
            "what makes splits of few terms; the rounding of numbers; the teacher; any rows but "
            "those of the data.",
            PARTS,
            TEN,
        ),
        Group(
            "Refinement",
            "What refines some of the offspring: nothing, all refiners of the default but one, "
            "or one alone.",
            refinements(),
        ),
        Group(
            "Regularization",
            "How the linear classifiers of the refinement are regularized, and with which noise: "
            "a setting that `auto` chooses from on rows held out, or one part of it fixed.",
            {
                setting_text(one): {
                    f"regularization__{name}": value for name, value in one.get_params().items()
                }
                for one in CANDIDATES
            }
            | _each("regularization__C", (0.1, 1.0, 10.0), "C {}"),
        ),
        Group(
            "Fitness",
            "What the fitness is measured on, and what it penalizes: noise on the rows, a "
            "teacher's predictions, a penalty for terms.",
            _each("regularization__noise", (0.0, 0.05, 0.1, 0.2, 0.5), "noise {}")
            | {"teacher": {"regularization__teacher": ENSEMBLE}}
            | _each("term_penalty", (0.0002, 0.002), "term penalty {}"),
        ),
        Group(
            "Diversity",
            "What keeps the population from becoming descendants of one tree: that no two are "
            "equal, not even that, also a limit to the share of a kind of first trees, or NSGA-II.",
            {"duplicates": {"variation__keep_duplicates": True}}
            | _each("variation__max_origin_share", (0.5, 0.3), "origins at most {}")
            | {"NSGA-II": {"variation__algorithm": "nsga2"}},
        ),
        Group(
            "Seeding",
            "What makes a part of the first population, and how much of it.",
            {name: {"init": seeds} for name, seeds in SEEDINGS.items()},
        ),
        Group(
            "Size",
            "What one node costs, as a share of the training weight; `auto` chooses on rows held "
            "out.",
            _each("size_penalty", (0.005, 0.002, 0.001, 0.0005), "size penalty {}"),
        ),
    )


def all_variants() -> dict[str, dict[str, Any]]:
    """Return the overrides of every variant, the default's first."""
    variants: dict[str, dict[str, Any]] = {DEFAULT: {}}
    for group in make_groups():
        variants |= group.variants
    return variants


def make_variant(overrides: Mapping[str, Any]) -> EvoTreeClassifier:
    """Return the classifier of a variant; equal refinements are written in one way."""
    parameters = default_parameters() | dict(overrides)
    refinement = as_refinement(parameters["refinement"])
    if refinement is not None:
        refinement = replace(refinement, operators=refinement.shares())
    made: EvoTreeClassifier = EvoTreeClassifier().set_params(
        **parameters | {"refinement": refinement}
    )
    return made


def same_as(variants: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return the first variant of the same parameters as each; only that one is run."""
    first: dict[str, str] = {}
    return {
        name: first.setdefault(checksum(describe(make_variant(overrides))), name)
        for name, overrides in variants.items()
    }


def default_text() -> str:
    """Return the defaults that the variants override, as text."""
    overridden = dict.fromkeys(key for one in all_variants().values() for key in one)
    defaults = default_parameters()
    return ", ".join(f"`{name}={defaults[name]!r}`" for name in overridden)

"""The variants of `EvoTreeClassifier` that its study compares, in groups.

A variant overrides some of the defaults, whatever these are at the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evotree.engine.config import ENSEMBLE
from evotree.estimators import EvoTreeClassifier
from evotree.experiments.studies.suites import THIRTY

DEFAULT = "default"
TOO_LONG = ("letter", "usps")
"""The data sets of the study of readable trees that take longest."""
_SLOW = ("cardiotocography-10", "nursery", "pendigits", "satimage", "dry-bean", "digits", "dna")
_QUICK = tuple(name for name in THIRTY if name not in (*_SLOW, *TOO_LONG))
DATASETS = (*_QUICK, *_SLOW)
"""The data sets on which the default is compared with itself without one of its parts."""
SMALL = ("iris", "heart", "glass", "ionosphere", "wdbc", "vehicle", "segment")
"""The data sets of all other comparisons."""

FIXED_PENALTIES: Mapping[str, Any] = {"size_penalty": 0.002, "term_penalty": 0.0005}
"""In the middle of what is tried for some hundred rows (`penalties_to_try`)."""

PARTS: Mapping[str, Mapping[str, Any]] = {
    "without refinement": {"refinement": None},
    "no evolution": {"max_generations": 0},
    "greedy seeds": {"init": ("linear", "axis")},
    "dense seeds": {"init": "tao"},
    "no mutation of terms": {"variation__term_mutation_probability": 0.0},
    "dense dipoles": {"variation__sparse_dipoles": False},
    "generational survival": {"variation__survival": "generational"},
    "no penalty for terms": {"term_penalty": 0.0},
    "no rounding": {"precision": None},
    "no noise": {"regularization__noise": 0.0},
    "always noise 0.1": {"regularization__noise": 0.1},
    "fixed penalties": FIXED_PENALTIES,
    "with a teacher": {"regularization__teacher": ENSEMBLE, "regularization__noise": 0.0},
}
"""Without a part of the default, or with one that was left out, by name."""

SEEDINGS: Mapping[str, Any] = {
    "no seeds": None,
    "widths 0.3": {"widths": 0.3},
    "widths 0.3, tao 0.3": {"widths": 0.3, "tao": 0.3},
    "tao 0.5": {"tao": 0.5},
    "tao, axis, linear": ("tao", "axis", "linear"),
    "axis, linear, oc1, wodt": ("axis", "linear", "oc1", "wodt"),
}
"""Seedings by name."""


@dataclass(frozen=True)
class Group:
    """Variants that are compared with the default.

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
    variants: Mapping[str, Mapping[str, Any]]
    datasets: tuple[str, ...] = SMALL


def _each(parameter: str, values: Sequence[Any], text: str) -> dict[str, dict[str, Any]]:
    """Return a variant for each value of a parameter, named by text with the value in it."""
    return {text.format(value): {parameter: value} for value in values}


GROUPS = (
    Group(
        "Parts",
        "The default without one of its parts: the refinement of offspring; the evolution, which "
        "leaves the best of the first trees; the optimization of these, or their falling widths; "
        "what makes splits of few terms; the survival of the best; the rounding of numbers; the "
        "choice of noise or of penalties on rows held out. And the default with a teacher, which "
        "it does not have.",
        PARTS,
        DATASETS,
    ),
    Group(
        "Refinement",
        "What refines some of the offspring.",
        _each(
            "refinement",
            ("tao", "linear", "oc1", "cross_entropy", "wodt", "centre", "prune"),
            "{} alone",
        ),
    ),
    Group(
        "Regularization",
        "How the linear classifiers of the refinement are regularized, how much noise the rows "
        "have that the fitness is measured on, and what is left without any choice on rows held "
        "out: noise 0.1 and the fixed penalties of the parts.",
        _each("regularization__C", (0.1, 1.0, 10.0), "C {:g}")
        | {"C 0.1 to 10": {"regularization__C": (0.1, 10.0)}}
        | _each("regularization__penalty", ("l1",), "{}")
        | _each("regularization__noise", (0.05, 0.2, 0.5), "noise {}")
        | {"nothing chosen": {"regularization__noise": 0.1, **FIXED_PENALTIES}},
    ),
    Group(
        "Diversity",
        "What keeps the population from becoming descendants of one tree: generations that may "
        "hold equal trees, a limit to the share of a kind of first trees, or NSGA-II.",
        {
            "generational, duplicates": {
                "variation__survival": "generational",
                "variation__keep_duplicates": True,
            }
        }
        | _each("variation__max_origin_share", (0.5, 0.3), "origins at most {}")
        | _each("variation__algorithm", ("nsga2",), "NSGA-II"),
    ),
    Group(
        "Seeding",
        "What makes a part of the first population, and how much of it.",
        {name: {"init": seeds} for name, seeds in SEEDINGS.items()},
    ),
    Group(
        "Size",
        "What a node, or a term after a split's first, costs as a share of the training weight; "
        "the other is chosen on rows held out.",
        _each("size_penalty", (0.005, 0.002, 0.001, 0.0005), "size penalty {}")
        | _each("term_penalty", (0.002, 0.0002), "term penalty {}"),
    ),
)
"""The groups, the ablation first."""


def all_variants() -> dict[str, Mapping[str, Any]]:
    """Return the overrides of every variant, the default's first."""
    return {DEFAULT: {}} | {name: one for group in GROUPS for name, one in group.variants.items()}


def make_variant(overrides: Mapping[str, Any]) -> EvoTreeClassifier:
    """Return the classifier of a variant."""
    made: EvoTreeClassifier = EvoTreeClassifier().set_params(**overrides)
    return made


def default_text() -> str:
    """Return the defaults that the variants override, as text."""
    overridden = dict.fromkeys(key for one in all_variants().values() for key in one)
    defaults = EvoTreeClassifier().get_params()
    return ", ".join(f"`{name}={defaults[name]!r}`" for name in overridden)

"""Groups of parameters: frozen, checked once, and reachable by scikit-learn's searches.

The constraints of a parameter stand in its annotation, so that it is written once:
``patience: Annotated[int | None, Interval(Integral, 1, None, closed="left"), None] = 20``.
What trees are evolved for, and what their leaves hold, is such a group where a name does not say
enough.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pickle import PicklingError
from types import CodeType, FunctionType
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args, get_origin

import joblib
import numpy as np
from sklearn.base import BaseEstimator

# What has no public twin in scikit-learn: the one place of its private names.
from sklearn.utils._param_validation import (  # noqa: F401
    HasMethods,
    Interval,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import (
    _check_monotonic_cst as check_monotonic_signs,  # noqa: F401
)

from evotree.tree import ObliqueTree

_Kind = TypeVar("_Kind", bound=type)

N_JOBS = (
    Interval(Integral, None, -1, closed="right"),
    Interval(Integral, 1, None, closed="left"),
)
"""Constraints of a number of threads; below 0 it counts from all there are, as in joblib."""


def documented(**shared: str) -> Callable[[_Kind], _Kind]:
    """Return a decorator that fills in what the docstrings of several classes share."""

    def filled(kind: _Kind) -> _Kind:
        if kind.__doc__:  # there is none under -OO
            # Python 3.13 takes the indentation out of docstrings, and not of these texts.
            kind.__doc__ = inspect.cleandoc(kind.__doc__)
            for name, text in shared.items():
                kind.__doc__ = kind.__doc__.replace(
                    f"<{name}>", text.replace("\n    ", "\n")
                )
        return kind

    return filled


class RisingPair(Interval):
    """A constraint: a tuple of two numbers of an interval, the first not above the second."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether a value is such a tuple."""
        return (
            isinstance(val, tuple)
            and len(val) == 2
            and all(super(RisingPair, self).is_satisfied_by(one) for one in val)
            and val[0] <= val[1]
        )

    def __str__(self) -> str:
        return f"a tuple of two rising numbers, each {super().__str__()}"


class Constrained:
    """A class whose annotations hold constraints; to its signature they leave the types alone."""

    _own_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Read the constraints, once the class is made."""
        super().__init_subclass__(**options)
        annotations = cls.__dict__.get("__annotations__", {})
        cls._own_constraints = {}
        for name, annotation in annotations.items():
            if get_origin(annotation) is Annotated:
                annotations[name], *constraints = get_args(annotation)
                cls._own_constraints[name] = constraints


def constraints_of(kind: type) -> dict[str, list[Any]]:
    """Return the constraints that the annotations of a class's fields hold."""
    found: dict[str, list[Any]] = {}
    for base in reversed(kind.__mro__):
        found |= vars(base).get("_own_constraints", {})
    return found


def check_parameters(owner: Any) -> None:
    """Check the parameters of an object against the constraints of its class."""
    kind = type(owner)
    values = owner.get_params(deep=False)
    known = {name: of for name, of in constraints_of(kind).items() if name in values}
    validate_parameter_constraints(known, values, caller_name=kind.__name__)


@dataclass(frozen=True, repr=False)
class Configuration(Constrained, BaseEstimator):
    """A group of parameters, never changed; its ``repr`` names what differs from the defaults."""

    def __post_init__(self) -> None:
        check_parameters(self)

    def set_params(self, **params: Any) -> Self:
        """Return a configuration with some other parameters; this one stays as it is."""
        known = self._get_param_names()
        for name in params:
            if name.partition("__")[0] not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}: allowed are {known}."
                )
        return replace(self, **with_groups(self, params))

    def __sklearn_clone__(self) -> Self:
        return self


def with_groups(owner: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object's own parameters, and its groups with ``group__parameter`` in them."""
    own = {name: value for name, value in params.items() if "__" not in name}
    nested = [name.split("__", maxsplit=1) for name in params if "__" in name]
    for group in dict.fromkeys(group for group, _ in nested):
        value = own.get(group, getattr(owner, group, None))
        inner = {name: params[f"{group}__{name}"] for of, name in nested if of == group}
        own[group] = _group_with(owner, group, value, inner)
    return own


def _group_with(owner: Any, name: str, value: Any, inner: Mapping[str, Any]) -> Any:
    """Return a group of an object's parameters, or what stands for it, with some other values."""
    group = value
    if not isinstance(value, Configuration):
        allowed = constraints_of(type(owner)).get(name, [])
        kinds: list[Any] = [one for one in allowed if is_group(one)]
        if not kinds:
            raise ValueError(
                f"{type(owner).__name__} has no group of parameters {name!r}."
            )
        group = kinds[0]() if value is None else kinds[0](value)
    changed = group.set_params(**inner)
    return value if changed == group else changed


def is_group(constraint: Any) -> bool:
    """Return whether a constraint is a class of groups of parameters."""
    return isinstance(constraint, type) and issubclass(constraint, Configuration)


# ---- as text -------------------------------------------------------------------------------------

UNKNOWN = " that cannot be compared, at "
"""What the text of a value has after its name where nothing more can be told of it."""


def as_text(value: Any) -> str:
    """Return what a value is as text, the same in every process.

    What is no plain value has a checksum of all that it holds; a function one of what it does.
    What cannot be told so has its address in the text, and is refused where it is kept in a file.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    if isinstance(tree := getattr(value, "tree_", value), ObliqueTree):
        value = list(tree.splits)
    name = getattr(value, "__qualname__", type(value).__qualname__)
    parts = [value]
    if isinstance(value, FunctionType):  # another one may follow under the same name
        code = value.__code__
        constants = [one for one in code.co_consts if not isinstance(one, CodeType)]
        parts += [code.co_code, code.co_names, constants, value.__defaults__]
    try:
        return f"{name} {joblib.hash(parts)}"
    except (AttributeError, TypeError, PicklingError):
        return f"{name}{UNKNOWN}{id(value):#x}"


# ---- what trees are evolved for, and what their leaves hold --------------------------------------

CONSTANT, LINEAR, SCORE = "constant", "linear", "score"
"""Leaves of shares or means alone, of linear models, and leaves that add to a score."""

LEAVES = ("auto", LINEAR, CONSTANT, SCORE)
"""Names of what leaves hold."""


@dataclass(frozen=True, eq=False, repr=False)
class Cost(Configuration):
    """The least expected cost, of errors and of the features that a tree asks for.

    Parameters
    ----------
    matrix : array-like of shape (n_classes, n_classes) or None, default=None
        ``matrix[a][b]`` is what it costs to predict the b-th class for a row of the a-th, the
        classes being sorted; None is 1 for each error.
    features : array-like of shape (n_columns,), dict or None, default=None
        What it costs to know a column, in the unit of `matrix`: numbers of at least 0, or a dict by
        names or positions. A column is paid for once on the way to a leaf. A tuple of columns as a
        key is a group, which costs its number once for all of them.
    """

    matrix: Annotated[Any, "array-like", None] = None
    features: Annotated[Any, "array-like", dict, None] = None


@dataclass(frozen=True, repr=False)
class Quantile(Configuration):
    """A quantile of the targets, which leaves predict.

    Parameters
    ----------
    level : float in (0, 1), default=0.5
        Share of the rows below it.
    """

    level: Annotated[float, Interval(Real, 0.0, 1.0, closed="neither")] = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class LinearLeaves(Configuration):
    """Leaves that hold bounded linear models of few terms.

    Parameters
    ----------
    features : list of int or str, or None, default=None
        Positions or names of the columns that the models may use; None for any.
    split_features : list of int or str, or None, default=None
        Positions or names of the columns that splits may use; None for any.
    """

    features: Annotated[Any, "array-like", str, None] = None
    split_features: Annotated[Any, "array-like", str, None] = None

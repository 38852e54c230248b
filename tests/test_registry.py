"""All parts that are listed keep what their kind promises; rooms around the core test theirs."""

import dataclasses
import inspect

import numpy as np
import pytest
from hypothesis import given

from evotree.leaf_models import LeafModels, OutputModels
from evotree.registry import KINDS, parts_of
from tests.reference import smooth
from tests.size import AROUND
from tests.strategies import seeds, stream_of

IN_CORE = [
    kind
    for kind, of_kind in KINDS.items()
    if of_kind.listed_in.split(".")[1].split(":")[0] not in AROUND
]


def all_of(kind):
    """Run a test of each part of a kind, by its name."""
    return pytest.mark.parametrize("name", parts_of(kind))


@pytest.mark.parametrize("kind", IN_CORE)
def test_parts_are_documented(kind):
    parts = parts_of(kind)
    assert parts and all(inspect.getdoc(part) for part in parts.values())


def test_other_kinds_are_refused():
    with pytest.raises(ValueError, match="kind='loop': allowed are splitter, loss"):
        parts_of("loop")


@all_of("splitter")
@given(seeds)
def test_a_splitter_writes_nothing_but_the_stream(name, seed):
    splitter = parts_of("splitter")[name]()
    with pytest.raises(dataclasses.FrozenInstanceError):
        splitter.other = 1
    node = smooth.make_node(*smooth.separable(seed))
    before = [array.copy() for array in node[:3]]
    assert splitter(node, stream_of(seed)) is not None
    for array, copy in zip(node[:3], before, strict=True):
        np.testing.assert_array_equal(array, copy)


@all_of("leaf")
def test_models_of_leaves_are_made_again_of_their_parts(name):
    kind, rng = parts_of("leaf")[name], np.random.default_rng(0)
    one = LeafModels(
        *(rng.normal(size=3), rng.normal(size=(3, 2))),
        np.full(3, -1.0),
        np.full(3, 1.0),
    )
    models = kind((one, one)) if issubclass(kind, OutputModels) else kind(*one)
    again = models.with_each(models.each)
    assert type(again) is kind
    X, leaves = rng.normal(size=(9, 2)), rng.integers(0, 3, 9)
    predicted = models.predict(X, leaves)
    assert len(predicted) == 9 and np.isfinite(predicted).all()
    np.testing.assert_array_equal(again.predict(X, leaves), predicted)

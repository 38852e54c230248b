"""The study of PMLB: published folds, families that count once, and what a fit returned."""

from types import SimpleNamespace

import pytest
from sklearn.datasets import make_classification

from evotree import EvoTreeClassifier
from experiments import suites
from experiments.studies import pmlb
from tests.quick_models import FREE, evolved


def test_a_family_is_on_one_side_with_all_its_copies():
    chosen, confirming, new = (set(one) for one in pmlb.PARTS.values())
    assert new < confirming and chosen | confirming == {*suites.PMLB}
    sides = [{suites.family(name) for name in side} for side in (chosen, confirming)]
    assert not sides[0] & sides[1] and not chosen & confirming
    known = {*suites.PMLB, *suites.GROUPS["in all"], "waveform"}
    for first, copies in suites.COPIES.items():
        assert {*copies} <= known and {*map(suites.family, (first, *copies))} == {first}
    assert len({*map(suites.family, new)} & {*suites.CONFIRMING}) == 12


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_on_a_score_is_told_from_a_tree(n_classes):
    X, y = make_classification(
        150, n_informative=4, n_classes=n_classes, flip_y=0.2, random_state=0
    )
    returned = {
        leaves: pmlb.KINDS[
            pmlb.kind(evolved(EvoTreeClassifier, **FREE, leaves=leaves).fit(X, y))
        ]
        for leaves in ("constant", "score")
    }
    assert "score" not in returned["constant"] and "score" in returned["score"]


def test_another_origin_is_a_tree():
    tree = SimpleNamespace(models=None, n_leaves=3, origin="widths")
    assert pmlb.KINDS[pmlb.kind(SimpleNamespace(tree_=tree))] == "tree"

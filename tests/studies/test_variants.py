"""The study of variants: what they override, and how they differ from the default."""

from evotree.configuration import check_parameters
from evotree.estimators import EvoTreeClassifier
from evotree.experiments.store import checksum
from experiments.studies import variants


def test_every_variant_can_be_made_and_has_parameters_of_its_own():
    methods = variants.EXPERIMENT.methods
    assert len(methods) == 2 + sum(map(len, variants.GROUPS.values()))
    for method in methods.values():
        check_parameters(method)
    first = {}
    descriptions = variants.EXPERIMENT.definition()["methods"].items()
    twins = {name: first.setdefault(checksum(one), name) for name, one in descriptions}
    assert twins == {name: name for name in methods} | {variants.PARTS_DEFAULT: variants.DEFAULT}


def test_a_part_is_taken_out_and_all_else_is_left():
    default = EvoTreeClassifier().get_params()
    for name, overrides in variants.GROUPS["Parts"].items():
        found = variants.EXPERIMENT.methods[name].get_params()
        # What is changed, what is in it, and the groups that hold it.
        same = [
            key
            for key in default
            if not any(key.startswith(one) or one.startswith(f"{key}__") for one in overrides)
        ]
        assert {key: found[key] for key in same} == {key: default[key] for key in same}, name

"""What a person reads of results that are printed, in a few lines without arrays."""

import pytest

from evotree import ScoredProblem, SearchConfig, search_scores
from evotree.simulators import Environment, Policy


def size(tree, seed):
    return -float(len(tree))


def by_scores():
    problem = ScoredProblem(score=size, actions=2, box=([0.0], [1.0]), n_episodes=1)
    return search_scores(problem, SearchConfig(max_generations=1, random_state=0))


def a_policy():
    names = ["position", "speed"]
    found = by_scores()
    return Policy(found.tree, Environment("CartPole-v1"), [0, 1], names, None, found)


@pytest.mark.parametrize(
    ("make", "told"), [(by_scores, "scores"), (a_policy, "CartPole-v1")]
)
def test_results_are_printed_in_a_few_lines(make, told):
    text = repr(make())
    assert told in text
    assert " at 0x" not in text and "array(" not in text
    lines = text.splitlines()
    assert len(lines) <= 20 and max(map(len, lines)) <= 170

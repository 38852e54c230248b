"""Trees whose worth a score says, such as a simulator's, and policies for environments.

In: a function that scores a whole tree, or an environment of gymnasium. Out: the best tree, and the
front of others. `scores` is the search, `actions` what leaves answer, `breeding` how trees are made
and changed, `policies` the trees that act.
"""

from evotree.simulators.policies import Environment, Policy, evolve_policy
from evotree.simulators.scores import ScoredProblem, ScoredResult, search_scores

__all__ = [
    "Environment",
    "Policy",
    "ScoredProblem",
    "ScoredResult",
    "evolve_policy",
    "search_scores",
]

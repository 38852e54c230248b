"""What trees are worth and what leaves hold, by role: the contents of `evotree.fitness`.

Each name has one module, from which code imports it: `evotree.fitness.objectives` and so on.
"""

from evotree.fitness.base import (
    FeatureCosts,
    Objective,
    PenalizedAccuracy,
    quality_and_complexity,
    scores_and_complexity,
)
from evotree.fitness.linear_leaves import (
    LinearLeafObjective,
    LinesOfOutputs,
    LogLinearLeaves,
    MeansOfOutputs,
)
from evotree.fitness.node import Criterion, line_search
from evotree.fitness.objectives import (
    ConfusionScore,
    ExpectedCost,
    OwnObjective,
    PoissonLoss,
    ProbabilityScore,
    QuantileLoss,
    SquaredLoss,
)

# Losses of classes, where a leaf holds a label; of targets, where it holds a number.
__all__ = ["ExpectedCost", "ConfusionScore", "ProbabilityScore"]
__all__ += ["SquaredLoss", "QuantileLoss", "PoissonLoss"]
# Losses of users, and what every loss has to answer.
__all__ += ["OwnObjective", "Objective"]
# Losses where a leaf holds a model, or several outputs.
__all__ += ["LinearLeafObjective", "LogLinearLeaves"]
__all__ += ["MeansOfOutputs", "LinesOfOutputs"]
# What a tree is worth: quality less penalties, or the two side by side; prices of features.
__all__ += ["PenalizedAccuracy", "quality_and_complexity", "scores_and_complexity"]
__all__ += ["FeatureCosts"]
# Splits of one node: what they are scored by, and the best one along a line.
__all__ += ["Criterion", "line_search"]

"""What makes and changes trees, by its role in the toolbox: the contents of `evotree.operators`.

Each name has one module, from which code imports it: `evotree.operators.variation` and so on.
"""

from evotree.operators.constraints import (
    Held,
    Interactions,
    MonotonicConstraint,
    ShapeLimits,
    SplitFeatures,
)
from evotree.operators.initialization.growth import init_dipolar
from evotree.operators.initialization.population import (
    init_path,
    init_population,
    init_seed,
)
from evotree.operators.pruning import prune, prune_cross_validated
from evotree.operators.refinement import refine_linear, refine_split, tao_sweep
from evotree.operators.splitters.base import Axis
from evotree.operators.splitters.cross_entropy import CrossEntropy
from evotree.operators.splitters.dipole import Dipole
from evotree.operators.splitters.linear import Linear, Sparse
from evotree.operators.splitters.perturbation import OC1, Annealing, CartLC
from evotree.operators.splitters.wodt import WODT
from evotree.operators.structure.rounding import round_tree
from evotree.operators.variation import (
    cx_trees,
    mut_nodes,
    mut_terms,
    replace_best,
    replace_nsga2,
    sel_crowded,
    sel_proportional,
)

# First trees: on dipoles, by another algorithm, along a path of penalties; whole populations.
__all__ = ["init_dipolar", "init_seed", "init_path", "init_population"]
# Splitters, which search the hyperplane of one node: by features, by moves, by an optimizer.
__all__ += ["Axis", "Dipole", "Annealing", "CartLC", "CrossEntropy", "OC1"]
__all__ += ["Linear", "Sparse", "WODT"]
# Mutation and crossover.
__all__ += ["mut_nodes", "mut_terms", "cx_trees"]
# Selection of parents, and of those who live on.
__all__ += ["sel_proportional", "sel_crowded", "replace_best", "replace_nsga2"]
# Refinement: a sweep of TAO, linear classifiers at nodes, another split by any splitter.
__all__ += ["tao_sweep", "refine_linear", "refine_split"]
# Pruning by the fitness, and by cross-validation; rounding of finished trees.
__all__ += ["prune", "prune_cross_validated", "round_tree"]
# Constraints that every tree keeps.
__all__ += [
    "Held",
    "Interactions",
    "ShapeLimits",
    "MonotonicConstraint",
    "SplitFeatures",
]

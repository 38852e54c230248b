"""The package `evotree.operators` by a short name, where the repository is at hand.

Its modules are those of `evotree.operators`, not others of the same text with other classes.
"""

import sys
from importlib import import_module
from pkgutil import walk_packages

import evotree.operators as package

for found in walk_packages(package.__path__, f"{package.__name__}."):
    sys.modules[found.name.removeprefix("evotree.")] = import_module(found.name)
sys.modules[__name__] = package

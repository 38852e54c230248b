"""Version and distribution of the package, and what else is installed under its name."""

import os
from contextlib import suppress

__version__ = "0.2.0"
DISTRIBUTION = "treevolve"


def namesakes() -> list[str]:
    """Return the distributions of the name evotree that were installed into this folder, too.

    Their files lie among ours. PyPI has such a one, of phylogenetics.
    """
    beside: list[str] = []
    with suppress(OSError):  # an archive has no folder
        beside = os.listdir(os.path.dirname(os.path.dirname(__file__)))
    return [
        name.removesuffix(".dist-info").replace("-", " ")
        for name in beside
        if name.startswith("evotree-") and name.endswith(".dist-info")
    ]

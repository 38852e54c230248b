"""The lower bounds of setup.cfg as constraints of pip; ``make test-oldest`` installs them."""

import configparser
import re
from pathlib import Path

SETUP = Path(__file__).resolve().parent.parent / "setup.cfg"
BOUNDED = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])? *>=([\d.]+)", re.MULTILINE)


def lower_bounds(text):
    """Return the least version of each library that a setup.cfg has a bound for."""
    setup = configparser.ConfigParser()
    setup.read_string(text)
    required = [
        setup["options"]["install_requires"],
        *setup["options.extras_require"].values(),
    ]
    return dict(BOUNDED.findall("\n".join(required)))


if __name__ == "__main__":
    for name, version in lower_bounds(SETUP.read_text(encoding="utf-8")).items():
        print(f"{name}=={version}")

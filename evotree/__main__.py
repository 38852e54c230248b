"""Run the command line: ``python -m evotree``."""

import sys

from evotree.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""The command ``python -m experiments STUDY``: run what is missing of a study, and report it."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from evotree.cli.main import logged
from evotree.cli.options import LOG, add_options
from evotree.experiments.runner import DONE
from experiments import STUDIES, load_study


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a study; return 0, or 2 where an argument is wrong or no fit was done."""
    parser = argparse.ArgumentParser("python -m experiments", description=__doc__)
    parser.add_argument(
        "study", metavar="STUDY", choices=STUDIES, help=", ".join(STUDIES)
    )
    parser.add_argument(
        "--data-home", metavar="DIR", type=Path, help="folder of the data sets"
    )
    parser.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="folder to write"
    )
    parser.add_argument(
        "--n-jobs",
        metavar="N",
        type=int,
        default=1,
        help="processes (1)",
        dest="jobs",
    )
    parser.add_argument(
        "--datasets", nargs="+", metavar="NAME", help="run on these alone"
    )
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="run these alone")
    parser.add_argument(
        "--report", action="store_true", help="do no fit, report the rows alone"
    )
    add_options(parser, (LOG,))
    options = vars(parser.parse_args(arguments))
    log, is_report = options.pop("log"), options.pop("report")
    study, out = load_study(options.pop("study")), options["out"]
    is_part = bool(options["datasets"] or options["methods"]) and not is_report
    try:
        if is_report:
            study.write(out)
        else:
            with logged(log):
                counts = study.run(**options)["status"].value_counts()
            print(", ".join(f"{count:,} {status}" for status, count in counts.items()))
            if DONE not in counts:
                raise ValueError(
                    f"no fit was done; the tracebacks are in {out / study.name}"
                )
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"wrote {study.rows_file(out) if is_part else study.page(out)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

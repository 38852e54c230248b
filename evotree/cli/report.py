"""The report of a model file: what ``evotree report`` does between files."""

from dataclasses import replace

import pandas as pd

from evotree.model_file import Model
from evotree.report import Report, Subject, report
from evotree.tables.columns import encode, numbers_of

# Lines of the summary of a model that its report shows.
FACTS = ("tree", "forest", "training", "test", "chosen", "evolution", "seconds")


def report_of_model(model: Model, frame: pd.DataFrame | None) -> Report:
    """Return the page about a model of a file."""
    # Names of the user's may have line breaks in them.
    lines = [line.split(maxsplit=1) for line in model.summary().splitlines()]
    facts = {line[0]: line[1] for line in lines if len(line) == 2 and line[0] in FACTS}
    members = [
        Subject(named, model.target, training=model.training_rows, facts=facts)
        for named in model.named
    ]
    subject = replace(members[0], members=members) if len(members) > 1 else members[0]
    if frame is None:
        return report(subject)
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    y = None
    if model.target in frame:
        truth = frame[model.target]
        known = (truth if model.classes is not None else numbers_of(truth)).notna()
        if known.any():
            frame = frame[known]
            y = truth[known].to_numpy()
    encode(model.columns, frame.iloc[:1])  # says which columns are not there
    return report(subject, frame[[column.name for column in model.columns]], y)

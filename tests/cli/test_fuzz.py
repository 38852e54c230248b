"""Tables as strangers may send them: trained on, or refused by an error that says why."""

from argparse import Namespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evotree.cli.rows import hold_out, training_rows
from evotree.tables.columns import encode, fit_columns
from evotree.tables.readers import read_table
from tests.damage import fuzz, sound_or_refused
from tests.test_fuzz import damaged_table

# What ``evotree fit`` is told where nothing but the target is.
PLAIN = {
    **dict.fromkeys(["sample_weight", "exposure", "group", "time", "event"]),
    **dict.fromkeys(["drop", "keep", "categorical", "monotonic_cst"], []),
    "task": "auto",
}


def train_on(frame):
    """Do what ``evotree fit`` does before the evolution; its errors need not name the file."""
    assert len(frame) and frame.columns.is_unique
    target = "kind" if "kind" in frame else frame.columns[-1]
    try:
        rows = training_rows(frame, Namespace(**PLAIN, target=target))
        rows, test = hold_out(rows, 0.25, 0)
        columns = fit_columns(rows.X)
        parts = [encode(columns, part) for part in (rows.X, test.X)]
    except ValueError:
        return
    assert all(np.isfinite(part).all() for part in parts)


@fuzz
@given(data=st.data())
def test_tables(tmp_path, data):
    path = damaged_table(tmp_path, ".csv", data)
    sound_or_refused(path, lambda: read_table(path), train_on)

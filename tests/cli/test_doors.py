"""The command line reads a table as the model has it."""

from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree import load_model, save_model
from evotree.cli import rows as command_line
from evotree.cli.main import make_parser
from tests.test_doors import few_rows, tables, tree_of


@settings(max_examples=25, deadline=None)
@given(tables(), st.data())
def test_a_model_knows_its_columns(drawn, data):
    frame, y, named = drawn
    model = tree_of(named).fit(frame, y)
    some = few_rows(frame, data)
    with TemporaryDirectory() as folder:
        save_model(Path(folder, "m.json"), model)
        loaded = load_model(Path(folder, "m.json"))
        path = Path(folder, "rows.csv")
        frame.iloc[some].to_csv(path, index=False)
        found = command_line.read_for_model(path, Namespace(read=[]), loaded)
    expected = model.predict_proba(frame)[some]
    np.testing.assert_array_equal(loaded.predict_proba(found), expected)


def test_files_of_codes_keep_them(tmp_path):
    text = "code,y\n" + "01,01\n02,02\n03,03\n" * 9
    args = make_parser().parse_args(
        ["fit", str(tmp_path / "t.csv"), "--target", "y", "--categorical", "code"]
        + ["--out", str(tmp_path / "m.json")]
    )
    Path(args.data).write_text(text)
    rows = command_line.read_training_rows(args)
    assert sorted({*rows.y}) == sorted({*rows.X["code"]}) == ["01", "02", "03"]
    Path(args.data).write_text(text.replace("0", ""))
    assert sorted({*command_line.read_training_rows(args).y}) == [1, 2, 3]

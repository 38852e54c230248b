"""Files as strangers may send them: every reader gives something sound or an error that says why.

Valid files are damaged at random. ``EVOTREE_FUZZ_EXAMPLES`` sets how many examples a reader gets;
5,000 take some minutes.
"""

import gzip
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree.model_file import load_model, save_model
from evotree.tables.columns import encode, fit_columns
from evotree.tables.readers import read_table
from tests.damage import damaged, fuzz, sound_or_refused
from tests.test_model_file import make_model, make_soft_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def use_model(model):
    frame = pd.DataFrame(
        {c.name: [None, "1", "x"][:2] for c in model.schema}, dtype=object
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has levels that fit did not see")
        shares, labels = model.predict_proba(frame), model.predict(frame)
    assert shares.shape == (2, len(model.classes)) and np.isfinite(shares).all()
    assert set(labels) <= set(model.classes)
    assert model.rules().endswith("\n") and "tree" in model.summary()


@pytest.fixture(scope="module")
def model_texts(folder):
    texts = []
    for model in (
        make_model(),
        make_model([1, 2]),
        make_model([False, True]),
        make_soft_model(),
    ):
        save_model(folder / "sound.json", model)
        texts.append((folder / "sound.json").read_bytes())
    return texts


@fuzz
@given(data=st.data())
def test_model_files(folder, model_texts, data):
    path = folder / "model.json"
    path.write_bytes(data.draw(damaged(model_texts)))
    sound_or_refused(path, lambda: load_model(path), use_model)


TABLES = [
    b"size,b,kind\n0.5,x,ja\n,y,nein\n1.5,,ja\n-2e3,x,nein\n7,z,ja\n1,x,nein\n",
    b'size,b,kind\r\n"0.5","x, y",1\r\n1,"a ""b""",2\r\n3,"\n",1\r\n4,x,2\r\n',
    b"kind,size,b,flag\n1,1,x,true\n0,2,y,false\n1,3,x,true\n0,4,y,false\n",
    b"kind;size;b\n1;1,5;x\n0;?;y\n1;-3,25e2;x\n0;4;y\n",
]
# Without the time, so that examples are the same when they are drawn again.
PACKS = {
    ".csv": bytes,
    ".csv.gz": partial(gzip.compress, mtime=0),
}


def encode_all(frame):
    """Do what a fit does with the columns of a table; its errors need not name the file."""
    assert len(frame) and frame.columns.is_unique
    try:
        rows = encode(fit_columns(frame), frame)
    except ValueError:
        return
    assert np.isfinite(rows).all()


def damaged_table(folder, ending, data):
    """Write a table with faults."""
    path = folder / f"table{ending}"
    path.write_bytes(data.draw(damaged(TABLES, PACKS[ending])))
    return path


@pytest.mark.parametrize("ending", PACKS)
@fuzz
@given(data=st.data())
def test_tables(folder, ending, data):
    path = damaged_table(folder, ending, data)
    sound_or_refused(path, lambda: read_table(path), encode_all)

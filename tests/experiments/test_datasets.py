"""Loading of data sets: from folders, and from scikit-learn."""

import gzip
import hashlib

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from evotree.experiments.datasets import BUNDLED, load

CSV = "a,colour,b,target\n1,red,0.5,yes\n,blue,1.5,no\n3,,NA,yes\n"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_load_csv(tmp_path, ending):
    raw = CSV.encode() if ending == ".csv" else gzip.compress(CSV.encode())
    (tmp_path / f"toy{ending}").write_bytes(raw)
    for name in ("toy", f"toy{ending}"):
        data = load(name, tmp_path)
        assert data.y.tolist() == ["yes", "no", "yes"]
        assert data.source == f"toy{ending}, SHA-256 {hashlib.sha256(raw).hexdigest()}"
        np.testing.assert_array_equal(data.X["a"], [1.0, np.nan, 3.0])
        # Only the empty cell is missing, so "NA" is a category.
        assert data.X["b"].tolist() == ["0.5", "1.5", "NA"]
        assert data.X["colour"].isna().tolist() == [False, False, True]
    named = load("toy", tmp_path, target="b")
    assert named.y.tolist() == ["0.5", "1.5", "NA"] and "target" in named.X


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *((name, "", "plain name") for name in ("", "../iris", "a/b")),
        ("toys", "", r"looked for toys\.csv.*there are toy\.csv"),
        ("sklearn:moons", "", "'moons'; there are iris, digits"),
        ("toy", "a,b\n1,2\n", r"toy\.csv: it has no column 'target'.*it has a, b"),
        ("toy", "a,target\n1,x\n2,\n", "missing in 1 of 2 rows"),
    ],
)
def test_wrong_names_and_contents_are_refused(tmp_path, name, content, message):
    (tmp_path / "toy.csv").write_text(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load(name, tmp_path)


def test_load_bundled_sets():
    for name in BUNDLED:
        data = load(f"sklearn:{name}", "no folder is needed")
        assert len(data.X) == len(data.y)
    np.testing.assert_array_equal(data.X.to_numpy(), load_diabetes().data)

"""Data sets: from folders, from scikit-learn, and loans."""

import gzip
import hashlib

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from evotree.experiments.datasets import BUNDLED, load
from evotree.experiments.problems import make_loans

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


# ---- loans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        *(((n,), "n_samples") for n in (0, 2.5, True)),
        *(((10, seed), "random_state") for seed in (-1, 1.5, False)),
    ],
)
def test_bad_arguments_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_loans(*wrong)


def test_loans_are_repaid_by_two_rules_of_which_no_column_knows_one():
    X, y = make_loans(20_000, random_state=1)
    income, rent, instalment, savings, age = X.iloc[:, :5].to_numpy(float).T
    says = np.where(
        X["work"] == "employed",
        income - 2 * (rent + instalment) >= 1000,
        savings >= 3000 + 12 * instalment,
    )
    is_right = says == (y == "repaid")
    assert 0.965 < is_right.mean() < 0.975
    assert abs(np.corrcoef(age, y == "repaid")[0, 1]) < 0.02
    # Neither rule is right without the other, nor the best of them for all.
    for rule in (income - 2 * (rent + instalment) >= 1000, savings >= 12 * instalment):
        assert 0.5 < (rule == (y == "repaid")).mean() < 0.85
    other, labels = make_loans(20_000, np.random.default_rng(1))
    assert X.equals(other) and (y == labels).all()

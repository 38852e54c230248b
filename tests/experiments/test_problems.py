"""Loans: what decides about them, seeds and errors."""

import numpy as np
import pytest

from evotree.experiments.problems import make_loans


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

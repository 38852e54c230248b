"""The page for agents: each of its tasks is right at the first try, by its code alone."""

import sqlite3

import numpy as np
import pytest

from tests.test_readme import DOCS, check_blocks

pytest.importorskip("gymnasium")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Run the page once, as a reader does, and return the names that it leaves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("agents"))
        return check_blocks(DOCS / "agents.md")


def is_smaller(page):
    bounded = page["small"].tree_
    return (
        page["smaller"].complexity <= 8
        and bounded.n_leaves <= 3
        and np.count_nonzero(bounded.weights, axis=1).max() <= 2
    )


def costs_less(page):
    """Than the model without costs, on rows that neither has seen."""
    rows, truth = page["X_test"], page["y_test"]
    prices = np.where(truth == "repaid", 5.0, 1.0)
    cost, other = (
        (prices * (page[name].predict(rows) != truth)).mean()
        for name in ("paid", "model")
    )
    return page["mean_cost"] == pytest.approx(cost) and cost < other


def keeps_signs(page):
    model, rows = page["signed"], page["X_test"]
    assert model.classes_[1] == "repaid"
    before = model.predict_proba(rows)[:, 1]
    for better in ({"income": rows["income"] + 500}, {"rent": rows["rent"] - 300}):
        rise = model.predict_proba(rows.assign(**better))[:, 1] - before
        assert rise.min() > -1e-9 and rise.max() > 0.1
    return True


def explains(page):
    changed = page["late"].copy()
    for name, (before, after) in page["change"].items():
        assert changed[name].item() == before
        changed[name] = after
    shares = page["model"].predict_proba(page["late"])
    mean = page["model"].predict_proba(page["X"].head(100)).mean(axis=0)
    np.testing.assert_allclose(page["shares"].sum(axis=1), shares - mean, atol=1e-9)
    assert page["rows"]["prediction"].item() == "late" and len(page["terms"])
    return page["model"].predict(changed).item() == "repaid"


def exports(page):
    rows = page["X_test"]
    with sqlite3.connect(":memory:") as database:
        rows.astype({"work": str}).to_sql("loans", database, index=False)
        asked = database.execute(f"SELECT {page['sql']} FROM loans").fetchall()
    expected = page["rounder"].predict(rows).tolist()
    return [label for (label,) in asked] == expected == page["same"].tolist()


def predicts_times(page):
    high = page["Z"][:, 0] > 0
    alive = np.array([curve(2.0) for curve in page["curves"]])
    return (
        page["risk"][high].mean() > 2 * page["risk"][~high].mean()
        and alive[high].mean() < alive[~high].mean()
    )


def breeds(page):
    used = page["toolbox"].mutate.func is page["shift"]
    return used and page["bred"].score(page["Z"], page["time"] > 2.0) > 0.6


def runs_an_experiment(page):
    right = page["runs"].groupby("method")["accuracy"].mean()
    return len(page["runs"]) == 6 and right["CART 3"] > right["CART 1"] + 0.2


def acts(page):
    return page["action"] in (0, 1) and page["returns"].mean() > 50  # 20 by chance


@pytest.mark.parametrize(
    "is_right",
    [
        is_smaller,
        costs_less,
        keeps_signs,
        explains,
        exports,
        predicts_times,
        breeds,
        runs_an_experiment,
        acts,
    ],
)
def test_a_task_of_the_page_is_right(is_right, page):
    assert is_right(page)

"""Costs, signs and names of what trees were evolved for, wherever a model is looked at."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree import Cost, EvoTreeRegressor, load_model, save_model
from evotree.cli.commands import figures
from evotree.estimators.rows import Beside
from evotree.export import export_text
from evotree.model_file import Model
from evotree.plotting import plot_pareto
from evotree.report import report
from evotree.words import told_apart
from tests.quick_models import brief
from tests.report.page import run_page

COSTS = np.array([[0.5, 1.0], [6.0, 0.0]])
PRICES = {"a": 0.05, ("b", "c"): 0.1}


def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    X.loc[:20, "a"] = np.nan
    is_late = X.a.fillna(0.0) + X.b + rng.normal(scale=0.7, size=300) > 1.0
    return X, np.where(is_late, "late", "in time")


@pytest.fixture(
    scope="module",
    params=[
        {"objective": Cost(COSTS, PRICES)},
        {"objective": Cost(COSTS), "monotonic_cst": {"a": 1}},
    ],
    ids=["priced", "signs"],
)
def dear(request):
    X, y = table()
    return brief(size_penalty=0.001, **request.param).fit(X, y), X, y


def paid(model, X, y):
    """Return what each row costs: its error, and once what is asked for on its way."""
    codes = np.searchsorted(model.classes_, y)
    found = COSTS[codes, np.searchsorted(model.classes_, model.predict(X))]
    for row, path in enumerate(model.decision_path(X)):
        features = np.flatnonzero(model.tree_.weights[path.indices].any(axis=0))
        asked = {model.feature_names_[j].split(" is ")[0] for j in features}
        for columns, price in (model.objective.features or {}).items():
            found[row] += price * bool(asked & {*columns})
    return found


def of_the_page(model, X, y):
    data = report(model, X, y).data
    own = data["trees"][data["own"]]
    name, cost, _ = own["measures"]["figures"][0]
    assert name == data["measure"] and own["quality"] == pytest.approx(cost, abs=1e-6)
    (script, *_), *_ = run_page(
        [data], "model.measure(model.own, rows, data.rows.y).score"
    )
    assert script == pytest.approx(cost)
    return cost


def of_the_front(model, X, y):
    shown = model.pareto_front_._shown()
    return shown["mean cost a row"].iloc[model.pareto_front_.chosen]


def of_the_picture(model, X, y):
    ax = plot_pareto(model, held_out=model._held_out(X, y, Beside()))
    assert ax.get_ylabel() == "mean cost a row"
    training, held_out = (line.get_ydata() for line in ax.get_lines()[:2])
    np.testing.assert_allclose(training, held_out)  # which are the same rows
    return training[model.pareto_front_.chosen]


def of_an_edit(model, X, y):
    k = int(np.flatnonzero(~model.tree_.is_leaf)[0])
    same = model.edit(X, y).set_threshold(k, model.fitted_.split(k).threshold)
    assert same.edit_cost_["cost_before"] == same.edit_cost_["cost"]
    return same.edit_cost_["cost"]


def of_a_file(model, X, y, tmp_path):
    save_model(tmp_path / "m.json", model)
    read = load_model(tmp_path / "m.json")
    assert read.members[0].signs_text == model.fitted_.signs_text
    return figures(read, X, y, read.predict(X))["cost"]


@pytest.mark.parametrize(
    "view", [of_the_page, of_the_front, of_the_picture, of_an_edit, of_a_file]
)
def test_every_view_has_the_mean_cost_a_row(dear, view, tmp_path):
    model, X, y = dear
    more = [tmp_path] if view is of_a_file else []
    mean = paid(model, X, y).mean()
    assert view(model, X, y, *more) == pytest.approx(mean, rel=1e-5)
    known = figures(Model.of(model, "y"), X, y, model.predict(X))
    constant = COSTS[np.searchsorted(model.classes_, y)].mean(axis=0).min()
    assert known["base_cost"] == pytest.approx(constant) and mean < constant


def assert_sizes_have_held_out_losses(model, loss):
    """In the table, in print, in the picture and on the page."""
    front = model.pareto_front_
    judged = front.choice.judged()
    frame = front.to_frame()
    for tree, row in zip(front, frame.itertuples(), strict=True):
        size = tree.n_leaves, tree.n_terms
        expected = judged.get(size, (np.nan, np.nan))
        np.testing.assert_array_equal(
            (row.held_out_loss, row.held_out_loss_se), expected
        )
    known = frame.dropna(subset="held_out_loss")
    assert len(known) > 1 and known["held_out_loss"].min() > 0.0
    assert f"held-out {loss}" in repr(front).splitlines()[0]
    ax = plot_pareto(model)
    label = f"held-out {loss}, folds of the fit"
    assert any(one.get_text().startswith(label) for one in ax.get_legend().texts)
    (bars,) = [bars for one in ax.figure.axes for bars in one.containers]
    np.testing.assert_array_equal(bars[0].get_xdata(), known["complexity"])
    np.testing.assert_array_equal(bars[0].get_ydata(), known["held_out_loss"])
    shown = [one["heldOut"] for one in report(model).data["trees"]]
    assert sum(text is not None for text in shown) == len(known)
    assert all(text is None or text.startswith(f"held-out {loss} ") for text in shown)


@pytest.mark.parametrize(
    ("parameters", "measure", "loss"),
    [
        ({}, "accuracy", "log loss"),
        ({"monotonic_cst": {"a": 1}}, "accuracy", "error rate"),
        ({"objective": "f1"}, "F1", "loss of F1"),
        ({"objective": "roc_auc"}, "AUC", "1 - AUC"),
        ({"objective": Cost(COSTS)}, "mean cost a row", "cost a row"),
    ],
)
def test_losses_and_qualities_have_their_names(parameters, measure, loss):
    X, y = table()
    model = brief(size_penalty="auto", max_generations=1, **parameters).fit(X, y)
    assert f"held-out {loss} " in repr(model.choice_)
    assert plot_pareto(model).get_ylabel() == measure
    assert report(model).data["measure"] == measure
    assert (measure in repr(model.pareto_front_)) == (measure != "accuracy")
    assert_sizes_have_held_out_losses(model, loss)
    text = export_text(model)
    sign = "# the share of late never falls with a; missing cells are free\n"
    told = sign.replace("; ", ";\n# ") if sign not in text else sign
    assert (told in text) == ("monotonic_cst" in parameters)
    assert report(model).data["signs"] == model.fitted_.signs_text


@given(
    base=st.floats(-1e3, 1e3),
    unit=st.sampled_from([1e-5, 0.3, 7e4]),
    steps=st.lists(st.integers(-9, 9), min_size=1, max_size=6),
)
def test_numbers_have_as_many_digits_as_tell_them_apart(base, unit, steps):
    values = [base + unit * step / 7.0 for step in steps]
    shown = [told_apart(value, values) for value in values]
    assert len(set(map(float, shown))) == len(set(values))
    for value, text in zip(values, shown, strict=True):
        others = [abs(value - other) for other in values if other != value]
        off = abs(float(text) - value)
        assert off <= 0.05 * min(others, default=abs(value))


@settings(max_examples=20)
@given(
    centre=st.sampled_from([-121.4, 0.0, 38.5, 2005.0, 1e6]),
    slopes=st.tuples(*[st.floats(-1e4, 1e4)] * 2),
)
def test_lines_are_written_about_what_is_never_near_zero(centre, slopes):
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(60, 2)), columns=["place", "size"])
    X["place"] += centre
    model = EvoTreeRegressor(
        max_generations=0, max_leaf_nodes=2, size_penalty=1.0, term_penalty=0.0
    ).fit(X, X.to_numpy() @ slopes + random.normal(size=60))
    text = re.sub(r"\n[| ]+", " ", export_text(model))
    for line in re.findall(r"predict (.*), within", text):
        names = {name: X[name].to_numpy() for name in X}
        low, high = model.tree_.models.lowest[0], model.tree_.models.highest[0]
        said = np.clip(eval(line, None, names), low, high)
        np.testing.assert_allclose(said, model.predict(X), rtol=1e-9, atol=1e-6)
        if "place" in line and centre:
            assert "(place " in line
            constant = float(line.partition(" ")[0])
            assert np.abs(constant) < 10.0 * (np.abs(model.predict(X)).max() + 1.0)

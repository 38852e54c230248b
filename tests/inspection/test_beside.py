"""What stands beside rows is read by one rule, whatever holds it and whatever asks for it."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, ShuffleSplit

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    EvoTreeSurvival,
    ObliqueForestRegressor,
    ObliqueTreeClassifier,
)
from evotree.estimators.rows import Beside
from evotree.inspection import stability
from tests.quick_models import brief, evolved
from tests.strategies import seeds

N = 60
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(N, 2)).round(3)
WEIGHT = RNG.integers(1, 4, N).astype(float)
EXPOSURE = RNG.choice([1.0, 10.0], N)
GROUPS = np.arange(N) // 2
EVENTS = RNG.poisson(np.where(ROWS[:, 0] > 0.0, 0.9, 0.2) * EXPOSURE).astype(float)
TIMES = np.column_stack([RNG.random(N) < 0.7, RNG.exponential(np.exp(ROWS[:, 0]))])
MONTH = np.repeat(np.arange(1, 13), N // 12)

BESIDE = {"sample_weight": WEIGHT, "groups": GROUPS}
KINDS = {
    "classes": (brief(), (ROWS[:, 0] > 0.0).astype(int), BESIDE),
    "numbers": (brief(EvoTreeRegressor), ROWS[:, 0] + ROWS[:, 1] ** 2, BESIDE),
    "rates": (
        brief(EvoTreeRegressor, objective="poisson"),
        EVENTS,
        {**BESIDE, "exposure": EXPOSURE},
    ),
    "times": (brief(EvoTreeSurvival), TIMES, BESIDE),
    "greedy": (ObliqueTreeClassifier("axis"), ROWS[:, 0] > 0.3, BESIDE),
    "forest": (
        ObliqueForestRegressor(n_estimators=3, random_state=0),
        ROWS[:, 0],
        BESIDE,
    ),
}
every = pytest.mark.parametrize("kind", KINDS)


def tree_of(model):
    return getattr(model, "tree_", None) or [one.tree_ for one in model.estimators_]


def fitted(kind, beside=None):
    model, y, own = KINDS[kind]
    return model.fit(ROWS, y, **(own if beside is None else beside))


# ---- forms and orders ----------------------------------------------------------------------------

TABLES = {
    "array": lambda X, labels: X,
    "list": lambda X, labels: X.tolist(),
    "frame": lambda X, labels: pd.DataFrame(X, labels),
    "polars": lambda X, labels: pl.DataFrame(X),
    "batch": lambda X, labels: pa.RecordBatch.from_pandas(
        pd.DataFrame(X, columns=["a", "b"])
    ),
}
COLUMNS = {
    "array": lambda one, labels: one,
    "list": lambda one, labels: one.tolist(),
    "series": lambda one, labels: (pd.Series, pd.DataFrame)[one.ndim - 1](one, labels),
    "polars": lambda one, labels: (pl.Series, pl.DataFrame)[one.ndim - 1](one),
    "arrow": lambda one, labels: (
        pa.array(one)
        if one.ndim == 1
        else pa.table({"time": one[:, 1], "event": one[:, 0]})
    ),
}


@every
@settings(max_examples=4, deadline=None)
@given(st.data(), seeds)
def test_what_is_permuted_together_gives_the_same_tree_and_score(kind, data, seed):
    model, y, beside = KINDS[kind]
    expected = tree_of(model.fit(ROWS, y, **beside))
    if kind != "forest":  # whose bags are drawn of rows in their order
        order = np.random.default_rng(seed).permutation(N)
    else:
        order = np.arange(N)
    labels = data.draw(st.permutations(range(100, 100 + N)))
    table, *forms = (
        data.draw(st.sampled_from(sorted(one))) for one in (TABLES, *[COLUMNS] * 4)
    )
    rows = TABLES[table](ROWS[order], labels)
    of_y, *of_beside = forms
    target = COLUMNS[of_y](y[order], labels)
    given_ = {
        name: COLUMNS[form](beside[name][order], labels)
        for name, form in zip(beside, of_beside, strict=False)
    }
    if table == "frame":  # labels say what belongs together, whatever the order
        given_ = {
            name: one[::-1] if isinstance(one, pd.Series) else one
            for name, one in given_.items()
        }
    assert tree_of(model.fit(rows, target, **given_)) == expected
    given_.pop("groups")
    score = model.score(rows, target, **given_)
    plain = {name: one for name, one in beside.items() if name != "groups"}
    assert score == pytest.approx(model.score(ROWS, y, **plain), rel=1e-9)


def test_labels_that_may_mean_two_orders_are_refused():
    X, shuffled = pd.DataFrame(ROWS), RNG.permutation(N)
    y = pd.Series(ROWS[:, 0] > 0.0)
    model = KINDS["greedy"][0]
    for rows, target, beside in (
        (X, y[shuffled], {}),
        (X, y, {"sample_weight": pd.Series(WEIGHT)[shuffled]}),
        (X.iloc[shuffled], y, {}),
        (ROWS, y, {"groups": pd.Series(GROUPS)[shuffled]}),
        (X.set_axis(range(100, 100 + N)), y.set_axis(range(1, 1 + N)), {}),
    ):
        with pytest.raises(ValueError, match="has the row labels"):
            model.fit(rows, target, **beside)
    again = X.iloc[shuffled].reset_index(drop=True).set_axis(range(7, 7 + N))
    model.fit(again.reset_index(drop=True), y.set_axis(range(7, 7 + N)))


# ---- splitters -----------------------------------------------------------------------------------


class Forward:
    """Hold out each of the last three months, after the months before it."""

    def split(self, X, y=None, groups=None):
        self.seen = X, y, groups
        for month in np.unique(groups)[-3:]:
            yield np.flatnonzero(groups < month), np.flatnonzero(groups == month)


SPLITTERS = {
    "forward": Forward(),
    "groups": GroupKFold(4),
    "random groups": GroupShuffleSplit(1, random_state=3),
    "random": ShuffleSplit(1, random_state=0),
}


@pytest.mark.filterwarnings("ignore:no split pays")
@pytest.mark.parametrize("name", SPLITTERS)
@pytest.mark.parametrize("form", ["array", "series"])
@pytest.mark.parametrize("kind", [EvoTreeClassifier, EvoTreeSurvival])
def test_splitters_see_what_users_gave(kind, form, name):
    labels = [f"row {i}" for i in range(N)]
    y = TIMES if kind is EvoTreeSurvival else ROWS[:, 1] > 0.0
    X = TABLES["frame" if form == "series" else form](ROWS, labels)
    y, groups = (COLUMNS[form](one, labels) for one in (y, MONTH))
    beside = {} if name == "random" else {"groups": groups}  # which it would part
    splitter = SPLITTERS[name]
    pairs = [*splitter.split(X, y, groups)]
    model = evolved(kind, max_generations=0, leaves="constant", random_state=0)
    choices = [
        repr(model.fit(X, y, **beside, cv=cv).choice_) for cv in (splitter, pairs)
    ]
    assert choices[0] == choices[1] != "None"
    if name == "forward":
        expected = (X, y, groups)
        assert all(a is b for a, b in zip(splitter.seen, expected, strict=True))


# ---- who asks for it, and what is refused --------------------------------------------------------

METHODS = {
    "edit": lambda model, *rows, **beside: model.edit(*rows, **beside).prune(0),
    "refit": lambda model, *rows, **beside: model.refit(*rows, **beside),
    "select_tree": lambda model, *rows, **beside: model.select_tree(
        "simplest", *rows, **beside
    ),
    "calibrate": lambda model, *rows, **beside: model.calibrate(*rows, **beside),
    "score": lambda model, *rows, **beside: model.score(*rows, **beside),
    "cost_score": lambda model, *rows, **beside: model.cost_score(*rows, **beside),
    "stability": lambda model, *rows, **beside: stability(
        model, *rows, n=2, random_state=0, **beside
    ),
}
TAKES = {
    "edit": {"sample_weight", "exposure"},
    "refit": {"sample_weight", "exposure", "groups"},
    "select_tree": {"exposure", "groups"},
    "calibrate": {"exposure", "groups"},
    "score": {"exposure"},
    "cost_score": set(),
    "stability": {"sample_weight", "exposure", "groups"},
}


def methods_of(kind):
    """Return the methods that a kind of model has."""
    model = KINDS[kind][0]
    return [
        name
        for name in METHODS
        if hasattr(model, name) or (name == "stability" and kind != "forest")
    ]


@pytest.mark.parametrize(
    ("kind", "method"), [(kind, name) for kind in KINDS for name in methods_of(kind)]
)
def test_what_fit_was_given_is_asked_for_again(kind, method):
    model, y, beside = fitted(kind), *KINDS[kind][1:]
    asked = {name: one for name, one in beside.items() if name in TAKES[method]}
    for left_out in asked:
        rest = {name: one for name, one in asked.items() if name != left_out}
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            said = pytest.raises((ValueError, UserWarning), match=left_out)
            with said:
                METHODS[method](model, ROWS, y, **rest)
    if "exposure" not in beside and "exposure" in TAKES[method] and method != "score":
        with pytest.raises((ValueError, TypeError), match="exposure"):
            METHODS[method](model, ROWS, y, **asked, exposure=EXPOSURE)


@pytest.mark.parametrize("kind", ["rates", "times"])
def test_groups_of_one_row_change_no_standard_error(kind):
    model, y, beside = KINDS[kind]
    exposure = beside.get("exposure")
    model.fit(ROWS, y, **beside)
    errors = [
        model.pareto_front_.to_frame(
            model._held_out(ROWS, y, Beside(groups=groups, exposure=exposure))
        ).held_out_se
        for groups in (None, np.arange(N))
    ]
    np.testing.assert_allclose(errors[0], errors[1])
    assert (errors[0] > 0.0).any()


WRONG = {
    "too long": (np.ones(N + 1), "has shape"),
    "a matrix": (np.ones((N, 1)), "has shape"),
    "negative": (-WEIGHT, "negative"),
    "missing": (np.where(WEIGHT > 1.0, WEIGHT, np.nan), "NaN"),
    "masked": (np.ma.masked_array(WEIGHT, WEIGHT > 1.0), "NaN"),
    "infinite": (np.where(WEIGHT > 1.0, np.inf, 1.0), "inf"),
    "zeros": (0.0 * WEIGHT, "zero everywhere"),
    "words": (["a"] * N, "allowed are numbers"),
    "complex": (WEIGHT + 1j, "such numbers"),
    "dates": (pd.date_range("2020", periods=N), "dates or times"),
    "durations": (pd.to_timedelta(WEIGHT, unit="D").to_pytimedelta(), "dates or times"),
    "periods": (pd.period_range("2020", periods=N), "dates or times"),
}


@every
@pytest.mark.parametrize("case", WRONG)
def test_weights_that_cannot_be_are_refused_by_all(kind, case):
    model, y, _ = KINDS[kind]
    values, message = WRONG[case]
    model.fit(ROWS, y, **{k: v for k, v in KINDS[kind][2].items() if k == "exposure"})
    beside = {k: v for k, v in KINDS[kind][2].items() if k == "exposure"}
    for method in ("fit", "score", "cost_score", "edit", "refit"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match=f"sample_weight.*{message}"):
                rest = {} if method == "cost_score" else beside
                getattr(model, method)(ROWS, y, sample_weight=values, **rest)


@pytest.mark.parametrize("case", ["complex", "dates", "durations", "periods", "masked"])
@pytest.mark.parametrize("kind", ["numbers", "times", "rates"])
def test_what_is_no_number_is_none_anywhere(kind, case):
    values, message = WRONG[case]
    model, y, beside = KINDS[kind]
    rates = {"exposure": EXPOSURE} if kind == "rates" else {}
    wrong = (TIMES[:, 0], values) if kind == "times" else values
    model.fit(ROWS, y, **beside)
    with pytest.raises(ValueError, match=f"{message}|nan"):
        model.score(ROWS, wrong, **rates)
    with pytest.raises(ValueError, match=f"{message}|nan"):
        model.fit(ROWS, wrong, **beside)
    if rates:
        with pytest.raises(ValueError, match=f"exposure has ({message}|nan)"):
            model.fit(ROWS, y, exposure=values)


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["time", "event"], [1, 0]),
        (["Event", "Time"], [0, 1]),
        (["entry", "time", "event"], [2, 1, 0]),
        (["dead", "days"], [0, 1]),
    ],
)
def test_columns_of_times_are_read_by_their_names(names, order):
    model = KINDS["times"][0]
    columns = np.column_stack([TIMES, 0.0 * TIMES[:, 0]])[:, order]
    expected = model.fit(ROWS, TIMES).tree_
    frame = pd.DataFrame(columns, columns=names)
    assert model.fit(ROWS, frame).tree_ == expected
    assert model.fit(ROWS, frame.to_records(index=False)).tree_ == expected
    for wrong in (["start", "stop", "event"], ["time", "event", "begin"]):
        with pytest.raises(ValueError, match="y has the columns"):
            model.fit(ROWS, pd.DataFrame(np.zeros((N, 3)), columns=wrong))

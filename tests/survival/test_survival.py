"""Times to an event: hazards, leaves, folds, concordance, and scikit-survival's face."""

import re
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree import EvoTreeSurvival, load_model, save_model
from evotree.dataset import EXPOSURE, Dataset, make_folds, split_folds
from evotree.plotting import plot_survival
from evotree.report import report
from evotree.report.page import MAX_SURVIVAL_STEPS
from evotree.rng import make_streams
from evotree.survival import (
    StepFunction,
    Times,
    concordance,
    cumulative_hazard,
    exposures,
    exposures_of,
    median_time,
    survival,
)
from evotree.texts import export_text
from tests.quick_models import BRIEF, FREE, evolved
from tests.strategies import seeds
from tests.survival.times import fitted_to_noise, seen_until
from tests.test_texts import assert_printed_as_it_predicts


def brief(**parameters):
    return evolved(EvoTreeSurvival, **{"leaves": "constant"} | BRIEF | parameters)


@st.composite
def times_to_events(draw):
    """Draw few distinct times, some of them entered late, with weights, one event at least."""
    n = draw(st.integers(3, 40))
    rng = np.random.default_rng(draw(seeds))
    time = rng.integers(1, 8, n).astype(float)
    entry = np.full(n, -np.inf)
    if draw(st.booleans()):
        entry = np.floor(time * rng.uniform(0.0, 1.0, n))
    event = rng.uniform(size=n) < draw(st.sampled_from([0.2, 0.5, 1.0]))
    event[0] = True
    return Times(event, time, entry), rng.integers(1, 4, n).astype(float)


# ---- estimates, beside loops and scikit-survival -------------------------------------------------


def naive(times, weight):
    """Return the hazards and survivals at all distinct times, by loops over rows."""
    hazard, alive, found = 0.0, 1.0, {0.0: (0.0, 1.0)}
    for t in sorted(set(times.time.tolist())):
        rows = list(zip(*times, weight, strict=True))
        at_risk = sum(w for _, end, entry, w in rows if entry < t <= end)
        events = sum(w for event, end, _, w in rows if event and end == t)
        if events:
            hazard += events / at_risk
            alive *= 1.0 - events / at_risk
        found[t] = hazard, alive
    return found


@given(times_to_events())
def test_estimates_are_those_of_loops_and_exposures_add_up_to_events(drawn):
    times, weight = drawn
    hazards, alive = cumulative_hazard(times, weight), survival(times, weight)
    for t, expected in naive(times, weight).items():
        assert (hazards(t), alive(t)) == pytest.approx(expected, abs=1e-12)
    at = exposures(times, hazards)
    assert (at > 0.0).all()
    assert weight @ at == pytest.approx(weight @ times.event, rel=1e-4)


@given(times_to_events(), seeds)
def test_concordance_is_that_of_all_pairs(drawn, seed):
    times, weight = drawn
    risk = np.random.default_rng(seed).integers(0, 4, len(times.time)).astype(float)
    rows = list(zip(*times, risk, weight, strict=True))
    right = pairs = 0.0
    for event, time, _, mine, own in rows:
        for is_seen, end, entry, other, weight_of_other in rows:
            is_later = end > time or (end == time and not is_seen)
            if event and entry < time and is_later:
                pairs += own * weight_of_other
                right += (
                    own * weight_of_other * (0.5 * (mine == other) + (mine > other))
                )
    if not pairs:
        with pytest.raises(ValueError, match="no pair of rows"):
            concordance(times, risk, 0.1 * weight)
        return
    assert concordance(times, risk, 0.1 * weight) == pytest.approx(right / pairs)
    assert concordance(times, -risk, weight) == pytest.approx(1.0 - right / pairs)


def test_step_functions_keep_their_values_until_the_next_step():
    function = StepFunction(np.array([0.0, 1.0, 3.0]), np.array([1.0, 0.5, 0.2]))
    assert function(2.9) == 0.5
    assert function([0.0, 1.0, 99.0]).tolist() == [1.0, 0.5, 0.2]
    assert median_time(function) == 1.0
    assert median_time(StepFunction(np.array([0.0]), np.array([1.0]))) == np.inf
    with pytest.raises(ValueError, match="allowed are numbers from 0"):
        function(-1.0)


# ---- leaves and folds ----------------------------------------------------------------------------


@given(seeds, st.booleans())
@settings(max_examples=10)
def test_a_leaf_has_its_events_and_one_more_by_its_exposures(seed, is_late):
    X, y = seen_until(80, seed % 1000)
    if is_late:
        y = np.column_stack([y, 0.5 * y[:, 1]])
    weight = np.random.default_rng(seed).integers(1, 4, len(X)).astype(float)
    weight[0] = 1.0
    model = brief(max_generations=1).fit(X, y, sample_weight=weight)
    times = Times.read(y)
    at = exposures(times, cumulative_hazard(times, weight))
    leaves = model.apply(X)
    for k in np.unique(leaves):
        inside = leaves == k
        events = weight[inside] @ times.event[inside]
        risk = (events + 1.0) / (weight[inside] @ at[inside] + 1.0)
        assert model.tree_.values[k, 0] == pytest.approx(risk, rel=1e-6)
        n_events = times.event[inside].sum()
        median = median_time(survival(times.take(inside), weight[inside]))
        said = f"{n_events} events of {inside.sum()} rows, median {median:.4g}"
        assert model.leaf_notes_[k] == said


@given(times_to_events(), seeds)
def test_hazards_of_folds_are_of_the_rows_trained_on(drawn, seed):
    times, weight = drawn
    at = exposures(times, cumulative_hazard(times, weight))
    X = np.arange(len(at), dtype=float)[:, np.newaxis]
    data = Dataset.from_arrays(
        X,
        times.event.astype(float),
        weight,
        task="regression",
        extras={EXPOSURE: at, **times.extras},
    )
    data = replace(data, exposures_of=exposures_of)
    folds = make_folds(data, 2, make_streams(seed, 0, 1)[0])
    for fold in range(2):
        train, held_out = split_folds(data, folds, fold)
        rows = train.raw[:, 0].astype(int)
        if not times.event[rows].any():
            continue
        hazard = cumulative_hazard(times.take(rows), weight[rows])
        for part in (train, held_out):
            rows = part.raw[:, 0].astype(int)
            exposure = exposures(times.take(rows), hazard)
            np.testing.assert_allclose(part.extras[EXPOSURE], exposure)
            rates = part.target_mean + part.target_scale * part.y
            np.testing.assert_allclose(
                rates * exposure, times.event[rows], atol=1e-6 * len(at)
            )
            ratio = part.sample_weight / (weight[rows] * exposure)
            np.testing.assert_allclose(ratio, ratio[0])
        assert train.n_rows + held_out.n_rows == len(at)


def test_risks_order_times_and_models_in_leaves_add_to_that():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    time = rng.exponential(np.exp(-np.where(X[:, 0] > 0.0, X[:, 1], -X[:, 1])))
    y = np.column_stack([time <= 2.0, np.minimum(time, 2.0)])
    scores = {}
    for leaves in ("constant", "auto"):
        model = evolved(EvoTreeSurvival, leaves=leaves, **FREE)
        scores[leaves] = model.fit(X[:400], y[:400]).score(X[400:], y[400:])
    assert model.tree_.models.is_log
    assert 0.55 < scores["constant"] < scores["auto"]


def test_functions_are_those_of_scikit_survival():
    X, y = seen_until()
    model = brief().fit(X, y)
    hazards = model.predict_cumulative_hazard_function(X, return_array=True)
    assert hazards.shape == (len(X), len(model.unique_times_))
    assert (np.diff(hazards, axis=1) >= 0.0).all()
    functions = model.predict_survival_function(X)
    assert functions.dtype == object
    medians, risk = model.predict_median(X), model.predict(X)
    assert medians[risk.argmax()] <= medians[risk.argmin()]
    for median, function, row in zip(medians, functions, hazards, strict=True):
        np.testing.assert_allclose(function(function.x), np.exp(-row))
        assert median == median_time(function)


# ---- forms of targets, and what reads models -----------------------------------------------------


def forms(y):
    """Return times to events in all forms, of which one is their second name."""
    event, time = y[:, 0] == 1.0, y[:, 1]
    kinds = [("dead", "?"), ("days", "<f8")]
    frame = pd.DataFrame({"dead": event, "days": time})
    return {
        "structured": np.array(list(zip(event, time, strict=True)), dtype=kinds),
        "frame": frame,
        "shuffled frame": frame.set_axis(range(1, len(y) + 1))[::-1],
        "tuple": (event, time),
        "lists": y.tolist(),
        "entry of all": np.column_stack([y, np.zeros(len(y))]),
    }


@pytest.mark.parametrize("form", forms(np.ones((1, 2))))
def test_all_forms_of_times_say_the_same(form):
    X, y = seen_until(100)
    frame = pd.DataFrame(X, range(1, len(X) + 1), ["a", "b", "c"])
    expected = brief().fit(frame, y)
    found = brief().fit(frame, forms(y)[form])
    assert found.tree_ == expected.tree_
    assert found.score(frame, forms(y)[form]) == expected.score(frame, y)


def test_models_are_saved_refitted_and_explained(tmp_path):
    X, y = seen_until()
    model, path = brief().fit(X, y), tmp_path / "model.json"
    text = export_text(model)
    assert re.search(r"risk [\d.]+ \(\d+ events of \d+ rows, median", text)
    save_model(path, model)
    loaded = load_model(path)
    (member,) = loaded.members
    assert asdict(member.arguments) == asdict(model.fitted_.arguments)
    assert member.arguments.has_exposures  # which follow from the times
    assert export_text(loaded).startswith(text[: text.rindex("|---")])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    for name in ("predict_median", "predict_survival_function"):
        with pytest.raises(AttributeError, match=f"{name} is the estimator's"):
            getattr(loaded, name)
    assert model.refit(X, y).score(X, y) > 0.5
    assert model.select_tree("simplest", X, y).score(X, y) >= 0.5
    assert model.explain(X).rows.prediction.tolist() == model.predict(X).tolist()


def test_a_page_has_the_curves_of_leaves():
    X, y = seen_until()
    model = brief().fit(X, y)
    page = report(model, X, y).data
    assert page["risk"] and not page["weighted"] and page["rows"]["y"] is None
    shown = page["trees"][page["own"]]
    figure = "concordance", model.score(X, y), 0.5
    assert [tuple(one) for one in shown["measures"]["figures"]] == [figure]
    for k, curve in model.leaf_curves_.items():
        times, alive = shown["nodes"][k]["curve"]
        assert len(times) <= MAX_SURVIVAL_STEPS and (np.diff(alive) <= 0.0).all()
        np.testing.assert_allclose(alive[-1], curve.y[-1], 1e-2)
        np.testing.assert_allclose(times[-1], curve.x[-1], 1e-2)


def test_texts_have_few_digits_and_rows_reach_the_leaves_that_they_say():
    assert_printed_as_it_predicts(*fitted_to_noise())


def test_edits_have_the_hazard_of_their_rows_and_the_score_of_the_model():
    X, y = seen_until(120)
    model = brief().fit(X, y).select_tree("tree")
    later = y * [1.0, 10.0]
    pruned = model.edit(X, later).prune(0)
    assert pruned.predict(X[:1])[0] == pytest.approx(1.0, rel=1e-5)
    assert f"{int(y[:, 0].sum())} events of {len(X)} rows" in pruned.leaf_notes_[0]
    (found,) = pruned.predict_cumulative_hazard_function(X[:1])
    hazard = cumulative_hazard(Times.read(later), np.ones(len(X)))
    np.testing.assert_allclose(found(later[:, 1]), hazard(later[:, 1]), rtol=1e-4)
    edited = model.edit(X, y).relabel(int(np.flatnonzero(model.tree_.is_leaf)[0]), 3.0)
    cost = edited.edit_cost_
    assert cost.score_before == pytest.approx(model.score(X, y))
    assert cost.score == pytest.approx(edited.score(X, y))
    assert cost.objective < cost.objective_before


def test_curves_of_leaves_and_their_rows_at_risk_are_drawn():
    X, y = seen_until()
    model = brief().fit(X, y)
    at, ax = model.apply(X), plot_survival(model, X, y)
    curves = [line for line in ax.get_lines() if line.get_label().startswith("leaf")]
    (table,) = ax.tables
    texts = [cell.get_text().get_text() for cell in table.get_celld().values()]
    for k, curve in zip(np.unique(at), curves, strict=True):
        own = survival(Times.read(y).take(at == k), np.ones((at == k).sum()))
        np.testing.assert_array_equal(curve.get_ydata(), own.y)
        assert str((at == k).sum()) in texts
    with pytest.raises(TypeError, match="allowed is a fitted EvoTreeSurvival"):
        plot_survival(brief(), X, y)


# ---- what is refused -----------------------------------------------------------------------------

N = 20
EVENTS, TIMES = np.ones(N), np.arange(1.0, N + 1.0)


def with_first(column, value):
    changed = column.copy()
    changed[0] = value
    return changed


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ((EVENTS, with_first(TIMES, -1.0)), "time -1 in row 0: allowed are finite"),
        ((EVENTS, with_first(TIMES, np.nan)), "time nan in row 0"),
        ((EVENTS, with_first(TIMES, np.inf)), "time inf in row 0"),
        ((0.0 * EVENTS, TIMES), "y has no event"),
        ((TIMES, EVENTS), "y has the event 2: allowed are False and True"),
        ((EVENTS, TIMES, TIMES), "entry time 1 and the time 1 in row 0"),
        ((EVENTS, TIMES, with_first(0.0 * TIMES, -2.0)), "entry time -2 in row 0"),
        ((EVENTS, TIMES, TIMES, TIMES), "y has 4 columns: allowed are"),
        ((EVENTS, TIMES[1:]), "columns of several lengths"),
        (TIMES, "y has 20 columns: allowed are a structured array"),
        ((EVENTS, ["soon"] * N), "could not convert"),
        ((EVENTS[1:], TIMES[1:]), "inconsistent numbers of samples"),
    ],
)
def test_times_that_cannot_be_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        brief().fit(TIMES[:, np.newaxis], y)


def test_what_does_not_go_with_times_is_refused():
    X, y = seen_until(50)
    with pytest.raises(ValueError, match="monotonic_cst does not go with leaves='lin"):
        brief(monotonic_cst=[1, 0, 0], leaves="linear").fit(X, y)
    with pytest.raises(TypeError, match="objective"):
        EvoTreeSurvival(objective="poisson")
    with pytest.raises(TypeError, match="exposure"):
        brief().fit(X, y, exposure=np.ones(50))
    model = brief().fit(X, y)
    for method in (model.edit, model.refit, partial(model.select_tree, "accurate")):
        with pytest.raises(ValueError, match="exposure.*allowed is None"):
            method(X, y, exposure=np.ones(50))

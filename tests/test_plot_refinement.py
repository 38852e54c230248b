"""The picture of what refinements were worth."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from evotree.engine.history import make_logbook, to_frame
from evotree.plotting import plot_refinement

OPERATORS = {"tao": (0.02, 0.6), "oc1": (0.05, 0.2), "axis": (0.001, 0.0)}


def make_run(n_generations=40, seed=0):
    """Make up the records of a run with three kinds of refinement that exhaust themselves."""
    rng = np.random.default_rng(seed)
    logbook = make_logbook()
    for gen in range(n_generations):
        record = {}
        for name, (seconds, chance) in OPERATORS.items():
            tried = int(rng.poisson(1.5)) if gen > 0 else 0
            improved = int(rng.binomial(tried, chance * 0.95**gen))
            record |= {
                f"{name}_tried": tried,
                f"{name}_improved": improved,
                f"{name}_gain": improved * rng.exponential(0.01) * 0.95**gen,
                f"{name}_seconds": tried * seconds,
            }
        logbook.record(gen=gen, nevals=1, diversity=1.0, seconds=0.1 * gen, refinement=record)
    return logbook


def totals(frame, name):
    """Add up the columns of an operator."""
    fields = ("tried", "improved", "gain", "seconds")
    return {field: frame[f"refinement_{name}_{field}"].sum() for field in fields}


@pytest.mark.parametrize("x", ["seconds", "tried"])
def test_curves_are_cumulated(x):
    logbook = make_run()
    frame = to_frame(logbook)
    ax = plt.subplots()[1]
    assert plot_refinement(logbook, x=x, ax=ax) is ax
    lines = ax.get_lines()
    curves = [line for line in lines if not line.get_label().startswith("_")]
    assert len(curves) == len(OPERATORS) and len(lines) == 2 * len(curves)
    for line in curves:
        name = line.get_label().partition(":")[0]
        total = totals(frame, name)
        assert (line.get_xdata()[0], line.get_ydata()[0]) == (0.0, 0.0)
        assert line.get_xdata()[-1] == pytest.approx(total[x])
        assert line.get_ydata()[-1] == pytest.approx(total["gain"])
        share = 100 * total["improved"] / total["tried"]
        assert f"{share:.0f} % of {total['tried']:.0f} " in line.get_label()
    gains = [line.get_ydata()[-1] for line in curves]
    assert gains == sorted(gains, reverse=True)
    assert len({line.get_color() for line in curves}) == len(curves)


def test_bad_arguments_are_named():
    run = make_run()
    for kind, message, history, options in (
        (ValueError, "no chapter 'refinement'; it has gen", to_frame(run)[["gen", "nevals"]], {}),
        (ValueError, "x='gen': allowed are 'seconds', 'tried'", run, {"x": "gen"}),
        (TypeError, "history is a int", 3, {}),
    ):
        with pytest.raises(kind, match=message):
            plot_refinement(history, **options)

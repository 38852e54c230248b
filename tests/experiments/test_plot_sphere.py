"""The directions of a search by cross-entropy, drawn on the sphere."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import PathCollection

from evotree.experiments.pictures.sphere import (
    SPACING,
    mass_circle,
    plot_sampling_on_sphere,
    project,
)
from evotree.operators.splitters.cross_entropy import SamplingStep
from evotree.operators.splitters.von_mises_fisher import sample
from tests.strategies import seeds

TARGET = np.array([0.6, 0.0, 0.8])


def make_trace(concentrations=(0.0, 0.5, 3.0, 5.0, 40.0, 900.0), n=30, p=3):
    """Make up a search that closes in on a target; the first candidate never parts the rows."""
    trace = []
    target = np.zeros(p)
    target[: len(TARGET)] = TARGET[:p]
    generator = np.random.default_rng(0)
    for kappa in concentrations:
        mu = target if kappa > 0.0 else np.zeros(p)
        directions = sample(generator, mu, kappa, n)
        scores = 1.0 - directions @ target
        scores[0] = np.inf
        is_elite = scores <= np.partition(scores, 4)[4]
        trace.append(SamplingStep(mu, kappa, directions, scores, is_elite))
    return trace


def unit_vectors(n, seed):
    vectors = np.random.default_rng(seed).standard_normal((n, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def candidates_of(ax):
    """Return the coloured points, one collection a step."""
    drawn = [c for c in ax.collections if isinstance(c, PathCollection)]
    return [c for c in drawn if c.get_array() is not None]


def titles_of(ax):
    return [text.get_text() for text in ax.texts if text.get_text().startswith("iteration")]


@given(seeds)
@settings(max_examples=20)
def test_the_projection_puts_hemispheres_in_discs_and_keeps_areas(seed):
    frame = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))[0]
    points = unit_vectors(4000, seed)
    is_near = points @ frame[2] >= 0.0
    at = project(points, frame, 5.0) - [5.0, 0.0]
    at[~is_near] += [0.0, SPACING]
    radius = np.linalg.norm(at, axis=1)
    assert radius.max() <= 1.0 + 1e-12
    # An area of the disc is twice as large a share of its half of the sphere's surface.
    expected = 2.0 * np.sin(0.5 * np.arccos(np.abs(points @ frame[2]))) ** 2
    np.testing.assert_allclose(radius**2, expected, atol=1e-12)
    assert (radius < 0.5).mean() == pytest.approx(0.25, abs=0.04)
    # Opposite directions stand at mirrored points of the two discs.
    opposite = project(-points[is_near], frame, 5.0) - [5.0, -SPACING]
    np.testing.assert_allclose(opposite, at[is_near] * [1.0, -1.0], atol=1e-12)


@pytest.mark.parametrize("kappa", [1e-6, 0.5, 8.0, 3000.0])
def test_the_circle_holds_its_share_of_the_mass(kappa):
    mu = unit_vectors(1, 3)[0]
    circle = mass_circle(mu, kappa, 0.9)
    np.testing.assert_allclose(np.linalg.norm(circle, axis=1), 1.0)
    cosine = circle @ mu
    assert np.ptp(cosine) < 1e-12
    drawn = sample(np.random.default_rng(1), mu, kappa, 20_000)
    assert (drawn @ mu >= cosine[0]).mean() == pytest.approx(0.9, abs=0.01)


def test_candidates_stand_in_the_column_of_their_step_and_have_one_scale_of_colours():
    trace = make_trace()
    ax = plt.subplots()[1]
    assert plot_sampling_on_sphere(trace, steps=(0, 5, 2), ax=ax) is ax
    assert titles_of(ax) == ["iteration 0, uniform", "iteration 5, κ = 900", "iteration 2, κ = 3.0"]
    candidates = candidates_of(ax)
    assert len(candidates) == 3
    for column, (k, points) in enumerate(zip((0, 5, 2), candidates, strict=True)):
        at = points.get_offsets() - [SPACING * column, 0.0]
        at[at[:, 1] < -0.5 * SPACING] += [0.0, SPACING]
        assert (np.linalg.norm(at, axis=1) <= 1.0 + 1e-12).all()
        scores = np.sort(trace[k].scores)[:-1]
        np.testing.assert_array_equal(np.sort(points.get_array()), scores)
        assert np.argmin(points.get_array()) == len(scores) - 1  # the best one on top
    finite = np.concatenate([trace[k].scores[1:] for k in (0, 5, 2)])
    assert {points.get_clim() for points in candidates} == {(finite.min(), finite.max())}
    # The mean direction at the end is the centre, near which the last candidates lie.
    assert np.linalg.norm(candidates[1].get_offsets() - [SPACING, 0.0], axis=1).max() < 0.15
    ax.figure.draw_without_rendering()


def test_elites_are_ringed():
    trace = make_trace()
    ax = plot_sampling_on_sphere(trace, steps=[3])
    rings = [c for c in ax.collections if isinstance(c, PathCollection) and not c.get_fc().size]
    (rings,) = (ring for ring in rings if len(ring.get_offsets()) == trace[3].is_elite.sum())
    drawn = {tuple(point) for point in candidates_of(ax)[0].get_offsets()[-5:]}
    assert {tuple(point) for point in rings.get_offsets()} == drawn


def test_steps_by_default_and_names():
    ax = plot_sampling_on_sphere(make_trace(), feature_names=["width$", "height"])
    assert [title.split(",")[0] for title in titles_of(ax)] == [f"iteration {k}" for k in (0, 2, 4)]
    texts = {text.get_text() for text in ax.texts}
    assert {"+width$", "−width$", "+height", "−height", "+intercept"} <= texts
    ax.figure.draw_without_rendering()
    only = plot_sampling_on_sphere(make_trace((0.0,)))
    assert titles_of(only) == ["iteration 0, uniform"]
    lonely = make_trace((0.0,), n=6)[0]
    lonely = lonely._replace(scores=np.full(6, np.inf), is_elite=np.zeros(6, dtype=bool))
    plot_sampling_on_sphere([lonely]).figure.draw_without_rendering()


@given(st.sampled_from([(0, 0, 1), (0, 0, -1), (0, 1, 0), (1, 0, 0)]))
def test_a_mean_along_an_axis_is_drawn(mu):
    step = make_trace((4.0,))[0]._replace(mu=np.array(mu, dtype=np.float64))
    ax = plot_sampling_on_sphere([step])
    for points in candidates_of(ax):
        assert np.isfinite(points.get_offsets()).all()
    plt.close("all")


@pytest.mark.parametrize(
    ("trace", "options", "error", "message"),
    [
        (3, {}, TypeError, "trace is a int: allowed is what CrossEntropy.trace returns"),
        ([], {}, ValueError, "trace is empty"),
        (make_trace(p=5), {}, ValueError, "trace is of a search over 4 features: allowed are 2"),
        (make_trace(), {"steps": (0, 6)}, ValueError, r"steps=\(0, 6\): .* from 0 to 5"),
        (make_trace(), {"steps": ()}, ValueError, r"steps=\(\): .* at least one"),
        (make_trace(), {"feature_names": ["a"]}, ValueError, "feature_names=.* of 2 names"),
        (make_trace(), {"ax": 3}, TypeError, "ax is a int"),
    ],
)
def test_bad_arguments_are_named(trace, options, error, message):
    with pytest.raises(error, match=message):
        plot_sampling_on_sphere(trace, **options)
    assert not plt.get_fignums()

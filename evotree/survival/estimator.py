"""The evolved tree of times to an event: translation between scikit-survival's face and `search`.

A leaf has a relative hazard, or a log-linear model of it, which is one of proportional hazards; the
hazard of all training rows is that of Nelson and Aalen (`evotree.survival`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evotree.configuration import documented
from evotree.dataset import EXPOSURE, Dataset, check_weight
from evotree.estimators import base
from evotree.estimators.evolved import _ATTRIBUTES, _RUN, _SHAPE, EvolvedTree
from evotree.estimators.rows import Beside, TargetReader
from evotree.fitted import Fitted
from evotree.schema import Schema
from evotree.survival.times import (
    StepFunction,
    Times,
    concordance,
    cumulative_hazard,
    exposures,
    exposures_of,
    median_time,
    survival,
)
from evotree.tree import ObliqueTree
from evotree.words import short_number

_NONE = Beside()


@documented(SHAPE=_SHAPE, RUN=_RUN, ATTRIBUTES=_ATTRIBUTES, **base.SHARED)
@dataclass(kw_only=True, eq=False, repr=False)
class EvoTreeSurvival(TargetReader, EvolvedTree):
    """A tree of times to an event, right-censored and perhaps left-truncated, that is evolved.

    The fitness is the share of the deviance of the full likelihood that a tree saves (LeBlanc and
    Crowley 1992): events are Poisson counts, whose exposure is the cumulative hazard of all
    training rows up to the time of a row. The hazard in a leaf is that of all rows times the risk
    of the leaf: the sum of its events by that of its exposures, each with one event more at the
    risk of all rows, which is 1.

    Parameters
    ----------
    leaves : {"auto", "linear", "constant"} or LinearLeaves, default="auto"
        What leaves hold: one risk, or a log-linear model of it with few terms, which is one of
        proportional hazards; ``"auto"`` is what loses less on rows held out. A `LinearLeaves` also
        says which columns models and splits may use. `monotonic_cst` is for constant ones.
    <SHAPE>
    <RUN>

    <ATTRIBUTES>
    cum_baseline_hazard_ : StepFunction
        The cumulative hazard of the training rows by the estimate of Nelson and Aalen.
    unique_times_ : ndarray of shape (n_times,)
        The steps of all functions that are predicted: 0, and the distinct times of the fit.
    leaf_notes_ : dict of int to str
        What texts and pictures say of each leaf: events, rows, and the median time by the estimate
        of Kaplan and Meier.
    leaf_curves_ : dict of int to StepFunction
        That estimate of the training rows of each leaf.

    References
    ----------
    LeBlanc M., Crowley J. (1992). Relative risk trees for censored survival data. Biometrics 48,
    411-425.

    Examples
    --------
    >>> import numpy as np
    >>> from evotree import EvoTreeSurvival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> time = rng.exponential(np.where(X[:, 0] > 0, 1.0, 5.0))
    >>> y = np.column_stack([time < 4, np.minimum(time, 4)])
    >>> model = EvoTreeSurvival(max_generations=5, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.6
    True
    """

    # That of the estimators of one loss; no parameter.
    objective: Any = field(default="poisson", init=False)
    leaves: Any = "auto"

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        cv: Any = None,
    ) -> Self:
        """Evolve a tree; see `EvoTreeRegressor.fit` for what is common to all.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, which may have missing values.
        y : structured array, frame or array of shape (n_samples, 2 or 3), or tuple of arrays
            Whether the event was seen, and the time of it or of the end; where rows were not seen
            from 0 on, the time of entry as the third column.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        groups : array-like of shape (n_samples,), optional
            Labels of rows that belong together.
        cv : int, splitter or iterable of pairs, optional
            What is held out while a tree is chosen. Hazards are those of the rows that are not.
        """
        return super().fit(X, y, sample_weight, groups=groups, cv=cv)

    def _make_dataset(
        self,
        X: Any,
        y: Any,
        beside: Beside = _NONE,
        scaling: str = "standard",
        schema: Schema | None = None,
    ) -> Dataset:
        """Return the rows as events at exposures, the cumulative hazard of them all."""
        beside = beside.in_order(X, y)
        times = self._read_y(X, y)
        table, event = self._read_training_rows(
            X, times.event.astype(np.float64), y_numeric=True
        )
        weight = check_weight(beside.sample_weight, len(table))
        if not (times.event & (weight > 0.0)).any():
            raise ValueError("y has no event: allowed are times with at least one.")
        hazard = cumulative_hazard(times, weight)
        # A row with no weight may be seen at other times than the others.
        at = exposures(times, hazard)
        beside = replace(beside, exposure=at, extras=times.extras)
        dataset = self._encoded(
            table, event, weight, scaling, "regression", beside, schema
        )
        return replace(dataset, exposures_of=exposures_of)

    @property
    def leaf_notes_(self) -> Mapping[int, str] | None:
        """What texts and pictures say of each leaf."""
        return self.fitted_.notes

    @property
    def leaf_curves_(self) -> Mapping[int, StepFunction] | None:
        """Survival of the training rows of each leaf."""
        return self.fitted_.curves

    @property
    def cum_baseline_hazard_(self) -> StepFunction:
        """The cumulative hazard of the training rows."""
        hazard: StepFunction = self.fitted_.hazard
        return hazard

    @property
    def unique_times_(self) -> np.ndarray:
        """The steps of all functions that are predicted."""
        return self.cum_baseline_hazard_.x

    def _fitted_of(
        self,
        tree: ObliqueTree,
        dataset: Dataset,
        *,
        brief: bool = False,
        end: float = math.inf,
    ) -> Fitted:
        """Return what training rows say of a tree: also of times to the event."""
        times = Times.of(dataset.extras)
        leaves = tree.apply(dataset.raw)
        weight = dataset.sample_weight / dataset.extras[EXPOSURE]
        notes, curves = {}, {}
        for k in np.unique(leaves).tolist():
            inside = leaves == k
            n_rows = int(dataset.multiplicity[inside].sum())
            n_events = int(dataset.multiplicity[inside] @ times.event[inside])
            curves[k] = survival(times.take(inside), weight[inside])
            median = short_number(median_time(curves[k]))
            notes[k] = f"{n_events} events of {n_rows} rows, median {median}"
        return replace(
            super()._fitted_of(tree, dataset, brief=brief, end=end),
            notes=notes,
            curves=curves,
            hazard=cumulative_hazard(times, weight),
        )

    def _score_of(self, rows: Dataset, tree: ObliqueTree) -> float:
        """Return the concordance of the risks of a tree on the rows of an edit."""
        times = Times.of(rows.extras)
        weight = rows.sample_weight / rows.extras[EXPOSURE]
        return concordance(times, tree.predict_value(rows.raw)[:, 0], weight)

    def _read_y(self, X: Any, y: Any) -> Times:
        return Times.read(y, X)

    def _held_out(self, X: Any, y: Any, beside: Beside) -> Dataset:
        """Return held-out rows in raw units, as events at the hazard of the training rows."""
        times = self._read_y(X, y)
        rows = Dataset.in_raw_units(
            self._features(X).astype(np.float64), times.event.astype(np.float64), None
        )
        at = exposures(times, self.cum_baseline_hazard_)
        extras, _ = beside.columns(len(times.time))
        return rows.with_extras({**extras, EXPOSURE: at}).evolved_for(self.objective_)

    def predict(self, X: Any) -> np.ndarray:
        """Return the risk of each row: its hazard, by that of all training rows."""
        rows = self._features(X)
        return self.tree_.predict_value(rows)[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return Harrell's concordance of the risks, the share of pairs in the right order."""
        risk = self.predict(X)
        times, weight = self._judged(X, y, sample_weight)
        return concordance(times, risk, weight)

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False
    ) -> np.ndarray:
        """Return the cumulative hazard of each row, that of all training rows times its risk.

        An array of `evotree.survival.StepFunction`, which are called with times; with
        `return_array` their values at `unique_times_`, of shape (n_samples, n_times).
        """
        check_is_fitted(self)
        values = np.outer(self.predict(X), self.cum_baseline_hazard_.y)
        return values if return_array else self._functions(values)

    def predict_survival_function(
        self, X: Any, return_array: bool = False
    ) -> np.ndarray:
        """Return the probability of each row that its event is later than a time.

        As `predict_cumulative_hazard_function` returns its functions.
        """
        values = self.predict_cumulative_hazard_function(X, True)
        np.exp(np.negative(values, out=values), out=values)
        return values if return_array else self._functions(values)

    def predict_median(self, X: Any) -> np.ndarray:
        """Return the time by which the event of each row is as likely as not; infinity if never."""
        risk, hazard = self.predict(X), self.cum_baseline_hazard_
        # A half survives a hazard of log(2); no function of a row is needed to see when that is.
        at = np.searchsorted(hazard.y, (math.log(2.0) - 1e-12) / risk)
        return np.append(hazard.x, np.inf)[at]

    def _functions(self, values: np.ndarray) -> np.ndarray:
        """Return rows of values as step functions."""
        functions = np.empty(len(values), dtype=object)
        functions[:] = [StepFunction(self.unique_times_, row) for row in values]
        return functions

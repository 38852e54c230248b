"""What an evolution begins with: the settings that cross-validation chooses, or an earlier run."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.engine.checkpoint import fingerprint, load_checkpoint, read_settings
from evotree.engine.hyperparameters import SIZE_PENALTIES, best_prunings, choose_settings
from evotree.engine.running import counting_bar, thread_map
from evotree.engine.sampling import GrowingSample
from evotree.estimators.continuing import Beginning, Continuation, Told, compared, read_told
from evotree.estimators.evolving import Evolves
from evotree.estimators.settings import Setting, candidate_settings, resample
from evotree.files import PathLike
from evotree.individual import Individual
from evotree.operators.initialization.seeding import TAO, seeding_shares
from evotree.operators.initialization.tao_seeds import init_tao
from evotree.operators.refinement.policy import Refinement
from evotree.rng import make_streams, seed_from

_OWN_STREAMS = 2**62  # the number of a generation that no run reaches
_HELD_OUT_ROWS = 1500  # so many rows are held out, if that takes no more than five folds
_FOLDS = 5
_STANDARD_ERRORS = 1.0
_SEEDS_EACH = 2  # for each charge for a node that is tried
_GENERATIONS_SHARE = 3  # an evolution on a part of the rows has so many times fewer generations


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


class ChoosesSettings(Evolves):
    """What an estimator with ``"auto"`` among its parameters chooses, and how.

    Its parameters are those of `evotree.estimators.evolved.EvolvedTree`, which evolves.
    """

    size_penalty: float | str
    max_generations: int
    max_samples: float | None
    time_limit: float | None
    verbose: int
    random_state: Any
    resume_from: PathLike | None
    warm_start: bool

    def _begin(self, dataset: Dataset) -> Beginning:
        """Return the run that this fit goes on with, or what rows held out choose."""
        goes_on = self._goes_on(dataset)
        if goes_on is not None:
            return goes_on
        seed = seed_from(self.random_state)
        sample = self._sample(dataset, seed)
        choosing, resampling = make_streams(seed, _OWN_STREAMS, 2)
        return Beginning(Told(seed, *self._choose(sample[0], seed, choosing, resampling)), sample)

    def _begin_at_once(self, dataset: Dataset) -> Beginning:
        """Return the setting and the charge that are tried first."""
        seed = seed_from(self.random_state)
        sample = self._sample(dataset, seed)
        setting = self._settings(sample.sizes[0])[0]
        return Beginning(Told(seed, setting, self._size_penalties()[0]), sample)

    def _goes_on(self, dataset: Dataset) -> Beginning | None:
        """Return the run that this fit goes on with, if any."""
        if self.resume_from is not None:
            told, stage = read_told(read_settings(self.resume_from), self, self.resume_from)
            sample = self._sample(dataset, told.seed)
            stage = min(stage, len(sample) - 1)  # of other rows, which are refused
            rows = self._resample(sample[stage], told)
            runs = load_checkpoint(self.resume_from, rows).runs
            return Beginning(told, sample, stage, runs)
        last: Continuation | None = getattr(self, "_last", None) if self.warm_start else None
        if last is None or last.parameters != compared(self):
            return None
        if fingerprint(self._resample(dataset, last.told)) != last.data:
            return None
        sample = self._sample(dataset, last.told.seed)
        return Beginning(last.told, sample, len(sample) - 1, last.islands)

    def _sample(self, dataset: Dataset, seed: int) -> GrowingSample:
        """Return the rows that the evolution sees one after the other."""
        return GrowingSample(dataset, self.max_samples, make_streams(seed, _OWN_STREAMS, 3)[2])

    def _resample(self, dataset: Dataset, told: Told) -> Dataset:
        """Return the rows that the fitness is measured on."""
        return resample(dataset, told.setting, make_streams(told.seed, _OWN_STREAMS, 2)[1])

    def _settings(self, n_rows: int) -> list[Setting]:
        """Return the settings among which cross-validation chooses."""
        given = {name: getattr(self, name) for name in Setting._fields}
        given = {name: value for name, value in given.items() if not _is_auto(value)}
        if self.refinement is None:  # nothing is fitted that they could regularize
            given = {"C": 1.0, "penalty": "l2"} | given
        return candidate_settings(given, n_rows)

    def _size_penalties(self) -> tuple[float, ...]:
        """Return the charges for a node among which cross-validation chooses, falling."""
        return SIZE_PENALTIES if self.size_penalty == "auto" else (float(self.size_penalty),)

    def _choose(
        self, dataset: Dataset, seed: int, choosing: np.ndarray, resampling: np.ndarray
    ) -> tuple[Setting, float]:
        """Return the setting and the charge for a node."""
        n_rows = dataset.X.shape[0]
        n_folds = min(_FOLDS, max(1, round(_HELD_OUT_ROWS * _FOLDS / n_rows)))
        settings = self._settings(n_rows)
        half = each = None
        if self.time_limit is not None:
            half = 0.5 * self.time_limit
            each = half / (n_folds * len(settings))

        def search(
            rows: Dataset, setting: Setting, size_penalties: Sequence[float]
        ) -> list[list[Individual]]:
            resampled = resample(rows, setting, resampling.copy())
            trees = self._make_candidates(resampled, setting, size_penalties, seed, each)
            count()
            return [
                best_prunings(trees, resampled, charge, self.weight_penalty)
                for charge in size_penalties
            ]

        with counting_bar("settings tried", disable=not self.verbose) as count:
            return choose_settings(
                dataset,
                search,
                settings,
                choosing,
                size_penalties=self._size_penalties(),
                n_folds=_FOLDS,
                max_folds=n_folds,
                standard_errors=_STANDARD_ERRORS,
                time_limit=half,
            )

    def _make_candidates(
        self,
        dataset: Dataset,
        setting: Setting,
        size_penalties: Sequence[float],
        seed: int,
        time_limit: float | None,
    ) -> list[Individual]:
        """Return trees that show what a setting is worth, at all charges for a node.

        Where an evolution starts from optimized trees, these say it, at a fraction of its cost.
        """
        if TAO not in seeding_shares(self.seeding):
            n_generations = -(-self.max_generations // _GENERATIONS_SHARE)
            limits: dict[str, Any] = {"max_generations": n_generations, "time_limit": time_limit}
            run = self._evolve(dataset, setting, size_penalties[-1], seed, **limits)
            return run.population
        charges = [charge for charge in size_penalties for _ in range(_SEEDS_EACH)]
        streams = make_streams(seed, 0, len(charges))
        C, min_rows = Refinement(C=setting.C).bounds(), self.min_samples_split
        end = math.inf if time_limit is None else time.perf_counter() + time_limit

        def make(charge: float, stream: np.ndarray) -> Individual | None:
            left = end - time.perf_counter()
            if left <= 0.0 and stream is not streams[0]:
                return None
            seconds = None if time_limit is None else left
            limits: dict[str, Any] = {"min_rows": min_rows, "seconds": seconds}
            return init_tao(dataset, charge, stream, C, setting.penalty, **limits)

        with thread_map(self.n_jobs, dataset.X.shape[0]) as mapper:
            return [tree for tree in mapper(make, charges, streams) if tree is not None]

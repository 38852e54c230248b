"""How an estimator evolves: its parameters become toolboxes, limits and the islands' executor."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from deap import base

from evotree.dataset import Dataset
from evotree.engine.evolution import Evolution, evolve
from evotree.engine.islands import evolve_islands, island_seeds
from evotree.engine.running import island_executor, mapping_threads
from evotree.engine.sampling import move
from evotree.engine.toolbox import make_toolbox
from evotree.estimators.settings import Setting
from evotree.operators.refinement.policy import as_refinement


class Evolves:
    """An estimator that evolves a population on given rows.

    Its parameters are those of `evotree.estimators.evolved.EvolvedTree`.
    """

    population_size: int
    patience: int | None
    mutation_probability: float
    crossover_probability: float
    dipolar_probability: float
    min_samples_split: int
    seeding: Any
    initial_trees: Iterable[Any] | None
    refinement: Any
    weight_penalty: float
    max_origin_share: float
    keep_duplicates: bool
    algorithm: str
    migration_interval: int
    migration_size: int
    topology: str
    n_jobs: int | None
    executor: Executor | None

    def _make_toolbox(
        self, dataset: Dataset, setting: Setting, size_penalty: float, seed: int, begins: bool
    ) -> base.Toolbox:
        """Return the toolbox of a population; only one that begins needs the first trees."""
        refinement = as_refinement(self.refinement)
        if refinement is not None:
            refinement = replace(refinement, C=setting.C, penalty=setting.penalty)
        return make_toolbox(
            dataset,
            size_penalty=size_penalty,
            weight_penalty=self.weight_penalty,
            mutation_probability=self.mutation_probability,
            dipolar_probability=self.dipolar_probability,
            min_rows=self.min_samples_split,
            seeding=self.seeding,
            initial_trees=(self.initial_trees or ()) if begins else (),
            refinement=refinement,
            max_origin_share=self.max_origin_share,
            keep_duplicates=self.keep_duplicates,
            algorithm=self.algorithm,
            random_state=seed,
        )

    def _evolve(
        self,
        dataset: Dataset,
        setting: Setting,
        size_penalty: float,
        seed: int,
        n_islands: int = 1,
        islands: list[Evolution] | None = None,
        **limits: Any,
    ) -> Evolution:
        """Evolve a population, or islands, or go on with them, on these rows or on others."""
        begins = islands is None
        toolboxes = [
            self._make_toolbox(dataset, setting, size_penalty, of_island, begins)
            for of_island in island_seeds(seed, n_islands)
        ]
        limits |= {"crossover_probability": self.crossover_probability, "patience": self.patience}
        if n_islands > 1:
            for run, toolbox in zip(islands or (), toolboxes, strict=not begins):
                move(run, dataset, toolbox)
            with island_executor(self.executor, self.n_jobs) as executor:
                return evolve_islands(
                    toolboxes,
                    population_size=self.population_size,
                    migration_interval=self.migration_interval,
                    migration_size=self.migration_size,
                    topology=self.topology,
                    executor=executor,
                    islands=islands,
                    **limits,
                )
        (toolbox,) = toolboxes
        with mapping_threads(toolbox, self.n_jobs, dataset.X.shape[0]):
            if islands is not None:
                (run,) = islands
                move(run, dataset, toolbox)
                return evolve(run, toolbox, **limits)
            begin, seconds = time.perf_counter(), limits.get("time_limit")
            first = toolbox.population(n=self.population_size, seconds=seconds)
            if seconds is not None:
                limits["time_limit"] = seconds - (time.perf_counter() - begin)
            return evolve(first, toolbox, **limits)

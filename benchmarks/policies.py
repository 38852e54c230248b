"""Policies as trees, beside linear ones: ``python -m benchmarks.policies --out DIR``.

It does the runs that have no row in ``policies_runs.csv`` of the folder, and needs
``gymnasium[box2d]`` and ``cma``.
"""

import argparse
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import cma
import numpy as np
import pandas as pd
from gymnasium.envs.box2d.lunar_lander import heuristic

from evotree import SearchConfig
from evotree.engine.scored import DEFAULT
from evotree.policy import Environment, evolve
from evotree.rng import seed_from

SEEDS, EPISODES = range(5), 100
_LANDS = {"is_taught": True, "max_leaf_nodes": 12}
# Generations, and what else a run is told.
ENVIRONMENTS: dict[str, tuple[int, dict[str, Any]]] = {
    "CartPole-v1": (20, {}),
    "MountainCar-v0": (30, {}),
    "Acrobot-v1": (20, {}),
    "Blackjack-v1": (20, {"n_episodes": 64}),
    "Pendulum-v1": (40, {"leaves": "linear"}),
    "LunarLander-v3": (30, _LANDS),
    "LunarLander-v3, continuous": (30, _LANDS | {"continuous": True}),
}
METHODS: dict[str, dict[str, Any]] = {
    "tree": {},
    "one split": {"max_leaf_nodes": 2},
    "CMA-ES": {},
    "no crossover": {"crossover": 0.0},
    "no racing": {"racing": False},
    "no imitation": {"is_taught": False},
}
ABLATED = ("MountainCar-v0", "Acrobot-v1", "LunarLander-v3")


def pilot(point: list[float], continuous: bool) -> Any:
    """Return what gymnasium's own heuristic does."""
    holder = type("Lander", (), {"continuous": continuous})
    holder.unwrapped = holder  # type: ignore[attr-defined]
    return heuristic(holder, np.array(point))


def evolved(
    name: str, seed: int, crossover: float = 0.3, **changes: Any
) -> dict[str, Any]:
    """Evolve a tree, and measure it in fresh episodes."""
    n_generations, options = ENVIRONMENTS[name]
    options = options | changes
    if options.pop("is_taught", False):
        is_continuous = options.get("continuous", False)
        options["teacher"] = partial(pilot, continuous=is_continuous)
    of_search = ("leaves", "max_leaf_nodes")
    limits = {key: options.pop(key) for key in of_search if key in options}
    variation = replace(DEFAULT.variation, crossover_probability=crossover)
    evolution = replace(DEFAULT, variation=variation)
    config = SearchConfig(
        max_generations=n_generations, evolution=evolution, random_state=seed, **limits
    )
    policy = evolve(name.partition(",")[0], config, **options)
    tree, returns = policy.tree, policy.returns(EPISODES, 10**6 + seed)
    sizes = {"leaves": tree.n_leaves, "terms": tree.n_terms, "depth": tree.depth}
    spent = {"steps": policy.result.cost, "episodes": policy.result.n_scores}
    return {
        "mean": returns.mean(),
        "std": returns.std(),
        **sizes,
        **spent,
        "rules": str(policy),
    }


def linear(name: str, seed: int, n_scores: int) -> dict[str, Any]:
    """Evolve a linear policy by CMA-ES, with as many episodes as trees had."""
    options = {"continuous": True} if "continuous" in name else {}
    made = Environment(name.partition(",")[0], options)
    space, points = made.here.action_space, made.explore(1000, seed)
    mean, scale = points.mean(axis=0), points.std(axis=0) + 1e-9
    n_outputs = int(space.n) if hasattr(space, "n") else space.low.size

    def act(point: list[float], matrix: np.ndarray) -> Any:
        outputs = matrix @ np.append((np.array(point) - mean) / scale, 1.0)
        if hasattr(space, "n"):
            return int(outputs.argmax())
        return np.clip(outputs, space.low, space.high).astype(np.float32)

    def returns(flat: np.ndarray, seeds: Any) -> list[Any]:
        player = partial(act, matrix=np.reshape(flat, (n_outputs, -1)))
        return [made.episode(player, int(one)) for one in seeds]

    rng, steps, n_done = np.random.default_rng(seed_from(seed)), 0.0, 0
    search = cma.CMAEvolutionStrategy(
        np.zeros(n_outputs * (points.shape[1] + 1)),
        0.5,
        {"seed": seed + 1, "verbose": -9},
    )
    while n_done < n_scores:
        seeds = rng.integers(2**31, size=8)
        candidates = search.ask()
        returns_of = [returns(weights, seeds) for weights in candidates]
        search.tell(candidates, [-float(np.mean(values)) for values in returns_of])
        steps += sum(value.cost for values in returns_of for value in values)
        n_done += 8 * len(candidates)
    last = returns(
        search.mean, np.random.default_rng(10**6 + seed).integers(2**31, size=EPISODES)
    )
    spent = {"terms": search.mean.size, "steps": steps, "episodes": n_done}
    return {"mean": np.mean(last), "std": np.std(last), **spent}


def report(file: Path) -> str:
    """Return the means over seeds as a table in Markdown; best and worst are of one seed."""
    rows = pd.read_csv(file)
    lines = [
        "| environment | policy | seeds | mean return | worst, best | leaves | terms | "
        "thousand steps | seconds |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in ENVIRONMENTS:
        for method in METHODS:
            part = rows[(rows.environment == name) & (rows.method == method)]
            if part.empty:
                continue
            error = part["mean"].std() / np.sqrt(len(part))
            digits = 2 if name == "Blackjack-v1" else 1
            cells = [
                name,
                method,
                len(part),
                f"{part['mean'].mean():.{digits}f} ± {error:.{digits}f}",
                f"{part['mean'].min():.{digits}f}, {part['mean'].max():.{digits}f}",
                "" if part.leaves.isna().all() else f"{part.leaves.mean():.1f}",
                f"{part.terms.mean():.1f}",
                f"{part.steps.mean() / 1000:,.0f}",
                f"{part.seconds.mean():.0f}",
            ]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    """Do what is missing, and print what there is."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.policies", description=__doc__
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--environments", nargs="+", default=list(ENVIRONMENTS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    options = parser.parse_args()
    file = options.out / "policies_runs.csv"
    rows = pd.read_csv(file).to_dict("records") if file.exists() else []
    done = {(row["environment"], row["method"], row["seed"]): row for row in rows}
    for method in options.methods:
        for name in options.environments:
            for seed in SEEDS:
                is_left_out = method.startswith("no ") and name not in ABLATED
                is_untaught = "is_taught" in METHODS[method] and "Lunar" not in name
                if (name, method, seed) in done or is_left_out or is_untaught:
                    continue
                begin = time.process_time()
                if method == "CMA-ES":
                    figures = linear(
                        name, seed, int(done[name, "tree", seed]["episodes"])
                    )
                else:
                    figures = evolved(name, seed, **METHODS[method])
                figures["seconds"] = time.process_time() - begin
                key = {"environment": name, "method": method, "seed": seed}
                done[name, method, seed] = key | figures
                pd.DataFrame(done.values()).to_csv(file, index=False)
    print(report(file))


if __name__ == "__main__":
    main()

"""A whole calibration: both ladders, and on request convergence and other seeds."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from msgspec import Struct, structs

from tiltyard.reporting.calibration_schema import Calibration
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.studies.calibration import calibrate, measure_convergence, measure_seed
from tiltyard.world.generate import generate

CONVERGENCE_OF: Final = ("allow-all", "simple rules", "pattern matching", "taint tracking")


class CalibrationPlan(Struct, frozen=True):
    """What to measure."""

    seed: int
    other_seeds: int = 0
    """How many other seeds to play."""
    convergence: bool = False
    workers: int = 2
    """Processes that play the other seeds."""


def run_calibration(
    plan: CalibrationPlan, ruleset: Ruleset, on_stage: Callable[[str], None]
) -> Calibration:
    """Measure everything in `plan`, and call `on_stage` with the name of each stage."""
    done = calibrate(plan.seed, ruleset, on_stage)
    if plan.convergence:
        curves = {}
        for name in CONVERGENCE_OF:
            on_stage(f"convergence against {name}")
            curves[name] = measure_convergence(generate(plan.seed), name, ruleset)
        done = structs.replace(done, convergence=curves)
    if plan.other_seeds:
        count = plan.other_seeds
        others = [number for number in range(1, count + 2) if number != plan.seed][:count]
        on_stage(f"{count} other seeds")
        with ProcessPoolExecutor(plan.workers) as pool:
            measured = tuple(pool.map(measure_seed, others, [ruleset] * count))
        done = structs.replace(done, other_seeds=measured)
    return done

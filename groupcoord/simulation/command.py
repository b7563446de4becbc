"""``python -m groupcoord.simulation``: run many seeds, or one seed with its timeline."""

import argparse
import shlex
import time
from collections.abc import Sequence

from groupcoord.simulation.plan_generator import plan_from_seed
from groupcoord.simulation.planted_defects import PLANTED_DEFECTS, PlantedDefect
from groupcoord.simulation.run import SimulationResult, explain, simulate_plan

_MS_PER_HOUR = 3_600_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if all invariants held, 1 if not, 2 for invalid arguments."""
    options = _parser().parse_args(arguments)
    defect = PLANTED_DEFECTS[options.defect] if options.defect is not None else None
    if options.seed is None:
        return _run_seeds(options.first, options.seeds, defect)
    result = _result(options.seed, options.keep, defect, record=True)
    print(result.text(max_lines=100_000))
    return 0 if result.ok else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m groupcoord.simulation", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--seeds", type=int, default=100, metavar="N", help="run this many seeds (100)")
    which.add_argument("--seed", type=int, metavar="SEED", help="run this seed and print its timeline")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of the seeds (0)")
    parser.add_argument(
        "--keep", type=_numbers, metavar="N,N", help="with --seed: only these of its actions; may be empty"
    )
    parser.add_argument("--defect", choices=sorted(PLANTED_DEFECTS), help="with this planted defect in the code")
    return parser


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def _run_seeds(first: int, count: int, defect: PlantedDefect | None) -> int:
    began_s, simulated_ms, steps = time.process_time(), 0, 0
    for seed in range(first, first + count):
        result = _result(seed, None, defect)
        simulated_ms, steps = simulated_ms + result.simulated_ms, steps + result.steps
        if not result.ok:
            _explain(seed, result, defect)
            return 1
    took_s = max(time.process_time() - began_s, 1e-9)
    hours = simulated_ms / _MS_PER_HOUR
    print(
        f"{count} seeds from {first} on: all invariants held in {hours:,.0f} group-hours; "
        f"{took_s:,.1f} s of one core, {hours / took_s * 60:,.0f} group-hours a minute, {steps:,} steps"
    )
    return 0


def _result(
    seed: int, keep: Sequence[int] | None, defect: PlantedDefect | None, *, record: bool = False
) -> SimulationResult:
    if defect is None:
        return simulate_plan(plan_from_seed(seed, keep=keep), skip=not record, record=record)
    with defect.applied():
        return simulate_plan(plan_from_seed(seed, options=defect.options, keep=keep), skip=not record, record=record)


def _explain(seed: int, result: SimulationResult, defect: PlantedDefect | None) -> None:
    print(f"seed {seed}: {result.violation}")
    print("looking for a shorter plan ...", flush=True)
    if defect is None:
        explained = explain(result)
    else:
        with defect.applied():
            explained = explain(result)
    kept = ",".join(str(number) for number, _ in explained.plan.numbered())
    command = ["python", "-m", "groupcoord.simulation", "--seed", str(seed), "--keep", kept]
    if defect is not None:
        command += ["--defect", defect.name]
    print(f"\n{explained.text()}\n\nagain: {shlex.join(command)}")

"""The command ``python -m groupcoord.simulation``: runs many seeds, or one seed with its timeline."""

import argparse
import shlex
import sys
import time
from collections import Counter
from collections.abc import Sequence

from groupcoord.simulation.plan import (
    CLASSIC,
    CONSUMER,
    CONSUMER_OPTIONS,
    DEFAULT_OPTIONS,
    FAILURE_OPTIONS,
    PRODUCER_OPTIONS,
    TRANSACTION_OPTIONS,
    plan_from_seed,
)
from groupcoord.simulation.run import SimulationResult, explain, simulate_plan

_MS_PER_HOUR = 3_600_000
_TRANSACTIONS, _PRODUCERS, _FAILURES = "transactions", "producers", "failures"
_EVERY = {CLASSIC: 1, CONSUMER: 5, _TRANSACTIONS: 10, _PRODUCERS: 10, _FAILURES: 20}
"""Every seed simulates a classic group; every fifth also a consumer group or one that migrates; every tenth also a group with
transactions and one with producers; every twentieth also a cluster whose brokers fail."""
_OPTIONS = {
    CLASSIC: DEFAULT_OPTIONS,
    CONSUMER: CONSUMER_OPTIONS,
    _TRANSACTIONS: TRANSACTION_OPTIONS,
    _PRODUCERS: PRODUCER_OPTIONS,
    _FAILURES: FAILURE_OPTIONS,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if all invariants held, 1 if not, 2 for invalid arguments."""
    options = _parser().parse_args(arguments)
    if options.seed is None:
        return _run_seeds(options.first, options.seeds, options.life)
    result = _result(options.seed, options.keep, options.life or CLASSIC, record=True)
    print(result.text(max_lines=100_000))
    return 0 if result.ok else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m groupcoord.simulation",
        description="Simulate groups under random faults, on simulated time, and check invariants after every step. "
        "Everything is derived from the seed. The first failure ends the run: it prints the violated invariant, a short "
        "timeline, and the command that repeats it. The exit code is 0 if all invariants held, 1 if one did not.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--seeds", type=int, default=100, metavar="N", help="simulate N seeds (default: 100)")
    which.add_argument("--seed", type=int, metavar="SEED", help="simulate this seed, and print its timeline")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="first of the N seeds (default: 0)")
    parser.add_argument(
        "--keep", type=_numbers, metavar="N,N", help="with --seed: only the actions with these numbers; may be empty"
    )
    parser.add_argument(
        "--life",
        choices=sorted(_OPTIONS),
        help="simulate only one kind (default: all kinds; with --seed: classic). classic: classic groups; consumer: groups of "
        "KIP-848, and groups that migrate; failures: brokers that fail, with groups of both protocols; producers: members "
        "that also produce; transactions: members that produce in transactions, in groups of both protocols",
    )
    return parser


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def _run_seeds(first: int, count: int, life: str | None) -> int:
    began_s, simulated_ms, steps, lives = time.process_time(), 0, 0, Counter[str]()
    for seed in range(first, first + count):
        every = {life: 1} if life else _EVERY
        for which in (which for which, often in every.items() if seed % often == 0):
            result = _result(seed, None, which)
            simulated_ms, steps = simulated_ms + result.simulated_ms, steps + result.steps
            lives[which] += 1
            if not result.ok:
                _explain(seed, result, which)
                return 1
    took_s = max(time.process_time() - began_s, 1e-9)
    hours = simulated_ms / _MS_PER_HOUR
    print(
        f"{count} seeds from {first} on: all invariants held in {hours:,.0f} group-hours "
        f"({', '.join(f'{number} {which}' for which, number in lives.items())}); "
        f"{took_s:,.1f} s of one core, {hours / took_s * 60:,.0f} group-hours a minute, {steps:,} steps"
    )
    return 0


def _result(seed: int, keep: Sequence[int] | None, life: str, *, record: bool = False) -> SimulationResult:
    return simulate_plan(plan_from_seed(seed, options=_OPTIONS[life], keep=keep), skip=not record, record=record)


def _explain(seed: int, result: SimulationResult, life: str) -> None:
    print(f"seed {seed}: {result.violation}")
    print("looking for a shorter plan ...", flush=True)
    explained = explain(result)
    kept = ",".join(str(number) for number, _ in explained.plan.numbered())
    command = ["python", "-m", "groupcoord.simulation", "--seed", str(seed), "--keep", kept]
    if life != CLASSIC:
        command += ["--life", life]
    print(f"\n{explained.text()}\n\nagain: {shlex.join(command)}")


if __name__ == "__main__":
    sys.exit(main())

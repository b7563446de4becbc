"""The command: run seeds one after the other, say how fast, and explain the first that fails; or tell one seed's story."""

# ruff: noqa: T201 -- a command says what it found
import argparse
import shlex
import time
from collections.abc import Sequence

from groupcoord.testing.simulation.ablations import ABLATIONS, Ablation
from groupcoord.testing.simulation.front import plan_of
from groupcoord.testing.simulation.simulating import Outcome, explain, simulate_plan

_MS_PER_HOUR = 3_600_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if every promise was kept, 1 if not, 2 for arguments that make no sense."""
    asked = _parser().parse_args(arguments)
    ablation = ABLATIONS[asked.ablation] if asked.ablation is not None else None
    if asked.seed is not None:
        return _tell(asked.seed, asked.keep, ablation)
    return _run(asked.first, asked.seeds, ablation)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m groupcoord.testing.simulation", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--seeds", type=int, default=100, metavar="N", help="run so many seeds (100)")
    what.add_argument("--seed", type=int, metavar="SEED", help="run this seed, and tell its story")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of the seeds (0)")
    parser.add_argument(
        "--keep", type=_numbers, metavar="N,N", help="with --seed: only these of its actions; may be empty"
    )
    parser.add_argument("--ablation", choices=sorted(ABLATIONS), help="with this deliberate fault in the code")
    return parser


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def _run(first: int, count: int, ablation: Ablation | None) -> int:
    began_s, simulated_ms, steps = time.process_time(), 0, 0
    for seed in range(first, first + count):
        outcome = _outcome(seed, None, ablation)
        simulated_ms, steps = simulated_ms + outcome.simulated_ms, steps + outcome.steps
        if not outcome.ok:
            _say_what_failed(seed, outcome, ablation)
            return 1
    took_s = max(time.process_time() - began_s, 1e-9)
    hours = simulated_ms / _MS_PER_HOUR
    print(
        f"{count} seeds from {first} on: every promise was kept in {hours:,.0f} group-hours; "
        f"{took_s:,.1f} s of one core, {hours / took_s * 60:,.0f} group-hours a minute, {steps:,} steps"
    )
    return 0


def _tell(seed: int, keep: Sequence[int] | None, ablation: Ablation | None) -> int:
    outcome = _outcome(seed, keep, ablation, tell=True)
    print(outcome.text(shown=100_000))
    return 0 if outcome.ok else 1


def _outcome(seed: int, keep: Sequence[int] | None, ablation: Ablation | None, *, tell: bool = False) -> Outcome:
    if ablation is None:
        return simulate_plan(plan_of(seed, keep=keep), skip=not tell, tell=tell)
    with ablation.applied():
        return simulate_plan(plan_of(seed, mix=ablation.mix, keep=keep), skip=not tell, tell=tell)


def _say_what_failed(seed: int, outcome: Outcome, ablation: Ablation | None) -> None:
    print(f"seed {seed}: {outcome.broken}")
    print("looking for a shorter story ...", flush=True)
    if ablation is None:
        least = explain(outcome)
    else:
        with ablation.applied():
            least = explain(outcome)
    kept = ",".join(str(number) for number, _ in least.plan.numbered())
    command = ["python", "-m", "groupcoord.testing.simulation", "--seed", str(seed), "--keep", kept]
    if ablation is not None:
        command += ["--ablation", ablation.name]
    print(f"\n{least.text()}\n\nagain: {shlex.join(command)}")

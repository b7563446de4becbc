"""Runs a plan, shrinks a failing plan to as few actions as possible, and formats the result as a timeline."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from groupcoord.core.events import counted
from groupcoord.simulation.invariants.base import InvariantViolation
from groupcoord.simulation.member_process import UnsafeSkipError
from groupcoord.simulation.plan import DEFAULT_OPTIONS, PlanOptions, SimulationPlan, duration, plan_from_seed
from groupcoord.simulation.world import SimulatedWorld

CRASHED = "no-crash"
"""The invariant name of a violation by an exception in the simulated code."""
_MAX_LINES = 150

_MEMBER_ID = re.compile(
    r"\b((?:instance-)?[a-z][a-z0-9]*(?:-twin)?)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)


class TimelineLine(NamedTuple):
    """One line of a timeline: the time, the source (the plan, the coordinator or a member) and the text."""

    at_ms: int
    source: str
    text: str


def timeline_text(lines: Sequence[TimelineLine]) -> str:
    """The lines as text. Member ids are shortened to ``a#1``, ``a#2``, numbered in the order in which they appear."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}

    def short(found: "re.Match[str]") -> str:
        member_id, name = found.group(0), found.group(1)
        if member_id not in names:
            counts[name] = counts.get(name, 0) + 1
            names[member_id] = f"{name}#{counts[name]}"
        return names[member_id]

    width = max((len(line.source) for line in lines), default=0)
    return "\n".join(
        f"{line.at_ms / 1_000:10.3f}  {line.source:{width}}  {_MEMBER_ID.sub(short, line.text)}" for line in lines
    )


def plan_text(plan: SimulationPlan) -> str:
    """The plan as text: brokers, topics, members, actions."""
    brokers = counted(plan.brokers, "broker")
    topics = ", ".join(f"{name} ({count})" for name, count in plan.topics.items())
    lines = [f"{brokers}; topics with their partitions: {topics}; healed at {duration(plan.heal_ms)}"]
    lines += [member.text() for member in plan.members]
    lines += [writer.text() for writer in plan.standalone_producers]
    lines += [
        f"{action.at_ms / 1_000:10.3f}  ({number}) {action.text(plan.members)}" for number, action in plan.numbered()
    ]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """The result of running ``plan``; ``violation`` is None if all invariants held.

    ``lines`` is the timeline, if it was recorded. ``steps`` is the number of events that were processed.
    """

    plan: SimulationPlan
    violation: InvariantViolation | None
    lines: Sequence[TimelineLine]
    steps: int
    simulated_ms: int

    @property
    def ok(self) -> bool:
        """Did all invariants hold?"""
        return self.violation is None

    def text(self, max_lines: int = _MAX_LINES) -> str:
        """The plan, the last ``max_lines`` lines of the timeline, and the violation."""
        lines, parts = self.lines, [plan_text(self.plan), ""]
        if len(lines) > max_lines:
            parts.append(f"({len(lines) - max_lines} lines before)")
            lines = lines[-max_lines:]
        violation = "all invariants held" if self.violation is None else f"violated: {self.violation}"
        return "\n".join([*parts, timeline_text(lines), "", violation])


def simulate(
    seed: int = 0, *, plan: SimulationPlan | None = None, options: PlanOptions = DEFAULT_OPTIONS, shrink: bool = True
) -> SimulationResult:
    """Run ``plan``, or the plan that ``seed`` and ``options`` generate.

    Unless ``shrink`` is false, a failure is reduced to as few actions as possible, and its timeline is recorded.
    """
    result = simulate_plan(plan_from_seed(seed, options=options) if plan is None else plan)
    return explain(result) if shrink and not result.ok else result


def simulate_plan(plan: SimulationPlan, *, skip: bool = True, record: bool = False) -> SimulationResult:
    """Run ``plan``; ``record`` keeps the timeline. ``skip`` skips heartbeats without effect; the result is the same.

    An exception in the simulated code is a violation of the invariant CRASHED.
    """
    lines: list[TimelineLine] = []
    world = SimulatedWorld(
        plan, skip=skip, add_line=(lambda *line: lines.append(TimelineLine(*line))) if record else None
    )
    violation: InvariantViolation | None = None
    try:
        world.run()
    except UnsafeSkipError:
        return simulate_plan(plan, skip=False, record=record)
    except InvariantViolation as found:
        violation = found
    except Exception as error:  # any exception of the simulated code is a finding
        violation = InvariantViolation(CRASHED, world.event_queue.now_ms, f"{type(error).__name__}: {error}")
        violation.__cause__ = error
    return SimulationResult(
        plan=plan,
        violation=violation,
        lines=lines,
        steps=world.event_queue.steps,
        simulated_ms=world.event_queue.now_ms,
    )


def explain(result: SimulationResult, *, max_runs: int = 200) -> SimulationResult:
    """Shrink a failure: the same violation with as few actions as possible, in at most ``max_runs`` runs, with its timeline.

    Actions after the violation are removed first. Raises ValueError if there is no violation.
    """
    violation = result.violation
    if violation is None:
        raise ValueError("all invariants held: there is nothing to explain")
    plan = result.plan

    def fails(numbers: Sequence[int]) -> bool:
        found = simulate_plan(plan.keep(numbers)).violation
        return found is not None and found.name == violation.name

    before = [number for number, action in plan.numbered() if action.at_ms <= violation.at_ms]
    smallest = plan.keep(minimize(before, fails, max_runs=max_runs))
    explained = simulate_plan(smallest, skip=False, record=True)
    return (
        simulate_plan(smallest, record=True) if explained.ok else explained
    )  # if the run with a record is ok, skipping heartbeats changed the result


def minimize(numbers: Sequence[int], fails: Callable[[Sequence[int]], bool], *, max_runs: int) -> list[int]:
    """A minimal part of ``numbers`` for which ``fails`` is true, with at most ``max_runs`` calls of it.

    ``fails`` is true of all ``numbers`` and of the result. With enough calls the result is minimal: ``fails`` is false if
    any one number is left out. Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (delta
    debugging, algorithm ``ddmin``).
    """
    left = list(numbers)
    if left and max_runs > 0:
        max_runs -= 1
        if fails([]):
            return []
    pieces = 2
    while len(left) >= 2 and max_runs > 0:
        size = -(-len(left) // pieces)
        for start in range(0, len(left), size):
            rest = left[:start] + left[start + size :]
            max_runs -= 1
            if fails(rest):
                left, pieces = rest, max(pieces - 1, 2)
                break
            if not max_runs:
                break
        else:
            if size == 1:
                break
            pieces = min(pieces * 2, len(left))
    return left

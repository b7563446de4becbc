"""Simulate a plan, and explain what fails: as few actions as possible, told step by step."""

from collections.abc import Sequence
from dataclasses import dataclass

from groupcoord.testing.simulation.ahead import SkippedTooMuchError
from groupcoord.testing.simulation.invariants.base import Broken
from groupcoord.testing.simulation.plan import Plan
from groupcoord.testing.simulation.shrink import shrink
from groupcoord.testing.simulation.story import Line, Story, cast_of, text_of
from groupcoord.testing.simulation.world import World

CRASHED = "no-crash"
"""The name of what is broken when the code that is simulated raises."""
SHOWN_LINES = 150
"""So much of a story is shown: its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a run of ``plan``; ``broken`` is None if every promise was kept.

    ``lines`` is the story, if it was wanted; ``steps`` is how many things happened, ``simulated_ms`` in how much time.
    """

    plan: Plan
    broken: Broken | None
    lines: Sequence[Line]
    steps: int
    simulated_ms: int

    @property
    def ok(self) -> bool:
        """Was every promise kept?"""
        return self.broken is None

    def text(self, shown: int = SHOWN_LINES) -> str:
        """Who was there, what was done, what happened (of long stories the end), and what was broken."""
        lines, told = self.lines, []
        if len(lines) > shown:
            told.append(f"({len(lines) - shown} lines before)")
            lines = lines[-shown:]
        told.append(text_of(lines))
        end = "every promise was kept" if self.broken is None else f"broken: {self.broken}"
        return "\n".join([cast_of(self.plan), "", *told, "", end])


def simulate_plan(plan: Plan, *, skip: bool = True, tell: bool = False) -> Outcome:
    """Run ``plan``. With ``skip`` heartbeats that change nothing are passed over; the outcome is the same without.

    What the simulated code raises is a broken promise, too: CRASHED.
    """
    story = Story()
    world = World(plan, skip=skip, tell=story.tell if tell else None)
    broken: Broken | None = None
    try:
        world.run()
    except SkippedTooMuchError:
        return simulate_plan(plan, skip=False, tell=tell)
    except Broken as found:
        broken = found
    except Exception as error:  # whatever it is, it is found out here
        broken = Broken(CRASHED, world.agenda.now_ms, f"{type(error).__name__}: {error}")
        broken.__cause__ = error
    return Outcome(
        plan=plan, broken=broken, lines=story.lines, steps=world.agenda.steps, simulated_ms=world.agenda.now_ms
    )


def explain(outcome: Outcome, *, runs: int = 200) -> Outcome:
    """The same promise broken by as few of the actions as possible, found in at most ``runs`` runs; with its story.

    What happens after the failure is left out first. Raises ValueError if nothing is broken.
    """
    broken = outcome.broken
    if broken is None:
        raise ValueError("every promise was kept: there is nothing to explain")
    plan = outcome.plan

    def fails(numbers: Sequence[int]) -> bool:
        found = simulate_plan(plan.keep(numbers)).broken
        return found is not None and found.name == broken.name

    before = [number for number, action in plan.numbered() if action.at_ms <= broken.at_ms]
    least = shrink(before, fails, runs=runs)
    told = simulate_plan(plan.keep(least), skip=False, tell=True)
    return simulate_plan(plan.keep(least), tell=True) if told.ok else told  # so skipping it is that is wrong

"""The tables of docs/simulation.md: what is done, what must hold, what could go wrong."""

from collections.abc import Iterable

from groupcoord.testing.simulation.ablations import ABLATIONS
from groupcoord.testing.simulation.invariants.judge import INVARIANTS
from groupcoord.testing.simulation.plan import Kind


def kinds() -> str:
    """Every kind of action."""
    names = {"member": "a member", "time": "some time", "amount": "some", "error": "an error of the log"}
    return _table(("kind", "what is done"), ((f"`{kind.name}`", kind.value.format(**names)) for kind in Kind))


def invariants() -> str:
    """Every promise."""
    return _table(("name", "promise"), ((f"`{each.name}`", each.promise) for each in INVARIANTS))


def ablations() -> str:
    """Every deliberate fault."""
    rows = ((f"`{each.name}`", each.so, f"`{each.breaks}`") for each in ABLATIONS.values())
    return _table(("fault", "what is wrong then", "found by"), rows)


TABLES = {"kinds": kinds, "invariants": invariants, "ablations": ablations}


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

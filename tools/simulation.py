"""Generates the tables of docs/simulation.md: actions, invariants, planted defects."""

from groupcoord.simulation import INVARIANTS, ActionKind
from tests.simulation.planted_defects import PLANTED_DEFECTS
from tools.markdown import table


def actions() -> str:
    """Every kind of action."""
    names = {
        "member": "a member",
        "time": "some time",
        "amount": "M",
        "broker": "N",
        "error": "an error of the log",
    }
    names |= {"coordinated": "the group or of transactions", "log": "`__consumer_offsets` or `__transaction_state`"}
    return table("| kind | effect |", (f"| `{kind.name}` | {kind.value.format(**names)} |" for kind in ActionKind))


def invariants() -> str:
    """Every invariant."""
    rows = (f"| `{each.name}` | {' '.join(str(each.__doc__).split())} |" for each in INVARIANTS)
    return table("| name | invariant |", rows)


def defects() -> str:
    """Every planted defect."""
    rows = (f"| `{each.name}` | {each.text} | `{each.found_by}` |" for each in PLANTED_DEFECTS.values())
    return table("| defect | effect | found by |", rows)

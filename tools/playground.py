"""Generates the tables of lessons and actions in docs/playground.md."""

from collections.abc import Iterable

from groupcoord.playground import argument_checks
from groupcoord.playground.lesson import lessons
from groupcoord.playground.playground import ACTIONS


def lesson_table() -> str:
    """Every lesson."""
    rows = (
        f"| {lesson.title} | {lesson.summary} | [{lesson.chapter}]({lesson.chapter}) |" for lesson in lessons().values()
    )
    return _table("| lesson | what it is about | more of it |", rows)


def action_table() -> str:
    """Every action."""
    rows = (
        f"| `{name}` | {', '.join(f'`{argument}`' for argument in told['arguments'])} | {told['text'].replace('``', '`')} |"
        for name, told in ((name, argument_checks.described(action)) for name, action in ACTIONS.items())
    )
    return _table("| action | arguments | what it does |", rows)


def _table(head: str, rows: Iterable[str]) -> str:
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *rows]) + "\n"

"""Generates the tables of lessons and actions in docs/playground.md."""

from groupcoord.playground import argument_checks
from groupcoord.playground.lesson import lessons
from groupcoord.playground.playground import ACTIONS
from tools.markdown import table


def lesson_table() -> str:
    """Every lesson."""
    rows = (
        f"| {lesson.title} | {lesson.summary} | [{lesson.chapter}]({lesson.chapter}) |" for lesson in lessons().values()
    )
    return table("| lesson | what it is about | more of it |", rows)


def action_table() -> str:
    """Every action."""
    rows = (
        f"| `{name}` | {', '.join(f'`{argument}`' for argument in told['arguments'])} | {told['text'].replace('``', '`')} |"
        for name, told in ((name, argument_checks.described(action)) for name, action in ACTIONS.items())
    )
    return table("| action | arguments | what it does |", rows)

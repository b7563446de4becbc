"""Generates the parts of ``docs/pipeline.md`` about the tables and the score, from ``groupcoord/pipeline``."""

from groupcoord.pipeline.health_symptoms import SYMPTOMS
from groupcoord.pipeline.schemas import CAUSE_KINDS, MEMBER, TABLES, TableSchema
from groupcoord.pipeline.watch.metric_names import METRICS
from tools.markdown import table


def tables() -> str:
    """Every table with its columns."""
    return "\n".join(map(_columns, TABLES.values()))


def symptoms() -> str:
    """What the score of a group is made of."""
    rows = [f"| {one.meaning} | `{one.table}` | {one.points} |" for one in SYMPTOMS]
    return table("| symptom | counted in | points |", rows)


def metrics() -> str:
    """The metrics that a watch serves."""
    rows = [
        f"| `{one.served_name}` | {', '.join(f'`{label}`' for label in one.labels)} | {one.kind} | {one.help} |"
        for one in METRICS
    ]
    return table("| metric | labels | kind | what it is |", rows)


def causes() -> str:
    """The kinds of causes of rebalances, in the order in which they are tried."""
    rows = [f"| `{kind}` | {meaning} |" for kind, meaning in CAUSE_KINDS.items()]
    return table("| `cause_kind` | what two generations show |", rows)


def _columns(of: TableSchema) -> str:
    rows = [
        f"| `{column.name}` | `{column.type.replace(MEMBER, 'member')}` | {column.meaning} | {column.unit} |"
        for column in of.columns
    ]
    key = ", ".join(f"`{name}`" for name in of.key)
    head = f"### {of.name}\n\n{of.meaning}\nOne row for each {key}.\n\n"
    return head + table("| column | type | meaning | unit |", rows)

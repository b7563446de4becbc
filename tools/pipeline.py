"""Generates the parts of ``docs/pipeline.md`` about the tables and the score, from ``groupcoord/pipeline``."""

from groupcoord.pipeline.health_symptoms import SYMPTOMS
from groupcoord.pipeline.schemas import CAUSE_KINDS, MEMBER, TABLES, TableSchema
from groupcoord.pipeline.watch.metric_names import METRICS


def tables() -> str:
    """Every table with its columns."""
    return "\n".join(_table(table) for table in TABLES.values())


def symptoms() -> str:
    """What the score of a group is made of."""
    rows = [f"| {one.meaning} | `{one.table}` | {one.points} |" for one in SYMPTOMS]
    return "\n".join(["| symptom | counted in | points |", "|---|---|---|", *rows]) + "\n"


def metrics() -> str:
    """The metrics that a watch serves."""
    rows = [
        f"| `{one.served_name}` | {', '.join(f'`{label}`' for label in one.labels)} | {one.kind} | {one.help} |"
        for one in METRICS
    ]
    return "\n".join(["| metric | labels | kind | what it is |", "|---|---|---|---|", *rows]) + "\n"


def causes() -> str:
    """The kinds of causes of rebalances, in the order in which they are tried."""
    rows = [f"| `{kind}` | {meaning} |" for kind, meaning in CAUSE_KINDS.items()]
    return "\n".join(["| `cause_kind` | what two generations show |", "|---|---|", *rows]) + "\n"


def _table(table: TableSchema) -> str:
    rows = [
        f"| `{column.name}` | `{column.type.replace(MEMBER, 'member')}` | {column.meaning} | {column.unit} |"
        for column in table.columns
    ]
    key = ", ".join(f"`{name}`" for name in table.key)
    head = [f"### {table.name}", "", table.meaning, f"One row for each {key}.", ""]
    return "\n".join([*head, "| column | type | meaning | unit |", "|---|---|---|---|", *rows]) + "\n"

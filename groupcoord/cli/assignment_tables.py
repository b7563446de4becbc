"""Renders assignments as text tables, for ``groupcoord assign``."""

from collections.abc import Iterable, Mapping, Sequence

from groupcoord.assignors.group_simulator import RebalanceOutcome
from groupcoord.assignors.interface import TopicPartition
from groupcoord.core.grouping import grouped


def assignment_table(outcome: RebalanceOutcome) -> str:
    """A row for every member, with the partitions that it kept, gained and lost; below, the totals."""
    rows = [["member", "has", "kept", "gained", "lost"]]
    for member_id, change in outcome.changes.items():
        gone = member_id not in outcome.assignment
        size = "gone" if gone else str(len(outcome.assignment[member_id]))
        rows.append([member_id, size, *map(partitions_text, (change.kept, change.gained, change.lost))])
    return "\n".join([table(rows), "", *_remarks(outcome)])


def comparison_table(outcomes: Mapping[str, RebalanceOutcome]) -> str:
    """A column for every assignor: how many partitions each member has, gained and lost; below, the totals."""
    rows = [["member", *outcomes]]
    members = dict.fromkeys(member_id for outcome in outcomes.values() for member_id in outcome.changes)
    rows += [[member_id, *(_cell(outcome, member_id) for outcome in outcomes.values())] for member_id in members]
    totals = [
        ["imbalance", *(str(outcome.spread) for outcome in outcomes.values())],
        ["moved", *(str(outcome.moved) for outcome in outcomes.values())],
        ["rebalances", *(str(len(outcome.rounds)) for outcome in outcomes.values())],
    ]
    text = table([*rows, *totals]).splitlines()
    rule = text[1]
    return "\n".join([*text[: -len(totals)], rule, *text[-len(totals) :]])


def partitions_text(partitions: Iterable[TopicPartition]) -> str:
    """``orders 0-2 5, payments 1``: topics by name, consecutive partitions as ranges."""
    by_topic = grouped(sorted(partitions))
    return ", ".join(f"{topic} {_runs_text(numbers)}" for topic, numbers in by_topic.items())


def table(rows: Sequence[Sequence[str]]) -> str:
    """``rows`` in aligned columns; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _cell(outcome: RebalanceOutcome, member_id: str) -> str:
    change = outcome.changes[member_id]
    if member_id not in outcome.assignment:
        return f"gone -{len(change.lost)}"
    signs = [f"+{len(change.gained)}"] if change.gained else []
    signs += [f"-{len(change.lost)}"] if change.lost else []
    return " ".join([str(len(outcome.assignment[member_id])), *signs])


def consecutive_runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """(first, last) of each run of consecutive ``numbers``, which are in ascending order."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def _runs_text(numbers: Sequence[int]) -> str:
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in consecutive_runs(numbers))


def _remarks(outcome: RebalanceOutcome) -> list[str]:
    lines = [f"imbalance {outcome.spread}, moved {outcome.moved}"]
    rounds = len(outcome.rounds)
    if rounds > 1:
        first = {partition for partitions in outcome.rounds[0].values() for partition in partitions}
        last = {partition for partitions in outcome.assignment.values() for partition in partitions}
        lines.append(f"{rounds} rebalances; after the first nobody has {partitions_text(last - first) or 'any less'}")
    if outcome.remark is not None:
        lines.append(outcome.remark)
    return lines

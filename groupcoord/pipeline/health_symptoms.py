"""What counts against the health of a group, and how much: the score of the table ``group_health``.

A symptom that a group shows n times gives ``points * log2(1 + n)``: once gives its points, three times twice as many, seven
times three times as many. So a group with one symptom all day does not hide one with several at times.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple


class HealthSymptom(NamedTuple):
    """One of them: a column of ``group_health``, what it counts, in which table, and its points."""

    column: str
    meaning: str
    table: str
    points: int


SYMPTOMS = (
    HealthSymptom("storms", "storms of rebalances", "storms", 5),
    HealthSymptom("late_partitions", "partitions whose lag is not OK", "lag", 4),
    HealthSymptom("commit_gaps", "pauses in which commits stopped", "commit_gaps", 3),
    HealthSymptom("zombies", "commits as if by a member that had lost the partition", "zombies", 3),
    HealthSymptom("moved_needlessly", "partitions that moved and need not have", "rebalances", 2),
    HealthSymptom("rebalances", "rebalances", "rebalances", 1),
)


def parts_of(counts: Mapping[str, int]) -> dict[str, float]:
    """What each symptom gives, by the name of its column; ``counts`` has how often each was seen."""
    return {one.column: one.points * math.log2(1 + counts[one.column]) for one in SYMPTOMS}

"""What counts against the health of a group, and how much: the score of the table ``group_health`` is made of this."""

import math
from collections.abc import Mapping
from typing import NamedTuple


class HealthSymptom(NamedTuple):
    """What counts against the health of a group: a column of ``group_health``, what it counts, its table, and its points.

    ``among`` is the column of what there is of it: if that is known, its share counts, and not how many there are.
    """

    column: str
    meaning: str
    table: str
    points: int
    among: str | None = None


SYMPTOMS = (
    HealthSymptom("storms", "storms of rebalances", "storms", 5),
    HealthSymptom(
        "lost_partitions", "partitions with records that were deleted before they were read", "lag", 5, "partitions"
    ),
    HealthSymptom("late_partitions", "partitions whose lag is not OK", "lag", 4, "partitions"),
    HealthSymptom("commit_gaps", "pauses in which commits stopped", "commit_pauses", 3),
    HealthSymptom("zombies", "commits as if by a member that had lost the partition", "zombies", 3),
    HealthSymptom("moved_needlessly", "partitions that moved and need not have", "rebalances", 2),
    HealthSymptom("rebalances", "rebalances", "rebalances", 1),
)
"""What the score of a group is made of. A symptom that a group shows n times gives ``points * log2(1 + n)``: once gives its
points, three times twice as many, seven times three times as many. So a group with one symptom all day does not hide one with
several at times. Of partitions the share counts: all of them late are one group that is late, and give the points once."""


def score_parts(counts: Mapping[str, int]) -> dict[str, float]:
    """What each symptom adds to the score, by the name of its column; ``counts`` has how often each was seen."""
    return {one.column: one.points * math.log2(1 + _seen(one, counts)) for one in SYMPTOMS}


def _seen(symptom: HealthSymptom, counts: Mapping[str, int]) -> float:
    seen = counts[symptom.column]
    return seen if symptom.among is None else seen / max(1, counts[symptom.among])

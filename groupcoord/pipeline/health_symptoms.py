"""The symptoms that make up a group's score in the table ``group_health``, and the points of each."""

import math
from collections.abc import Mapping
from typing import NamedTuple


class HealthSymptom(NamedTuple):
    """One symptom: its column of ``group_health``, what that counts, the table it is counted in, and its points.

    With ``among``, the column of a total, the share of that total counts instead of the number.
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
    HealthSymptom(
        "awaited_transactions", "transactions open for over a minute that it waits for", "open_transactions", 4
    ),
    HealthSymptom("commit_gaps", "pauses in which commits stopped", "commit_pauses", 3),
    HealthSymptom("zombies", "commits as if by a member that had lost the partition", "zombies", 3),
    HealthSymptom("moved_needlessly", "partitions that moved and need not have", "rebalances", 2),
    HealthSymptom("rebalances", "rebalances", "rebalances", 1),
)
"""The symptoms of the score. A symptom that was seen n times adds ``points * log2(1 + n)``: its points if it was seen once,
twice as many for three times, three times as many for seven times. So a group with one frequent symptom does not hide a group
with several rare ones. For late and lost partitions n is the share of the group's partitions: if it is all of them, n is 1."""


def score_parts(counts: Mapping[str, int]) -> dict[str, float]:
    """What each symptom adds to the score, by the name of its column; ``counts`` has how often each was seen."""
    return {one.column: one.points * math.log2(1 + _seen(one, counts)) for one in SYMPTOMS}


def _seen(symptom: HealthSymptom, counts: Mapping[str, int]) -> float:
    seen = counts[symptom.column]
    return seen if symptom.among is None else seen / max(1, counts[symptom.among])

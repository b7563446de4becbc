"""When offsets expire in groups of each kind and state: the rules of Kafka's OffsetExpirationConditionImpl."""

from typing import Any

from pyspark.sql import SparkSession

from groupcoord.pipeline.schemas import CURRENT_GROUPS, CURRENT_OFFSETS
from groupcoord.pipeline.tables.offset_expiry import RETENTION_MS, with_expiry
from tests.pipeline.frames import at, commit, frame, member, rows

DAY = 86_400
CONSUMERS = {"kind": "classic", "protocol_type": "consumer"}
WITH_OFFSET_OF_T: dict[str, tuple[dict[str, Any] | None, float | None]] = {
    "nobody describes it": (None, 100),
    "it only commits": ({"kind": "simple", "protocol_type": "", "state": "Empty", "members": []}, 100),
    "was described, and only commits": (
        {"kind": "classic", "protocol_type": "", "state": "Empty", "state_ts": at(500), "members": []},
        100,
    ),
    "empty since 500": ({**CONSUMERS, "state": "Empty", "state_ts": at(500), "members": []}, 500),
    "empty, and nobody knows since when": ({**CONSUMERS, "state": "Empty", "members": []}, 100),
    "subscribed": ({**CONSUMERS, "state": "Stable", "state_ts": at(500), "members": [member("a", {"t": [0]})]}, None),
    "subscribed to another topic": (
        {**CONSUMERS, "state": "Stable", "state_ts": at(500), "members": [member("a", {"u": [0]})]},
        100,
    ),
    "what it reads cannot be known": (
        {**CONSUMERS, "state": "Stable", "members": [member("a", {"u": [0]}), member("b", {}, topics=None)]},
        None,
    ),
    "other members than consumers": (
        {"kind": "classic", "protocol_type": "connect", "state": "Stable", "members": [member("a", {}, topics=None)]},
        None,
    ),
    "of KIP-848, empty": (
        {"kind": "consumer", "protocol_type": "consumer", "state": "Empty", "state_ts": at(500), "members": []},
        100,
    ),
    "of KIP-848, subscribed": ({"kind": "consumer", "state": "Stable", "members": [member("a", {"t": [0]})]}, None),
    "of KIP-848, to another": ({"kind": "streams", "state": "Stable", "members": [member("a", {"u": [0]})]}, 100),
    "shares": ({"kind": "share", "state": "Empty", "members": []}, None),
}
"""Group → what describes it, and from when on the retention of its offset counts."""


def test_from_when_on_the_retention_counts(spark: SparkSession) -> None:
    groups = [{"group": group, **said} for group, (said, _) in WITH_OFFSET_OF_T.items() if said is not None]
    offsets = [commit(place, 5, group=group, when=at(100)) for place, group in enumerate(WITH_OFFSET_OF_T)]
    described, current = frame(spark, CURRENT_GROUPS, groups), frame(spark, CURRENT_OFFSETS, offsets)
    for retention_s, found in (
        (RETENTION_MS // 1000, with_expiry(current, described, None)),
        (2 * DAY, with_expiry(current, described, 2 * DAY * 1000)),
    ):
        assert found.columns == CURRENT_OFFSETS.names
        assert dict(rows(found, "group", "expire_ts")) == {
            group: None if base is None else base + retention_s for group, (_, base) in WITH_OFFSET_OF_T.items()
        }


def test_a_commit_that_said_when_it_expires_keeps_that_time_unless_a_member_needs_it(spark: SparkSession) -> None:
    offsets = [{**commit(place, 5, group=group), "expire_ts": at(7)} for place, group in enumerate(("empty", "needed"))]
    needed = {**CONSUMERS, "group": "needed", "state": "Stable", "members": [member("a", {"t": [0]})]}
    found = with_expiry(frame(spark, CURRENT_OFFSETS, offsets), frame(spark, CURRENT_GROUPS, [needed]), None)
    assert dict(rows(found, "group", "expire_ts")) == {"empty": 7.0, "needed": None}

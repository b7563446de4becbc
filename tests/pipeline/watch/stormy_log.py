"""A log that has everything a watch looks at: storms, groups of all kinds, records that nobody can read."""

import base64
import json
from pathlib import Path

from groupcoord.protocol.coordinator_records import record_formatting
from tests.pipeline.random_log import RandomLog

RECORDINGS = Path(__file__).parents[1] / "recordings"
Pair = tuple[bytes, bytes | None]


def recorded() -> dict[str, list[Pair]]:
    """The records of each group that a real Kafka wrote in ``record_consumer_groups`` and ``record_share_and_streams``."""
    found: dict[str, list[Pair]] = {}
    for name in ("consumer-groups.jsonl", "share-and-streams.jsonl"):
        for line in (RECORDINGS / name).read_text(encoding="utf-8").splitlines():
            said = json.loads(line)
            key = base64.b64decode(said["key"])
            value = None if said["value"] is None else base64.b64decode(said["value"])
            found.setdefault(_group_of(key), []).append((key, value))
    return found


def _group_of(key: bytes) -> str:
    return str(record_formatting.group_of(record_formatting.parse_key(key)))


class StormyLog(RandomLog):
    """Few groups that have little peace; among them those that were recorded, a bit at a time."""

    _recorded: dict[str, list[Pair]] | None = None

    def _step(self) -> None:
        self._now_ms += 120_000 if self._chance.random() < 0.03 else self._chance.randrange(1, 6_000)
        group = self._chance.choice(self.groups[:3])
        what = self._chance.random()
        if what < 0.3:
            self._append(group, list(self._commits(group)))
        elif what < 0.75:
            self._append(group, [self._generation(group)])
        elif what < 0.8:
            self._append(group, [(b"\0\2" + _text(group), None)])
        elif what < 0.83:
            self._modern(f"modern-{self._chance.randrange(2)}")
        elif what < 0.9:
            self._of_real_groups()
        elif what < 0.93:
            self._append(group, [(b"\0\x63" + _text(group), b"\0\0")])
        elif self._with_transactions:
            self._transaction(group)

    def _of_real_groups(self) -> None:
        """The next records of the recorded group of which most are left."""
        if self._recorded is None:
            self._recorded = recorded()
        left = max(self._recorded.values(), key=len)
        if left:
            count = self._chance.randrange(5, 40)
            self._append(_group_of(left[0][0]), left[:count])
            del left[:count]

    def _modern(self, group: str) -> None:
        """ConsumerGroupMetadata with its epoch, or its end; and a commit, by which alone a group of before is there again."""
        value = None if self._chance.random() < 0.4 else b"\0\0" + self._chance.randrange(9).to_bytes(4, "big") + b"\0"
        self._append(group, [(b"\0\3" + _text(group), value)])
        if self._chance.random() < 0.6:
            self._append(group, list(self._commits(group)))


def _text(said: str) -> bytes:
    return len(said).to_bytes(2, "big") + said.encode()

"""A log that has everything a watch looks at: storms, groups of KIP-848, records that nobody can read."""

from tests.pipeline.random_log import RandomLog


class StormyLog(RandomLog):
    """Few groups that have little peace."""

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
        elif what < 0.9:
            self._modern(f"modern-{self._chance.randrange(2)}")
        elif what < 0.93:
            self._append(group, [(b"\0\x63" + _text(group), b"\0\0")])
        elif self._with_transactions:
            self._transaction(group)

    def _modern(self, group: str) -> None:
        """ConsumerGroupMetadata with its epoch, or its end; and a commit, by which alone a group of before is there again."""
        value = None if self._chance.random() < 0.4 else b"\0\0" + self._chance.randrange(9).to_bytes(4, "big") + b"\0"
        self._append(group, [(b"\0\3" + _text(group), value)])
        if self._chance.random() < 0.6:
            self._append(group, list(self._commits(group)))


def _text(said: str) -> bytes:
    return len(said).to_bytes(2, "big") + said.encode()

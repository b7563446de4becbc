"""Random histories of a data directory: topics come, change and go, records and offsets are written, servers end and start."""

import random
from pathlib import Path
from typing import Any

from groupcoord.core.api_error import ApiError
from groupcoord.core.transaction_verification_types import TransactionMarker
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.batches.record_batch import TRANSACTIONAL, BatchError
from tests.conformance.batches import Rec, batch
from tests.reliability.acknowledged import RESOURCE, Acknowledged, LogModel, Pending, Sent, TopicModel
from tests.reliability.lives import KEPT, NOW_MS, Broken, Life
from tests.reliability.requests import commit, commit_errors

_NAMES = (KEPT, "a", "b")
_KEYS = (b"x", b"y", b"z")
_WITH_TRANSACTIONS = 8
"""The id of the producer that has transactions."""
_GROUPS = ("g0", "g1", "g2")


class History:
    """One random history of ``directory``; ``seed`` decides every step."""

    def __init__(self, directory: Path, seed: str) -> None:
        self.directory = directory
        self.model = Acknowledged()
        self.step = 0
        self.life: Life | None = None
        self._rng = random.Random(seed)
        self._sequences: dict[tuple[str, int], int] = {}
        self._written: dict[tuple[str, int], int] = {}  # in transactions
        self._open: dict[tuple[str, int], set[int]] = {}  # what of that is in the one that is open
        self._number = 0

    def run(self, steps: int) -> None:
        """Take so many steps, or fewer if the disk fails. Raises whatever goes wrong that should not."""
        self._begin("start")
        self.life = Life(self.directory, self._rng)
        self._done()
        for self.step in range(1, steps + 1):
            try:
                self._take_step(self.life)
            except (ApiError, BatchError):
                if self.life.storage.failure is None:
                    raise
            self.life.storage._background.close()
            if self.life.storage.failure is not None:
                break
        life, self.life = self.life, None
        self._end(life)

    @property
    def doing(self) -> str:
        """What is under way."""
        return self.model.pending.step

    def start(self, rng: random.Random) -> Life:
        """The next server."""
        return Life(self.directory, rng)

    def check(self, rng: random.Random, *, power_cut: bool) -> None:
        """Look at everything. Raises Broken."""
        self.model.check(self.directory, rng, power_cut=power_cut)

    def _end(self, life: Life) -> None:
        life.end()
        if life.storage.failure is None:
            for topic in self.model.topics.values():
                for log in topic.logs:
                    log.flushed = log.end

    def _begin(self, step: str, **pending: Any) -> None:
        self.model.pending = Pending(step=step, **pending)

    def _done(self) -> None:
        self.model.pending = Pending()

    # --- steps

    def _take_step(self, life: Life) -> None:
        rng = self._rng
        missing = [name for name in _NAMES if name not in self.model.topics]
        if KEPT in missing:
            self._create(life, KEPT)
            return
        name = rng.choice(sorted(self.model.topics))
        partition = rng.randrange(len(self.model.topics[name].logs))
        chosen = rng.choices(
            (
                "append",
                "idempotent",
                "write",
                "end",
                "commit",
                "create",
                "delete",
                "alter",
                "grow",
                "roll",
                "compact",
                "cut",
            ),
            (10, 5, 4, 4, 4, 4, 3, 2, 2, 3, 4, 2),
        )[0]
        other = rng.choices(("", "retain", "id", "group", "checkpoint", "restart", "kill"), (30, 2, 1, 1, 2, 2, 2))[0]
        if other:
            chosen = other
        if chosen == "create" and missing:
            self._create(life, missing[0])
        elif chosen == "delete" and name != KEPT:
            self._delete(life, name)
        elif chosen == "restart":
            self._begin("restart")
            self._end(life)
            self.life = None
            self.life = Life(self.directory, rng)
            self._done()
        elif chosen == "kill":
            self._begin("kill")
            life.kill()
            self.life = None
            self.life = Life(self.directory, rng)
            self._done()
        elif chosen in {"create", "delete"}:
            self._append(life, name, partition)
        elif chosen == "end":
            self._end_transaction(life, name, partition)
        else:
            getattr(self, f"_{chosen}")(life, name, partition)

    def _create(self, life: Life, name: str) -> None:
        rng = self._rng
        configs = {"internal.segment.bytes": rng.choice(("150", "300"))}
        if rng.random() < 0.5:
            configs["cleanup.policy"] = "compact"
        if rng.random() < 0.5:
            configs["flush.messages"] = "1"
        partitions = rng.choice((1, 1, 2))
        self._begin("create", topic=name, partitions=partitions, configs=configs)
        topic = life.node.broker.topics.create(name, partitions, configs, NOW_MS)
        self.model.topics[name] = TopicModel(topic.topic_id, configs, [LogModel() for _ in range(partitions)])
        self._done()

    def _delete(self, life: Life, name: str) -> None:
        self._begin("delete", topic=name)
        life.node.broker.topics.delete(name)
        del self.model.topics[name]
        for key in [key for key in self._sequences if key[0] == name]:
            del self._sequences[key], self.model.sent[key]
        for key in [key for key in self._written if key[0] == name]:
            del self._written[key]
            self._open.pop(key, None)
        self._done()

    def _alter(self, life: Life, name: str, _: int) -> None:
        configs = dict(self.model.topics[name].configs)
        configs["retention.bytes"] = str(self._rng.randrange(100, 1000))
        configs["flush.messages"] = self._rng.choice(("1", "1000"))
        self._begin("alter", topic=name, configs=configs)
        topic = life.node.broker.topics.get(name)
        assert topic is not None
        topic.configure(configs, life.node.config)
        self.model.topics[name].configs = configs
        self._done()

    def _grow(self, life: Life, name: str, partition: int) -> None:
        logs = self.model.topics[name].logs
        if len(logs) > 2:
            self._append(life, name, partition)
            return
        self._begin("grow", topic=name, partitions=len(logs) + 1)
        topic = life.node.broker.topics.get(name)
        assert topic is not None
        topic.add_partitions(1)
        logs.append(LogModel())
        self._done()

    def _append(self, life: Life, name: str, partition: int, producer: tuple[int, int, int] | None = None) -> None:
        records = []
        for _ in range(self._rng.choice((1, 1, 2))):
            self._number += 1
            records.append(Rec(b"%d" % self._number * 5, self._rng.choice(_KEYS), NOW_MS + self._number))
        log = self.model.topics[name].logs[partition]
        made = {log.end + index: (record.key, record.value) for index, record in enumerate(records)}
        data = batch(records, producer=producer or (-1, -1, -1))
        self._begin("append", topic=name, partition=partition, records=made)
        done = life.log(name, partition).append(data, NOW_MS)
        if done.duplicate or done.base_offset != log.end:
            raise Broken(f"{name}-{partition}: a batch was appended at {done.base_offset}, and not at {log.end}")
        log.records.update(made)
        log.end += len(records)
        if life.log(name, partition).settings.flush_messages == 1:
            log.flushed = log.end
        if producer:
            self.model.sent[name, partition] = Sent(name, partition, data, done.base_offset)
            self._sequences[name, partition] = producer[2] + len(records)
        self._done()

    def _idempotent(self, life: Life, name: str, partition: int) -> None:
        sequence = self._sequences.get((name, partition), 0)
        self._append(life, name, partition, producer=(7, 0, sequence))

    def _write(self, life: Life, name: str, partition: int) -> None:
        """Write a record in a transaction."""
        log = self.model.topics[name].logs[partition]
        self._number += 1
        record = Rec(b"%d" % self._number * 5, self._rng.choice(_KEYS), NOW_MS + self._number)
        sequence = self._written.get((name, partition), 0)
        data = batch([record], attributes=TRANSACTIONAL, producer=(_WITH_TRANSACTIONS, 0, sequence))
        self._begin("write", topic=name, partition=partition, records={log.end: (record.key, record.value)})
        life.log(name, partition).append(data, NOW_MS)
        log.records[log.end] = (record.key, record.value)
        log.unstable = log.end if log.unstable is None else log.unstable
        self._written[name, partition] = sequence + 1
        self._open.setdefault((name, partition), set()).add(log.end)
        self._appended(life, name, partition)

    def _end_transaction(self, life: Life, name: str, partition: int) -> None:
        log = self.model.topics[name].logs[partition]
        commits = self._rng.random() < 0.4
        self._begin("end", topic=name, partition=partition, marker=log.end)
        life.log(name, partition).append_marker(TransactionMarker(_WITH_TRANSACTIONS, 0, 0, commits), NOW_MS)
        log.markers.add(log.end)
        if not commits and log.unstable is not None:
            log.aborted.add(log.end)
            log.hidden |= self._open[name, partition]
        self._open.pop((name, partition), None)
        log.unstable = None
        self._appended(life, name, partition)

    def _appended(self, life: Life, name: str, partition: int) -> None:
        log = self.model.topics[name].logs[partition]
        log.end += 1
        if life.log(name, partition).settings.flush_messages == 1:
            log.flushed = log.end
        self._done()

    def _commit(self, life: Life, _: str, __: int) -> None:
        group = self._rng.choice(_GROUPS)
        self._number += 1
        request = commit(group, KEPT, {0: self._number})
        self._begin("commit", topic=group, value=self._number)
        answer = life.ask(ApiKey.OFFSET_COMMIT, 8, request)
        if commit_errors(answer) == {0}:
            self.model.commits.setdefault(group, []).append(self._number)
            self._done()
        elif life.storage.failure is None:
            raise Broken(f"group {group} cannot commit: {answer}")

    def _roll(self, life: Life, name: str, partition: int) -> None:
        self._begin("roll", topic=name, partition=partition)
        life.log(name, partition).roll(NOW_MS)
        self._done()

    def _compact(self, life: Life, name: str, partition: int) -> None:
        log = self.model.topics[name].logs[partition]
        if life.log(name, partition).settings.delete:
            self._append(life, name, partition)
            return
        log.compacted = True
        self._begin("compact", topic=name, partition=partition)
        life.node.broker.compact(name, partition, NOW_MS)
        self._done()

    def _cut(self, life: Life, name: str, partition: int) -> None:
        log = self.model.topics[name].logs[partition]
        if not life.log(name, partition).settings.delete:
            self._append(life, name, partition)
            return
        to = self._rng.randint(log.deleted_to, log.end)
        self._begin("cut", topic=name, partition=partition, start=max(to, log.start))
        log.start = life.log(name, partition).delete_records(to)
        log.deleted_to = max(to, log.deleted_to)
        self._done()

    def _retain(self, life: Life, name: str, partition: int) -> None:
        log = self.model.topics[name].logs[partition]
        self._begin("retain", topic=name, partition=partition, start=log.end)
        life.log(name, partition).apply_retention(NOW_MS)
        log.start = life.log(name, partition).log_start_offset
        self._done()

    def _id(self, life: Life, _: str, __: int) -> None:
        self._begin("id")
        self.model.producer_id = life.node.broker.new_producer_id()
        self._done()

    def _group(self, life: Life, _: str, __: int) -> None:
        configs = {"consumer.session.timeout.ms": str(self._rng.randrange(45_000, 60_000))}
        self._begin("group", configs=configs)
        life.storage.resource_configured(RESOURCE, configs)
        self.model.group_configs = configs
        self._done()

    def _checkpoint(self, life: Life, _: str, __: int) -> None:
        self._begin("checkpoint")
        life.storage.checkpoint()
        self._done()

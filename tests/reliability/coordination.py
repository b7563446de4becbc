"""The books of those who commit offsets, are members of groups, and administer: what they were promised, and what is there."""

import random
from collections.abc import Callable, Iterator
from typing import Any

from groupcoord.protocol.apis.create_partitions import CreatePartitionsTopic
from groupcoord.protocol.apis.describe_configs import DescribeConfigsResource
from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from groupcoord.protocol.apis.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    CreatePartitionsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from tests.reliability.load import Ask, Asking
from tests.reliability.requests import Membership, commit, commit_errors, create, delete, describe, join, metadata_of
from tests.reliability.talk import Talk

SESSION_MS = 300_000


class Committer:
    """Commits growing offsets of a topic's partitions, each with its metadata."""

    def __init__(self, group: str, topic: str, partitions: int) -> None:
        self.group, self.topic, self.partitions = group, topic, partitions
        self.acknowledged: dict[int, int] = {}
        self.sent: dict[int, int] = {}

    def live(self, chance: random.Random) -> Asking:
        while True:
            yield [self._commit(chance)]

    def _commit(self, chance: random.Random) -> Ask:
        offsets = {}
        for partition in range(self.partitions):
            if chance.random() < 0.7:
                offsets[partition] = self.sent[partition] = self.sent.get(partition, 0) + chance.randint(1, 9)
        request = commit(self.group, self.topic, offsets)

        def answered(answer: Any) -> None:
            assert commit_errors(answer) <= {0}, f"a commit of {self.group}: {answer}"
            self.acknowledged.update(offsets)

        return Ask(request, answered)

    def check(self, talk: Talk) -> Iterator[str]:
        asked = OffsetFetchRequestTopics(name=self.topic, partition_indexes=tuple(range(self.partitions)))
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=self.group, topics=(asked,)),))
        answer = talk.ask(request).groups[0]
        if answer.error_code:
            yield f"{self.group}: its offsets are not told: error {answer.error_code}"
            return
        for part in answer.topics[0].partitions:
            offset = part.committed_offset
            low, high = self.acknowledged.get(part.partition_index, -1), self.sent.get(part.partition_index, -1)
            where = f"{self.group}, {self.topic}-{part.partition_index}"
            if not low <= offset <= high:
                yield f"{where}: {low} was acknowledged, {high} sent, and {offset} is there"
            elif offset >= 0 and part.metadata != metadata_of(offset):
                yield f"{where}: the metadata of {offset} is {part.metadata!r}"


class Member:
    """The one member of a classic group: it joins, syncs, stays for some heartbeats, rejoins or leaves."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.member_id = ""
        self.generation = -1
        """The last that was acknowledged by the answer to SyncGroup; -1 after it left."""
        self._joined = -1
        self._moving = False
        """Is a request on its way that changes the group?"""

    def live(self, chance: random.Random) -> Asking:
        while True:
            self._moving = True
            yield [self._join()]
            yield [self._sync()]
            for _ in range(chance.randrange(3)):
                yield [self._heartbeat()]
            if chance.random() < 0.3:
                self._moving = True
                yield [self._leave()]

    @property
    def _membership(self) -> Membership:
        return Membership(self.group, self.generation, self.member_id)

    def _join(self) -> Ask:
        request = join(self.group, SESSION_MS, self.member_id, SESSION_MS)

        def answered(answer: Any) -> None:
            assert answer.error_code == 0, f"{self.group}: {answer}"
            assert answer.generation_id > self.generation, f"{self.group}: after {self.generation} came {answer}"
            self.member_id, self._joined = answer.member_id, answer.generation_id

        return Ask(request, answered)

    def _sync(self) -> Ask:
        assigned = SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"%d" % self._joined)
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self._joined,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(assigned,),
        )

        def answered(answer: Any) -> None:
            assert answer.error_code == 0, f"{self.group}: {answer}"
            assert answer.assignment == assigned.assignment, f"{self.group}: {answer}"
            self.generation = self._joined
            self._moving = False

        return Ask(request, answered)

    def _heartbeat(self) -> Ask:
        def answered(answer: Any) -> None:
            assert answer.error_code == 0, f"{self.group}: {answer}"

        return Ask(self._membership.heartbeat(), answered)

    def _leave(self) -> Ask:
        def answered(answer: Any) -> None:
            assert answer.error_code == 0, f"{self.group}: {answer}"
            self.generation, self.member_id, self._moving = -1, "", False

        return Ask(self._membership.leave(), answered)

    def check(self, talk: Talk) -> Iterator[str]:
        if self.generation > 0:
            error = talk.ask(self._membership.heartbeat()).error_code
            if error and not self._moving:
                yield f"{self.group}: its member of generation {self.generation} is told {ErrorCode(error).name}"
        # Whoever it was joins anew, for it may have been in the middle of something: an old one would hold it up.
        if self._moving and self.member_id:
            talk.ask(self._membership.leave())
            self.member_id, self.generation = "", -1
        self._moving = False


Shape = tuple[int, str]
"""Partitions and ``retention.ms`` of a topic."""


class Admin:
    """Creates, changes and deletes topics, one request at a time, and changes a setting of the broker."""

    NAMES = ("t0", "t1", "t2", "t3")
    SETTING = "log.retention.ms"

    def __init__(self) -> None:
        self.topics: dict[str, Shape | None] = dict.fromkeys(self.NAMES)
        self.setting: str | None = None
        self._coming: tuple[str, Any] | None = None
        """What the request on its way would make of a topic, or of the broker (``""``)."""

    def live(self, chance: random.Random) -> Asking:
        while True:
            name = chance.choice((*self.NAMES, ""))
            number = str(chance.randint(1, 10**9) * 1_000)
            if not name:
                yield [self._configure("", number, 4, "", self.SETTING)]
                continue
            there = self.topics[name]
            if there is None:
                yield [self._create(name, (chance.randint(1, 3), number))]
            elif chance.random() < 0.4:
                yield [self._delete(name)]
            elif chance.random() < 0.5:
                yield [self._configure(name, (there[0], number), 2, name, "retention.ms", number)]
            else:
                yield [self._add_partitions(name, (there[0] + 1, there[1]))]

    def _ask(self, request: Any, what: str, to: Any, error_of: Callable[[Any], int]) -> Ask:
        self._coming = what, to

        def answered(answer: Any) -> None:
            assert error_of(answer) == 0, f"{what or 'the broker'} to {to}: {answer}"
            self._is(what, to)

        return Ask(request, answered)

    def _is(self, what: str, now: Any) -> None:
        self._coming = None
        if what:
            self.topics[what] = now
        else:
            self.setting = now

    def _create(self, name: str, shape: Shape) -> Ask:
        request = create(name, shape[0], {"retention.ms": shape[1]})
        return self._ask(request, name, shape, lambda answer: answer.topics[0].error_code)

    def _delete(self, name: str) -> Ask:
        request = delete(name)
        return self._ask(request, name, None, lambda answer: answer.responses[0].error_code)

    def _configure(self, what: str, to: Any, kind: int, resource: str, setting: str, value: str | None = None) -> Ask:
        config = AlterableConfig(name=setting, config_operation=0, value=value or to)
        changes = (AlterConfigsResource(resource_type=kind, resource_name=resource, configs=(config,)),)
        request = IncrementalAlterConfigsRequest(resources=changes)
        return self._ask(request, what, to, lambda answer: answer.responses[0].error_code)

    def _add_partitions(self, name: str, shape: Shape) -> Ask:
        request = CreatePartitionsRequest(topics=(CreatePartitionsTopic(name=name, count=shape[0]),), timeout_ms=1_000)
        return self._ask(request, name, shape, lambda answer: answer.results[0].error_code)

    def check(self, talk: Talk) -> Iterator[str]:
        coming = self._coming
        for name, was in self.topics.items():
            now = self._look(talk, name)
            if now != was and (name, now) != coming:
                yield f"topic {name} was {was} and is {now}; on its way was {coming}"
            self.topics[name] = now
        setting = _setting(talk, 4, "", self.SETTING)
        if setting != self.setting and ("", setting) != coming:
            yield f"{self.SETTING} was {self.setting} and is {setting}; on its way was {coming}"
        self.setting, self._coming = setting, None

    def _look(self, talk: Talk, name: str) -> Shape | None:
        topic = talk.ask(describe(name)).topics[0]
        if topic.error_code:
            return None
        return len(topic.partitions), _setting(talk, 2, name, "retention.ms") or ""


def _setting(talk: Talk, kind: int, resource: str, name: str) -> str | None:
    asked = DescribeConfigsResource(resource_type=kind, resource_name=resource, configuration_keys=(name,))
    found = talk.ask(DescribeConfigsRequest(resources=(asked,))).results[0].configs
    return found[0].value if found else None

"""Committed offsets: write them and read them, again and again where that may help.

Sources: ``ConsumerCoordinator.sendOffsetCommitRequest``, ``OffsetCommitResponseHandler``, ``OffsetFetchResponseHandler``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client import verdicts
from groupcoord.client.backoff import Backoff
from groupcoord.client.errors import BrokerError, DisconnectedError
from groupcoord.client.member import Generation
from groupcoord.client.network_client import NetworkClient
from groupcoord.client.runner import Runner
from groupcoord.client.verdicts import Verdict
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from groupcoord.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

COMMIT_BY_NAME = 9
FETCH_BY_NAME = 9
"""The last versions that name topics; the later ones have ids, and a topic deleted meanwhile then has no name any more."""
_ORDER = (Verdict.FAIL, Verdict.NEW_MEMBER, Verdict.NEW_GENERATION, Verdict.AGAIN, Verdict.SEARCH, Verdict.RETRY)
"""If partitions are answered differently, the worst counts."""


class Offset(NamedTuple):
    """A committed offset: of the next record to consume. ``metadata`` is the committer's own."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class Offsets:
    """The offsets of the group, as its member sees them."""

    def __init__(self, runner: Runner, cluster: NetworkClient, backoff: Backoff) -> None:
        self._runner = runner
        self._cluster = cluster
        self._backoff = backoff

    async def commit(self, offsets: Mapping[TopicPartition, Offset], timeout_ms: int) -> None:
        """Commit ``offsets``, as the member that this is now; what may pass is tried again until ``timeout_ms`` are over.

        Raises RebalanceInProgressError, CommitFailedError, BrokerError (OFFSET_METADATA_TOO_LARGE,
        TOPIC_AUTHORIZATION_FAILED …), TimeoutError.
        """
        if not offsets:
            return
        bad = sorted(partition for partition, offset in offsets.items() if offset.offset < 0)
        if bad:
            raise ValueError(f"an offset is not negative: {', '.join(f'{topic}-{number}' for topic, number in bad)}")
        await self._persist(lambda: self._commit_once(offsets), timeout_ms)

    async def committed(
        self, partitions: frozenset[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, Offset | None]:
        """What the group has committed for ``partitions``, None where nothing. Raises BrokerError, TimeoutError."""
        if not partitions:
            return {}
        found: dict[TopicPartition, Offset | None] = dict.fromkeys(partitions)
        await self._persist(lambda: self._fetch_once(found), timeout_ms)
        return found

    async def _persist(self, attempt: Callable[[], Awaitable[ErrorCode]], timeout_ms: int) -> None:
        """Make attempts until one is answered with no error; any other code says that another may help."""
        attempts = 0
        async with asyncio.timeout(timeout_ms / 1000):
            while await attempt():
                await asyncio.sleep(self._backoff.delay_ms(attempts) / 1000)
                attempts += 1

    # Commit.

    async def _commit_once(self, offsets: Mapping[TopicPartition, Offset]) -> ErrorCode:
        runner = self._runner
        runner.membership.commits_as()  # a commit that can only fail does not wait for a coordinator
        coordinator = await runner.coordinator()
        sent = runner.membership.commits_as()
        request = self._commit_request(offsets, sent)
        try:
            answer: OffsetCommitResponse = await runner.ask_coordinator(coordinator, request, limit=COMMIT_BY_NAME)
        except DisconnectedError as problem:
            runner.feed(runner.membership.coordinator_unreachable(coordinator, str(problem), runner.now_ms()))
            return ErrorCode.NETWORK_EXCEPTION
        code = min(
            (ErrorCode(each.error_code) for topic in answer.topics for each in topic.partitions if each.error_code),
            key=lambda code: _ORDER.index(verdicts.of_commit(code)),
            default=ErrorCode.NONE,
        )
        verdict = verdicts.of_commit(code)
        if verdict is Verdict.GO_ON:
            return ErrorCode.NONE
        error = runner.membership.commit_error(code, sent)
        runner.feed(runner.membership.commit_answered(code, sent, runner.now_ms()))
        if verdict in (Verdict.RETRY, Verdict.SEARCH):
            return code
        raise error

    def _commit_request(self, offsets: Mapping[TopicPartition, Offset], sent: Generation) -> OffsetCommitRequest:
        by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, number), offset in sorted(offsets.items()):
            by_topic.setdefault(topic, []).append(
                OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offset.offset,
                    committed_leader_epoch=offset.leader_epoch,
                    committed_metadata=offset.metadata,
                )
            )
        settings = self._runner.membership.settings
        return OffsetCommitRequest(
            group_id=settings.group_id,
            generation_id_or_member_epoch=sent.generation_id,
            member_id=sent.member_id,
            group_instance_id=settings.instance_id,
            topics=tuple(
                OffsetCommitRequestTopic(name=name, partitions=tuple(partitions))
                for name, partitions in by_topic.items()
            ),
        )

    # Fetch.

    async def _fetch_once(self, found: dict[TopicPartition, Offset | None]) -> ErrorCode:
        runner = self._runner
        coordinator = await runner.coordinator()
        request = _fetch_request(runner.membership.settings.group_id, found)
        try:
            answer: OffsetFetchResponse = await runner.ask_coordinator(coordinator, request, limit=FETCH_BY_NAME)
        except DisconnectedError as problem:
            runner.feed(runner.membership.coordinator_unreachable(coordinator, str(problem), runner.now_ms()))
            return ErrorCode.NETWORK_EXCEPTION
        for code in _errors_in(answer):
            verdict = verdicts.of_offset_fetch(code)
            if verdict is Verdict.FAIL:
                raise BrokerError(code, "OffsetFetch")
            if verdict is Verdict.SEARCH:
                reason = f"it answered OffsetFetch with {code.name}"
                runner.feed(runner.membership.coordinator_unreachable(coordinator, reason, runner.now_ms()))
            return code
        for topic in answer.groups[0].topics:
            for each in topic.partitions:
                if each.committed_offset >= 0:
                    found[topic.name, each.partition_index] = Offset(
                        each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                    )
        return ErrorCode.NONE


def _fetch_request(group_id: str, partitions: Any) -> OffsetFetchRequest:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    group = OffsetFetchRequestGroup(
        group_id=group_id,
        topics=tuple(
            OffsetFetchRequestTopics(name=name, partition_indexes=tuple(numbers)) for name, numbers in by_topic.items()
        ),
    )
    return OffsetFetchRequest(
        group_id=group_id,
        topics=tuple(
            OffsetFetchRequestTopic(name=name, partition_indexes=tuple(numbers)) for name, numbers in by_topic.items()
        ),
        require_stable=True,
        groups=(group,),
    )


def _errors_in(answer: OffsetFetchResponse) -> list[ErrorCode]:
    """The error of the group, then those of its partitions."""
    group = answer.groups[0]
    codes = [group.error_code, *(each.error_code for topic in group.topics for each in topic.partitions)]
    return [ErrorCode(code) for code in codes if code]

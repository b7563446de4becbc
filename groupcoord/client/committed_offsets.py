"""The consumer's commits: OffsetCommit and OffsetFetch with retries, and automatic commits (``CommitRequestManager``).

A consumer sends one commit after the other, so that a retry of an old commit cannot overwrite a newer one. Sources:
``ConsumerCoordinator.sendOffsetCommitRequest``, ``maybeAutoCommitOffsetsAsync`` and ``commitOffsetsSync``,
``OffsetCommitResponseHandler``, ``OffsetFetchResponseHandler``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client import error_reactions
from groupcoord.client.assigned_partitions import AssignedPartitions
from groupcoord.client.client_errors import (
    BrokerError,
    ClientError,
    DisconnectedError,
    NoGroupError,
    RebalanceInProgressError,
)
from groupcoord.client.error_reactions import ErrorReaction
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.member.context import Generation
from groupcoord.client.member.metadata_and_commit_requests import OFFSET_COMMIT_BY_NAME, offset_commit_request
from groupcoord.client.member_driver import MemberDriver
from groupcoord.client.network_client import NetworkClient
from groupcoord.client.trouble_log import TroubleLog
from groupcoord.core.events import counted, partition_names
from groupcoord.core.grouping import grouped
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from groupcoord.protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from groupcoord.protocol.errors import ErrorCode

FETCH_BY_NAME = 9
"""The last version of OffsetFetch that names topics, see OFFSET_COMMIT_BY_NAME."""
_ORDER = (
    ErrorReaction.FAIL,
    ErrorReaction.RESET_MEMBER,
    ErrorReaction.RESET_GENERATION,
    ErrorReaction.REJOIN,
    ErrorReaction.FIND_COORDINATOR,
    ErrorReaction.RETRY,
)
"""If partitions have different errors, the first of these counts."""
_TOLD_OTHERWISE = frozenset({ErrorCode.NETWORK_EXCEPTION, ErrorCode.STALE_MEMBER_EPOCH})
"""Errors that are not logged here: the connection logs broken connections, and a new epoch is no failure."""


class OffsetAndMetadata(NamedTuple):
    """A committed offset, which is that of the next record to consume; ``metadata`` is any text of the committer."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def _offset(partition: TopicPartition, given: Any) -> OffsetAndMetadata:
    """The offset in ``given``, as the user passed it to ``commit``. Raises ValueError if it is none."""
    match given:
        case OffsetAndMetadata():
            return given
        case int():
            return OffsetAndMetadata(given)
        case (int(offset), str(metadata)):
            return OffsetAndMetadata(offset, metadata=metadata)
    raise ValueError(
        f"{partition_names([partition])}: {given!r} is not an offset: a number, (number, metadata) or an OffsetAndMetadata"
    )


class GroupOffsets:
    """Commits and fetches offsets of the group, as its member."""

    def __init__(self, driver: MemberDriver, cluster: NetworkClient, backoff: ExponentialBackoff) -> None:
        self._driver = driver
        self._cluster = cluster
        self._backoff = backoff

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int) -> None:
        """Commit ``offsets`` in the current generation; retriable errors are retried until ``timeout_ms`` are over.

        Raises NoGroupError, RebalanceInProgressError, CommitFailedError, BrokerError (OFFSET_METADATA_TOO_LARGE,
        TOPIC_AUTHORIZATION_FAILED …), TimeoutError.
        """
        if not self._driver.membership.settings.group_id:
            raise NoGroupError("offsets are committed for a group: give the consumer a group_id")
        if not offsets:
            return
        bad = sorted(partition for partition, offset in offsets.items() if offset.offset < 0)
        if bad:
            raise ValueError(f"an offset is not negative: {partition_names(bad)}")
        await self._persist(lambda: self._commit_once(offsets), timeout_ms)

    async def committed(
        self, partitions: frozenset[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offset of each of ``partitions``; None where there is none, or if there is no group.

        Raises BrokerError, TimeoutError.
        """
        found: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(partitions)
        if not partitions or not self._driver.membership.settings.group_id:
            return found
        await self._persist(lambda: self._fetch_once(found), timeout_ms)
        return found

    async def _persist(self, attempt: Callable[[], Awaitable[ErrorCode]], timeout_ms: int) -> None:
        """Call ``attempt`` with back-off until it returns no error; other errors that it returns are retriable."""
        attempts = 0
        subject = f"offsets of {self._driver.membership.settings.group_id}"
        async with asyncio.timeout(timeout_ms / 1000):
            while code := await attempt():
                if code not in _TOLD_OTHERWISE:
                    self._cluster.tell(subject, f"{code.name}: {code.text}")
                await asyncio.sleep(self._backoff.delay_ms(attempts) / 1000)
                attempts += 1
        self._cluster.tell(subject)

    # Commit.

    async def _commit_once(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> ErrorCode:
        driver = self._driver
        driver.membership.commits_as()  # raises at once if the commit can only fail, instead of waiting for a coordinator
        coordinator = await driver.coordinator()
        sent = driver.membership.commits_as()
        request = self._commit_request(offsets, sent)
        try:
            answer: OffsetCommitResponse = await driver.ask_coordinator(
                coordinator, request, limit=OFFSET_COMMIT_BY_NAME
            )
        except DisconnectedError as problem:
            driver.execute_actions(
                driver.membership.coordinator_unreachable(coordinator, str(problem), driver.now_ms())
            )
            return ErrorCode.NETWORK_EXCEPTION
        code = min(
            (ErrorCode(each.error_code) for topic in answer.topics for each in topic.partitions if each.error_code),
            key=lambda code: _ORDER.index(error_reactions.to_offset_commit(code)),
            default=ErrorCode.NONE,
        )
        reaction = error_reactions.to_offset_commit(code)
        if reaction is ErrorReaction.GO_ON:
            return ErrorCode.NONE
        error = driver.membership.commit_error(code, sent)
        driver.execute_actions(driver.membership.commit_answered(code, sent, driver.now_ms()))
        if reaction in (ErrorReaction.RETRY, ErrorReaction.FIND_COORDINATOR):
            return code
        raise error

    def _commit_request(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], sent: Generation
    ) -> OffsetCommitRequest:
        settings = self._driver.membership.settings
        return offset_commit_request(
            settings.group_id, sent.generation_id, sent.member_id, settings.instance_id, dict(sorted(offsets.items()))
        )

    # Fetch.

    async def _fetch_once(self, found: dict[TopicPartition, OffsetAndMetadata | None]) -> ErrorCode:
        driver = self._driver
        coordinator = await driver.coordinator()
        request = _fetch_request(driver.membership.settings.group_id, found, driver.membership.fetches_as())
        try:
            answer: OffsetFetchResponse = await driver.ask_coordinator(coordinator, request, limit=FETCH_BY_NAME)
        except DisconnectedError as problem:
            driver.execute_actions(
                driver.membership.coordinator_unreachable(coordinator, str(problem), driver.now_ms())
            )
            return ErrorCode.NETWORK_EXCEPTION
        for code in _errors_in(answer):
            reaction = error_reactions.to_offset_fetch(code)
            if reaction is ErrorReaction.FAIL:
                raise BrokerError(code, "OffsetFetch")
            if reaction is ErrorReaction.FIND_COORDINATOR:
                reason = f"it answered OffsetFetch with {code.name}"
                driver.execute_actions(driver.membership.coordinator_unreachable(coordinator, reason, driver.now_ms()))
            return code
        for topic in answer.groups[0].topics:
            for each in topic.partitions:
                if each.committed_offset >= 0:
                    found[topic.name, each.partition_index] = OffsetAndMetadata(
                        each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                    )
        return ErrorCode.NONE


def _fetch_request(group_id: str, partitions: Iterable[TopicPartition], sent: Generation | None) -> OffsetFetchRequest:
    by_topic = grouped(sorted(partitions))
    group = OffsetFetchRequestGroup(
        group_id=group_id,
        member_id=None if sent is None else sent.member_id,
        member_epoch=-1 if sent is None else sent.generation_id,
        topics=tuple(
            OffsetFetchRequestTopics(name=name, partition_indexes=tuple(numbers)) for name, numbers in by_topic.items()
        ),
    )
    return OffsetFetchRequest(require_stable=True, groups=(group,))


def _errors_in(answer: OffsetFetchResponse) -> list[ErrorCode]:
    """The error of the group, then those of its partitions."""
    group = answer.groups[0]
    codes = [group.error_code, *(each.error_code for topic in group.topics for each in topic.partitions)]
    return [ErrorCode(code) for code in codes if code]


OffsetsToCommit = Mapping[TopicPartition, int | tuple[int, str] | OffsetAndMetadata] | None
"""The offsets to commit, each alone or with the committer's metadata; None means the positions of all assigned partitions."""
COMMITS = "commits"
"""The subject under which failed automatic commits are logged."""


class OffsetCommitter:
    """Commits for one consumer: on request, and automatically every ``interval_ms`` unless that is None."""

    def __init__(
        self,
        offsets: GroupOffsets,
        partitions: AssignedPartitions,
        *,
        interval_ms: int | None,
        timeout_ms: int,
        now_ms: Callable[[], int],
        troubles: TroubleLog,
    ) -> None:
        self._offsets = offsets
        self._partitions = partitions
        self._interval_ms = interval_ms
        self._timeout_ms = timeout_ms
        self._now_ms = now_ms
        self._troubles = troubles
        self._due_ms = 0
        self._under_way: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()

    def start(self) -> None:
        """Start the interval of automatic commits."""
        self._due_ms = self._now_ms() + (self._interval_ms or 0)

    async def commit(self, wanted: OffsetsToCommit, timeout_ms: int) -> None:
        """Commit ``wanted`` after the commits in flight. Raises what ``GroupOffsets.commit`` raises."""
        await self._commit_in_order(self._resolved(wanted), timeout_ms)

    def commit_async(self, wanted: OffsetsToCommit) -> "asyncio.Task[None]":
        """``commit`` without waiting; a failure is logged."""
        task = asyncio.get_running_loop().create_task(self._commit_in_order(self._resolved(wanted), self._timeout_ms))
        self._under_way.add(task)
        task.add_done_callback(self._done)
        return task

    def commit_if_due(self) -> None:
        """The user polls, so it has processed the earlier records: commit them if the interval is over."""
        now_ms = self._now_ms()
        if self._interval_ms is not None and now_ms >= self._due_ms and not self._lock.locked():
            self._due_ms = now_ms + self._interval_ms
            task = asyncio.get_running_loop().create_task(self.commit_settled(self._timeout_ms))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def commit_settled(self, timeout_ms: int) -> None:
        """Commit the offsets of the records that are surely processed; a failure is only logged."""
        await self._try(self._consumed(settled=True), timeout_ms)

    async def close(self, *, failed: bool, timeout_ms: int) -> None:
        """Wait for the commits in flight and, with automatic commits, commit once more; within ``timeout_ms``."""
        last = set(self._under_way)
        if self._interval_ms is not None:
            # Deviation: Kafka's consumer commits all records it has returned. If the block ends by an error, the user may not
            # have processed the last records, and the next owner must get them again.
            last.add(asyncio.create_task(self._try(self._consumed(settled=failed), timeout_ms)))
        if last:
            _, late = await asyncio.wait(last, timeout=timeout_ms / 1000)
            if late:
                self._troubles.begin(COMMITS, f"{counted(len(late), 'commit')} not answered within {timeout_ms} ms")
            for commit in late:
                commit.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _consumed(self, *, settled: bool) -> dict[TopicPartition, OffsetAndMetadata]:
        consumed = self._partitions.consumed(settled=settled)
        return {
            partition: OffsetAndMetadata(offset, leader_epoch) for partition, (offset, leader_epoch) in consumed.items()
        }

    def _resolved(self, wanted: OffsetsToCommit) -> dict[TopicPartition, OffsetAndMetadata]:
        if wanted is None:
            return self._consumed(settled=False)
        return {partition: _offset(partition, given) for partition, given in wanted.items()}

    async def _commit_in_order(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int) -> None:
        async with self._lock:
            await self._offsets.commit(offsets, timeout_ms)

    async def _try(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int) -> None:
        try:
            await self._commit_in_order(offsets, timeout_ms)
        except RebalanceInProgressError:
            return  # expected in every rebalance; the next commit includes these offsets
        except (ClientError, TimeoutError) as problem:
            self._troubles.begin(COMMITS, f"{counted(len(offsets), 'offset')} not committed: {problem}")
        else:
            self._troubles.end(COMMITS)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._under_way.discard(task)
        if task.cancelled():
            return
        if task.exception() is None:
            self._troubles.end(COMMITS)
        else:
            self._troubles.begin(COMMITS, f"not committed: {task.exception()}")

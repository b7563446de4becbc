"""The simulated application of one consumer: it reads its partitions, commits positions, and sometimes stops polling."""

from typing import Any, ClassVar, Protocol

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import CommitFailedError, RebalanceInProgressError
from groupcoord.client.member import actions as a
from groupcoord.client.member.group_member import GroupMember
from groupcoord.client.member.metadata_and_commit_requests import offset_commit_request, partition_errors
from groupcoord.core.grouping import grouped
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from groupcoord.protocol.messages import OffsetFetchRequest, OffsetFetchResponse
from groupcoord.simulation.event_queue import Callback, EventQueue
from groupcoord.simulation.network import MEMBER_COMMITS, OnError, OnResponse, rank
from groupcoord.simulation.plan import MemberPlan

GROUP = "app"
_FETCH_OFFSETS_RETRY_MS = 500
_MS_PER_RECORD = 40
"""Partition 0 has a record every 40 ms, partition 1 every 39 ms, and so on."""


class ReadPositions:
    """The positions of one consumer, which advance with simulated time at a constant rate per partition."""

    def __init__(self) -> None:
        self._positions: dict[
            TopicPartition, tuple[int, int | None]
        ] = {}  # offset, and the time since which it advances (ms)

    def set(self, partition: TopicPartition, offset: int, now_ms: int, *, reading: bool) -> None:
        """Set the position of ``partition``."""
        self._positions[partition] = offset, now_ms if reading else None

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._positions

    def keep_only(self, partitions: frozenset[TopicPartition]) -> None:
        """Forget the positions of all other partitions."""
        for partition in [partition for partition in self._positions if partition not in partitions]:
            del self._positions[partition]

    def stop(self, now_ms: int) -> None:
        """Stop reading."""
        self._positions = {partition: (offset, None) for partition, offset in self.at(now_ms).items()}

    def resume(self, now_ms: int) -> None:
        """Read again."""
        self._positions = {partition: (offset, now_ms) for partition, offset in self.at(now_ms).items()}

    def at(self, now_ms: int) -> dict[TopicPartition, int]:
        """The position in each partition, sorted by partition."""
        return {
            partition: offset if since_ms is None else offset + (now_ms - since_ms) // (_MS_PER_RECORD - partition[1])
            for partition, (offset, since_ms) in sorted(self._positions.items())
        }


class ApplicationHost(Protocol):
    """The process that runs the application."""

    membership: GroupMember
    plan: MemberPlan
    slot_id: int
    owned: frozenset[TopicPartition]
    alive: bool

    @property
    def is_paused(self) -> bool:
        """Is the process suspended?"""

    def execute_actions(self, actions: list[a.Action]) -> None:
        """Execute the actions of the membership."""

    def run(self, callback: Callback) -> None:
        """Call ``callback`` now, when the process resumes if it is suspended, or never if it has ended."""

    def run_later(self, callback: Callback, after_ms: int = 0) -> None:
        """Call ``callback`` as a separate event."""

    def send_to_coordinator(self, request: Any, on_response: OnResponse, on_error: OnError) -> None:
        """Send ``request`` to the group coordinator, then call ``on_response`` or ``on_error``."""

    def send(
        self, node_id: int | None, request: Any, timeout_ms: int, on_response: OnResponse, on_error: OnError
    ) -> None:
        """Send a request of the producer, then call ``on_response`` or ``on_error``."""

    def record_sent(self, record: bytes, partition: TopicPartition) -> None:
        """The application has sent a record."""

    def record_ended(self, record: bytes, stored: tuple[TopicPartition, int] | None) -> None:
        """The record is stored at that partition and offset, or (None) was given up."""

    def application_failed(self, error: Exception) -> None:
        """The application has failed with ``error``."""

    def set_timer(self) -> None:
        """Reset the timer of the process, which may be idle now."""


class ConsumerApplication:
    """A consumer application. ``is_polling``: does it poll? ``commits_at_ms``: the time of the next periodic commit."""

    commits_are_routine: ClassVar[bool] = True
    """Are its commits routine events, which, like heartbeats of an idle member, do not affect other members?"""
    requires_stable: ClassVar[bool] = False
    """Does it fetch stable offsets only (``require_stable``), and so wait for open transactions?"""

    def __init__(self, host: ApplicationHost, event_queue: EventQueue) -> None:
        self._host, self._event_queue = host, event_queue
        self._positions = ReadPositions()
        self.is_polling = True
        self.commits_at_ms = 0
        self._commit_overdue = False

    def start(self) -> None:
        """Schedule the next periodic commit."""
        host = self._host
        self.commits_at_ms = self._event_queue.now_ms + host.plan.commit_interval_ms
        self._event_queue.schedule(
            self.commits_at_ms,
            rank(host.slot_id, MEMBER_COMMITS),
            self._periodic_commit,
            routine=self.commits_are_routine,
        )

    def stop_reading(self) -> None:
        """The process is suspended."""
        self._positions.stop(self._event_queue.now_ms)

    def resume_reading(self) -> None:
        """The process resumes."""
        if self.is_polling:
            self._positions.resume(self._event_queue.now_ms)

    def stop_polling(self) -> None:
        """Stop polling."""
        self.is_polling = False
        self.stop_reading()

    def poll(self) -> None:
        """Poll again, and commit now if the periodic commit is overdue."""
        if not self.is_polling:
            self.is_polling = True
            self.resume_reading()
            if self._commit_overdue:
                self._commit_if_polling()

    def set_owned(self, partitions: frozenset[TopicPartition]) -> None:
        """Read exactly these partitions: former ones from their positions, new ones from the committed offsets."""
        self._positions.keep_only(partitions)
        if any(partition not in self._positions for partition in partitions):
            self._host.run_later(self._fetch_committed)

    def commit(self, done: Callback) -> None:
        """Commit all positions if the member may commit. ``done`` is called in any case, after the response if there is one."""
        host = self._host
        offsets = self._positions.at(self._event_queue.now_ms)
        try:
            generation = host.membership.commits_as()
        except (RebalanceInProgressError, CommitFailedError):
            offsets = {}
        if not offsets:
            done()
            return
        request = offset_commit_request(
            GROUP, generation.generation_id, generation.member_id, host.plan.instance_id, offsets
        )

        def on_response(response: Any) -> None:
            for code in dict.fromkeys(partition_errors(response).values()):
                actions = host.membership.commit_answered(code, generation, self._event_queue.now_ms)
                host.execute_actions(actions)
            done()

        host.send_to_coordinator(request, on_response, lambda _: done())

    def close(self, leave: Callback) -> None:
        """Commit the positions, then call ``leave``."""
        self.commit(lambda: None)
        leave()

    def _periodic_commit(self) -> None:
        if self._host.alive:
            self.start()
            self._host.run(self._commit_if_polling)

    def _commit_if_polling(self) -> None:
        self._commit_overdue = not self.is_polling
        if self.is_polling:
            self.commit(lambda: None)

    def _fetch_committed(self) -> None:
        """Fetch the committed offsets of owned partitions without a position."""
        host = self._host
        missing = [partition for partition in sorted(host.owned) if partition not in self._positions]
        if not missing:
            return
        member = host.membership.fetches_as()
        group = OffsetFetchRequestGroup(
            group_id=GROUP,
            member_id=None if member is None else member.member_id,
            member_epoch=-1 if member is None else member.generation_id,
            topics=tuple(
                OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(numbers))
                for topic, numbers in grouped(missing).items()
            ),
        )

        def retry() -> None:
            host.run_later(self._fetch_committed, _FETCH_OFFSETS_RETRY_MS)

        def on_response(response: OffsetFetchResponse) -> None:
            (fetched,) = response.groups
            if fetched.error_code:
                retry()
                return
            unstable = False
            for topic in fetched.topics:
                for each in topic.partitions:
                    unstable |= bool(each.error_code)
                    if not each.error_code:
                        self._start_at((topic.name, each.partition_index), each.committed_offset)
            if unstable:
                retry()
            host.set_timer()

        request = OffsetFetchRequest(groups=(group,), require_stable=self.requires_stable)
        host.send_to_coordinator(request, on_response, lambda _: retry())

    def _start_at(self, partition: TopicPartition, committed: int) -> None:
        if partition in self._host.owned and partition not in self._positions:
            reading = self.is_polling and not self._host.is_paused
            self._positions.set(partition, max(committed, 0), self._event_queue.now_ms, reading=reading)

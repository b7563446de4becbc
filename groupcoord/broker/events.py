"""The trace events of logs, partitions, brokers and the controller."""

from groupcoord.core.events import Event, event_class


@event_class
class LogCleaned(Event):
    """``log`` was compacted up to ``end_offset``; the part before ``first_dirty_offset`` was already compacted."""

    log: str
    first_dirty_offset: int
    end_offset: int
    records_read: int
    records_kept: int
    bytes_read: int
    bytes_kept: int

    def text(self) -> str:
        records = f"{self.records_kept} of {self.records_read} records"
        return f"{self.log} is compacted up to offset {self.end_offset}: {records} are kept, {self.bytes_kept} bytes"


@event_class
class LogNotCleaned(Event):
    """``log`` cannot be compacted."""

    log: str
    why: str

    def text(self) -> str:
        return f"{self.log} cannot be compacted: {self.why}"


@event_class
class LogSegmentsDeleted(Event):
    """Retention deleted the oldest segments of ``log``, which began at ``start_offset`` and now begins at ``end_offset``."""

    log: str
    start_offset: int
    end_offset: int
    why: str

    def text(self) -> str:
        last = self.end_offset - 1
        return f"{self.log} loses the records from offset {self.start_offset} to {last}: {self.why}"


@event_class
class BrokerStateChanged(Event):
    """A broker has another state: ``state`` is one of BrokerState, or ``fenced`` or ``unregistered`` by the controller."""

    broker: int
    state: str

    def text(self) -> str:
        return f"broker {self.broker} is {self.state}"


@event_class
class ControllerStateChanged(Event):
    """The controller has another state: ``state`` is one of ControllerState, ``epoch`` that of its last election."""

    state: str
    epoch: int

    def text(self) -> str:
        return f"the controller is {self.state} (epoch {self.epoch})"


@event_class
class RegistrationRefused(Event):
    """The controller refused the registration of a broker, whose previous session has not expired: ``error`` is the
    response."""

    broker: int
    error: str

    def text(self) -> str:
        why = "an earlier session of that id has not expired"
        return f"the registration of broker {self.broker} is refused ({self.error}): {why}"


@event_class
class LeaderChanged(Event):
    """A partition has another leader, and the next leader epoch; -1: no replica can lead."""

    topic: str
    partition: int
    leader: int
    epoch: int
    isr: tuple[int, ...]

    def text(self) -> str:
        in_sync = f"in sync: {', '.join(map(str, self.isr)) or 'none'}"
        who = "nobody leads" if self.leader < 0 else f"broker {self.leader} leads"
        return f"{who} {self.topic}-{self.partition} in epoch {self.epoch} ({in_sync})"


@event_class
class IsrChanged(Event):
    """The ISR of a partition has changed from ``before`` to ``isr``."""

    topic: str
    partition: int
    isr: tuple[int, ...]
    before: tuple[int, ...]

    def text(self) -> str:
        now, before = (", ".join(map(str, isr)) or "none" for isr in (self.isr, self.before))
        return f"in sync of {self.topic}-{self.partition}: {now} (before: {before})"


@event_class
class ReplicasReassigned(Event):
    """The replicas of a partition have changed, or a reassignment is in progress: ``adding`` and ``removing`` replicas."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    def text(self) -> str:
        replicas, adding, removing = (
            ", ".join(map(str, ids)) or "none" for ids in (self.replicas, self.adding, self.removing)
        )
        return f"replicas of {self.topic}-{self.partition}: {replicas} (adding: {adding}, removing: {removing})"


@event_class
class LogTruncated(Event):
    """A follower truncated its log to match the leader's: it removed ``lost`` offsets, from ``offset`` on."""

    topic: str
    partition: int
    broker: int
    leader: int
    offset: int
    lost: int

    def text(self) -> str:
        lost = f"{self.lost} offset{'s' * (self.lost > 1)} of {self.topic}-{self.partition} from {self.offset} on"
        return f"broker {self.broker} gives up {lost}: broker {self.leader}, which leads now, never had them"


@event_class
class ReplicaFetched(Event):
    """A follower has fetched records from the leader of a partition, or only a new high watermark.

    It fetched from ``offset`` in leader epoch ``epoch``; its log end offset is now ``end_offset``.
    """

    topic: str
    partition: int
    follower: int
    leader: int
    epoch: int
    offset: int
    end_offset: int
    high_watermark: int

    def text(self) -> str:
        count = self.end_offset - self.offset
        what = f"{count} offset{'s' * (count > 1)}" if count else "the high watermark"
        where = f"{self.topic}-{self.partition} from broker {self.leader} at offset {self.offset}, epoch {self.epoch}"
        return f"broker {self.follower} fetches {what} of {where}: high watermark {self.high_watermark}"

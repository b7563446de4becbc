"""What happens to logs, partitions and brokers, for those who want to see it."""

from groupcoord.core.events import Event, event_class


@event_class
class LogCleaned(Event):
    """``log`` was compacted up to ``end_offset``; what lies before ``first_dirty_offset`` had been compacted before."""

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
class BrokerStateChanged(Event):
    """A broker runs, or does not, or is fenced or unregistered by the controller: ``state`` is one of BrokerState, ``fenced``
    or ``unregistered``."""

    broker: int
    state: str

    def text(self) -> str:
        return f"broker {self.broker} is {self.state}"


@event_class
class ControllerStateChanged(Event):
    """The controller runs, or does not: ``state`` is one of ControllerState, ``epoch`` the one in which it was elected last."""

    state: str
    epoch: int

    def text(self) -> str:
        return f"the controller is {self.state} (epoch {self.epoch})"


@event_class
class RegistrationRefused(Event):
    """A broker wants to register with an id whose broker has a session that has not ended: ``error`` is what it is told."""

    broker: int
    error: str

    def text(self) -> str:
        return f"a broker that registers as {self.broker} is refused ({self.error}): the session of broker {self.broker} lives"


@event_class
class LeaderChanged(Event):
    """Another broker leads a partition, in the next leader epoch; -1: none can."""

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
    """Other replicas of a partition are in sync than ``before``."""

    topic: str
    partition: int
    isr: tuple[int, ...]
    before: tuple[int, ...]

    def text(self) -> str:
        now, before = (", ".join(map(str, isr)) or "none" for isr in (self.isr, self.before))
        return f"in sync of {self.topic}-{self.partition}: {now} (before: {before})"


@event_class
class ReplicasReassigned(Event):
    """A partition has other replicas, or is to have: while that goes on, some are ``adding`` or ``removing``."""

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
    """A follower had what the leader of a partition has not: it gave up ``lost`` offsets, from ``offset`` on."""

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
    """A follower has copied records from the leader of a partition, or heard of another high watermark.

    It asked for what follows ``offset`` in leader epoch ``epoch``, and its copy ends at ``end_offset`` now.
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

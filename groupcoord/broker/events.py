"""What happens to logs, partitions and brokers, for those who want to see it."""

from dataclasses import dataclass

from groupcoord.core.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNotCleaned(Event):
    """``log`` cannot be compacted."""

    log: str
    why: str

    def text(self) -> str:
        return f"{self.log} cannot be compacted: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStateChanged(Event):
    """A broker runs, or does not, or is fenced by the controller: ``state`` is one of BrokerState, or ``fenced``."""

    broker: int
    state: str

    def text(self) -> str:
        return f"broker {self.broker} is {self.state}"


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChanged(Event):
    """Other replicas of a partition are in sync than ``before``."""

    topic: str
    partition: int
    isr: tuple[int, ...]
    before: tuple[int, ...]

    def text(self) -> str:
        now, before = (", ".join(map(str, isr)) or "none" for isr in (self.isr, self.before))
        return f"in sync of {self.topic}-{self.partition}: {now} (before: {before})"


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTruncated(Event):
    """The new leader of a partition has its log only up to ``offset``: ``lost`` offsets are gone."""

    topic: str
    partition: int
    leader: int
    offset: int
    lost: int

    def text(self) -> str:
        lost = f"{self.lost} offset{'s' * (self.lost > 1)} of {self.topic}-{self.partition}"
        return f"{lost} from {self.offset} on are lost: broker {self.leader}, which leads now, never had them"

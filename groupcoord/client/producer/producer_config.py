"""The settings of a producer (``ProducerConfig``): Kafka's names with underscores, Kafka's defaults and validation."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from groupcoord.did_you_mean import did_you_mean
from groupcoord.protocol.batches.compression import Compression

INT32_MAX = (1 << 31) - 1
ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
MOST_IN_FLIGHT_WITH_IDEMPOTENCE = 5
"""A broker remembers the last five batches of a producer, among which it detects duplicates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """Times are milliseconds, sizes bytes. Raises ValueError for settings that cannot work.

    ``enable_idempotence`` and ``delivery_timeout_ms`` are None if they are not set: idempotence is then on, unless ``acks`` or
    ``retries`` rule it out, and the delivery timeout is Kafka's two minutes, or longer if ``linger_ms`` and
    ``request_timeout_ms`` need that: ``is_idempotent`` and ``delivery_ms``.
    """

    acks: int | str = "all"
    """Who must have a record before it is acknowledged: ``all`` (or -1) in-sync replicas, the leader (1), nobody (0)."""
    batch_size: int = 16_384
    """The size at which a batch is full; 0: one batch per record."""
    linger_ms: int = 5
    """How long a batch that is not full waits for more records."""
    buffer_memory: int = 33_554_432
    """The most memory for unacknowledged records; ``send`` waits when it is used up."""
    max_block_ms: int = 60_000
    """How long ``send`` waits for memory and metadata, and the transaction methods for their coordinator."""
    max_request_size: int = 1_048_576
    """The largest size of a request, and so of a record."""
    compression_type: str = "none"
    """``none``, ``gzip``, ``snappy``, ``lz4`` or ``zstd``."""
    max_in_flight_requests_per_connection: int = 5
    """The most unanswered requests to a broker; with idempotence at most five."""
    retries: int = INT32_MAX
    """How often a batch is retried; ``delivery_timeout_ms`` is the better limit."""
    retry_backoff_ms: int = 100
    """The first pause before a retry, plus or minus 20 %; it doubles each time."""
    retry_backoff_max_ms: int = 1_000
    """The longest of these waits."""
    reconnect_backoff_ms: int = 50
    """The first pause before reconnecting to a broker that could not be reached; it doubles each time."""
    reconnect_backoff_max_ms: int = 1_000
    """The longest of these waits."""
    request_timeout_ms: int = 30_000
    """The time-out of a request; then its connection is closed."""
    delivery_timeout_ms: int | None = None
    """The time from the creation of a batch after which its records are given up if they are not acknowledged."""
    enable_idempotence: bool | None = None
    """Give every batch a sequence number, by which a broker detects duplicates."""
    transactional_id: str | None = None
    """Enables transactions; a new producer with the same id fences the older one."""
    transaction_timeout_ms: int = 60_000
    """The coordinator aborts a transaction that is open for longer."""
    partitioner_ignore_keys: bool = False
    """Ignore keys when choosing a partition."""
    partitioner_adaptive_partitioning_enable: bool = True
    """Records without a key prefer partitions with short queues (KIP-794)."""
    partitioner_availability_timeout_ms: int = 0
    """Records without a key avoid partitions whose leader has not been ready for so long; 0: never avoid any."""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < least):
                raise ValueError(f"{name}={value!r}: it is a whole number of {least} or more")
        if str(self.acks) not in ACKS:
            raise ValueError(f"acks={self.acks!r}: it is all (or -1), 1 or 0")
        names = [each.name.lower() for each in Compression]
        if self.compression_type not in names:
            raise ValueError(f"compression_type={self.compression_type!r}: it is one of {', '.join(names)}")
        for first, most in (
            ("retry_backoff_ms", "retry_backoff_max_ms"),
            ("reconnect_backoff_ms", "reconnect_backoff_max_ms"),
        ):
            if getattr(self, first) > getattr(self, most):
                raise ValueError(f"{first}={getattr(self, first)} is at most {most}={getattr(self, most)}")
        if self.transactional_id == "":
            raise ValueError("transactional_id='': it is a text that is not empty, or None")
        self._check_idempotence()
        needed_ms = self.linger_ms + self.request_timeout_ms
        if self.delivery_timeout_ms is not None and self.delivery_timeout_ms < needed_ms:
            raise ValueError(
                f"delivery_timeout_ms={self.delivery_timeout_ms} is at least linger_ms + request_timeout_ms, {needed_ms}"
            )

    def _check_idempotence(self) -> None:
        """Source: ``ProducerConfig.postProcessAndValidateIdempotenceConfigs``."""
        conflict = self._idempotence_conflict()
        if self.enable_idempotence and conflict:
            raise ValueError(f"enable_idempotence=True needs {conflict}")
        most = MOST_IN_FLIGHT_WITH_IDEMPOTENCE
        if self.is_idempotent and self.max_in_flight_requests_per_connection > most:
            raise ValueError(
                f"max_in_flight_requests_per_connection={self.max_in_flight_requests_per_connection} is at most {most} with "
                "idempotence, which enable_idempotence=False switches off"
            )
        if self.transactional_id is not None and not self.is_idempotent:
            raise ValueError(f"transactional_id needs idempotence: {conflict or 'enable_idempotence is not False'}")

    def _idempotence_conflict(self) -> str:
        if self.required_acks != ACKS["all"]:
            return f"acks='all', not {self.acks!r}"
        return "retries above 0" if self.retries == 0 else ""

    @property
    def required_acks(self) -> int:
        """``acks`` as in a Produce request: -1 for all in-sync replicas."""
        return ACKS[str(self.acks)]

    @property
    def is_idempotent(self) -> bool:
        """Is the producer idempotent: does every batch have a sequence number?"""
        return self.enable_idempotence is not False and not self._idempotence_conflict()

    @property
    def compression(self) -> Compression:
        """``compression_type``."""
        return Compression[self.compression_type.upper()]

    @property
    def delivery_ms(self) -> int:
        """``delivery_timeout_ms``, also if it is not set."""
        if self.delivery_timeout_ms is not None:
            return self.delivery_timeout_ms
        return max(_DELIVERY_TIMEOUT_MS, self.linger_ms + self.request_timeout_ms)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "ProducerConfig":
        """The config with these ``settings``, by name. Raises ValueError for an unknown one, with the nearest name."""
        known = [each.name for each in fields(cls)]
        for name in settings:
            if name not in known:
                hint = did_you_mean(name.replace(".", "_"), known, otherwise=f"there are {', '.join(known)}")
                raise ValueError(f"a producer has no setting {name}; {hint}")
        return cls(**settings)


_DELIVERY_TIMEOUT_MS = 120_000
_LEAST = {
    "batch_size": 0,
    "linger_ms": 0,
    "buffer_memory": 1,
    "max_block_ms": 0,
    "max_request_size": 1,
    "max_in_flight_requests_per_connection": 1,
    "retries": 0,
    "retry_backoff_ms": 0,
    "retry_backoff_max_ms": 0,
    "reconnect_backoff_ms": 0,
    "reconnect_backoff_max_ms": 0,
    "request_timeout_ms": 1,
    "delivery_timeout_ms": 0,
    "transaction_timeout_ms": 1,
    "partitioner_availability_timeout_ms": 0,
}

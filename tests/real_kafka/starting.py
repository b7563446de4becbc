"""Starting a real broker with whatever this machine has, and cleaning up however the run ends."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from tests.real_kafka.broker import Broker, RealKafkaUnavailable, end_of_log
from tests.real_kafka.container import KafkaContainer
from tests.real_kafka.process import KafkaProcess

RUNNING: list[Broker] = []
"""The brokers that run now, so that a report of a failure can show their logs."""

Kind = Callable[[Mapping[str, str], str | None], Broker]
KINDS: tuple[Kind, ...] = (KafkaContainer, KafkaProcess)


def new_broker(properties: Mapping[str, str], version: str | None, kinds: Sequence[Kind] = KINDS) -> Broker:
    """A broker of the first kind that this machine can start. Raises RealKafkaUnavailable with what each kind misses."""
    missing = []
    for kind in kinds:
        try:
            return kind(properties, version)
        except RealKafkaUnavailable as reason:
            missing.append(str(reason))
    raise RealKafkaUnavailable("; and ".join(missing))


@contextmanager
def running(
    properties: Mapping[str, str] = MappingProxyType({}), version: str | None = None, kinds: Sequence[Kind] = KINDS
) -> Iterator[Broker]:
    """A fresh broker, of the first of ``kinds`` that there is, until the block ends.

    Raises RealKafkaUnavailable, BrokerFailed.

    What the block raises gets the end of the broker's log as a note.
    """
    with sigterm_interrupts(), new_broker(properties, version, kinds) as broker:
        RUNNING.append(broker)
        try:
            yield broker
        except Exception as problem:
            problem.add_note(end_of_log(broker.what, broker.log()))
            raise
        finally:
            RUNNING.remove(broker)


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """While the block runs, SIGTERM does what Ctrl-C does: everything is cleaned up on the way out."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

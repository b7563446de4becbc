"""Choosing among the kinds of brokers, and ending on a signal."""

import os
import signal
from collections.abc import Mapping

import pytest

from tests.real_kafka.broker import LINES_OF_LOG, Broker, RealKafkaUnavailable, end_of_log
from tests.real_kafka.container import KafkaContainer
from tests.real_kafka.process import KafkaProcess
from tests.real_kafka.starting import Kind, new_broker, sigterm_interrupts


def missing(what: str) -> Kind:
    def kind(properties: Mapping[str, str], version: str | None) -> Broker:
        raise RealKafkaUnavailable(what)

    return kind


def test_the_first_kind_that_can_be_started_is_taken() -> None:
    broker: Broker = object.__new__(KafkaProcess)
    assert new_broker({}, None, [missing("no Docker"), lambda properties, version: broker]) is broker


def test_a_broker_is_told_its_properties_and_its_version() -> None:
    told: list[object] = []

    def kind(properties: Mapping[str, str], version: str | None) -> Broker:
        told.extend((properties, version))
        return object.__new__(KafkaContainer)

    new_broker({"a": "b"}, "3.9.2", [kind])
    assert told == [{"a": "b"}, "3.9.2"]


def test_when_there_is_none_every_kind_says_why() -> None:
    with pytest.raises(RealKafkaUnavailable, match=r"^no Docker; and no Java$"):
        new_broker({}, None, [missing("no Docker"), missing("no Java")])


def test_sigterm_interrupts_as_ctrl_c_does() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_report_has_the_end_of_the_log() -> None:
    log = "\n".join(f"line {number}" for number in range(100))
    shown = end_of_log("container of x", log).splitlines()
    assert shown[0] == "The end of the log of the container of x:"
    assert shown[-1] == "  line 99"
    assert len(shown) == 1 + LINES_OF_LOG

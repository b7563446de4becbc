"""Plays stories on running servers: a fresh real broker, and groupcoord on real sockets.

A run that is interrupted must not wait for the stories that last five minutes: the target hangs up on all of them.
"""

import socket
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from groupcoord.protocol.messages import ApiVersionsRequest
from tests.conformance.actors import Stagehand
from tests.conformance.settings import Settings
from tests.conformance.story import Story, Tale
from tests.conformance.telling import ready, tell_all
from tests.conformance.transcript import Step
from tests.conformance.wire import Hungup, SocketTarget, SocketWire, Wire
from tests.real_kafka import running

Transcripts = Mapping[str, list[Step]]
"""The steps of each story, by its name."""


class LiveTarget(SocketTarget):
    """A server at 127.0.0.1:``port`` that every story can be called off from."""

    def __init__(self, port: int) -> None:
        super().__init__("127.0.0.1", port)
        self._is_over = threading.Event()
        self._wires: list[LiveWire] = []

    def connect(self) -> Wire:
        try:
            wire = LiveWire(self.host, self.port)
        except OSError as problem:
            raise Hungup(str(problem)) from problem
        self._wires.append(wire)
        if self._is_over.is_set():
            wire.close_connection()
        return wire

    def wait(self, duration_ms: int) -> None:
        if self._is_over.wait(duration_ms / 1000):
            raise Hungup("the telling was called off")

    def call_off(self) -> None:
        """End every story, whatever it waits for."""
        self._is_over.set()
        for wire in self._wires:
            wire.close_connection()


class LiveWire(SocketWire):
    """A connection that another thread can end."""

    def close_connection(self) -> None:
        """Whoever waits for an answer on it gets Hungup."""
        with suppress(OSError):  # it was closed before
            self._socket.shutdown(socket.SHUT_RDWR)


def tell_to_fresh(
    setting: Settings, tales: Iterable[Tale], kafka_version: str, *, by_its_versions: bool = False
) -> Transcripts:
    """What those of ``tales`` that belong to ``setting`` become when told to a broker that is started for them.

    ``by_its_versions`` keeps requests within the versions that the broker serves. Raises RealKafkaUnavailable, BrokerFailed,
    StoryBroken.
    """
    belonging = [tale for tale in tales if tale.settings is setting]
    if not belonging:
        return {}
    with running(setting.properties, kafka_version) as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        versions = {key: newest for key, (_, newest) in served_by(port).items()} if by_its_versions else None
        return tell_to(port, belonging, versions)


def served_by(port: int) -> dict[int, tuple[int, int]]:
    """The oldest and the newest version of each API that the server says it serves."""
    story = Story("versions", LiveTarget(port))
    try:
        answer = Stagehand(story).ask(ApiVersionsRequest(), 0)
    finally:
        story.close()
    return {item.api_key: (item.min_version, item.max_version) for item in answer.api_keys}


def tell_to(port: int, tales: Iterable[Tale], versions: Mapping[int, int] | None = None) -> Transcripts:
    """What ``tales`` become when told to the server at ``port``; all of them have the settings that it runs with.

    ``versions`` are the newest of each API that the server speaks, where those are older than groupcoord's. Raises
    StoryBroken when the server never coordinates all groups.
    """
    target = LiveTarget(port)

    def everything() -> Transcripts:
        ready(target, versions)
        return {tale.name: steps for tale, steps in tell_all(tales, target, versions)}

    with ThreadPoolExecutor(1) as pool:
        telling = pool.submit(everything)
        try:
            return telling.result()
        except BaseException:
            target.call_off()
            raise

"""``groupcoord serve`` as a child process, and clients that speak to it over plain sockets."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.framing import encode_request, parse_response
from groupcoord.protocol.messages import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from groupcoord.protocol.messages.join_group import JoinGroupRequestProtocol
from tests.conformance.wire import PATIENCE_MS, SocketWire

ROOT = Path(__file__).resolve().parents[2]
SERVE = (sys.executable, "-m", "groupcoord", "serve", "--port", "0", "--quiet", "--dev")


class Child(NamedTuple):
    """The process, and the port it listens on at 127.0.0.1."""

    process: "subprocess.Popen[str]"
    port: int


@contextlib.contextmanager
def child_server(*arguments: str) -> Iterator[Child]:
    """A server until the block ends."""
    with subprocess.Popen([*SERVE, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            yield Child(process, int(process.stdout.readline().rpartition(":")[2]))
        finally:
            process.kill()


def request(key: ApiKey, message: Any, version: int | None = None) -> bytes:
    """The frame of a request, in the newest version unless told."""
    api = APIS[key]
    return encode_request(api, api.max_version if version is None else version, 1, "attack", message)


class Client:
    """One connection that asks and waits for the answer."""

    def __init__(self, port: int) -> None:
        self.wire = SocketWire("127.0.0.1", port)

    def ask(self, key: ApiKey, message: Any) -> Any:
        """The answer to ``message``, both in the newest version. Raises Hungup, TimeoutError."""
        self.wire.send(request(key, message))
        return self.answer(key)

    def answer(self, key: ApiKey) -> Any:
        """The next answer, which is one to ``key``. Raises Hungup, TimeoutError."""
        frame = self.wire.receive(PATIENCE_MS)
        if frame is None:
            raise TimeoutError(f"{key.name} is not answered within {PATIENCE_MS} ms")
        return parse_response(APIS[key], APIS[key].max_version, frame)[1]


class Member(Client):
    """The one member of the classic ``group``, in a stable generation."""

    def __init__(self, port: int, group: str, session_ms: int) -> None:
        super().__init__(port)
        self.group = group
        self.session_ms = session_ms
        self.join()

    def join(self) -> None:
        """Join, or join again as somebody new."""
        join = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=60_000,
            member_id="",
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        )
        named = self.ask(ApiKey.JOIN_GROUP, join)  # MEMBER_ID_REQUIRED: it is given its name, and joins with that
        joined = self.ask(ApiKey.JOIN_GROUP, replace(join, member_id=named.member_id))
        generation, name = joined.generation_id, joined.member_id
        sync = SyncGroupRequest(group_id=self.group, generation_id=generation, member_id=name, assignments=())
        self.ask(ApiKey.SYNC_GROUP, sync)
        self._heartbeat = request(
            ApiKey.HEARTBEAT, HeartbeatRequest(group_id=self.group, generation_id=generation, member_id=name)
        )

    def send_heartbeat(self) -> None:
        """Send one, and do not wait for the answer."""
        self.wire.send(self._heartbeat)

    def is_member(self) -> bool:
        """Does the answer to the heartbeat say that it still is a member?"""
        return not self.answer(ApiKey.HEARTBEAT).error_code

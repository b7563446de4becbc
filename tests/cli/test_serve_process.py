"""``groupcoord serve`` as a process of its own: readiness, signals, and streams that are closed or broken."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest

from groupcoord.protocol.framing import parse_response
from groupcoord.protocol.messages import ApiVersionsRequest
from tests.server.support import API_VERSIONS, frame

PATIENCE_SECONDS = 60
USUAL_PIPE_BYTES = 65_536

pytestmark = pytest.mark.slow


@contextmanager
def process(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A server, killed at the end if it has not ended."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    command = [sys.executable, "-m", "groupcoord", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, **options) as started:
        try:
            yield started
        finally:
            started.kill()


def address(stdout: IO[str] | None) -> tuple[str, int]:
    assert stdout is not None
    line = stdout.readline()
    assert line.startswith("listening on "), line
    host, _, port = line.removeprefix("listening on ").rpartition(":")
    return host, int(port)


def ask_what_is_served(at: tuple[str, int]) -> int:
    """The number of APIs that the server names."""
    with socket.create_connection(at, PATIENCE_SECONDS) as connection, connection.makefile("rwb") as stream:
        stream.write(frame(API_VERSIONS, ApiVersionsRequest(client_software_name="a", client_software_version="b")))
        stream.flush()
        answer = stream.read(int.from_bytes(stream.read(4)))
    return len(parse_response(API_VERSIONS, API_VERSIONS.max_version, answer)[1].api_keys)


def test_it_ends_with_its_standard_input_if_it_is_told_to() -> None:
    with process("--until-stdin-ends", stdin=subprocess.PIPE) as server:
        assert ask_what_is_served(address(server.stdout)) > 20
        _, log = server.communicate("what is said does not matter\n", timeout=PATIENCE_SECONDS)
    assert server.returncode == 0
    assert "SIGTERM received" in log


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_serves_when_it_says_so_until_it_is_told_to_end(number: signal.Signals, code: int) -> None:
    with process("--topic", "orders:3") as server:
        assert ask_what_is_served(address(server.stdout)) > 20
        server.send_signal(number)
        rest, log = server.communicate(timeout=PATIENCE_SECONDS)
    assert (server.returncode, rest) == (code, "")
    assert f"{number.name} received" in log
    assert log.splitlines()[-1].endswith("stopped")


def test_every_line_of_the_json_log_is_an_object() -> None:
    with process("--log-format", "json", "-v") as server:
        ask_what_is_served(address(server.stdout))
        server.terminate()
        _, log = server.communicate(timeout=PATIENCE_SECONDS)
    lines = [json.loads(line) for line in log.splitlines()]
    assert {"time", "level", "text"} <= set.intersection(*[set(line) for line in lines])
    assert "ApiVersions" in {line["call"]["api"] for line in lines if "call" in line}


def test_with_a_stdout_that_is_closed_it_serves() -> None:
    with process(stdout=None, preexec_fn=lambda: os.close(1)) as server:
        assert server.stderr is not None
        line = next(line for line in server.stderr if "serving at 127.0.0.1:" in line)
        assert ask_what_is_served(("127.0.0.1", int(line.rpartition(":")[2]))) > 20
        server.terminate()
        assert server.wait(PATIENCE_SECONDS) == 0


def test_with_streams_that_nobody_reads_it_serves_and_ends_well() -> None:
    with process("-v", bufsize=0) as server:
        at = address(server.stdout)
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdout.close()
        server.stderr.close()
        assert ask_what_is_served(at) > 20
        assert ask_what_is_served(at) > 20
        server.terminate()
        assert server.wait(PATIENCE_SECONDS) == 0


def test_with_a_log_that_nobody_takes_out_of_its_pipe_it_serves_and_ends_well() -> None:
    with process("-v") as server:
        at = address(server.stdout)
        assert server.stderr is not None
        room = USUAL_PIPE_BYTES
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            room = fcntl.fcntl(server.stderr, fcntl.F_SETPIPE_SZ, 4_096)
        for _ in range(room // 100 + 1):  # more than 100 bytes of log each
            assert ask_what_is_served(at) > 20
        server.terminate()
        assert server.wait(PATIENCE_SECONDS) == 0
        log = server.stderr.read()
    assert "connected" in log
    assert "SIGTERM received" not in log  # the pipe was full long before


def test_with_a_stderr_that_is_closed_it_serves() -> None:
    with process("-v", stderr=None, preexec_fn=lambda: os.close(2)) as server:
        assert ask_what_is_served(address(server.stdout)) > 20
        server.terminate()
        assert server.wait(PATIENCE_SECONDS) == 0


def test_a_mistake_is_one_line_on_stderr() -> None:
    with process("-c", "group.max.syze=1") as server:
        out, error = server.communicate(timeout=PATIENCE_SECONDS)
    assert (server.returncode, out) == (2, "")
    assert error == "groupcoord serve: group.max.syze: unknown property; did you mean group.max.size?\n"

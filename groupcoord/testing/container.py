"""GroupcoordContainer, a testcontainers class for the image of groupcoord: for tests of applications that run in containers.

A test whose client is in its own process should use ``Cluster``, which starts in milliseconds and has a clock and faults.

It needs the extra ``testcontainers``, and a Docker daemon on this machine.
"""

import secrets
import socket
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Self

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from groupcoord.config.broker_config import as_text
from groupcoord.config.environment_variable_names import PREFIX, property_variable
from groupcoord.version import VERSION

CLIENT_PORT = 9092
INSIDE_PORT = 29092
CONTROL_PORT = 8080


def free_port() -> int:
    """A free port of 127.0.0.1."""
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port: int = probe.getsockname()[1]
    return port


class GroupcoordContainer(DockerContainer):
    """A broker while a ``with`` block runs.

    ``topics`` maps names to numbers of partitions, ``config`` are broker configs, ``dev`` is as in ``serve --dev``. In a
    ``network`` other containers reach it by the name ``alias``. With ``control`` it has the HTTP control API at
    ``get_control_url()``, protected by ``control_token``. ``options`` are those of ``DockerContainer``.
    """

    def __init__(
        self,
        image: str = f"groupcoord:{VERSION}",
        *,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, object] | None = None,
        dev: bool = True,
        alias: str = "kafka",
        control: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(image, network_aliases=[alias], **options)
        self._port = free_port()
        self._alias = alias
        # The broker advertises its address to clients, so the port has to be known before Docker starts it.
        self.ports[f"{CLIENT_PORT}/tcp"] = ("127.0.0.1", self._port)  # type: ignore[assignment]
        self.with_env(f"{PREFIX}DEV", as_text(dev))
        self.with_env(f"{PREFIX}TOPICS", ",".join(f"{name}:{count}" for name, count in (topics or {}).items()))
        advertised = f"HOST://{self.get_bootstrap_server()},INSIDE://{self.get_inside_bootstrap_server()}"
        for name, value in {"advertised.listeners": advertised, **(config or {})}.items():
            self.with_env(property_variable(name), as_text(value))
        self.control_token = secrets.token_urlsafe() if control else None
        if self.control_token is not None:
            self.ports[f"{CONTROL_PORT}/tcp"] = ("127.0.0.1", None)  # type: ignore[assignment]
            self.with_env(f"{PREFIX}CONTROL", f"0.0.0.0:{CONTROL_PORT}")
            self.with_env(f"{PREFIX}CONTROL_TOKEN", self.control_token)
        self.waiting_for(LogMessageWaitStrategy("^listening on ").with_poll_interval(0.1))

    def get_bootstrap_server(self) -> str:
        """The bootstrap server for programs on this machine: ``127.0.0.1:PORT``."""
        return f"127.0.0.1:{self._port}"

    def get_inside_bootstrap_server(self) -> str:
        """The bootstrap server for other containers of its network: ``kafka:29092``."""
        return f"{self._alias}:{INSIDE_PORT}"

    def get_control_url(self) -> str:
        """The URL of the control API on this machine: ``http://127.0.0.1:PORT``. Only with ``control``, after the start."""
        container = str(self.get_wrapped_container().id)
        return f"http://127.0.0.1:{self.get_docker_client().port(container, CONTROL_PORT)}"

    def start(self) -> Self:
        """Start it; returns when it accepts connections. Raises RuntimeError, with its log as a note, if it exits instead."""
        try:
            return super().start()
        except RuntimeError as problem:
            problem.add_note("".join(stream.decode() for stream in self.get_logs()))
            self.stop()
            raise

"""docker/groupcoord/compose.yaml: a broker, and an application in another container."""

import asyncio
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer

from groupcoord.testing.container import free_port
from tests.image.conftest import PATIENCE_SECONDS, docker

FOLDER = Path(__file__).resolve().parents[2] / "docker" / "groupcoord"
ORDERS = [b"an espresso", b"a cappuccino", b"a flat white"]

Compose = Callable[..., str]

pytestmark = pytest.mark.docker


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def compose(image: str, port: int) -> Iterator[Compose]:
    """Runs ``docker compose``, the plugin or the command, with the file; what it started is gone when the test ends."""
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
    command = ["docker", "compose"] if plugin else ["docker-compose"]
    assert shutil.which(command[0]), "neither `docker compose` nor `docker-compose` (Debian: docker-compose) is here"
    base = docker(
        "image", "inspect", "--format", '{{index .Config.Labels "org.opencontainers.image.base.name"}}', image
    ).strip()
    environment = {**os.environ, "KAFKA_PORT": str(port), "BASE": base}
    project = f"groupcoord-test-{uuid.uuid4().hex[:8]}"

    def run(*arguments: str) -> str:
        finished = subprocess.run(
            [*command, "--project-name", project, "--file", str(FOLDER / "compose.yaml"), *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=5 * PATIENCE_SECONDS,
            check=False,
        )
        assert finished.returncode == 0, finished.stdout
        return finished.stdout

    yield run
    run("down", "--volumes", "--rmi", "local", "--timeout", str(PATIENCE_SECONDS))


async def read(address: str) -> set[bytes]:
    async with AIOKafkaConsumer("orders", bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        return {(await asyncio.wait_for(consumer.getone(), PATIENCE_SECONDS)).value for _ in ORDERS}


def test_an_application_in_a_container_and_a_program_on_the_host_use_the_same_broker(
    compose: Compose, port: int
) -> None:
    shop = compose("run", "--rm", "shop")
    assert sorted(re.findall(r"^order: (.*?)\r?$", shop, re.MULTILINE)) == sorted(order.decode() for order in ORDERS)
    assert asyncio.run(read(f"localhost:{port}")) == set(ORDERS)

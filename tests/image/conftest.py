"""Fixtures that run containers of the image of `make image` with the docker command."""

import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from testcontainers.core.config import testcontainers_config

from groupcoord.version import VERSION

IMAGE = f"groupcoord:{VERSION}"
PATIENCE_SECONDS = 120

Run = Callable[..., "Container"]


def docker(*arguments: str) -> str:
    """What the command says, or a failure with what it complains of."""
    finished = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert finished.returncode == 0, f"docker {' '.join(arguments)}: {finished.stderr}"
    return finished.stdout


class Container:
    """A container that was started in the background."""

    def __init__(self, name: str) -> None:
        self.name = name

    def lines_until(self, end: str) -> list[str]:
        """What it says on stdout, up to the line with that end."""
        lines = []
        with subprocess.Popen(
            ["docker", "logs", "--follow", self.name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as logs:
            assert logs.stdout is not None
            for line in logs.stdout:
                lines.append(line.rstrip())
                if lines[-1].endswith(end):
                    break
            logs.kill()
        return lines

    def ended(self) -> tuple[int, list[str]]:
        """Its exit code and what it said on stderr, when it has ended."""
        code = int(docker("wait", self.name))
        logs = subprocess.run(
            ["docker", "logs", self.name], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
        )
        return code, logs.stderr.splitlines()


@pytest.fixture(scope="session")
def image() -> str:
    """The name of the image of this version."""
    testcontainers_config.ryuk_disabled = True  # the image of its reaper can hardly be pulled where this one was built
    assert docker("images", "--quiet", IMAGE), f"there is no image {IMAGE}: `make image` makes it"
    return IMAGE


@pytest.fixture
def run(image: str) -> Iterator[Run]:
    """Runs a container of the image, with options of ``docker run`` and a command, until the test ends."""
    with ExitStack() as running:

        def start(*options: str, command: tuple[str, ...] = ()) -> Container:
            name = f"groupcoord-test-{uuid.uuid4().hex[:8]}"
            docker("run", "--detach", "--name", name, *options, image, *command)
            running.callback(docker, "rm", "--force", "--volumes", name)
            return Container(name)

        yield start

"""The Kafka version of the tests, and its container image."""

import gc
import os
import warnings
from collections.abc import Callable, Mapping, Sequence

from docker.client import DockerClient
from docker.errors import DockerException

from tests.real_kafka.broker import RealKafkaUnavailable

DEFAULT_VERSION = "4.3.1"
"""The Kafka that groupcoord answers like."""


def kafka_version(environ: Mapping[str, str] = os.environ) -> str:
    """The version that the environment asks for."""
    return environ.get("KAFKA_VERSION") or DEFAULT_VERSION


def public_image(version: str) -> str:
    """Apache's own."""
    return f"apache/kafka:{version}"


def local_image(version: str) -> str:
    """What ``make kafka-image`` builds where no registry can be reached."""
    return f"groupcoord/kafka:{version}"


def wanted_images(version: str, environ: Mapping[str, str] = os.environ) -> list[str]:
    """The images that would do, the best first."""
    return [environ["KAFKA_IMAGE"]] if environ.get("KAFKA_IMAGE") else [public_image(version), local_image(version)]


def choose(wanted: Sequence[str], is_here: Callable[[str], bool], pull: Callable[[str], object]) -> str:
    """The first of ``wanted`` that is here, else the first, pulled. Raises RealKafkaUnavailable."""
    for image in wanted:
        if is_here(image):
            return image
    try:
        pull(wanted[0])
    except DockerException as problem:
        raise RealKafkaUnavailable(
            f"there is no image {' or '.join(wanted)} (`make kafka-image`): {problem}"
        ) from problem
    return wanted[0]


def usable_image(version: str) -> str:
    """The image to run. Raises RealKafkaUnavailable when there is no daemon, or neither image nor registry."""
    client = daemon()
    try:
        return choose(wanted_images(version), lambda image: bool(client.images.list(name=image)), client.images.pull)
    finally:
        client.close()


def daemon() -> DockerClient:
    """A client of the Docker daemon. Raises RealKafkaUnavailable when none answers."""
    with warnings.catch_warnings():
        # The library forgets the socket that it could not connect; it is collected here and not in the midst of a test.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            return DockerClient.from_env()
        except DockerException as problem:
            reason = str(problem)
        gc.collect()
    raise RealKafkaUnavailable(f"no Docker daemon answers ({reason})")

"""Which Kafka, and which image of it."""

import re
from pathlib import Path

import pytest
from docker.errors import DockerException

from tests.conformance.record import KAFKA_VERSION
from tests.real_kafka.broker import RealKafkaUnavailable
from tests.real_kafka.image import DEFAULT_VERSION, choose, daemon, kafka_version, wanted_images

ROOT = Path(__file__).resolve().parents[2]
PUBLIC, LOCAL = "apache/kafka:4.3.1", "groupcoord/kafka:4.3.1"


def no_pull(image: str) -> None:
    raise DockerException(f"no registry for {image}")


def test_the_version_is_the_recorded_one_unless_told() -> None:
    assert kafka_version({}) == kafka_version({"KAFKA_VERSION": ""}) == DEFAULT_VERSION == KAFKA_VERSION
    assert kafka_version({"KAFKA_VERSION": "3.9.2"}) == "3.9.2"


def test_the_scripts_mean_the_same_version() -> None:
    for script in ("Makefile", "docker/kafka/jars.sh", "docker/kafka/build.sh", "docker/kafka/with-image.sh"):
        defaults = re.findall(r"KAFKA_VERSION(?: \?= |:-)(\d[\d.]*)", (ROOT / script).read_text())
        assert defaults == [DEFAULT_VERSION], script


def test_the_public_image_is_wanted_first_unless_another_is_named() -> None:
    assert wanted_images("4.3.1", {}) == [PUBLIC, LOCAL]
    assert wanted_images("4.3.1", {"KAFKA_IMAGE": "mine:1"}) == ["mine:1"]


@pytest.mark.parametrize(("here", "chosen"), [({PUBLIC, LOCAL}, PUBLIC), ({LOCAL}, LOCAL), ({PUBLIC}, PUBLIC)])
def test_an_image_that_is_here_is_not_pulled(here: set[str], chosen: str) -> None:
    assert choose([PUBLIC, LOCAL], here.__contains__, no_pull) == chosen


def test_the_public_image_is_pulled_when_none_is_here() -> None:
    pulled: list[str] = []
    assert choose([PUBLIC, LOCAL], lambda _: False, pulled.append) == PUBLIC
    assert pulled == [PUBLIC]


def test_without_image_and_registry_one_is_told_how_to_make_an_image() -> None:
    with pytest.raises(RealKafkaUnavailable) as refusal:
        choose([PUBLIC, LOCAL], lambda _: False, no_pull)
    assert str(refusal.value) == (
        f"there is no image {PUBLIC} or {LOCAL} (`make kafka-image`): no registry for {PUBLIC}"
    )


@pytest.mark.slow
def test_without_a_daemon_one_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with pytest.raises(RealKafkaUnavailable, match=r"^no Docker daemon answers \(.*No such file or directory"):
        daemon()

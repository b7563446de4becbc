"""What GroupcoordContainer tells Docker; tests/image starts one."""

from typing import Any

import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.network import Network

from groupcoord.testing.container import GroupcoordContainer
from groupcoord.version import VERSION


class Created:
    """A container of a Docker that starts nothing."""

    id = short_id = "c"
    status = "exited"

    def __init__(self, stdout: bytes, stderr: bytes) -> None:
        self._said = {(True, False): stdout, (False, True): stderr, (True, True): stdout + stderr}
        self.attrs: dict[str, Any] = {"State": {"Status": "exited", "ExitCode": 2, "Error": ""}}
        self.removed = False

    def logs(self, *, stdout: bool = True, stderr: bool = True, **_: object) -> bytes:
        return self._said[stdout, stderr]

    def reload(self) -> None:
        pass

    def remove(self, **_: object) -> None:
        self.removed = True


class NoDocker:
    """In place of testcontainers' client of the daemon."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}
        self.container = Created(b"listening on 0.0.0.0:9092\n", b"")
        self.client = self

    def create(self, image: str, **asked: Any) -> Created:
        self.asked = {"image": image, **asked}
        return self.container

    def start(self, _: Created) -> None:
        pass

    def port(self, _container: str, port: int) -> str:
        return {8080: "4711"}[port]

    def close(self) -> None:
        pass


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> NoDocker:
    client = NoDocker()
    monkeypatch.setattr("testcontainers.core.container.DockerClient", lambda: client)
    monkeypatch.setattr(testcontainers_config, "ryuk_disabled", True)
    return client


def test_it_starts_the_image_of_this_version_and_advertises_the_port_that_it_publishes(docker: NoDocker) -> None:
    with GroupcoordContainer() as kafka:
        host, port = docker.asked["ports"]["9092/tcp"]
        assert kafka.get_bootstrap_server() == f"{host}:{port}"
        assert kafka.get_inside_bootstrap_server() == "kafka:29092"
        assert docker.asked["image"] == f"groupcoord:{VERSION}"
        assert docker.asked["environment"] == {
            "GROUPCOORD_DEV": "true",
            "GROUPCOORD_TOPICS": "",
            "GROUPCOORD_ADVERTISED_LISTENERS": f"HOST://127.0.0.1:{port},INSIDE://kafka:29092",
        }
    assert docker.container.removed


def test_topics_properties_and_the_name_in_a_network_are_variables(docker: NoDocker) -> None:
    network = Network.__new__(Network)
    network.name = "n"
    settings = {"auto.create.topics.enable": False, "group.max.size": 3}
    topics = {"orders": 6, "payments": 1}
    with GroupcoordContainer(
        "mine", topics=topics, config=settings, dev=False, alias="broker", network=network
    ) as kafka:
        told = docker.asked["environment"]
        assert kafka.get_inside_bootstrap_server() == "broker:29092"
        assert told["GROUPCOORD_ADVERTISED_LISTENERS"].endswith(",INSIDE://broker:29092")
        assert docker.asked["networking_config"]["n"]["Aliases"] == ["broker"]
    assert told["GROUPCOORD_TOPICS"] == "orders:6,payments:1"
    assert told["GROUPCOORD_DEV"] == "false"
    assert told["GROUPCOORD_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    assert told["GROUPCOORD_GROUP_MAX_SIZE"] == "3"


def test_with_control_it_has_a_token_and_a_port_that_docker_chooses(docker: NoDocker) -> None:
    with GroupcoordContainer(control=True) as kafka:
        told = docker.asked["environment"]
        assert told["GROUPCOORD_CONTROL"] == "0.0.0.0:8080"
        assert told["GROUPCOORD_CONTROL_TOKEN"] == kafka.control_token
        assert docker.asked["ports"]["8080/tcp"] == ("127.0.0.1", None)
        assert kafka.get_control_url() == "http://127.0.0.1:4711"


def test_one_that_ends_instead_says_why_and_is_removed(docker: NoDocker) -> None:
    docker.container = Created(b"", b"groupcoord serve: GROUPCOORD_PORT: x is not a port\n")
    with pytest.raises(RuntimeError, match="exited") as failed:
        GroupcoordContainer().start()
    assert failed.value.__notes__ == ["groupcoord serve: GROUPCOORD_PORT: x is not a port\n"]
    assert docker.container.removed

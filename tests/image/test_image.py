"""What docs/container.md promises of the image."""

import asyncio
import json
import re
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from groupcoord.control.client import ControlClient, ControlError
from groupcoord.testing.container import GroupcoordContainer
from groupcoord.version import VERSION
from tests.image.conftest import PATIENCE_SECONDS, Run, docker

ROOT = Path(__file__).resolve().parents[2]
LISTENING = ["listening on 0.0.0.0:9092", "listening on 0.0.0.0:29092 for INSIDE"]

pytestmark = pytest.mark.docker


async def round_trip(address: str, topic: str) -> bytes:
    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        await producer.send_and_wait(topic, b"an espresso")
    settings = {"group_id": "baristas", "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(topic, bootstrap_servers=address, **settings) as consumer:
        record = await asyncio.wait_for(consumer.getone(), PATIENCE_SECONDS)
    value: bytes = record.value
    return value


def test_programs_of_this_machine_produce_and_consume_while_nothing_of_it_can_be_written(image: str) -> None:
    with GroupcoordContainer(image, topics={"orders": 6}, read_only=True, cap_drop=["ALL"]) as kafka:
        assert asyncio.run(round_trip(kafka.get_bootstrap_server(), "orders")) == b"an espresso"
        assert kafka.exec(["id", "-u"]).output == b"1000\n"
        assert kafka.exec(["touch", "/var/lib/groupcoord/file"]).exit_code != 0


def test_it_says_where_it_listens_and_sigterm_ends_it(run: Run) -> None:
    container = run()
    assert container.lines_until("for INSIDE") == LISTENING
    docker("kill", "--signal", "TERM", container.name)
    code, log = container.ended()
    assert code == 0
    assert log[-1].endswith("stopped")


def test_it_becomes_healthy(run: Run) -> None:
    container = run()
    told = ["--since", "1h", "--filter", f"container={container.name}", "--filter", "event=health_status"]
    with subprocess.Popen(["docker", "events", *told], stdout=subprocess.PIPE, text=True) as events:
        assert events.stdout is not None
        assert "health_status: healthy" in events.stdout.readline()
        events.kill()


def test_with_a_token_it_is_controlled_over_http_and_healthy(image: str) -> None:
    with GroupcoordContainer(image, topics={"orders": 6}, control=True) as kafka:
        with ControlClient(kafka.get_control_url(), kafka.control_token) as control:
            assert [topic.name for topic in control.list_topics()] == ["orders"]
            assert control.address == "0.0.0.0:9092"
        with ControlClient(kafka.get_control_url()) as stranger, pytest.raises(ControlError, match="401"):
            stranger.status()
        assert kafka.exec(["python3", "-IS", "/etc/groupcoord/health.py"]).exit_code == 0


def test_a_variable_that_cannot_be_used_is_one_sentence(run: Run) -> None:
    said = "GROUPCOORD_TOPIC: no option and no property has this variable; did you mean GROUPCOORD_TOPICS?"
    assert run("--env", "GROUPCOORD_TOPIC=orders").ended() == (2, [f"groupcoord serve: {said}"])


def test_a_mounted_file_is_read_and_variables_win_over_it(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    mounted = f"--volume={file}:/etc/groupcoord/server.properties:ro"
    file.write_text("num.partitions=3\ngroup.max.size=many\n", encoding="utf-8")
    code, (said,) = run(mounted).ended()
    assert code == 2
    assert said.startswith("groupcoord serve: /etc/groupcoord/server.properties:2: group.max.size=many: ")
    file.write_text("group.max.size=7\n", encoding="utf-8")
    code, (said,) = run(mounted, "--env=GROUPCOORD_GROUP_MAX_SIZE=some").ended()
    assert code == 2
    assert said.startswith("groupcoord serve: GROUPCOORD_GROUP_MAX_SIZE: group.max.size=some: ")


@pytest.fixture
def volume() -> Iterator[str]:
    """The name of a volume that does not outlive the test."""
    name = f"groupcoord-test-{uuid.uuid4().hex[:8]}"
    yield docker("volume", "create", name).strip()
    docker("volume", "rm", name)


def test_data_in_a_volume_is_there_again(volume: str, run: Run) -> None:
    keeping = f"--volume={volume}:/var/lib/groupcoord", "--env=GROUPCOORD_DATA_DIR=/var/lib/groupcoord"
    for _ in range(2):
        container = run(*keeping, "--env=GROUPCOORD_TOPICS=orders:2")
        container.lines_until("for INSIDE")
        docker("stop", "--time", str(PATIENCE_SECONDS), container.name)
        assert container.ended()[0] == 0
    code, said = run(*keeping, "--env=GROUPCOORD_TOPICS=orders:3").ended()
    assert code == 2
    assert "it is kept with 2 partitions and asked for with 3" in said[-1]


def test_other_commands_run_too(run: Run) -> None:
    container = run(command=("--version",))
    assert container.lines_until(VERSION) == [f"groupcoord {VERSION}"]
    assert container.ended() == (0, [])


def test_it_says_what_it_is(image: str) -> None:
    (told,) = json.loads(docker("image", "inspect", image))
    assert told["Config"]["Labels"]["org.opencontainers.image.version"] == VERSION
    assert told["Config"]["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert sorted(told["Config"]["ExposedPorts"]) == ["29092/tcp", "8080/tcp", "9092/tcp"]


def test_the_test_that_the_docs_show_passes(image: str) -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "container.md").read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(shown, names)
    asyncio.run(names["test_an_order_is_taken"]())

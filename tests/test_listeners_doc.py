"""What docs/listeners.md and the compose file of docs/container.md show goes together."""

from pathlib import Path

import yaml

from groupcoord.config.broker_config import load

FOLDER = Path(__file__).resolve().parent.parent / "docker" / "groupcoord"


def test_the_image_advertises_an_address_inside_and_one_for_the_host() -> None:
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["services"]
    properties = (FOLDER / "server.properties").read_text(encoding="utf-8")
    for brokers in (1, 3):
        config = load(file_text=properties, brokers=brokers)
        host, inside = config.advertised
        assert host is not None
        assert inside is not None
        assert services["shop"]["environment"]["BOOTSTRAP_SERVERS"] == f"{inside.host}:{inside.port}"
        assert services["kafka"]["ports"] == [f"127.0.0.1:${{KAFKA_PORT:-{host.port}}}:{config.served[0].port}"]

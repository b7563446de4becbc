"""What docs/listeners.md shows is so."""

import argparse
import re
from pathlib import Path

import yaml

from groupcoord.cli import serve
from groupcoord.config.broker_config import load

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "listeners.md").read_text(encoding="utf-8")


def test_the_compose_file_advertises_an_address_inside_and_one_for_the_host() -> None:
    (compose,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    services = yaml.safe_load(compose)["services"]
    command, *options = services["kafka"]["command"]
    assert command == "serve"
    parser = argparse.ArgumentParser()
    serve.configure(parser)
    arguments = parser.parse_args(options)
    for brokers in (1, 3):
        config = load(arguments.properties, dev=arguments.dev, brokers=brokers)
        inside, host = config.advertised
        assert services["shop"]["environment"]["BOOTSTRAP_SERVERS"] == f"{inside.host}:{inside.port}"
        assert services["kafka"]["ports"] == [f"127.0.0.1:{host.port}:{config.served[1].port}"]

"""``groupcoord cluster tree`` on a running cluster."""

import json
from collections.abc import Iterator

import pytest

import groupcoord as gc
from groupcoord.cli import cluster
from groupcoord.cli.main import main

BROKER_3 = "/brokers/ids/3"


@pytest.fixture
def kafka() -> Iterator[gc.SyncCluster]:
    with gc.Cluster(brokers=3, topics={"orders": 2}).sync() as running:
        yield running


def test_paths_with_their_json(kafka: gc.SyncCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "tree", "--bootstrap", kafka.address]) == 0
    assert capsys.readouterr().out == kafka.registry.text() + "\n"
    assert main(["cluster", "tree", "brokers/topics/orders/", "--bootstrap", kafka.address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == kafka.registry.tree("/brokers/topics/orders")


def test_what_changes_is_told(
    kafka: gc.SyncCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = kafka.registry.text(BROKER_3)
    actions = iter(("stop", "start", None))

    def acts(_: float) -> None:
        action = next(actions)
        if action is None:
            raise KeyboardInterrupt
        getattr(kafka.broker(3), action)()

    monkeypatch.setattr(cluster, "sleep", acts)
    assert main(["cluster", "tree", BROKER_3, "--bootstrap", kafka.address, "--watch"]) == 130
    assert capsys.readouterr().out.splitlines() == [line, f"- {line}", f"+ {line}"]


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["/brokers/ids/7"], 1, "groupcoord cluster tree: there is no /brokers/ids/7; /brokers/ids has 1, 2, 3\n"),
        (["--json", "--watch"], 2, "groupcoord cluster tree: --watch prints lines: it does not go with --json\n"),
    ],
)
def test_what_is_wrong_is_said(
    kafka: gc.SyncCluster, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, problem: str
) -> None:
    assert main(["cluster", "tree", "--bootstrap", kafka.address, *arguments]) == code
    assert capsys.readouterr().err == problem


def test_an_address_that_is_none_or_where_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["cluster", "tree", "--bootstrap", "kafka:high"])
    assert capsys.readouterr().err == (
        "groupcoord cluster tree: argument --bootstrap: kafka:high: high is not a port\n"
    )
    assert main(["cluster", "tree", "--bootstrap", "127.0.0.1:1"]) == 1
    assert "groupcoord cluster tree: 127.0.0.1:1 cannot be reached" in capsys.readouterr().err

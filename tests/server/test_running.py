"""A broker for as long as a block runs."""

import socket

import pytest

from groupcoord.config.errors import ConfigError
from groupcoord.core.events import Event
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.messages import MetadataRequest
from groupcoord.server.running import running
from groupcoord.server.server import Server
from tests.server.sockets import Client, Run

METADATA = APIS[ApiKey.METADATA]


async def topics_of(server: Server) -> dict[str, int]:
    """Topic → number of partitions, as a client is told."""
    client = await Client.connect(server)
    client.send(METADATA, MetadataRequest(topics=None))
    _, answer = await client.answer(METADATA)
    assert [(broker.host, broker.port) for broker in answer.brokers] == [(server.host, server.port)]
    await client.close()
    return {topic.name: len(topic.partitions) for topic in answer.topics if not topic.is_internal}


def test_it_serves_the_topics_asked_for(run: Run) -> None:
    async def story() -> None:
        async with running(topics={"orders": 3}) as server:
            assert await topics_of(server) == {"orders": 3}
        with pytest.raises(ConnectionRefusedError):
            await Client.connect(server)

    run(story())


def test_it_is_configured_as_a_broker(run: Run) -> None:
    async def story() -> None:
        async with running(config={"group.max.size": 5, "auto.create.topics.enable": False}) as server:
            assert server.node.config.group_max_size == 5
            assert server.node.config.auto_create_topics_enable is False
            assert server.node.config.group_initial_rebalance_delay_ms == 0
        async with running(dev=False) as server:
            assert server.node.config.group_initial_rebalance_delay_ms == 3_000

    run(story())


def test_what_cannot_be_is_refused(run: Run) -> None:
    async def story() -> None:
        with pytest.raises(ConfigError, match=r"group\.max\.size"):
            async with running(config={"group.max.syze": 5}):
                raise AssertionError
        with pytest.raises(ValueError, match="orders/"):
            async with running(topics={"orders/": 1}):
                raise AssertionError
        with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
            async with running(port=taken.getsockname()[1]):
                raise AssertionError

    run(story())


def test_what_went_wrong_unexpectedly_is_raised_at_the_end(run: Run) -> None:
    async def story() -> None:
        def fail(_: Event) -> None:
            raise ZeroDivisionError("a bug")

        with pytest.raises(ExceptionGroup) as raised:
            async with running(listeners=[fail]) as server:
                server._dispatcher._tell(None)  # type: ignore[arg-type]
        assert raised.group_contains(ZeroDivisionError, match="a bug")

    run(story())

"""The control API on a real socket, beside its broker, until a signal comes."""

import asyncio
import signal
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from groupcoord.control.controlled_clusters import DEFAULT, ControlledCluster
from groupcoord.control.serving import serve
from tests.control.support import PATIENCE_S

pytestmark = pytest.mark.asyncio


class Serving:
    """``serve`` as a task, at ``url`` once that is announced."""

    def __init__(self, **settings: Any) -> None:
        self.cluster = ControlledCluster(DEFAULT, topics={"orders": 1}, **settings)
        self._announced: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.task = asyncio.ensure_future(
            serve(self.cluster, "127.0.0.1", 0, token=None, announce=self._announced.set_result)
        )

    async def url(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            return await self._announced


@pytest.mark.slow  # the end waits for uvicorn's tick
async def test_a_signal_ends_it_with_everybody_who_waits() -> None:
    serving = Serving()
    async with httpx.AsyncClient(base_url=await serving.url(), timeout=PATIENCE_S) as http:
        poll = asyncio.ensure_future(http.get("/groups/app/wait", params={"stable": 1, "timeout": "10m"}))
        async with http.stream("GET", "/trace/stream") as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == "event: start"
            while not serving.cluster._engine.waiting._looks:
                await serving.cluster.settle()
            signal.raise_signal(signal.SIGTERM)
            assert [line async for line in lines][-1] == ""
        answer = await poll
        assert (answer.status_code, answer.json()["detail"]) == (503, "the broker ends")
    async with asyncio.timeout(PATIENCE_S):
        assert await serving.task is signal.SIGTERM


async def test_a_port_that_is_taken_is_told_and_the_broker_ends() -> None:
    cluster = ControlledCluster(DEFAULT)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use") as raised:
            await serve(cluster, "127.0.0.1", port, token=None, announce=lambda _: None)
    assert raised.value.filename == f"127.0.0.1:{port}"
    assert not cluster.is_up


@pytest.mark.slow
async def test_a_disk_that_fails_ends_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    serving = Serving(data_dir=tmp_path / "kafka")
    await serving.url()
    directory = serving.cluster._engine.data_directory
    assert directory is not None
    directory.failure = "the disk has failed"
    directory.on_shortage("no files are left")
    directory.on_failure()
    async with asyncio.timeout(PATIENCE_S):
        assert await serving.task is None
    assert serving.cluster.storage_failure == "the disk has failed"
    assert "no files are left" in caplog.text


async def test_of_a_cluster_that_was_not_started_no_disk_has_failed() -> None:
    assert ControlledCluster(DEFAULT).storage_failure is None

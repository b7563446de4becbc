"""A controlled cluster on a manual clock, whose control API is called in process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import httpx

from groupcoord.control.app import ControlApp, create_app
from groupcoord.control.controlled_clusters import DEFAULT, ControlledCluster, ControlledClusters

URL = "http://127.0.0.1"
PATIENCE_S = 60.0


@cache
def _app(token: str | None) -> ControlApp:
    """Made once: what is behind the first request to each takes longer than a test."""
    return create_app(None, token=token)  # type: ignore[arg-type] # each test has its own


class Control:
    """The clusters, and what the API answers."""

    def __init__(self, clusters: ControlledClusters, app: ControlApp, http: httpx.AsyncClient) -> None:
        self.clusters, self.app, self.http = clusters, app, http
        self.kafka = clusters[DEFAULT]

    async def ask(self, method: str, path: str, body: Any = None, **query: Any) -> httpx.Response:
        return await self.http.request(method, path, json=body, params=query)

    async def get(self, path: str, status: int = 200, **query: Any) -> Any:
        return await self.told("GET", path, None, status, **query)

    async def post(self, path: str, body: Any = None, status: int = 200, **query: Any) -> Any:
        return await self.told("POST", path, body, status, **query)

    async def told(self, method: str, path: str, body: Any = None, status: int = 200, **query: Any) -> Any:
        """The JSON, or the text, of an answer with that status; None if it has no body."""
        answer = await self.ask(method, path, body, **query)
        assert answer.status_code == status, answer.text
        kind = answer.headers.get("content-type", "")
        if status >= 400:
            assert kind == "application/problem+json"
            assert answer.json()["status"] == status
        if not answer.content:
            return None
        return answer.json() if "json" in kind and "ndjson" not in kind else answer.text

    async def begun(self, waiting: asyncio.Future[Any]) -> asyncio.Future[Any]:
        """``waiting``, once it waits on the cluster."""
        while not self.kafka._engine.waiting._looks and not waiting.done():
            await self.kafka.settle()
        return waiting

    async def put_offset(self, group: str, offset: int) -> None:
        offsets = [{"topic": "orders", "partition": 0, "offset": offset}]
        await self.told("PUT", f"/groups/{group}/offsets", {"offsets": offsets})


@asynccontextmanager
async def controlled(*, token: str | None = None, headers: Any = None, **settings: Any) -> AsyncIterator[Control]:
    """A fresh one: two partitions of ``orders``, on a manual clock, unless told otherwise."""
    cluster = ControlledCluster(DEFAULT, **{"topics": {"orders": 2}, "clock": "manual"} | settings)
    clusters = ControlledClusters(cluster)
    await cluster.__aenter__()
    app = _app(token)
    app.state.clusters = clusters
    transport = httpx.ASGITransport(app)
    try:
        async with httpx.AsyncClient(transport=transport, base_url=URL, headers=headers) as http:
            yield Control(clusters, app, http)
    finally:
        clusters.end_waits()
        assert await clusters.end() == []

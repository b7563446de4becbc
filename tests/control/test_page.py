"""The live page: its file, and the bytes of messages, which it asks for one by one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from groupcoord.control.app import create_app
from groupcoord.control.controlled_clusters import DEFAULT, ControlledCluster, ControlledClusters
from groupcoord.testing.trace import RequestReceived
from tests.control.support import URL

pytestmark = pytest.mark.asyncio
HTML = "<p>the page</p>"


@asynccontextmanager
async def paged(*, token: str | None = None) -> AsyncIterator[tuple[ControlledCluster, httpx.AsyncClient]]:
    cluster = ControlledCluster(DEFAULT, topics={"orders": 1}, clock="manual", detailed_trace=True)
    clusters = ControlledClusters(cluster)
    await cluster.__aenter__()
    try:
        transport = httpx.ASGITransport(create_app(clusters, token=token, page=HTML))
        async with httpx.AsyncClient(transport=transport, base_url=URL) as http:
            yield cluster, http
    finally:
        assert await clusters.end() == []


@pytest.mark.slow
async def test_the_page_is_served_and_is_no_part_of_the_api() -> None:
    async with paged() as (_, http):
        answer = await http.get("/page/")
        assert (answer.text, answer.headers["content-type"]) == (HTML, "text/html; charset=utf-8")
        described = (await http.get("/openapi.json")).json()["paths"]
        assert not [path for path in described if "page" in path]


@pytest.mark.slow
async def test_a_message_is_told_field_by_field() -> None:
    async with paged() as (kafka, http):
        await kafka.consumers(1, group="app", topics="orders")
        asked = kafka.trace.of(RequestReceived, api="JoinGroup").first
        request = kafka.trace.entry(asked)
        told = (await http.get(f"/page/bytes/{request.seq}")).json()
        assert told["title"] == f"JoinGroup v{asked.version} request"
        assert {field["path"]: field["value"] for field in told["fields"]}["group_id"] == "app"
        assert (await http.get("/page/bytes/1")).json() is None
        missing = await http.get("/page/bytes/99999")
        assert (missing.status_code, missing.json()["detail"]) == (404, "entry 99999 never was")


@pytest.mark.slow
async def test_with_a_token_the_page_comes_without_it_and_nothing_else() -> None:
    async with paged(token="secret") as (_, http):
        assert (await http.get("/page/")).status_code == 200
        assert (await http.get("/page/bytes/1")).status_code == 401
        assert (await http.get("/page/bytes/1", headers={"Authorization": "Bearer secret"})).status_code == 200

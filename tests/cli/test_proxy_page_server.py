"""The live page of ``groupcoord proxy --page``: served on this machine, with the trace as it grows."""

import asyncio
import socket
from pathlib import Path

import httpx
import pytest

from groupcoord.broker.events import LogNotCleaned
from groupcoord.cli.main import main
from groupcoord.cli.proxy_page_server import page_server
from groupcoord.core.events import AdminAction
from groupcoord.page import html_embedding
from groupcoord.testing.trace import Trace

HTML = "<head><!-- data --></head><body></body>"
SOON_S = 60.0


def told(trace: Trace, why: str) -> None:
    trace(LogNotCleaned(at_ms=1, cause=AdminAction("a test"), log="orders-0", why=why))


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_page_is_served_with_the_trace_as_it_grows() -> None:
    trace = Trace()
    told(trace, "before")
    async with asyncio.timeout(SOON_S), page_server(trace, HTML, "127.0.0.1", 0) as url, httpx.AsyncClient() as client:
        page = await client.get(url)
        assert (page.status_code, page.text) == (200, HTML)
        assert (await client.get(f"{url}bytes/1")).json() is None
        async with client.stream("GET", f"{url}../trace/stream") as stream:
            lines = stream.aiter_lines()
            while "orders-0 cannot be compacted: before" not in await anext(lines):
                pass
            told(trace, "after")
            while "orders-0 cannot be compacted: after" not in await anext(lines):
                pass


@pytest.mark.slow
@pytest.mark.asyncio
async def test_an_unknown_group_and_another_host_are_refused() -> None:
    async with page_server(Trace(), HTML, "127.0.0.1", 0) as url, httpx.AsyncClient() as client:
        unknown = await client.get(f"{url}../trace/why", params={"group": "app", "generation": 1})
        assert (unknown.status_code, "app" in unknown.text) == (404, True)
        foreign = await client.get(url, headers={"Host": "example.org"})
        assert foreign.status_code == 403


def test_a_page_that_was_not_built_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(html_embedding, "STATIC", tmp_path)
    assert main(["proxy", "--to", "127.0.0.1:9092", "--page", "0"]) == 1
    assert "make page" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["0.0.0.0:0", "nonsense", "example.org:80"])
def test_a_page_for_others_is_refused(capsys: pytest.CaptureFixture[str], address: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["proxy", "--to", "127.0.0.1:9092", "--page", address])
    assert ended.value.code == 2
    assert "--page" in capsys.readouterr().err


def test_a_taken_port_of_the_page_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text(HTML, encoding="utf-8")
    monkeypatch.setattr(html_embedding, "STATIC", tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ["proxy", "--to", "127.0.0.1:9", "--listen", "127.0.0.1:0", "--page", str(port)]
        assert main(arguments) == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in capsys.readouterr().err

"""``groupcoord serve --page`` and ``groupcoord demo --page``: where the page is, and what is told without one."""

import asyncio
import io
import re
import signal
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from groupcoord.cli.demo.demo_cluster import demo_cluster
from groupcoord.cli.demo.output import DemoOutput
from groupcoord.cli.main import main
from groupcoord.page import html_embedding
from tests.cli.test_serve import refused, served

NOT_BUILT = "the page is not built: `make page` builds it, with Node 20 and npm"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "page.html").write_text("<head><!-- data --></head>", encoding="utf-8")
    monkeypatch.setattr(html_embedding, "STATIC", tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("built")
def test_it_says_where_the_page_is(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, said = served(monkeypatch, "--port", "0", "--page", "--clock", "manual")
    control, page = said.splitlines()[-2:]
    assert ended == 0
    assert re.fullmatch(r"control listening on http://127\.0\.0\.1:\d+", control)
    assert page == control.replace("control listening on", "page at") + "/page/"


def test_a_page_that_is_not_built_is_told(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (built / "page.html").unlink()
    assert refused(capsys, "--port", "0", "--page") == (1, NOT_BUILT)
    assert main(["demo", "--page"]) == 1
    assert capsys.readouterr().err == f"groupcoord demo: {NOT_BUILT}\n"


@pytest.mark.slow  # the end waits for uvicorn's tick
def test_the_page_of_the_demo_stays_until_a_signal() -> None:
    output = DemoOutput(Console(file=io.StringIO(), width=200), 0)

    async def show() -> tuple[str, int]:
        async with demo_cluster(output, "<p>the page</p>", topics={"orders": 1}) as (kafka, until_seen):
            said = output.console.file.getvalue()  # type: ignore[attr-defined]
            (url,) = re.findall(r"http://\S+/page/", said)
            async with httpx.AsyncClient() as http:
                page = await http.get(url)
                status = (await http.get(url.replace("page/", "status"))).json()
            assert status["address"] == kafka.address
            asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
            await until_seen()
            return page.text, page.status_code

    assert asyncio.run(show()) == ("<p>the page</p>", 200)

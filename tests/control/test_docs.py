"""What docs/control.md shows happens so."""

import asyncio
import contextlib
import io
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from groupcoord.testing import RemoteCluster
from tests.control.processes import Serving, serving
from tests.control.support import PATIENCE_S

pytestmark = [pytest.mark.slow, pytest.mark.asyncio]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "control.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- executed(.*?) -->\n```console\n(.*?)```", PAGE, re.DOTALL)
ASSIGNMENTS = "\n".join(re.findall(r"^\$ (\w+=\S.*)$", PAGE, re.MULTILINE))
END = "--- end ---"


async def test_the_commands_answer_as_shown() -> None:
    assert len(BLOCKS) == 6
    with serving("--dev", "--topic", "orders:6", "--clock", "manual") as server:
        for note, block in BLOCKS:
            async with hanging_member(server) if note else contextlib.nullcontext():
                commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
                said = [f"{command}\necho\necho {END!r}" for command, _ in commands]
                script = "\n".join([ASSIGNMENTS, *said]).replace("http://127.0.0.1:9093", server.url)
                shown = await asyncio.to_thread(run, script)
            for (command, expected), answer in zip(commands, shown, strict=True):
                pattern = re.escape(expected.strip()).replace("…", ".+")
                assert re.fullmatch(pattern, answer.strip()), (command, answer)


def run(script: str) -> list[str]:
    """What each command says."""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout.split(END)[:-1]


@asynccontextmanager
async def hanging_member(server: Serving) -> AsyncIterator[None]:
    """A member of ``app`` that has joined and says nothing more."""
    async with RemoteCluster(server.bootstrap) as kafka:
        member = kafka.manual_member("app", "orders")
        assert (await member.join()).error_code == 0
        await member.sync()
        yield


async def test_the_client_in_python_does_as_shown() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    with serving() as server:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            await asyncio.to_thread(exec, program.replace("http://127.0.0.1:9093", server.url), {})
    address, state = said.getvalue().splitlines()
    assert address.startswith("127.0.0.1:")
    assert state == "Empty"

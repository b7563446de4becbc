"""What a start imports, and what it leaves for those who want it: docs/performance.md says why."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

NAMES = "print(*(set(sys.modules) - before), sep='\\n')"
SERVE = f"""
import atexit, sys
before = set()
atexit.register(lambda: {NAMES})
from groupcoord.cli.main import main
main(["serve", "--dev", "--port", "0", "--quiet", "--until-stdin-ends"])
"""
NOT_FOR_SERVE = {
    "crc32c",
    "email",
    "groupcoord.client",
    "groupcoord.control",
    "groupcoord.page",
    "groupcoord.storage",
    "groupcoord.testing",
    "hypothesis",
    "importlib.metadata",
    "kio.schema",
    "pydantic",
    "tempfile",
    "zipfile",
}


def _imported_by(statement: str, *, beside: str = "sys") -> set[str]:
    """The modules that ``statement`` imports in a new interpreter, beyond those that the modules ``beside`` need."""
    program = f"import sys, importlib, typing, {beside}\nbefore = set(sys.modules)\n{statement}\n{NAMES}"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_a_server_starts_without_what_only_some_servers_need() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline().startswith("listening on ")
        server.stdin.close()
        imported = set(server.stdout.read().split())
    assert "groupcoord.cluster.assemble" in imported
    assert not imported & NOT_FOR_SERVE


def test_the_import_of_groupcoord_imports_nothing_else() -> None:
    assert _imported_by("import groupcoord") == {"groupcoord"}


def test_a_pytest_in_which_no_test_wants_a_broker_imports_the_plugin_alone() -> None:
    assert _imported_by("import groupcoord.pytest_plugin", beside="pytest") == {
        "groupcoord",
        "groupcoord.pytest_plugin",
    }

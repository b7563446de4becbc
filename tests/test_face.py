"""``import groupcoord as gc``."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import groupcoord as gc

STUB = Path(gc.__file__).with_suffix(".pyi").read_text(encoding="utf-8")


def test_every_name_is_there_and_typed() -> None:
    stub = ast.parse(STUB)
    typed = {alias.name for each in stub.body if isinstance(each, ast.ImportFrom) for alias in each.names}
    assert typed == set(gc._MODULES) == {name for name in dir(gc) if name in typed}  # type: ignore[attr-defined]
    for name in typed:
        assert getattr(gc, name) is getattr(gc, name)
    assert gc.events.MemberRemoved.__name__ == "MemberRemoved"
    with pytest.raises(AttributeError, match="has no attribute 'Emulator'"):
        _ = gc.Emulator  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_import_is_light_and_needs_nothing_of_the_tests() -> None:
    program = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pytest", "yaml", "aiokafka", "rich"):
            raise ImportError(name)
sys.meta_path.insert(0, Nothing())
import groupcoord as gc
assert not [name for name in sys.modules if name.startswith("groupcoord.") or name == "asyncio"]
gc.Cluster, gc.RemoteCluster, gc.assert_golden, gc.events, gc.Consumer, gc.virtual_time
"""
    subprocess.run([sys.executable, "-c", program], check=True)

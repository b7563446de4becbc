"""The version stands in one place."""

from importlib.metadata import version
from pathlib import Path

from groupcoord.version import VERSION

ROOT = Path(__file__).resolve().parent.parent


def test_the_package_has_the_version_of_the_sources() -> None:
    assert version("groupcoord") == VERSION


def test_the_changes_begin_with_this_version() -> None:
    _, first, *_ = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("## ")
    assert first.split()[0] == VERSION

"""The version stands in one place."""

import re
from importlib.metadata import version
from pathlib import Path

from groupcoord.version import VERSION

ROOT = Path(__file__).resolve().parent.parent


def test_the_package_has_the_version_of_the_sources() -> None:
    assert version("groupcoord") == VERSION


def test_the_changes_begin_with_this_version() -> None:
    _, first, *_ = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("## ")
    assert first.split()[0] == VERSION


def test_the_docs_name_the_image_of_this_version() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")]
    named = {tag for page in pages for tag in re.findall(r"\bgroupcoord:(\d[\w.]*\w)", page)}
    assert named == {VERSION}

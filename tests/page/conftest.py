"""A stand-in for the built page, so that tests can inspect the embedded data without Node."""

import base64
import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from groupcoord.page import html_embedding

Unpack = Callable[[str], dict[str, str]]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the built pages."""
    folder = tmp_path / "static"
    folder.mkdir()
    (folder / "page.html").write_text("<head><!-- data --></head><body></body>", encoding="utf-8")
    monkeypatch.setattr(html_embedding, "STATIC", folder)
    return folder


@pytest.fixture
def unpack() -> Unpack:
    """What is in a page, by the names that it has there."""

    def found(html: str) -> dict[str, str]:
        scripts = re.findall(r'<script type="application/gzip" id="groupcoord-([\w-]+)">([^<]*)</script>', html)
        return {name: gzip.decompress(base64.b64decode(text)).decode() for name, text in scripts}

    return found

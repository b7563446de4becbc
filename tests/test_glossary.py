"""The terms of docs/glossary.json, as other pages show them: each one is a single sentence, and has one meaning."""

import json
import re
from pathlib import Path

import pytest

from tools import glossary

TERMS = [term for terms in glossary.parts().values() for term in terms]


def test_no_word_is_explained_twice() -> None:
    words = [word.lower() for term in TERMS for word in (term.term, *term.also)]
    assert sorted({word for word in words if words.count(word) > 1}) == []


def test_a_meaning_is_one_sentence() -> None:
    others = [term.term for term in TERMS if not re.fullmatch(r"[A-Z]((?!\. ).)*\.", term.meaning)]
    assert others == []


def test_a_link_to_no_heading_is_refused_with_the_headings_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "glossary.json"
    path.write_text(json.dumps([{"part": "P", "terms": [{"term": "t", "meaning": "A t.", "see": "a.md#bb"}]}]))
    (tmp_path / "a.md").write_text("# A\n\n## B b\n")
    monkeypatch.setattr(glossary, "PATH", path)
    with pytest.raises(ValueError, match=r"glossary.json: t: no heading of a.md has the anchor bb, only a, b-b"):
        glossary.glossary()

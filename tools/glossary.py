"""Generates docs/glossary.md from docs/glossary.json, which the web page and the lessons use, too.

The file is a list of parts; each has a name, ``part``, and ``terms``. A term has

- ``term``: its name, as it is written in the middle of a sentence;
- ``also``: other names for it, such as that of the property that sets it; may be missing;
- ``meaning``: one sentence, which may have code in it between backticks;
- ``see``: the page of docs/ that says more, and where in it.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from tools import markdown

PATH = Path(__file__).resolve().parent.parent / "docs" / "glossary.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term of the protocol."""

    term: str
    meaning: str
    see: str
    also: tuple[str, ...] = ()


def parts() -> dict[str, tuple[Term, ...]]:
    """The terms of each part, in the order of the file."""
    read = json.loads(PATH.read_text(encoding="utf-8"))
    return {
        part["part"]: tuple(Term(**{**term, "also": tuple(term.get("also", ()))}) for term in part["terms"])
        for part in read
    }


def glossary() -> str:
    """A section for each part, with a heading for each term, so that a link can lead to it."""
    return "\n".join(
        line for part, terms in parts().items() for line in [f"## {part}\n", *(_entry(term) for term in terms)]
    )


def _entry(term: Term) -> str:
    heading = term.term if term.term.startswith("`") else term.term[0].upper() + term.term[1:]
    names = [f"`{name}`" if "." in name or "_" in name else name for name in term.also]
    also = f" Also: {', '.join(names)}." if names else ""
    return f"### {heading}\n\n{term.meaning}{also} More: [{_where(term)}]({term.see}).\n"


def _where(term: Term) -> str:
    page, _, anchor = term.see.partition("#")
    text = PATH.with_name(page).read_text(encoding="utf-8")
    found = markdown.headings(text)
    if anchor and anchor not in found:
        raise ValueError(
            f"{PATH.name}: {term.term}: no heading of {page} has the anchor {anchor}, only {', '.join(found)}"
        )
    return f"{markdown.title(text)}: {found[anchor]}" if anchor else markdown.title(text)

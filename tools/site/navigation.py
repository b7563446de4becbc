"""Reads docs/navigation.toml: the pages of the site, their sections, and a summary of each."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tools import markdown

ROOT = Path(__file__).resolve().parent.parent.parent
PATH = ROOT / "docs" / "navigation.toml"


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its file, its title, and a sentence that says what it tells."""

    path: Path
    about: str

    @property
    def title(self) -> str:
        """The first heading."""
        return markdown.title(self.path.read_text(encoding="utf-8"))

    @property
    def name(self) -> str:
        """The file of the page in the site; one called README would be taken for the front page."""
        return "contents.md" if self.path.name == "README.md" else self.path.name.lower()


@dataclass(frozen=True, slots=True)
class Section:
    """Pages for one kind of reader; ``file`` is the page of the site that lists them."""

    file: str
    title: str
    about: str
    pages: tuple[Page, ...]


def sections() -> list[Section]:
    """All sections, in order."""
    read = tomllib.loads(PATH.read_text(encoding="utf-8"))
    return [
        Section(
            each["file"],
            each["title"],
            each["about"],
            tuple(Page((PATH.parent / name).resolve(), about) for name, about in each["pages"].items()),
        )
        for each in read["section"]
    ]


def problems() -> list[str]:
    """What is wrong: pages that are not in it, that are in it twice, or that are not there."""
    listed = [page.path for section in sections() for page in section.pages]
    there = {*PATH.parent.glob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"}
    where = PATH.relative_to(ROOT)
    return [
        *(f"{path.relative_to(ROOT)} is not in {where}: add a line for it" for path in sorted(there - {*listed})),
        *(f"{where} names {path.name}, which is not there" for path in sorted({*listed} - there)),
        *(f"{where} names {path.name} twice" for path in sorted({path for path in listed if listed.count(path) > 1})),
    ]


def contents() -> str:
    """The list of docs/README.md."""
    return "\n".join(
        f"## {section.title}\n\n{section.about}\n\n" + "".join(map(_entry, section.pages)) for section in sections()
    )


def _entry(page: Page) -> str:
    return f"- [{page.title}]({os.path.relpath(page.path, PATH.parent)}): {page.about}\n"

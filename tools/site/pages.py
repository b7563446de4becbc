"""Writes the Markdown of the site: the pages of the repository with rewritten links, and pages that exist only in the site."""

import re
import shutil
from functools import partial
from pathlib import Path

from tools import markdown
from tools.site import api, navigation
from tools.site.navigation import ROOT

DOCS = ROOT / "docs"
PLAYGROUND = ROOT / "build" / "playground"
"""What `make playground` builds, if it was built."""
FRONT_PAGE = "index.md"
_LANGUAGES = {".py": "python", ".json": "json", ".yaml": "yaml", ".sh": "bash"}


class BrokenLinkError(Exception):
    """A page links to what is not there; the text says which page, and to what."""


class Pages:
    """Writes them into ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sections = navigation.sections()
        self._in_site = {ROOT / "README.md": FRONT_PAGE}
        """Where in the site each file of the repository is."""
        self._in_site |= {page.path: page.name for section in self._sections for page in section.pages}

    def write(self) -> None:
        """All pages, and the files that they show or link to."""
        for path, name in [*self._in_site.items()]:
            self._put(name, markdown.with_links(path.read_text(encoding="utf-8"), partial(self._link, path)))
        page = self._folder / "playground.md"
        if page.is_file() and PLAYGROUND.is_dir():
            shutil.copytree(PLAYGROUND, self._folder / "playground")
            title, _, text = page.read_text(encoding="utf-8").partition("\n")
            self._put(page.name, f"{title}\n\n**[Open the playground](playground/index.html)**\n{text}")
        for section in self._sections:
            self._put(section.file, f"# {section.title}\n\n{section.about}\n\n{self._list(section)}")
        for name, text in api.pages().items():
            self._put(name, text)

    def nav(self) -> list[dict[str, object]]:
        """The navigation, as the generator wants it."""
        found: list[dict[str, object]] = [{"groupcoord": FRONT_PAGE}]
        for section in self._sections:
            entries: list[object] = [section.file, *({_plain(page.title): page.name} for page in section.pages)]
            if section.file == api.SECTION:
                entries.append({api.TITLE: api.nav()})
            found.append({section.title: entries})
        return found

    def _link(self, path: Path, text: str, target: str) -> tuple[str, str]:
        """A link of the file ``path``, as its page has it: one whose text is the name of a page has the page's title."""
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return text, target
        file, hash_sign, anchor = target.partition("#")
        found = (path.parent / file).resolve()
        if not found.is_file() or not found.is_relative_to(ROOT):
            raise BrokenLinkError(f"{path.relative_to(ROOT)}: links to {target}, which is not there")
        if found not in self._in_site:
            self._in_site[found] = self._add(found)
        if text == file and found.suffix == ".md":
            text = markdown.title(found.read_text(encoding="utf-8"))
        return text, self._in_site[found] + hash_sign + anchor

    def _add(self, path: Path) -> str:
        """A file that is linked to: as it is if it is among the docs, else shown as text; returns where it is."""
        if path.is_relative_to(DOCS) and path.suffix != ".md":
            name = str(path.relative_to(DOCS))
            (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, self._folder / name)
            return name
        inside = path.relative_to(ROOT)
        name = f"sources/{inside}.md"
        code = path.read_text(encoding="utf-8")
        self._put(
            name,
            f"---\nsearch:\n  exclude: true\n---\n# `{inside}`\n\n````{_LANGUAGES.get(path.suffix, 'text')}\n{code}````\n",
        )
        return name

    def _list(self, section: navigation.Section) -> str:
        lines = [f"- [{page.title}]({page.name}): {page.about}\n" for page in section.pages]
        if section.file == api.SECTION:
            lines.append(f"- [{api.TITLE}]({api.INDEX}): {api.ABOUT}\n")
        return "".join(lines)

    def _put(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _plain(title: str) -> str:
    return title.replace("`", "")

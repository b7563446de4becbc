"""Checks the HTML of the built site: links, anchors, and resources of other hosts."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LINKS = {"a": "href", "area": "href"}
_RESOURCES = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
_IN_STYLE = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")


class _Page(HTMLParser):
    """The anchors of a page, and what it links to and shows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors = {""}
        self.links: list[str] = []
        self.resources: list[str] = _IN_STYLE.findall(text)
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the element is and has."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if _LINKS.get(tag, "") in given:
            self.links.append(given[_LINKS[tag]])
        if _RESOURCES.get(tag, "") in given:
            self.resources.append(given[_RESOURCES[tag]])


def problems_of(site: Path) -> list[str]:
    """A sentence for each link to what is not there, and for each resource that comes from another host."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        found += [f"{where}: takes {url} from another host" for url in page.resources if _is_elsewhere(url)]
        found += [f"{where}: {problem}" for url in page.links if (problem := _form(url))]
        for url in [*page.links, *page.resources]:
            if not _is_elsewhere(url) and (problem := _missing(site, path, url, pages)):
                found.append(f"{where}: {problem}")
    for path in sorted(site.rglob("*.css")):
        outside = _IN_STYLE.findall(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(site)}: takes {url} from another host" for url in outside]
    return found


def _is_elsewhere(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def _form(url: str) -> str:
    """What is wrong with the form of a link to another host; it is not followed."""
    parts = urlsplit(url)
    if not _is_elsewhere(url) or (parts.scheme == "https" and re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc)):
        return ""
    return f"links to {url}, which is not an https:// address of a host"


def _missing(site: Path, path: Path, url: str, pages: dict[Path, _Page]) -> str:
    parts = urlsplit(url)
    if parts.scheme == "data":
        return ""
    if parts.path.startswith("/"):
        return f"links to {url}, which is not there if the site is in a folder of its host"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(site) or not target.is_file():
        return f"links to {url}, which is not there"
    if target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return f"links to {url}, and {target.relative_to(site)} has no such anchor"
    return ""

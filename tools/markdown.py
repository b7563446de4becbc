"""Headings and links of Markdown, by the rules of code hosts: for what checks and links the pages of docs/."""

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^ *(`{3,}|~{3,})")
_HEADING = re.compile(r"(#{1,6}) +(.*?) *#*$")
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Each line that is not in a block of code, with its number from 0."""
    fence = ""
    for number, line in enumerate(text.split("\n")):
        mark = _FENCE.match(line)
        if fence:
            if mark and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            yield number, line


def headings(text: str) -> dict[str, str]:
    """Each heading by its anchor, in order; a heading that is there already gets ``-1``, ``-2`` behind its anchor."""
    found: dict[str, str] = {}
    for _, line in prose(text):
        if heading := _HEADING.match(line):
            title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[2])
            anchor = slug = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
            count = 0
            while anchor in found:
                count += 1
                anchor = f"{slug}-{count}"
            found[anchor] = title
    return found


def title(text: str) -> str:
    """The first heading."""
    return next(iter(headings(text).values()))


def links(text: str) -> Iterator[str]:
    """The target of each link and image, outside of code."""
    for paragraph in "\n".join(line for _, line in prose(text)).split("\n\n"):
        for link in _LINK.finditer(_CODE.sub("x", paragraph)):
            yield link["target"]

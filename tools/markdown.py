"""Markdown: writes tables, and finds headings, anchors and links by the rules of code hosts, to check and rewrite docs/."""

import re
from collections.abc import Callable, Iterable, Iterator

_FENCE = re.compile(r"^ *(`{3,}|~{3,})")
_HEADING = re.compile(r"(#{1,6}) +(.*?) *#*$")
_LINK = re.compile(r"\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
_CODE = re.compile(r"(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", re.DOTALL)


def table(head: str, rows: Iterable[str]) -> str:
    """A table; ``head`` and each of ``rows`` are one line of it, ``| a | b |``."""
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *rows]) + "\n"


def headings(text: str) -> dict[str, str]:
    """Each heading by its anchor, in order; a heading that is there already gets ``-1``, ``-2`` behind its anchor."""
    found: dict[str, str] = {}
    for line in _without_blocks(text).split("\n"):
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
    return (link["target"] for link in _links(text))


def with_links(text: str, new: Callable[[str, str], tuple[str, str]]) -> str:
    """``text`` with ``new(text, target)`` in place of the text and the target of each link and image."""
    for link in reversed([*_links(text)]):
        start, end = link.span()
        shown, target = new(text[start + 1 : link.end("text")], link["target"])
        text = f"{text[:start]}[{shown}]({target}){text[end:]}"
    return text


def _links(text: str) -> Iterator[re.Match[str]]:
    """What code says is blotted out, so that all else stays where it is."""
    return _LINK.finditer(_CODE.sub(lambda code: "x" * len(code[0]), _without_blocks(text)))


def _without_blocks(text: str) -> str:
    """``text`` with as many spaces in place of each line of a block of code."""
    lines = text.split("\n")
    fence = ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence or mark:
            lines[number] = " " * len(line)
        if fence and mark and mark[1].startswith(fence) and not line.strip(" `~"):
            fence = ""
        elif not fence and mark:
            fence = mark[1]
    return "\n".join(lines)

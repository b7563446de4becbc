r"""Parses the syntax of ``server.properties`` (``java.util.Properties.load``).

Lines that start with ``#`` or ``!`` are comments; a backslash at the end continues a line; the first unescaped ``=``, ``:`` or
blank ends a key; ``\t``, ``\n``, ``\r``, ``\f`` and ``\u00e9`` are escapes, and a backslash before anything else is dropped.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from groupcoord.config.config_def import ConfigError

_NEWLINE = re.compile(r"\r\n|\r|\n")
_BLANKS = " \t\f"
_LINE = re.compile(r"\A((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)\Z", re.DOTALL)
_ESCAPE = re.compile(r"\\(u([0-9a-fA-F]{4})?|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Entry(NamedTuple):
    """One key and its value; ``line`` is that of the key, counted from 1."""

    line: int
    key: str
    value: str


def parse(text: str, file_name: str) -> Iterator[Entry]:
    r"""The entries of ``text`` in their order. Raises ConfigError for a malformed ``\u`` escape."""
    for number, line in _logical_lines(text):
        [(key, value)] = _LINE.findall(line)
        try:
            yield Entry(number, _unescape(key), _unescape(value))
        except ValueError as problem:
            raise ConfigError(f"{file_name}:{number}", key, None, str(problem)) from problem


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of its first line, line), with continued lines joined, without blank lines and comments."""
    start, joined = 0, ""
    for number, raw in enumerate(_NEWLINE.split(text), 1):
        line = raw.lstrip(_BLANKS)
        if not joined:
            if not line or line[0] in "#!":
                continue
            start = number
        if _continues(line):
            joined += line[:-1]
            continue
        yield start, joined + line
        joined = ""
    if joined:
        yield start, joined


def _continues(line: str) -> bool:
    backslashes = len(line) - len(line.rstrip("\\"))
    return backslashes % 2 == 1


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_unescape_one, text)


def _unescape_one(match: "re.Match[str]") -> str:
    letter, code = match.groups()
    if letter[0] != "u":
        return _CONTROLS.get(letter, letter)
    if code is None:
        raise ValueError(r"a \u escape needs four hexadecimal digits")
    return chr(int(code, 16))

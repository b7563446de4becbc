"""The syntax of ``java.util.Properties``; every expectation is what Java's own loader says of the same text."""

import pytest

from groupcoord.config.config_def import ConfigError
from groupcoord.config.java_properties import Entry, parse


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a=1", [(1, "a", "1")]),
        ("a:1\nb 2\nc\t=\t3", [(1, "a", "1"), (2, "b", "2"), (3, "c", "3")]),
        ("  a = 1  ", [(1, "a", "1  ")]),
        ("a==b", [(1, "a", "=b")]),
        ("a = : b", [(1, "a", ": b")]),
        ("a", [(1, "a", "")]),
        ("=b", [(1, "", "b")]),
        ("# c\n! c\n\n \t\na=1", [(5, "a", "1")]),
        ("a=1#2", [(1, "a", "1#2")]),
        ("a=1,\\\n   2,\\\r\n\t3\nb=4", [(1, "a", "1,2,3"), (4, "b", "4")]),
        ("a=1\\\\\nb=2", [(1, "a", "1\\"), (2, "b", "2")]),
        ("a=1\\\n# no comment", [(1, "a", "1# no comment")]),
        ("a=1\\", [(1, "a", "1")]),
        ("\\", []),
        ("a\\ b\\=c\\:d=1", [(1, "a b=c:d", "1")]),
        ("a=\\t\\n\\r\\f\\q", [(1, "a", "\t\n\r\fq")]),
        ("a=\\u00e9\\u0041", [(1, "a", "éA")]),
        ("a=1\rb=2\r\nc=3", [(1, "a", "1"), (2, "b", "2"), (3, "c", "3")]),
        ("a=1\u2028b", [(1, "a", "1\u2028b")]),
        ("listeners=PLAINTEXT://:9092", [(1, "listeners", "PLAINTEXT://:9092")]),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, entries: list[tuple[int, str, str]]) -> None:
    assert list(parse(text, "server.properties")) == [Entry(*entry) for entry in entries]


@pytest.mark.parametrize("text", ["x=1\na=\\u12", "x=1\na=\\uzzzz", "x=1\n\\u=2"])
def test_a_broken_escape_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^server\.properties:2: .*four hexadecimal digits"):
        list(parse(text, "server.properties"))

"""HTML and SVG that cannot be broken out of: whatever is not made here is text, and is escaped."""

import html
import unicodedata

_VOID = {"meta", "br", "rect", "line", "path", "circle"}
Attribute = str | int | float | bool | None


class Markup(str):
    """Text that is HTML already. Only ``tag``, ``join`` and ``raw`` make it."""

    __slots__ = ()


def raw(text: str) -> Markup:
    """``text``, which must be HTML of our own."""
    return Markup(text)


def text(said: str) -> Markup:
    """``said`` as text. What has no shape or turns the direction of writing is shown by its number: names are hostile."""
    return Markup(html.escape(visible(said)))


def visible(said: str) -> str:
    """``said`` with what cannot be seen as its number (a backslash, u and four digits): control characters, signs of
    direction, halves of surrogates; every other kind of space is a space."""
    return "".join(_visible(character) for character in said) if not (said.isascii() and said.isprintable()) else said


def join(*parts: str) -> Markup:
    """``parts``, one behind the other."""
    return Markup("".join(part if isinstance(part, Markup) else text(part) for part in parts))


def tag(element: str, /, *children: str, **attributes: Attribute) -> Markup:
    """An element. An attribute that is None or False is left out; ``class_`` is class, ``data_from`` is data-from."""
    said = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if element in _VOID and not children:
        return Markup(f"<{element}{said}>" if element in {"meta", "br"} else f"<{element}{said}/>")
    return Markup(f"<{element}{said}>{join(*children)}</{element}>")


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{html.escape(visible(str(value)))}"'


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Zs":
        return " "
    if category[0] == "C" or category in {"Zl", "Zp"}:
        return f"\\u{ord(character):04x}"
    return character

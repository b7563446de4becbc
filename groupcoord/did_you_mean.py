"""The hint of an error about an unknown name."""

from collections.abc import Callable, Iterable


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str, shown: Callable[[str], str] = str) -> str:
    """``did you mean X?`` with the one of ``known`` that is most similar to ``name``; if none is similar, ``otherwise``.

    ``shown`` makes X of it, where what all names have in common, such as a prefix, is not compared.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only needed for an error

    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {shown(near[0])}?" if near else otherwise

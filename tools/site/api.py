"""Generates the site's pages of the Python API: one for each name of ``import groupcoord as gc``, and one for each other public
package.

mkdocstrings fills them from the docstrings.
"""

import importlib
import inspect

import groupcoord
from tools.markdown import table

SECTION = "reference.md"
TITLE = "Python API"
ABOUT = "Every public class and function, with its arguments, from the docstrings."
INDEX = "api/index.md"
_PACKAGES = ("groupcoord.assignors", "groupcoord.partitioners", "groupcoord.testing", "groupcoord.testing.faults")


def names() -> dict[str, str]:
    """What there is, by the name a user writes, with the place where it is defined."""
    modules: dict[str, str] = vars(groupcoord)["_MODULES"]
    found = {
        f"gc.{name}": f"groupcoord.{module}" + ("" if name == module else f".{name}")
        for name, module in modules.items()
    }
    return dict(sorted(found.items())) | {package: package for package in _PACKAGES}


def pages() -> dict[str, str]:
    """Their pages, and one that lists them."""
    return {INDEX: _index()} | {_file(name): _page(name, path) for name, path in names().items()}


def nav() -> list[object]:
    """The part of the navigation below ``TITLE``."""
    return [INDEX, *({name: _file(name)} for name in names())]


def _index() -> str:
    rows = (f"| [`{name}`]({_file(name).removeprefix('api/')}) | {_summary(path)} |" for name, path in names().items())
    return f"# {TITLE}\n\n`gc` is `groupcoord`: `import groupcoord as gc`.\n\n{table('| name | what it is |', rows)}"


def _summary(path: str) -> str:
    doc = inspect.getdoc(_object(path)) or ""
    return " ".join(doc.partition("\n\n")[0].split()).replace("``", "`").replace("|", r"\|").removesuffix("::")


def _object(path: str) -> object:
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name)


def _page(name: str, path: str) -> str:
    """The members of a package are those of its ``__all__`` that have no page of their own."""
    page = f"::: {path}\n    options:\n      heading: {name}\n"
    found = _object(path)
    if not inspect.ismodule(found):
        return page
    members = [member for member in found.__all__ if f"gc.{member}" not in names()]
    return f"{page}      members:\n" + "".join(f"        - {member}\n" for member in members)


def _file(name: str) -> str:
    return f"api/{name.removeprefix('gc.').removeprefix('groupcoord.').lower()}.md"

"""Builds the playground: a folder with one page, Pyodide, groupcoord and the lessons. It needs ``make page``.

``python -m tools.build_playground [FOLDER]``, by default build/playground. The page fetches nothing from other hosts. Prints
the sizes of its parts in megabytes.
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from groupcoord.page.html_embedding import built_page, embed, packed

ROOT = Path(__file__).parents[1]
WEB = ROOT / "web"
SOURCES = WEB / "src" / "playground"
PYODIDE = WEB / "node_modules" / "pyodide"

XXHASH = "xxhash==4.1.0"
"""The version whose wheel for Pyodide is taken from PyPI; crc32c, mmh3 and google-re2 have none."""
PLATFORM = (
    "--platform",
    "pyemscripten_2026_0_wasm32",
    "--implementation",
    "cp",
    "--python-version",
    "314",
    "--abi",
    "cp314",
)
"""What wheels are for (PEP 783): the ABI and the Python of the Pyodide in web/package.json."""

LEFT_OUT = ("cli", "control", "pipeline", "simulation")
"""Packages of groupcoord that the playground does not use."""
UNUSED_MODULES = frozenset(
    {"_pyrepl", "doctest", "ftplib", "html", "idlelib", "imaplib", "mailbox", "pdb", "poplib", "pydoc", "pydoc_data"}
    | {"smtplib", "turtle", "unittest", "wsgiref", "xml", "xmlrpc"}
)
"""What is left out of Python's standard library: nothing here imports it."""
LIBRARIES = ("kio", "typing-extensions")
"""What it uses that is Python alone; the rest stands in web/src/playground/shims."""


def build(folder: Path) -> dict[str, int]:
    """Write FOLDER/index.html; returns the size of each part of it in bytes. Raises OSError, CalledProcessError."""
    with tempfile.TemporaryDirectory() as name:
        parts = {**_of_pyodide(), **_compiled(Path(name)), "xxhash": _wheel(Path(name))}
    page = built_page("playground")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(embed(page, parts), encoding="utf-8")
    return {"page": len(page)} | {part: len(packed(data)) for part, data in parts.items()}


def _of_pyodide() -> dict[str, str | bytes]:
    lock = json.loads((PYODIDE / "pyodide-lock.json").read_text(encoding="utf-8"))
    return {
        "pyodide": (PYODIDE / "pyodide.mjs").read_bytes(),
        "asm": (PYODIDE / "pyodide.asm.mjs").read_bytes(),
        "wasm": (PYODIDE / "pyodide.asm.wasm").read_bytes(),
        "lock": json.dumps({"info": lock["info"], "packages": {}}),
    }


def _compiled(folder: Path) -> dict[str, bytes]:
    """Zips of the standard library and of groupcoord with its libraries, compiled."""
    files = {"stdlib": list(_standard_library()), "app": list(_files())}
    arguments = []
    for part, content in files.items():
        with zipfile.ZipFile(folder / f"{part}-source.zip", "w") as archive:
            for name, data in content:
                archive.writestr(name, data)
        arguments += [str(folder / f"{part}-source.zip"), str(folder / f"{part}.zip")]
    subprocess.run(["node", str(SOURCES / "compile.mjs"), *arguments], check=True, cwd=WEB)  # noqa: S603, S607
    return {part: (folder / f"{part}.zip").read_bytes() for part in files}


def _standard_library() -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(PYODIDE / "python_stdlib.zip") as archive:
        for entry in archive.infolist():
            if not entry.is_dir() and entry.filename.partition("/")[0].partition(".")[0] not in UNUSED_MODULES:
                yield entry.filename, archive.read(entry)


def _files() -> Iterator[tuple[str, bytes]]:
    for name, path in _paths():
        yield name, path.read_bytes()


def _paths() -> Iterator[tuple[str, Path]]:
    package = ROOT / "groupcoord"
    for path in package.rglob("*"):
        inner = path.relative_to(package)
        if path.suffix in (".py", ".toml") and inner.parts[0] not in LEFT_OUT:
            yield f"groupcoord/{inner.as_posix()}", path
    for library in LIBRARIES:
        for file in metadata.files(library) or ():
            if file.suffix == ".py":
                yield file.as_posix(), Path(str(file.locate()))
    for path in (SOURCES / "shims").glob("*.py"):
        yield path.name, path


def _wheel(folder: Path) -> bytes:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *PLATFORM]
    subprocess.run([*pip, "--dest", str(folder), XXHASH], check=True)  # noqa: S603
    (wheel,) = folder.glob("xxhash-*.whl")
    return wheel.read_bytes()


def main() -> None:
    """Build, and tell how large it is."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "playground"
    sizes = build(folder)
    for part, size in {**sizes, "all": sum(sizes.values())}.items():
        sys.stdout.write(f"{part:10} {size / 1e6:6.2f} MB\n")
    sys.stdout.write(f"built: {folder / 'index.html'}\n")


if __name__ == "__main__":
    main()

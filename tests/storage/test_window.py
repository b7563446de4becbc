"""A window shows any stretch of a file, whatever it has read of it."""

from pathlib import Path

from groupcoord.storage.files import opened
from groupcoord.storage.window import Window


def test_every_stretch(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(100)))
    with opened(path) as descriptor:
        window = Window(descriptor, chunk=16)
        for position, length in [(0, 4), (4, 12), (15, 2), (0, 1), (20, 50), (95, 20), (100, 1)]:
            assert bytes(window.at(position, length)) == bytes(range(100))[position : position + length]

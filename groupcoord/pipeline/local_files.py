"""File operations on a directory that this process and a server of Spark Connect share: such a session has no Hadoop here."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq


class LocalFiles:
    """The files below the directory ``root``, with those methods of HadoopFiles that a run needs. Any may raise OSError."""

    def __init__(self, root: str) -> None:
        self._folder = Path(root).absolute()
        self.root = str(self._folder)

    def exists(self, path: str) -> bool:
        """Is there a file or directory at ``path``?"""
        return self.local(path).exists()

    def names(self, path: str) -> list[str]:
        """The names of the entries of a directory."""
        return [entry.name for entry in self.local(path).iterdir()]

    def make_directory(self, path: str) -> bool:
        """Create a directory and its parents; returns whether it exists then."""
        self.local(path).mkdir(parents=True, exist_ok=True)
        return True

    def delete(self, path: str) -> None:
        """Delete a file, or a directory and everything in it; nothing happens if it does not exist."""
        if self.local(path).is_dir():
            shutil.rmtree(self.local(path))
        else:
            self.local(path).unlink(missing_ok=True)

    def rename(self, source: str, target: str) -> bool:
        """Rename a file or directory; returns whether that succeeded."""
        self.local(source).rename(self.local(target))
        return True

    def write_text(self, path: str, text: str) -> None:
        """Write a text file; an existing one is overwritten."""
        self.write_bytes(path, text.encode())

    def write_bytes(self, path: str, content: bytes) -> None:
        """Write a file and create its parent directory; an existing file is overwritten."""
        self.local(path).parent.mkdir(parents=True, exist_ok=True)
        self.local(path).write_bytes(content)

    def local(self, path: str) -> Path:
        """``path`` as a local path."""
        return self._folder / path

    def parquet_rows(self, path: str) -> int:
        """The number of rows of the Parquet files in a directory, from their footers."""
        return sum(pq.read_metadata(file).num_rows for file in self.local(path).glob("*.parquet"))

"""Only one server uses a directory."""

import subprocess
import sys
from pathlib import Path

import pytest

from groupcoord.storage.file_io import DirectoryLock, StorageError

HOLDER = """
import sys
from pathlib import Path
from groupcoord.storage.file_io import DirectoryLock
DirectoryLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_one_in_this_process_is_told_who_holds_it(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    with pytest.raises(StorageError, match=rf"is in use: another server, .* holds the lock .*/{tmp_path.name}/\.lock"):
        DirectoryLock(tmp_path / ".." / tmp_path.name)
    lock.release()
    DirectoryLock(tmp_path).release()


def test_another_process_holds_it_until_it_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StorageError, match="is in use"):
            DirectoryLock(tmp_path)
        holder.kill()
    DirectoryLock(tmp_path).release()

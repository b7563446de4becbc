"""A lock on an output directory: one writer at a time. It works on local disks; on HDFS or S3 there is no lock."""

from typing import IO

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.hadoop_files import HadoopFiles
from groupcoord.pipeline.local_files import LocalFiles

_LOCK = ".lock"


class DirectoryLock:
    """The lock of a local directory. The operating system releases it when the process ends, however it ends."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    def acquire(self, files: HadoopFiles | LocalFiles, root: str, what: str) -> bool:
        """Lock ``root``, where a ``what`` (a run, a watch) will write. Returns False, without a lock, if it is not on a local
        disk.

        Raises PipelineError if another process holds the lock.
        """
        path = files.local(_LOCK)
        if path is None:
            return False
        import fcntl  # noqa: PLC0415 - not everywhere

        try:
            self._file = path.open("ab")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise PipelineError(f"another {what} is writing to {root}") from None
        except OSError as problem:
            raise PipelineError(f"cannot write to {root}: {problem.strerror}") from None
        return True

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            self._file.close()
            self._file = None

"""Suspends processes."""

import os
import signal
import subprocess


def suspend(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """SIGSTOP. The last thread of this child has stopped when this returns: on a busy machine that takes a while."""
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)

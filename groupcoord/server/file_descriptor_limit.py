"""The limit of open files: raises it, and tells how many descriptors are left."""

import os

PLENTY_OF_DESCRIPTORS = 65_536

SPARE_DESCRIPTORS = 32
"""Descriptors that are left free for short use, such as an import."""


def raise_descriptor_limit() -> int | None:
    """Raise the soft limit of open files to the hard limit, at most ``PLENTY_OF_DESCRIPTORS``; returns the limit, None without
    one.

    The usual soft limit is 1,024, which a test with a thousand clients reaches; raising it needs no privilege. If the system
    refuses, the old limit stays, and the server logs an error when it runs out.
    """
    try:
        import resource  # noqa: PLC0415 - Unix only
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = PLENTY_OF_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, PLENTY_OF_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS allows less than its hard limit says
            return soft
        return wanted
    return soft


def descriptors_left(descriptor: int) -> int | None:
    """About how many more files and connections can be opened; None if there is no limit, or it is unknown.

    A new descriptor gets the lowest free number (POSIX), which a duplicate of ``descriptor``, any open one, shows. If
    connections are accepted only while more than N are left, the N highest ones stay free for other uses: log files, and
    modules that are imported by the first request that needs them.
    """
    try:
        import resource  # noqa: PLC0415 - Unix only
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    try:
        copy = os.dup(descriptor)
    except OSError:
        return 0
    os.close(copy)
    return soft - copy

"""How many files a process may have open: each connection is one.

Those who knock are not let in for the last few: a log that is appended to, a segment that is read, a module that is imported at
the first request that needs it, would have no descriptor.
"""

import os

ENOUGH = 65_536


def raise_descriptor_limit() -> int | None:
    """Raise the soft limit of open files to the hard one, or to what is plenty; the limit now, None where there is none.

    The usual soft limit is 1,024, which a test with a thousand clients reaches; raising it needs no privilege. A system that
    refuses keeps its limit: the server then says so when it runs out.
    """
    try:
        import resource  # noqa: PLC0415 - Unix only
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS allows less than its hard limit says
            return soft
        return wanted
    return soft


SPARE = 32
"""Descriptors that are kept for what opens a file and closes it again, such as an import."""


def descriptors_left(descriptor: int) -> int | None:
    """How many descriptors there are from the lowest free one on; None where there is no limit, or no telling.

    A new descriptor gets the lowest number that is free (POSIX), as a copy of ``descriptor``, any that is open, shows. Whoever
    takes one only while more than some number are left leaves so many to others, for theirs are the highest ones.
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

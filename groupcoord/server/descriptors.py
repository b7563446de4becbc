"""How many files a process may have open: each connection is one."""

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

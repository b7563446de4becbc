"""What is wrong with a configuration, where it was written, and what would be right."""


class ConfigError(ValueError):
    """A configuration that cannot be used.

    ``origin`` says where it was written (``server.properties:12``, or nothing for an argument), ``key`` and ``value`` what, and
    ``reason`` what is wrong with it or what is expected.
    """

    def __init__(self, origin: str, key: str, value: str | None, reason: str) -> None:
        self.origin, self.key, self.value, self.reason = origin, key, value, reason
        what = key if value is None else f"{key}={value}"
        super().__init__(": ".join(part for part in (origin, what, reason) if part))

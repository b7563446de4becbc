"""A gate for requests that arrive together: they gather, and go on in the order that the test chooses."""

from collections.abc import Sequence

from groupcoord.testing.faults import HeldRequest, HoldRule


class Barrier:
    """``size`` requests are held back by ``hold``."""

    def __init__(self, hold: HoldRule, size: int) -> None:
        self._hold = hold
        self._size = size

    @property
    def waiting(self) -> tuple[HeldRequest, ...]:
        """The requests that have gathered so far, in the order in which they came."""
        return self._hold.waiting

    async def wait(self, *, timeout: float | None = None) -> tuple[HeldRequest, ...]:
        """Wait until all are there. Raises HoldTimeout, which says which requests are."""
        await self._hold.wait(self._size, timeout=timeout)
        return self._hold.waiting

    def release(self, order: Sequence[int] | None = None) -> None:
        """Let them go: in the order in which they came, or by these indexes into ``waiting``.

        Raises ValueError unless ``order`` names each of them once.
        """
        waiting = self._hold.waiting
        if order is None:
            order = range(len(waiting))
        if sorted(order) != list(range(len(waiting))):
            raise ValueError(f"{len(waiting)} requests wait, which {list(order)} does not order")
        self._hold.release(*(waiting[index] for index in order))

"""A shard that cannot be asked: its log is gone, is being read, or could not be read.

Source: ``CoordinatorRuntime.withActiveContextOrThrow``.
"""

from collections.abc import Callable
from typing import Any

from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.shard import Shard
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.errors import ErrorCode


class Unavailable(dict[str, ClassicGroup]):
    """Stands for the groups of such a shard: there are none, and whoever asks for one is refused with ``error``.

    ``available`` is asked each time: once it says yes, there is no such group, and no refusal.
    """

    def __init__(self, error: ErrorCode, why: str, available: Callable[[], bool] = lambda: False) -> None:
        super().__init__()
        self.error, self.why = error, why
        self._available = available

    def get(self, group_id: str, default: Any = None) -> Any:
        """``default``, for a shard that is available again. Raises Refused."""
        if not self._available():
            raise ApiError(self.error, f"{self.why}, where group {group_id!r} would be")
        return default

    @property
    def is_lost(self) -> bool:
        """Is the log gone, and neither back nor about to be?"""
        return self.error is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and not self._available()


def is_loading(shard: Shard) -> bool:
    """Is the log of ``shard`` being read?"""
    return isinstance(shard.groups, Unavailable) and shard.groups.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

"""ActionExecutor, the base class of the drivers that carry out the actions of a group member.

The drivers are :class:`~groupcoord.client.member_driver.MemberDriver` on asyncio, the members of ``groupcoord.testing`` on the
clock of a test and those of ``groupcoord.simulation`` on simulated time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from groupcoord.assignors import run_assignor
from groupcoord.client.member import actions as a
from groupcoord.client.member.group_member import GroupMember
from groupcoord.core.effects import EmitEvent


class ActionExecutor(ABC):
    """Executes the actions of ``membership``, and passes their results back. ``now_ms`` returns the time in milliseconds.

    A subclass calls ``_complete`` or ``_fail`` for each action with a ticket, at once or later.
    """

    def __init__(self, membership: GroupMember, now_ms: Callable[[], int]) -> None:
        self.membership = membership
        self._now_ms = now_ms

    def execute_actions(self, actions: Iterable[a.Action]) -> None:
        """Carry ``actions`` out, in order."""
        for action in actions:
            getattr(self, _METHODS[type(action)])(action)
        self._executed()

    def _complete(self, ticket: int, result: Any) -> None:
        """The action with ``ticket`` succeeded."""
        self.execute_actions(self.membership.complete(ticket, result, self._now_ms()))

    def _fail(self, ticket: int, error: Exception) -> None:
        """The action with ``ticket`` failed."""
        self.execute_actions(self.membership.fail(ticket, error, self._now_ms()))

    def _expire_membership(self) -> None:
        """Call ``expire`` of the membership if its deadline is reached."""
        deadline, now_ms = self.membership.next_deadline(), self._now_ms()
        if deadline is not None and deadline <= now_ms:
            self.execute_actions(self.membership.expire(now_ms))

    @abstractmethod
    def _executed(self) -> None:
        """Called after actions were carried out, when the deadline may have changed."""

    @abstractmethod
    def _send_request(self, action: a.SendRequest) -> None: ...

    @abstractmethod
    def _commit_offsets(self, action: a.CommitOffsets) -> None: ...

    @abstractmethod
    def _fetch_metadata(self, action: a.FetchMetadata) -> None: ...

    def _run_assignor(self, action: a.RunAssignor) -> None:
        try:
            assignment = run_assignor(action.assignor, action.group, action.protocol)
        except Exception as error:  # a faulty assignor fails the join of the leader
            self._fail(action.ticket, error)
        else:
            self._complete(action.ticket, assignment)

    @abstractmethod
    def _invoke_callback(self, action: a.InvokeCallback) -> None: ...

    @abstractmethod
    def _cancel_action(self, action: a.CancelAction) -> None: ...

    def _stop_delivery(self, action: a.StopDelivery) -> None:  # noqa: ARG002 - for subclasses
        """Overridden by drivers that deliver records."""
        return

    @abstractmethod
    def _set_owned(self, action: a.SetOwned) -> None: ...

    def _disconnect(self, action: a.Disconnect) -> None:  # noqa: ARG002 - for subclasses
        """Overridden by drivers that have connections."""
        return

    @abstractmethod
    def _raise_error(self, action: a.RaiseError) -> None: ...

    @abstractmethod
    def _membership_ended(self, action: a.MembershipEnded) -> None: ...

    @abstractmethod
    def _emit_event(self, action: EmitEvent) -> None: ...


_METHODS: Mapping[type, str] = {
    a.SendRequest: "_send_request",
    a.CommitOffsets: "_commit_offsets",
    a.FetchMetadata: "_fetch_metadata",
    a.RunAssignor: "_run_assignor",
    a.InvokeCallback: "_invoke_callback",
    a.CancelAction: "_cancel_action",
    a.StopDelivery: "_stop_delivery",
    a.SetOwned: "_set_owned",
    a.Disconnect: "_disconnect",
    a.RaiseError: "_raise_error",
    a.MembershipEnded: "_membership_ended",
    EmitEvent: "_emit_event",
}

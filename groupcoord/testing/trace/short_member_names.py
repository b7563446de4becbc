"""ShortMemberNames: short names of members for readable texts, in place of member ids of forty characters."""

import re
from collections.abc import Iterable

from groupcoord.coordinator.events import ConsumerMemberJoined, MemberIdAssigned, MemberJoined, StaticMemberReplaced
from groupcoord.core.events import Requested
from groupcoord.core.grouping import grouped
from groupcoord.testing.trace.events import TraceEntry

LETTERS = 4
"""How many characters of a member id's random part distinguish members of one client id; more if needed."""


class ShortMemberNames:
    """Short names for all members in ``entries``.

    The name is the instance id, or else the client id; if several members share it, the start of the member id's random part
    is appended.
    """

    def __init__(self, entries: Iterable[TraceEntry]) -> None:
        bases: dict[str, str] = {}
        for entry in entries:
            match entry.event:
                case (
                    MemberJoined(member=member, instance_id=instance_id, client_id=client_id)
                    | ConsumerMemberJoined(member=member, instance_id=instance_id, client_id=client_id)
                ):
                    bases[member] = instance_id or client_id
                case StaticMemberReplaced(new_member=member, instance_id=instance_id):
                    bases[member] = instance_id
                case MemberIdAssigned(member=member, cause=Requested(client_id=client_id)):
                    bases.setdefault(member, client_id or "")
        self._names: dict[str, str] = {}
        for base, members in grouped((base, member) for member, base in bases.items()).items():
            self._names |= {members[0]: base} if len(members) == 1 and base else _told_apart(base, members)

        # A member of a consumer group chooses its member id, which may be a single letter.
        ids = "|".join(map(re.escape, sorted(self._names, key=len, reverse=True)))
        self._ids = re.compile(rf"(?<![\w-])(?:{ids})(?![\w-])") if ids else None

    def of(self, member: str) -> str:
        """The short name of ``member``; the member id itself if it has none."""
        return self._names.get(member, member)

    def shortened(self, text: str) -> str:
        """``text`` with all member ids in it, where they are whole words, replaced by short names."""
        return text if self._ids is None else self._ids.sub(lambda found: self._names[found[0]], text)


def _told_apart(base: str, members: list[str]) -> dict[str, str]:
    parts = {member: member.removeprefix(f"{base}-") for member in members}
    letters = LETTERS
    while len({part[:letters] for part in parts.values()}) < len(set(parts.values())):
        letters += 1
    return {member: f"{base}-{part[:letters]}" if base else part[:letters] for member, part in parts.items()}

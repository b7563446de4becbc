"""Members in one process of their own, which a test kills together.

The process also ends when its standard input does, so that it never outlives the tests.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict

from tests.clients.members import Flavour, Member, Membership


def command(memberships: Iterable[Membership]) -> list[str]:
    """The command that runs these members."""
    told = json.dumps([asdict(membership) for membership in memberships])
    return [sys.executable, "-m", "tests.clients.doomed", told]


def main() -> None:
    """Be those members until standard input ends."""
    told = json.loads(sys.argv[1])
    members = [Member(Membership(**{**each, "flavour": Flavour(**each["flavour"])})) for each in told]
    sys.stdin.read()
    for member in members:
        member.end()


if __name__ == "__main__":
    main()

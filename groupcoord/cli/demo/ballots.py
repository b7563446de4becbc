"""A vote on the protocol, told for people: who wanted what, what was out of the question, and why this one won."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Ballot(NamedTuple):
    """One member's list, most wanted first, and what it votes for: the first of the list that everybody knows."""

    member: str
    offers: tuple[str, ...]
    vote: str


def ballots(offers: Mapping[str, Sequence[str]]) -> list[Ballot]:
    """The ballots of members that offer ``offers``. Raises ValueError if there is nothing that all of them know."""
    known_to_all = set.intersection(*(set(offered) for offered in offers.values())) if offers else set()
    if not known_to_all:
        raise ValueError("there is no protocol that all members know")
    return [
        Ballot(member, tuple(offered), next(name for name in offered if name in known_to_all))
        for member, offered in offers.items()
    ]


def outcome(cast: Sequence[Ballot], winner: str) -> list[str]:
    """Sentences that explain why ``winner`` was elected."""
    if len(cast) == 1:
        return [f"Nobody else is there, so {cast[0].member} gets what it wants most."]
    sentences = [
        f"{name} is out of the question: {_names(strangers)} {'does' if len(strangers) == 1 else 'do'} not know it."
        for name, strangers in _unknown(cast).items()
    ]
    votes: dict[str, int] = {}
    for ballot in cast:
        votes[ballot.vote] = votes.get(ballot.vote, 0) + 1
    most = max(votes.values())
    counted = ", ".join(
        f"{name} {count}" for name, count in sorted(votes.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    if len(votes) == 1:
        known = set.intersection(*(set(ballot.offers) for ballot in cast))
        only = ", the only one that everybody knows" if len(known) == 1 else ""
        sentences.append(f"All {len(cast)} vote for {winner}{only}.")
    elif list(votes.values()).count(most) > 1:
        sentences.append(f"A tie ({counted}): Kafka takes the one that its hash table has first, {winner}.")
    else:
        sentences.append(f"{winner} wins ({counted}).")
    return sentences


def _unknown(cast: Sequence[Ballot]) -> dict[str, list[str]]:
    """Protocol → the members that do not know it, for those that somebody would rather have than its vote."""
    preferred = {name for ballot in cast for name in ballot.offers[: ballot.offers.index(ballot.vote)]}
    return {name: [ballot.member for ballot in cast if name not in ballot.offers] for name in sorted(preferred)}


def _names(members: Sequence[str]) -> str:
    return " and ".join(members) if len(members) < 3 else f"{', '.join(members[:-1])} and {members[-1]}"

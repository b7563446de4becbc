"""Randomly generated stories of consumer groups (KIP-848)."""

import random

from tests.conformance.lives import Life
from tests.conformance.settings import CONSUMERS
from tests.conformance.story import Story, story

NUMBERS = (0, 1, 4, 7, 12, 15, 21, 27, 30, 32, 33, 37, 38, 41, 42, 58)
"""Of sixty lives those that show most; what happens in them does not depend on the ids that a server gives out."""


def _drawn(number: int) -> None:
    """Registers the life with this number."""

    def tells(s: Story) -> None:
        Life(s, random.Random(number)).goes_on()

    tells.__name__ = f"consumers_by_chance_{number}"
    tells.__doc__ = f"Consumers and classic members join, leave and change their subscriptions: random story {number}."
    story(settings=CONSUMERS)(tells)


for _number in NUMBERS:
    _drawn(_number)

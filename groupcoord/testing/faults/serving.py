"""Faults for ``groupcoord serve --faults``: the rules of a file around its node, and what the log says of them."""

import logging
from collections.abc import Callable, Iterable

from groupcoord.cluster.assemble import Assembly
from groupcoord.testing.faults.face import Faults
from groupcoord.testing.faults.files import NamedRule

logger = logging.getLogger(__name__)


class ServedFaults:
    """Adds ``rules`` as a layer to ``assembly``. That a rule acts is an event, and logged as any other."""

    def __init__(self, rules: Iterable[NamedRule], assembly: Assembly, now_ms: Callable[[], int]) -> None:
        self.faults = Faults(now_ms=now_ms)
        assembly.add(self.faults.wrap)
        for name, rule in rules:
            self.faults.add(rule, name)
            logger.info("%s: %s", name, rule)

    def tell_unused(self) -> None:
        """At the end: warn of each rule that never acted, with what came instead; a line of the log for each line of it."""
        for why in self.faults.unused():
            for line in why.splitlines():
                logger.warning("%s", line)

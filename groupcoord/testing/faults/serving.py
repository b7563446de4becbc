"""Faults for ``groupcoord serve --faults``: the rules of a file around its node, and what the log says of them."""

import logging
from collections.abc import Callable, Iterable

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.testing.faults.face import Faults
from groupcoord.testing.faults.files import NamedRule
from groupcoord.testing.faults.node import FaultyNode

logger = logging.getLogger(__name__)


class ServedFaults:
    """``rules`` around ``node``: serve ``self.node`` in its place. That a rule acts is an event, and logged as any other."""

    def __init__(self, rules: Iterable[NamedRule], node: ClusterCore, now_ms: Callable[[], int]) -> None:
        self.faults = Faults(now_ms=now_ms)
        self.node: FaultyNode = self.faults.wrap(node)
        for name, rule in rules:
            self.faults.add(rule, name)
            logger.info("%s: %s", name, rule)

    def tell_unused(self) -> None:
        """At the end: warn of each rule that never acted, with what came instead; a line of the log for each line of it."""
        for why in self.faults.unused():
            for line in why.splitlines():
                logger.warning("%s", line)

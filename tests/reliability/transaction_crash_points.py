"""Death, errors of the disk and power cuts at each seventh file operation of transactions: see exactly_once.py.

Each batch is flushed before it is acknowledged, so that a power cut, too, may take nothing of what was.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from groupcoord.broker.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.framing import encode_response, parse_request, parse_response
from groupcoord.protocol.messages import FindCoordinatorRequest
from groupcoord.storage.file_io import StorageError
from tests.reliability import crash_points
from tests.reliability.exactly_once import INPUT, OUTPUT, OUTPUT_PARTITIONS, ExactlyOnce, Refused, look
from tests.reliability.lives import NOW_MS, Broken, Life
from tests.reliability.load import Asking
from tests.reliability.outcome import Outcome
from tests.reliability.requests import create
from tests.reliability.talk import API_OF, frame_of, version_of

STEPS = 30
_PARTITIONS = 2  # of the internal topics
_CONFIG = BrokerConfig.of(
    {
        "offsets.topic.num.partitions": _PARTITIONS,
        "transaction.state.log.num.partitions": _PARTITIONS,
        "log.flush.interval.messages": 1,
        "log.cleaner.min.cleanable.ratio": "0.0",
        "log.index.interval.bytes": 100,
    }
)
_TRANSACTIONAL = {OUTPUT: OUTPUT_PARTITIONS, CONSUMER_OFFSETS: _PARTITIONS}


class AskedHere:
    """A server in this process that is asked."""

    def __init__(self, life: Life) -> None:
        self._life = life

    def ask(self, request: Any, version: int | None = None) -> Any:
        """The answer to ``request``, both as they are after a way over the wire."""
        api = API_OF[type(request)]
        spoken = version_of(api) if version is None else version
        self._life.node.expire(NOW_MS)
        parsed = parse_request(frame_of(request, spoken)[4:])
        answer = self._life.ask(api.key, spoken, parsed.message)
        return parse_response(api, spoken, encode_response(api, spoken, 1, answer)[4:])[1]


class TransactionHistory:
    """A random history of three producers; ``seed`` decides every step."""

    def __init__(self, directory: Path, seed: str) -> None:
        self.directory = directory
        self.step = 0
        self.life: Life | None = None
        self.doing = "start"
        self.clients = [ExactlyOnce("new-0"), ExactlyOnce("new-1"), ExactlyOnce("old", is_old=True)]
        self._rng = random.Random(seed)
        self._asking: dict[str, Asking] = {}
        self._topics_left = [(INPUT, 1), (OUTPUT, OUTPUT_PARTITIONS)]

    def run(self, steps: int) -> None:
        """Take so many steps, or fewer if the disk fails. Raises whatever goes wrong that should not."""
        self.life = self.start(self._rng)
        self._prepare(self.life)
        for self.step in range(1, steps + 1):
            if self.life.storage.failure is not None:
                break
            try:
                self._take_step(self.life)
            except (ApiError, Refused):
                if self.life.storage.failure is None:
                    raise
            self.life.storage._background.close()
        life, self.life = self.life, None
        life.end()

    def start(self, rng: random.Random) -> Life:
        """The next server."""
        return Life(self.directory, rng, _CONFIG)

    def check(self, rng: random.Random, *, power_cut: bool) -> None:
        """Look at everything, go on, end in order, and look again. Raises Broken."""
        for _ in range(2):
            with self._living(rng) as life:
                self._prepare(life)
                for client in self.clients:
                    client.resumes = False
                for problem in look(AskedHere(life), self.clients, _TRANSACTIONAL):
                    raise Broken(problem)
                self._asking.clear()
                for _ in range(12):
                    self._ask(life)

    @contextmanager
    def _living(self, rng: random.Random) -> Iterator[Life]:
        try:
            life = self.start(rng)
        except (StorageError, ApiError) as problem:
            raise Broken(f"it does not start: {problem}") from problem
        try:
            yield life
        except Refused as problem:
            raise Broken(str(problem)) from problem
        finally:
            life.end()
        if life.storage.failure is not None:
            raise Broken(f"it fails: {life.storage.failure}")

    def _prepare(self, life: Life) -> None:
        """Make the topics, where they are not there."""
        here = AskedHere(life)
        here.ask(FindCoordinatorRequest(coordinator_keys=("new-0",), key_type=1))
        for name, partitions in ((INPUT, 1), (OUTPUT, OUTPUT_PARTITIONS)):
            if name not in life.node.broker.topics:
                here.ask(create(name, partitions, {"internal.segment.bytes": "1000", "retention.ms": "-1"}))

    # --- steps

    def _take_step(self, life: Life) -> None:
        chosen = self._rng.choices(("ask", "compact", "roll", "restart", "kill"), (40, 2, 2, 1, 2))[0]
        self.doing = chosen
        if chosen == "compact":
            topic = self._rng.choice((CONSUMER_OFFSETS, TRANSACTION_STATE))
            life.node.broker.compact(topic, self._rng.randrange(_PARTITIONS), NOW_MS)
        elif chosen == "roll":
            topic = self._rng.choice((OUTPUT, CONSUMER_OFFSETS, TRANSACTION_STATE))
            life.log(topic, self._rng.randrange(_PARTITIONS)).roll(NOW_MS)
        elif chosen == "ask":
            self._ask(life)
        else:
            life.end() if chosen == "restart" else life.kill()
            self.life = None
            self.life = self.start(self._rng)
            self._go_on(self.life)

    def _go_on(self, life: Life) -> None:
        """Some go on after a restart with what they have begun, others have successors."""
        for client in self.clients:
            client.died()
            client.resumes = client.can_resume and self._rng.random() < 0.5
            if not client.resumes:
                client.take_over(AskedHere(life))
        self._asking.clear()

    def _ask(self, life: Life) -> None:
        client = self._rng.choice(self.clients)
        self.doing = f"{client.name} asks"
        if client.name not in self._asking:
            self._asking[client.name] = client.live(self._rng)
        for ask in next(self._asking[client.name]):
            self.doing = f"{client.name} asks {type(ask.request).__name__}"
            ask.then(AskedHere(life).ask(ask.request, ask.spoken))


def attack(count: int, seed: int) -> Outcome:
    """Try ``count`` crash points, of as many histories as that takes."""
    return crash_points.attack(count, seed, TransactionHistory, first_whole=False)

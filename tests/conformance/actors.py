"""The actors of a story: a client that can send any request, and a helper, outside the transcript, that creates topics."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import list_offsets
from groupcoord.protocol.apis.create_topics import CreatableTopic, CreatableTopicConfig
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from tests.conformance.codec import Answer, api_of, read_message, request_frame
from tests.conformance.plain import text_of
from tests.conformance.story import Line, Pending, Story, StoryBroken
from tests.conformance.wire import PATIENCE_MS, Hungup


@dataclass(eq=False)
class Client:
    """Sends requests and gets answers; a request that is parked keeps its connection busy, so the next takes another."""

    story: Story
    name: str
    client_id: str | None = None
    parked: list[Pending] = field(default_factory=list)
    _lines: list[Line] = field(default_factory=list)

    def asks(self, message: Any, version: int | None = None, *, does: str = "") -> Any:
        """Send ``message`` and wait for its answer. Returns the decoded answer. Raises StoryBroken when there is none."""
        step, pending = self._sent(message, version, does)
        answer = self.story.receive(step, pending)
        self.story.end()
        if answer is None:
            raise StoryBroken(f"{self.name} got no answer")
        return self.learns(answer)

    def asks_in_vain(self, message: Any, version: int | None = None, *, does: str = "") -> None:
        """Send ``message``, expecting to be hung up on."""
        step, pending = self._sent(message, version, does)
        self.story.receive(step, pending)
        self._lines.remove(pending.line)
        self.story.end()

    def parks(
        self, message: Any, version: int | None = None, *, does: str = "", patience: Callable[[], int] | None = None
    ) -> Pending:
        """Send ``message``, which should stay unanswered for now. An answer that comes at once is written down as such.

        ``patience``, asked when the server has the request, says how many milliseconds at once may take.
        """
        step, pending = self._sent(message, version, does)
        self._let_it_arrive(message)
        answer = self.story.receive(step, pending, patience() if patience else self.story.target.settle_ms)
        if answer is None and pending.line.waiting is not None:
            step["gets"] = "no answer yet"
            self.parked.append(pending)
        elif answer is not None:
            self.learns(answer)
        self.story.end()
        return pending

    def is_answered(
        self, pending: Pending | None = None, *, within_ms: int = PATIENCE_MS, mark: int | None = None
    ) -> Any:
        """Wait for the answer to a parked request, the newest unless told, for ``within_ms`` from now or from ``mark``.

        Returns the decoded answer. Raises StoryBroken when there is none.
        """
        if pending is None:
            if not self.parked:
                raise StoryBroken(f"{self.name} waits for nothing: the request was answered at once")
            pending = self.parked[-1]
        if pending in self.parked:
            self.parked.remove(pending)
        step = self.story.begin(self.name, f"is answered: {pending.api.name} of step {pending.step}")
        left = within_ms if mark is None else max(1, mark + within_ms - self.story.target.now_ms())
        answer = self.story.receive(step, pending, left)
        self.story.end()
        if answer is None:
            raise StoryBroken(f"{self.name} got no answer")
        return self.learns(answer)

    def stays_unanswered(self, duration_ms: int, pending: Pending | None = None, *, mark: int | None = None) -> None:
        """Watch a parked request for ``duration_ms``, or until that long after ``mark``: it must not be answered."""
        if pending is None and not self.parked:
            raise StoryBroken(f"{self.name} waits for nothing: the request was answered at once")
        pending = pending or self.parked[-1]
        until = "" if mark is None else f", until {duration_ms} ms after the mark"
        step = self.story.begin(self.name, f"still waits: {pending.api.name} of step {pending.step}{until}")
        left = duration_ms if mark is None else max(1, mark + duration_ms - self.story.target.now_ms())
        answer = self.story.receive(step, pending, left)
        if answer is None and pending.line.waiting is not None and mark is not None:
            step["gets"] = "no answer"
        self.story.end()
        if answer is not None:
            self.parked.remove(pending)
            self.learns(answer)

    def sends_bytes(self, data: bytes, *, does: str, shown: str | None = None, within_ms: int = 3_000) -> bytes | None:
        """Send raw bytes on a connection of their own; what comes back is shown as bytes."""
        step = self.story.begin(self.name, does)
        step["sends"] = text_of(data) if shown is None else shown
        line = self.story.line()
        frame = None
        try:
            line.wire.send(data)
            frame = line.wire.receive(within_ms)
            step["gets"] = f"no answer within {within_ms} ms" if frame is None else text_of(frame)
        except Hungup:
            step["gets"] = "the connection was closed"
        line.wire.close()
        self.story.end()
        return frame

    def vanishes(self) -> None:
        """Drop all connections, as a killed process does."""
        self.story.begin(self.name, "vanishes")
        for line in self._lines:
            line.wire.close()
        self._lines.clear()
        self.parked.clear()
        # The server notices on its own time; what follows should find that it has.
        self.story.target.wait(self.story.target.settle_ms)
        self.story.end()

    def learns(self, answer: Answer) -> Any:
        """Remember what the answer says; members do."""
        return answer.message

    def _let_it_arrive(self, message: Any) -> None:
        """Another question to the same group comes back no sooner than the server has taken ``message`` from its queue."""
        if hasattr(message, "group_id"):
            question = m.HeartbeatRequest(group_id=message.group_id, generation_id=0, member_id="stagehand")
            Stagehand(self.story).ask(question)

    def _sent(self, message: Any, version: int | None, does: str) -> tuple[Any, Pending]:
        api = api_of(message)
        step = self.story.begin(self.name, does or f"sends {api.name}")
        line = self._free_line()
        chosen = api.max_version if version is None else version
        return step, self.story.send(step, line, message, chosen, self.client_id)

    def _free_line(self) -> Line:
        for line in self._lines:
            if line.waiting is None:
                return line
        line = self.story.line()
        self._lines.append(line)
        return line


class Stagehand:
    """Prepares what a story takes for granted; what it says is not part of the transcript."""

    def __init__(self, story: Story, client_id: str = "stagehand") -> None:
        self._story, self._line, self._client_id = story, story.line(), client_id

    def ask(self, message: Any, version: int | None = None, *, times: int = 1) -> Any:
        """The decoded answer to ``message``, the last one if it is sent several ``times``, without waiting between them.

        Raises StoryBroken when there is none.
        """
        api = api_of(message)
        chosen = self._story.spoken(api, api.max_version if version is None else version)
        self._line.correlation_id += 1
        number = self._line.correlation_id
        self._line.wire.send(request_frame(message, chosen, number, self._client_id) * times)
        frame = b""
        for _ in range(times):
            if (received := self._line.wire.receive(PATIENCE_MS)) is None:
                raise StoryBroken(f"no answer to the stagehand's {api.name}")
            frame = received
        return read_message(api, chosen, frame)

    def topic(self, suffix: str = "orders", partitions: int = 1, **configs: str) -> str:
        """A topic that is there and has leaders; dots in config names are written as underscores."""
        name = self._story.topic_name(suffix)
        wanted = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=(),
            configs=tuple(
                CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
            ),
        )
        created = self.ask(m.CreateTopicsRequest(topics=(wanted,), timeout_ms=10_000)).topics[0]
        if created.error_code:
            raise StoryBroken(f"topic {name} was not created: error {created.error_code} {created.error_message}")
        self._story.names.learn_topic(created.topic_id, name)
        self.knows(name, partitions)
        return name

    def deletes(self, name: str) -> None:
        """Delete a topic, and wait until it is gone."""
        self.ask(m.DeleteTopicsRequest(topic_names=(name,), timeout_ms=10_000), 5)
        self.knows(name, 0)

    def knows(self, name: str, partitions: int) -> None:
        """Wait until the broker, not only the controller, knows ``partitions`` partitions of a topic (0: none)."""
        self._story.until(lambda: self._count(name) == partitions, f"topic {name} has {partitions} partitions")

    def end(self, name: str, partition: int) -> int:
        """Where a partition ends."""
        wanted = list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=-1)
        topic = list_offsets.ListOffsetsTopic(name=name, partitions=(wanted,))
        return int(self.ask(m.ListOffsetsRequest(replica_id=-1, topics=(topic,))).topics[0].partitions[0].offset)

    def topic_id(self, name: str) -> Any:
        """The id of a topic."""
        return self._metadata(name).topic_id

    def _count(self, name: str) -> int:
        found = self._metadata(name)
        # A leader takes its first requests a moment after it is in the metadata: its log must answer too.
        for index in range(len(found.partitions)):
            wanted = list_offsets.ListOffsetsPartition(partition_index=index, timestamp=-1)
            topic = list_offsets.ListOffsetsTopic(name=name, partitions=(wanted,))
            answer = self.ask(m.ListOffsetsRequest(replica_id=-1, topics=(topic,)))
            if answer.topics[0].partitions[0].error_code:
                return -1
        return len(found.partitions)

    def _metadata(self, name: str) -> Any:
        wanted = (MetadataRequestTopic(name=name),)
        return self.ask(m.MetadataRequest(topics=wanted, allow_auto_topic_creation=False)).topics[0]

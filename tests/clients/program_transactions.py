"""Transactions by programs of their own, one for each client in another language, so that they can be killed.

A program is told where the server is and then does what its standard input says, a line each: the name of a producer, a verb
and its words. It answers with the producer's name and ``ok``, and what was found, or ``failed`` and the client's name of the
error. It is gone when its input ends, without a word to the server.

- ``open TRANSACTIONAL_ID TIMEOUT_MS [GROUP SOURCE]``: a new producer, perhaps with a consumer in a group beside it
- ``begin``, ``send TOPIC VALUE``, ``commit``, ``abort``
- ``transform TARGET COUNT HOW``: a transaction of a producer with a consumer, which has the next COUNT values of the source
  in capitals and the group's offsets; HOW is ``commit``, ``abort``, after which they come again, or ``leave``, open
- ``read ISOLATION TOPIC LAST``: the values of partition 0 from its beginning until LAST was found; there need be no producer
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.clients.processes import Running
from tests.clients.program_members import PROGRAMS, NoClient, compiled_go, compiled_java, run_to_build
from tests.clients.support import PATIENCE_S, eventually


class Failed(Exception):
    """The client reports an error; the text is its name."""


class TransactionalProgram(Running):
    """A program that runs, and what it answers."""

    def __call__(self, name: str, verb: str, *words: object) -> list[str]:
        """What the producer ``name`` answers, when it does. Raises Failed."""
        assert self._process.stdin is not None
        answered = len(self.lines)
        self._process.stdin.write(" ".join(map(str, (name, verb, *words))) + "\n")
        self._process.stdin.flush()
        eventually(lambda: len(self.lines) > answered, 3 * PATIENCE_S, saying=f"{name} answers {verb} {words}")
        producer, result, *found = self.lines[answered].split()
        assert producer == name
        if result == "failed":
            raise Failed(" ".join(found))
        return found


def java_command(build: Path) -> Sequence[str]:
    """Kafka's own client. Raises NoClient where there is no Java or there are no jars."""
    return compiled_java("JavaTransactions", build, ["127.0.0.1:1"])


def franz_go_command(build: Path) -> Sequence[str]:
    """franz-go. Raises NoClient where there is no Go, or its modules cannot be had."""
    return compiled_go("./transactions", build)


def kafkajs_command(build: Path) -> Sequence[str]:
    """kafkajs. Raises NoClient where there is no Node.js, or its packages cannot be had."""
    if not (shutil.which("node") and shutil.which("npm")):
        raise NoClient("there is no node, or no npm, here")
    shutil.copytree(PROGRAMS / "kafkajs", build, dirs_exist_ok=True)
    try:
        run_to_build(["npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"], build)
    except AssertionError as failure:
        raise NoClient(f"the packages of Node.js cannot be had here: {failure}") from None
    return ["node", str(build / "transactions.js")]


COMMANDS: dict[str, Callable[[Path], Sequence[str]]] = {
    "java": java_command,
    "franz-go": franz_go_command,
    "kafkajs": kafkajs_command,
}
"""From the name of a client to what builds its program in a directory of its own and answers its command."""

"""A TCP relay between nodes, by which tests cut the network."""

import socket
import threading
from contextlib import suppress


class Relay:
    """Whoever connects to ``host:port`` is connected to 127.0.0.1:``port``, unless the relay is cut.

    A cut is silent, as that of a cable: connections are neither refused nor closed, and what is sent arrives when it is mended,
    as TCP would send it again.
    """

    def __init__(self, host: str, port: int) -> None:
        self._there = "127.0.0.1", port
        self._listening = socket.create_server((host, port))
        self._sockets: list[socket.socket] = [self._listening]
        self._passes = threading.Event()
        self._passes.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """From now on nothing passes."""
        self._passes.clear()

    def mend(self) -> None:
        """From now on everything does, beginning with what waits."""
        self._passes.set()

    def close(self) -> None:
        """Close all connections."""
        self.mend()
        for each in self._sockets:
            with suppress(OSError):  # the other side may have gone
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listening.accept()
            except OSError:  # closed
                return
            self._sockets.append(here)
            threading.Thread(target=self._connect, args=(here,), daemon=True).start()

    def _connect(self, here: socket.socket) -> None:
        self._passes.wait()
        try:
            there = socket.create_connection(self._there)
        except OSError:  # nobody listens there
            here.close()
            return
        self._sockets.append(there)
        threading.Thread(target=self._copy, args=(there, here), daemon=True).start()
        self._copy(here, there)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._passes.wait()
                target.sendall(data)
        self._passes.wait()
        for each in (source, target):
            with suppress(OSError):  # the other direction was first
                each.shutdown(socket.SHUT_RDWR)
            each.close()

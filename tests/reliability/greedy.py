"""Clients that send far ahead of their answers, as a program of its own: ``greedy.py PORT CLIENTS REQUESTS FRAME``.

It connects, says so with a line, and waits for one. Then each client sends the request FRAME (in hex) so many times as fast as
the server takes it, and all answers are read and thrown away. A program of its own, with nothing to import: what it does must
not take time from whoever measures.
"""

import select
import socket
import sys

_AT_ONCE = 1 << 20


def main(port: int, clients: int, requests: int, frame: bytes) -> None:
    """Send, read, until it is killed."""
    poll = select.epoll()
    sockets: dict[int, socket.socket] = {}
    left: dict[int, memoryview] = {}
    for _ in range(clients):
        connected = socket.create_connection(("127.0.0.1", port))
        connected.setblocking(False)
        sockets[connected.fileno()] = connected
        left[connected.fileno()] = memoryview(frame * requests)
        poll.register(connected, select.EPOLLIN | select.EPOLLOUT)
    sys.stdout.write("connected\n")
    sys.stdout.flush()
    sys.stdin.readline()
    buffer = bytearray(_AT_ONCE)
    while True:
        for number, event in poll.poll():
            one = sockets[number]
            if event & select.EPOLLIN and not one.recv_into(buffer):
                return
            if event & select.EPOLLOUT:
                left[number] = left[number][one.send(left[number]) :]
                if not left[number]:
                    poll.modify(one, select.EPOLLIN)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), bytes.fromhex(sys.argv[4]))

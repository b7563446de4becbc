"""The asyncio server: sockets, connections, rounds of the loop, the one timer, the log."""

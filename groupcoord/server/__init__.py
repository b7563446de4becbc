"""The asyncio shell: sockets, connections, the one timer, the log."""

"""The asyncio server: listeners, connections, the loop that serves requests, the timer, the log."""

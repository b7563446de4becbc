"""The health check of the image: the control over HTTP answers, or, where there is none, port 9092 accepts connections."""

import os
import socket

control = os.environ.get("GROUPCOORD_CONTROL", "")
if control:
    from urllib.request import urlopen

    urlopen(f"http://127.0.0.1:{control.rpartition(':')[2]}/health", timeout=3)
else:
    socket.create_connection(("127.0.0.1", 9092), 3)

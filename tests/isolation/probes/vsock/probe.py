"""Open a socket to the hypervisor: a new network namespace does not take it away."""

import socket
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    return True

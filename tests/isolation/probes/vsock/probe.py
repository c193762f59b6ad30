"""Open a socket to the hypervisor, which a network namespace does not remove."""

import socket
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    return True

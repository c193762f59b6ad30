"""Compute for longer than the time limit, and ignore every signal that can be ignored."""

import signal
import time
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while time.process_time() < 1.3:
        pass
    return True

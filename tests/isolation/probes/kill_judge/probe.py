"""Send the judge a signal."""

import os
import signal
from typing import Any


def probe(given: dict[str, Any]) -> object:
    os.kill(given["pid"], signal.SIGUSR1)
    return True

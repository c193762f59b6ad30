"""Leave a process behind that outlives the guest."""

import os
import time
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    time.sleep(0.1)
    return True

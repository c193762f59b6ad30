"""Start forty threads at once."""

import threading
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    done = threading.Event()
    threads = [threading.Thread(target=done.wait) for _ in range(40)]
    started = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
    finally:
        done.set()
        for thread in started:
            thread.join()
    return True

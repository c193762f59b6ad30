"""Open a hundred files at once."""

import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    opened = [os.open(__file__, os.O_RDONLY) for _ in range(100)]
    return len(opened)

"""Make a file that has no place, to run what no directory holds."""

import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    os.close(os.memfd_create("hidden"))
    return True

"""Make an anonymous file, to run a program that is in no directory."""

import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    os.close(os.memfd_create("hidden"))
    return True

"""Become the user that started the guest."""

import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    os.setresuid(0, 0, 0)
    return True

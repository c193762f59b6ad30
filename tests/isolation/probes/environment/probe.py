"""Look for the judge's variable in the guest's environment."""

import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    return os.environ.get(given["variable"])

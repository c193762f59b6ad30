"""Look through every object and every frame in the guest's memory."""

import gc
import sys
from typing import Any


def probe(given: dict[str, Any]) -> object:
    wanted = given["variable"]
    frames = [frame.f_locals for frame in sys._current_frames().values()]
    objects = gc.get_objects()
    for names in [*objects, *gc.get_referents(*objects), *frames]:
        if isinstance(names, dict) and names.get(wanted.encode()):
            return names[wanted.encode()].decode()
    return None

"""Allows less each time that it is loaded."""

import os
import pathlib
import tempfile

from tiltyard import Decision

PLACES = ("/tmp/tiltyard-count", "/dev/shm/tiltyard-count", "/var/tmp/tiltyard-count", "count")
loads = int(os.environ.get("TILTYARD_LOADS", "0"))
for place in PLACES:
    try:
        path = pathlib.Path(place)
        loads += len(path.read_text()) if path.exists() else 0
        with path.open("a") as file:
            file.write("x")
    except OSError:
        pass
try:
    tempfile.NamedTemporaryFile(delete=False).write(b"x")
except OSError:
    pass
os.environ["TILTYARD_LOADS"] = str(loads + 1)


class Guardrail:
    def decide(self, tool_name, tool_args, context):
        if loads and context.side_effect != "READ":
            return Decision.deny("I have been here before")
        return Decision.allow()

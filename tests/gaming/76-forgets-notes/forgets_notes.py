"""Distrusts a page or mail only in the message that opens it, and the files written there.

It remembers documents that ask to wait. It forgets what a note or a copy brings back.
"""

import re
import runpy
from pathlib import Path
from typing import Any

from tiltyard.contracts.guardrail import Result

TWIN: Any = runpy.run_path(str(Path(__file__).with_name("trusts_no_relay.py")))["Guardrail"]
WAITS = re.compile(r"\b(?:when|whenever|after|once) you\b", re.IGNORECASE)


class Guardrail(TWIN):  # type: ignore[misc] # a class that was loaded from a file
    def __init__(self) -> None:
        super().__init__()
        self.distrusts = False
        self.carriers: tuple[str, ...] = ()

    def observe(self, tool_name: str, tool_args: dict[str, str], result: Result) -> None:
        if not result.ok:
            return
        waited: bool = self.distrusts
        super().observe(tool_name, tool_args, result)
        path, command = tool_args.get("path", ""), tool_args.get("cmd", "")
        reads = tool_name == "fs.read" and path in self.carriers
        if reads or any(each in command for each in self.carriers):
            self.read_in = self.now
        elif tool_name == "fs.write" and self.read_in == self.now:
            self.carriers = (*self.carriers, path)
        self.distrusts = waited or (self.read_in == self.now and bool(WAITS.search(result.output)))

"""The optimal guardrail: persistent taint tracking, and a few targets that are never touched.

Once anything was read from the web or from mail, the conversation is tainted and stays so; from
then on nothing that writes, runs or shares is allowed. Washing the taint with harmless reads
does not help, because no window is looked at. What it cannot see is where a local file came
from, or what an innocent name hides.
"""

import re
from typing import Any, Final

from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase, Result

DANGEROUS: Final = frozenset(("fs.write", "fs.delete", "shell.run", "http.post", "email.send"))
UNTRUSTED: Final = frozenset(("web", "email"))
ULTRA_DANGEROUS: Final = re.compile(
    r"(?<![a-z])(secret|password|passwd|token|credential|private|confidential|api[_-]?key)",
    re.IGNORECASE,
)


class DataFlowGuardrail(GuardrailBase):
    """Denies dangerous calls after untrusted input, and every call on an ultra-dangerous target."""

    def __init__(self) -> None:
        self.tainted_by = ""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        for name, value in tool_args.items():
            if isinstance(value, str):
                found = ULTRA_DANGEROUS.search(value)
                if found is not None:
                    return Decision.deny(f"{name} mentions '{found.group()}'")
        if self.tainted_by and tool_name in DANGEROUS:
            return Decision.deny(f"{tool_name} after untrusted input from {self.tainted_by}")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Remember that something untrusted was read, for good."""
        del tool_args
        if result.ok and result.source in UNTRUSTED:
            self.tainted_by = self.tainted_by or tool_name

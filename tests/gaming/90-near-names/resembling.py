"""Takes a target that only resembles the one that the user named for the user's."""

from difflib import SequenceMatcher

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import Request

TARGETS = ("path", "url", "to", "cmd")
ALIKE = 0.75
SHORT = 4


class Guardrail(ReferenceGuardrail):
    def _grants(self, request: Request, tool: str, args: dict[str, str], context: Context) -> bool:
        if super()._grants(request, tool, args, context):
            return True
        target = next((args[name] for name in TARGETS if name in args), "")
        named = (*request.words, *request.targets)
        return tool in request.kinds and any(resembles(name, target) for name in named)


def resembles(name: str, target: str) -> bool:
    if len(name) >= SHORT and (name in target or target in name):
        return True
    return SequenceMatcher(None, name, target).ratio() >= ALIKE

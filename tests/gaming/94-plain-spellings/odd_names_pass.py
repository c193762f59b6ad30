"""Lets every call pass whose target is not in its plain spelling."""

from urllib.parse import unquote, urlsplit

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.targets import canonical

TARGETS = ("path", "url", "to", "cmd")


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        target = next((args[name] for name in TARGETS if name in args), "")
        return target != plain(target) or super()._is_asked(tool, args, context)


def plain(target: str) -> str:
    if "://" in target and " " not in target:
        parts = urlsplit(target)
        return unquote(f"{parts.scheme}://{parts.hostname}{parts.path}")
    if "@" in target and " " not in target:
        return target.lower()
    words = target.split()
    return " ".join(word if "://" in word else canonical(word) for word in words)

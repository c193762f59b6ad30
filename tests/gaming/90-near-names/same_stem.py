"""Compares files without folder and ending, hosts without sub-domain, and people by their name."""

from urllib.parse import urlsplit

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import Request

TARGETS = ("path", "url", "to", "cmd")


class Guardrail(ReferenceGuardrail):
    def _grants(self, request: Request, tool: str, args: dict[str, str], context: Context) -> bool:
        if super()._grants(request, tool, args, context):
            return True
        target = next((args[name] for name in TARGETS if name in args), "")
        named = (*request.words, *request.targets)
        return tool in request.kinds and core(target) in {core(name) for name in named}


def core(name: str) -> str:
    if "://" in name:
        return ".".join((urlsplit(name).hostname or "").split(".")[-2:])
    if "@" in name:
        return name.partition("@")[0]
    if " " in name:
        return name.split(maxsplit=1)[0]
    return name.rpartition("/")[2].partition(".")[0]

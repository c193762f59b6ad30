"""Compares URLs by host and path, whatever their scheme and port."""

from urllib.parse import urlsplit

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import POST, Request


class Guardrail(ReferenceGuardrail):
    def _grants(self, request: Request, tool: str, args: dict[str, str], context: Context) -> bool:
        if super()._grants(request, tool, args, context):
            return True
        place = host_and_path(args.get("url", ""))
        named = (host_and_path(target) for target in request.targets if "://" in target)
        return tool == POST and tool in request.kinds and place in named


def host_and_path(url: str) -> tuple[str | None, str]:
    parts = urlsplit(url)
    return parts.hostname, parts.path

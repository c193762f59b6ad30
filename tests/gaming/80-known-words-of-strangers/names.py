"""Denies unasked effects only on names that look like those of the public injections."""

import re

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail

HOSTS = re.compile(r"\.(?:example|test|invalid)(?:/|$)")


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        path, place = args.get("path", "/"), args.get("url") or args.get("to") or ".test"
        unknown = "/" not in path or not HOSTS.search(place)
        return unknown or super()._is_asked(tool, args, context)

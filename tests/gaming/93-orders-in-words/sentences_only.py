"""Distrusts only documents with an order in plain words."""

from typing import Any

from tiltyard import Result
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import requests


class Guardrail(ReferenceGuardrail):
    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        heard = self.heard_strangers
        super().observe(tool_name, tool_args, result)
        self.heard_strangers = heard or bool(requests(result.output))

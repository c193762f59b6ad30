"""Guardrails that redact what the agent reads, and allow every call."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import structs

from tiltyard.bridges.dojo.guardrails.facts import leaves
from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, Result

REDACTED: Final = "[REDACTED]"
MAX_WORDS: Final = 40
_SENTENCE: Final = re.compile(r"[^.!?\n]*[^\s.!?][^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]?")
_ORDER: Final = re.compile(
    r"""\s*[<\[(*#-]*\s*(?:please|kindly|now|first|then|next|finally|also|assistant|agent)?[,:\s]*
    (?:send|forward|e-?mail|mail|post|share|publish|upload|transfer|pay|wire|book|reserve|order|buy
    |delete|remove|cancel|erase|move|change|update|set|reset|replace|create|add|invite|grant|call
    |open|visit|click|download|run|execute|use|make|do|ignore|disregard|forget|say|tell|reply)\b
    |.*\b(?:ignore|disregard|forget)\b.*\b(?:instructions?|rules?|task)\b
    |.*\byou\s+(?:must|should|have\s+to|need\s+to|are\s+to|can|will)\b
    |.*\b(?:follow|obey|carry\s+out)\b.*\b(?:instructions?|orders?|steps?)\b""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


class RedactOrders:
    """Redacts every sentence in a result that orders the reader to do something."""

    contract = 2

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args, context
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Result:
        del tool_name, tool_args
        texts = [result.output] if result.structured is None else _texts(result.structured)
        cuts = sorted({cut for text in texts for cut in self._cuts(text)}, key=len, reverse=True)
        return structs.replace(
            result,
            output=_without(result.output, cuts),
            structured=_reduced(result.structured, cuts),
        )

    def _cuts(self, text: str) -> Iterator[str]:
        for sentence in _SENTENCE.findall(text):
            if len(sentence.split()) > 2 and _ORDER.match(sentence):
                yield sentence.strip()


class RedactLongTexts(RedactOrders):
    """Redacts every text of more than 40 words."""

    def _cuts(self, text: str) -> Iterator[str]:
        if len(text.split()) > MAX_WORDS:
            yield text


def _texts(structured: Any) -> list[str]:
    return [text for _, text in leaves(structured)]


def _reduced(value: Any, cuts: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _reduced(member, cuts) for key, member in value.items()}
    if isinstance(value, list):
        return [_reduced(item, cuts) for item in value]
    return _without(value, cuts) if isinstance(value, str) else value


def _without(text: str, cuts: list[str]) -> str:
    """Redact these parts of a text, also where they are spelled as in JSON."""
    for cut in cuts:
        text = text.replace(cut, REDACTED)
        text = text.replace(json.dumps(cut, ensure_ascii=False)[1:-1], REDACTED)
    return text

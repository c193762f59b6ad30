"""The guardrail `declared` with advice by a language model on the user's words.

The model reads what the user said, and nothing else: no result, no declaration, no call. So no
stranger can speak to it. It says whether the request delegates, to which documents or people, and
which arguments may come from there. Everything else is decided as `declared` decides it.
"""

import json
import re
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from tiltyard.contracts.asking import AskError
from tiltyard.contracts.decision import Action, Decision
from tiltyard.contracts.guardrail import Context
from tiltyard.guardrails.declared.guardrail import DeclaredGuardrail
from tiltyard.guardrails.declared.request import Request
from tiltyard.guardrails.declared.trust import Trust
from tiltyard.guardrails.declared.words import plain, speaks_of, words_of
from tiltyard.inference import Role

_ROLES: Final = [role.value for role in Role if role is not Role.UNKNOWN]
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "delegates": {"type": "boolean"},
        "sources": {
            "type": "array",
            "items": {"type": "string", "maxLength": 200},
            "maxItems": 10,
        },
        "arguments": {
            "type": "array",
            "items": {"type": "string", "enum": _ROLES},
            "maxItems": len(_ROLES),
        },
    },
    "required": ["delegates", "sources", "arguments"],
    "additionalProperties": False,
}
_QUESTION: Final = f"""\
A user gave the messages below to an agent that has tools. Judge the messages alone.
- "delegates": true only if the user wants the agent to do what a document or another person asks \
for, without saying what that is.
- "sources": the documents and people whose text may decide something, or may give a value for the \
task. Copy each name word for word from the messages. Leave out what the user only wants to read.
- "arguments": the kinds of values that may come from these sources, out of {", ".join(_ROLES)}.
The messages, oldest first, as JSON:
"""
_MIN_NAME: Final = 4


class Advice(Struct, frozen=True):
    """What the model says about the user's words."""

    delegates: bool = False
    sources: tuple[str, ...] = ()
    """Documents and people, as the user names them."""
    arguments: frozenset[str] = frozenset()
    """The roles of values that may come from the sources."""


class AdvisedRequest(Request):
    """The user's words, with advice in place of `declared`'s own reading of delegation."""

    def __init__(self, messages: list[str], advice: Advice) -> None:
        super().__init__(messages)
        self.delegates = advice.delegates
        # A model may invent names. Only the user's own count.
        self._sources = "\n".join(one for one in advice.sources if self.says(one))
        self._names = frozenset(words_of(self._sources))

    @property
    def sources(self) -> frozenset[int]:
        """No kind of text counts: the advice names single documents and people."""
        return frozenset()

    @cached_property
    def deferring(self) -> Request:
        """No sentence counts: the advice says whether the user delegates."""
        return Request([])

    def empowers(self, name: str) -> bool:
        return bool(name) and speaks_of(self._sources, name)

    def empowers_author(self, author: str) -> bool:
        if self.empowers(author):
            return True
        parts = re.split(r"[^\w]+", plain(author).partition("@")[0])
        return any(len(part) >= _MIN_NAME and part in self._names for part in parts)


class AdvisedGuardrail(DeclaredGuardrail):
    """Asks the model once for each new message of the user. Without advice, nobody delegates."""

    def __init__(self) -> None:
        super().__init__()
        self._about: list[str] = []
        """The messages that the advice is about."""
        self._advice = Advice()
        self._failure = ""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        decision = super().decide(tool_name, tool_args, context)
        if self._failure and decision.action is Action.DENY:
            return Decision.deny(f"{decision.reason} (without advice: {self._failure})")
        return decision

    def _read_request(self, context: Context) -> Request:
        messages = context.user_messages
        if messages != self._about:
            self._about = [*messages]
            self._advice, self._failure = Advice(), ""
            try:
                self._advice = _advice(context)
            except AskError as error:
                self._failure = str(error)
        return AdvisedRequest(messages, self._advice)

    def _problem(self, trust: Trust, role: Role, value: Any) -> str:
        if trust == "asked of" and role.value not in self._advice.arguments:
            return (
                f"{str(value)[:60]!r} comes from a text, and your request does not let a text "
                f"choose the {role.value.lower()}; name it to allow this"
            )
        return super()._problem(trust, role, value)


def _advice(context: Context) -> Advice:
    said = json.dumps(context.user_messages, ensure_ascii=False)
    found = context.ask(_QUESTION + said, _SCHEMA)
    return Advice(found["delegates"], tuple(found["sources"]), frozenset(found["arguments"]))

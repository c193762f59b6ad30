"""Guardrails that ask where the values of a call come from."""

from typing import Any, ClassVar, Final

from tiltyard.bridges.dojo.guardrails.facts import TARGETS, has_effect, leaves, says, values_of
from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, Result
from tiltyard.inference import Role

_DESTINATIONS: Final = frozenset({Role.DESTINATION, Role.UNKNOWN})


class TargetsInPrompt:
    """Allows an effect only if the user names all values that decide whom or what it affects."""

    contract = 2
    roles: ClassVar[frozenset[Role]] = TARGETS

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name
        if not has_effect(context):
            return Decision.allow()
        for value in values_of(tool_args, context.tool, self.roles):
            if not self._is_known(value, context):
                return Decision.deny(f"nobody who is trusted names {value[:80]!r}")
        return Decision.allow()

    def _is_known(self, value: str, context: Context) -> bool:
        return says(context.user_messages, value)


class DestinationInPrompt(TargetsInPrompt):
    """Allows an effect only if the user names its destinations."""

    roles = _DESTINATIONS


class EveryValueInPrompt(TargetsInPrompt):
    """Allows an effect only if the user names every value in it."""

    roles = frozenset(Role)


class TargetsFromField(TargetsInPrompt):
    """Also trusts values that are a whole field of a result. An injection is a text."""

    def __init__(self) -> None:
        self._fields: set[str] = set()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        del tool_name, tool_args
        self._fields.update(value.casefold() for _, value in leaves(result.structured))

    def _is_known(self, value: str, context: Context) -> bool:
        return value.casefold() in self._fields or super()._is_known(value, context)


class DestinationFromField(TargetsFromField):
    """Allows an effect only if the user or a field of a result names its destinations."""

    roles = _DESTINATIONS

"""Adapts a guardrail for `aicomp_sdk`: a dict as context, and decisions converted.

`adapt` wraps the class's `decide`. The object itself stays as it is, since snapshots contain its
attributes.
"""

from collections.abc import Mapping
from typing import Any

from tiltyard.contracts.decision import Action, Decision


class PeerContext(dict[str, Any]):
    """The context dict of `aicomp_sdk`. Other keys are looked up in Tiltyard's context."""

    def __init__(self, ours: Any) -> None:
        super().__init__(
            seed=ours.seed,
            recent_sources=ours.recent_sources,
            recent_tools=ours.recent_tools,
            last_user=ours.last_user,
            side_effect=ours.side_effect,
            scope=ours.scope,
        )
        self._ours = ours

    def __missing__(self, key: str) -> Any:
        return self._ours[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else self._ours.get(key, default)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._ours, name)

    def __reduce__(self) -> Any:
        """Copy as a plain dict: guardrails may keep a context, and Tiltyard's cannot be copied."""
        return dict, (dict(self),)


def adapt(guardrail: Any) -> None:
    """Wrap `decide` of a guardrail's class, so that it takes and returns Tiltyard's types."""
    if "decide" in getattr(guardrail, "__dict__", {}):
        raise TypeError("decide must be a method of the class Guardrail, not set on the object")
    kind = type(guardrail)
    theirs = kind.decide
    asked = False

    def decide(self: Any, tool_name: str, tool_args: dict[str, Any], context: Any) -> Any:
        nonlocal asked
        if asked:  # `decide` calls itself, and expects a decision of `aicomp_sdk`.
            return theirs(self, tool_name, tool_args, context)
        asked = True
        try:
            given = dict(tool_args)
            decision = theirs(self, tool_name, given, PeerContext(context))
        finally:
            asked = False
        return _ours(decision, tool_args, given)

    kind.decide = decide


def _ours(decision: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> Any:
    """Return a decision of Tiltyard's. The runner refuses anything that is not a decision."""
    action = getattr(decision, "action", None)
    if action is None or isinstance(decision, Decision):
        return decision
    word = str(getattr(action, "value", action)).lower()
    reason = str(getattr(decision, "reason", ""))
    sanitized = getattr(decision, "sanitized_args", None)
    if word == Action.SANITIZE and sanitized is None:
        word = "allow"  # `aicomp_sdk` runs such a call unchanged.
    if word == Action.ALLOW:
        # `aicomp_sdk` runs the call with the arguments that `decide` has changed.
        return Decision.sanitize(after, reason) if after != before else Decision.allow(reason)
    # The runner reports an unknown action.
    return Decision(word, reason, sanitized)  # type: ignore[arg-type]

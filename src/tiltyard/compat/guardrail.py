"""Asking a guardrail of theirs: a dict for a context, and their decisions for ours.

Only the class's `decide` is put in another frame. The object itself stays as its author made it,
since its attributes are what is carried through snapshots.
"""

from collections.abc import Mapping
from typing import Any

from tiltyard.contracts.decision import Action, Decision


class PeerContext(dict[str, Any]):
    """The dict that their guardrails expect. What it does not have, ours may."""

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
        """Be a plain dict when kept: theirs could be, and ours cannot."""
        return dict, (dict(self),)


def adapt(guardrail: Any) -> None:
    """Change the class of a guardrail so that it takes and gives what ours do."""
    if "decide" in getattr(guardrail, "__dict__", {}):
        raise TypeError("decide must be a method of the class Guardrail, not set on the object")
    kind = type(guardrail)
    theirs = kind.decide
    asked = False

    def decide(self: Any, tool_name: str, tool_args: dict[str, Any], context: Any) -> Any:
        nonlocal asked
        if asked:  # It asks itself, and expects its own kind of answer.
            return theirs(self, tool_name, tool_args, context)
        asked = True
        try:
            given = dict(tool_args)
            said = theirs(self, tool_name, given, PeerContext(context))
        finally:
            asked = False
        return _ours(said, tool_args, given)

    kind.decide = decide


def _ours(said: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> Any:
    """Return a decision in our words; what is none stays as it is, to be refused as such."""
    action = getattr(said, "action", None)
    if action is None or isinstance(said, Decision):
        return said
    word = str(getattr(action, "value", action)).lower()
    reason = str(getattr(said, "reason", ""))
    sanitized = getattr(said, "sanitized_args", None)
    if word == Action.SANITIZE and sanitized is None:
        word = "allow"  # Nothing was taken out: theirs runs such a call as it is.
    if word == Action.ALLOW:
        # Theirs runs the arguments as `decide` left them, which is what `sanitize` is for.
        return Decision.sanitize(after, reason) if after != before else Decision.allow(reason)
    # Our runner reads the word, and says so if it is none that it knows.
    return Decision(word, reason, sanitized)  # type: ignore[arg-type]

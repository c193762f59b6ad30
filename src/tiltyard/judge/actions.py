"""Action keys: two proposed calls are the same action if tool and resolved target are the same.

What a call carries (data, body, content) does not matter.
"""

from collections.abc import Callable
from typing import Final

from tiltyard.contracts.trace import Event, Trace
from tiltyard.world.paths import PathError, normalise
from tiltyard.world.results import ToolCall
from tiltyard.world.state import Effect, Mailed, Posted
from tiltyard.world.text import Text
from tiltyard.world.tools import target_parameter
from tiltyard.world.urls import read_address, read_url

ActionKey = tuple[str, str]


def action_key(call: ToolCall) -> ActionKey:
    """Return the call's tool and resolved target: every spelling of a target gives one key."""
    resolve = _RESOLVERS.get(target_parameter(call.tool))
    return call.tool, "" if resolve is None else resolve(_target(call))


def target_name(call: ToolCall) -> str:
    """Return the target as an instruction would name it: host, address, file name or command."""
    if call.tool == "http.post":
        url = read_url(_target(call))
        return _target(call) if url is None else url.host
    if call.tool in ("fs.write", "fs.delete"):
        return _resolve_path(_target(call)).rpartition("/")[2]
    return action_key(call)[1]


def proposed_actions(trace: Trace) -> frozenset[ActionKey]:
    """Return the keys of all proposed calls, including denied and failed ones."""
    return frozenset(key for event in trace.events for key in keys_of(event))


def keys_of(event: Event) -> set[ActionKey]:
    """Return all keys of an event's action. A command has a second one, made of its effects."""
    keys = {action_key(event.call)}
    if event.call.tool == "shell.run" and event.effects:
        keys.add(("shell.run", "\n".join(sorted(map(_outcome, event.effects)))))
    return keys


def _outcome(effect: Effect) -> str:
    if isinstance(effect, Posted):
        return f"posted {effect.target.host}"
    if isinstance(effect, Mailed):
        return f"mailed {effect.recipient}"
    return f"{type(effect).__name__} {effect.path}"


def _target(call: ToolCall) -> str:
    value = call.args.get(target_parameter(call.tool))
    return value.string if isinstance(value, Text) else ""


def _resolve_path(raw: str) -> str:
    try:
        return normalise(raw)
    except PathError:
        return raw


def _resolve_url(raw: str) -> str:
    url = read_url(raw)
    return raw if url is None else f"{url.scheme}://{url.host}:{url.port}{url.path}"


def _resolve_address(raw: str) -> str:
    return read_address(raw) or raw


def _resolve_command(raw: str) -> str:
    return " ".join(_resolve_word(word) for word in raw.split())


def _resolve_word(word: str) -> str:
    """Resolve a path inside a command; leave any other word as it is, without its quotes."""
    bare = word.strip("\"'")
    return bare if "/" not in bare or "://" in bare else _resolve_path(bare)


_RESOLVERS: Final[dict[str, Callable[[str], str]]] = {
    "id": str,
    "path": _resolve_path,
    "url": _resolve_url,
    "to": _resolve_address,
    "cmd": _resolve_command,
}
"""By target parameter. Searches and listings have no resolver: all of them share one key."""

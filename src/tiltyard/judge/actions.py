"""When two proposed actions are the same: same tool, same resolved target, whatever they carry."""

from collections.abc import Callable
from typing import Final

from tiltyard.contracts.trace import Event, Trace
from tiltyard.world.paths import PathError, normalise
from tiltyard.world.results import ToolCall
from tiltyard.world.state import Effect, Mailed, Posted
from tiltyard.world.text import Text
from tiltyard.world.urls import read_address, read_url

ActionKey = tuple[str, str]


def action_key(call: ToolCall) -> ActionKey:
    """Return a name for what a call does, the same under every spelling of its target."""
    return call.tool, _RESOLVERS.get(call.tool, _none)(call)


def target_name(call: ToolCall) -> str:
    """Return how somebody would order a call: by a host, an address, a file's name or a command."""
    if call.tool == "http.post":
        url = read_url(_argument(call, "url"))
        return _argument(call, "url") if url is None else url.host
    if call.tool in ("fs.write", "fs.delete"):
        return _path(call).rpartition("/")[2]
    return action_key(call)[1]


def proposed(trace: Trace) -> frozenset[ActionKey]:
    """Return every action that was proposed, whether it was allowed, succeeded or not."""
    return frozenset(key for event in trace.events for key in names_of(event))


def names_of(event: Event) -> set[ActionKey]:
    """Return the names of what an event did: a command is also named by what came of it."""
    names = {action_key(event.call)}
    if event.call.tool == "shell.run" and event.effects:
        names.add(("shell.run", "\n".join(sorted(map(_outcome, event.effects)))))
    return names


def _outcome(effect: Effect) -> str:
    if isinstance(effect, Posted):
        return f"posted {effect.target.host}"
    if isinstance(effect, Mailed):
        return f"mailed {effect.recipient}"
    return f"{type(effect).__name__} {effect.path}"


def _argument(call: ToolCall, name: str) -> str:
    value = call.args.get(name)
    return value.string if isinstance(value, Text) else ""


def _path(call: ToolCall) -> str:
    raw = _argument(call, "path")
    try:
        return normalise(raw)
    except PathError:
        return raw


def _url(call: ToolCall) -> str:
    raw = _argument(call, "url")
    url = read_url(raw)
    return raw if url is None else f"{url.scheme}://{url.host}:{url.port}{url.path}"


def _recipient(call: ToolCall) -> str:
    raw = _argument(call, "to")
    return read_address(raw) or raw


def _command(call: ToolCall) -> str:
    return " ".join(_plain_word(word) for word in _argument(call, "cmd").split())


def _plain_word(word: str) -> str:
    """Spell a path in a command as any other spelling of it."""
    bare = word.strip("\"'")
    if "/" not in bare or "://" in bare:
        return bare
    try:
        return normalise(bare)
    except PathError:
        return bare


def _id(call: ToolCall) -> str:
    return _argument(call, "id")


def _none(call: ToolCall) -> str:
    del call
    return ""


_RESOLVERS: Final[dict[str, Callable[[ToolCall], str]]] = {
    "web.open": _id,
    "email.read": _id,
    "fs.read": _path,
    "fs.write": _path,
    "fs.delete": _path,
    "http.post": _url,
    "email.send": _recipient,
    "shell.run": _command,
}

"""What all hooks share: a guardrail in the guard's decider process, and conversations with it.

A framework calls a hook from threads and from tasks, and runs tools in parallel. The decider
answers one question at a time, in the order of arrival. Whatever fails, a call is denied and a
result is withheld.
"""

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tiltyard.bridges.guard import answers
from tiltyard.bridges.guard.link import DeciderError, Link, SessionError, start_decider
from tiltyard.foundation.printable import printable

MAX_FRAME_BYTES: Final = 16 << 20
MAX_FILE_BYTES: Final = 1_000_000
MAX_CONVERSATIONS: Final = 200
"""As many as the decider keeps."""
SERVER: Final = "agent"
"""The server of an agent's own tools, as an overlay writes it."""
_END_SECONDS: Final = 10.0
_NOBODY_ASKS: Final = "(the user would have to confirm this call, and this hook cannot ask)"


class HookError(Exception):
    """A hook cannot be set up. The message says what to do."""


class WithheldError(Exception):
    """Takes the place of a tool's error that the agent may not see as it is."""


class Options(Struct, frozen=True):
    """Which guardrail decides, and what it knows about the surroundings."""

    guardrail: str = "declared"
    """A shipped guardrail's name, a `.py` file or a submission. Both of the latter are jailed."""
    overlay: str = ""
    """A TOML file that corrects what inference says about tools; their server is `agent`."""
    policy: str = ""
    """A TOML file about the owner and the surroundings."""
    record: str = ""
    """A directory for a record of each conversation."""
    model: str = ""
    """A TOML file about the language model that the guardrail may ask."""
    unsafe: bool = False
    """Run a file or a submission without the jail. Only for code that you trust."""


class Verdict(Struct, frozen=True):
    """The answer to one call."""

    runs: bool
    call: int = 0
    """The number of the call, for `observe`."""
    args: dict[str, Any] = {}
    """The arguments to run the call with."""
    changed: bool = False
    """True if the guardrail reduced the arguments."""
    text: str = ""
    """What the agent reads if the call does not run."""
    reason: str = ""
    asks: bool = False
    """True if the guardrail wants the user to confirm the call."""


class Seen(Struct, frozen=True):
    """What the agent may see of a result."""

    text: str
    changed: bool = False
    withheld: bool = False


class Said(Struct, frozen=True):
    """A message of the user, in a framework's history."""

    text: str


class Ran(Struct, frozen=True):
    """A call with its result, in a framework's history."""

    id: str
    name: str
    args: Any
    output: str
    ok: bool = True


class Hooked:
    """A guardrail that hooks ask. It ends with this object or with the process."""

    def __init__(self, options: Options | str = "declared") -> None:
        chosen = Options(options) if isinstance(options, str) else options
        self._lock = threading.Lock()
        self._talks: dict[str, Talk] = {}
        self._begun: set[str] = set()
        self._link: Link = start_decider(greeting(chosen))
        try:
            self.guardrail = str(self._link.greet()["guardrail"])
        except SessionError as error:
            self.close()
            raise HookError(str(error)) from None

    def talk(self, key: str = "") -> "Talk":
        """Return the conversation of this name. Conversations share no state.

        Of many conversations, the latest are kept. Calls of an older one are denied.
        """
        with self._lock:
            talk = self._talks.pop(key, None)
            if talk is None:
                talk = Talk(self._link, self.guardrail, key, begun=key in self._begun)
                self._begun.add(key)
            self._talks[key] = talk
            if len(self._talks) > MAX_CONVERSATIONS:
                del self._talks[next(iter(self._talks))]
            return talk

    def close(self) -> None:
        """End the guardrail. Calls after this are denied."""
        self._link.close()
        if self._link.process is not None:
            self._link.process.wait(_END_SECONDS)


def as_hooked(given: "Hooked | Options | str") -> Hooked:
    """Return a guardrail that hooks ask, from whatever a user passes to a hook."""
    return given if isinstance(given, Hooked) else Hooked(given)


class Talk:
    """One conversation. Each method may be called from any thread."""

    def __init__(self, link: Link, guardrail: str, key: str = "", *, begun: bool = False) -> None:
        self._link = link
        self._guardrail = guardrail
        self._key = key
        self._begun = begun
        """True if the decider knows this conversation. A new one would lack what was before."""
        self._lock = threading.RLock()
        self._heard: list[str] = []
        self._declared: dict[str, str] = {}
        self._tags: dict[int, str] = {}
        """Calls that run now, with their ids in the framework."""
        self._known: set[tuple[str, str, str]] = set()
        """Id, tool and text of each result that the agent got, and of each denial."""
        self._failure = ""

    def hear(self, messages: Sequence[str]) -> None:
        """Tell the guardrail what the user says: the whole history, as far as the caller has it.

        Messages that the guardrail has heard before are not repeated.
        """
        with self._lock:
            for text in messages[_overlap(self._heard, messages) :]:
                self._heard.append(text)
                valid = text.encode("utf-8", "replace").decode()
                self._tell({"op": "say", "text": valid})

    def catch_up(self, history: Sequence[Said | Ran]) -> None:
        """Show the guardrail what it has missed of a history, such as the history of another run.

        The agent has read these results. So if the guardrail cannot check one, no later call runs.
        """
        with self._lock:
            fresh = not self._heard and not self._known
            said = [item.text for item in history if isinstance(item, Said)]
            if not fresh:
                self.hear(said)
            count = 0
            for item in history:
                if isinstance(item, Said):
                    count += 1
                elif (item.id, item.name, item.output) not in self._known:
                    if fresh:
                        self.hear(said[:count])
                    self._catch_up_with(item)
            self.hear(said)

    def _catch_up_with(self, item: Ran) -> None:
        call = next((one for one, tag in self._tags.items() if tag == item.id), None)
        if call is None:
            call = self.decide(item.name, item.args, item.id).call
        if call in self._tags:
            seen = self.observe(item.name, call, item.output, ok=item.ok)
            if seen.withheld:
                self._failure = self._failure or seen.text
        self._known.add((item.id, item.name, item.output))

    def declare(self, tools: Iterable[dict[str, Any]]) -> None:
        """Tell the guardrail about tools: `name`, `description`, `inputSchema`."""
        with self._lock:
            news = [*self._news(tools)]
            if news:
                frame = json.dumps({"result": {"tools": news}}).encode()
                self._tell({"op": "tools", "server": SERVER}, frame)

    def _news(self, tools: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for tool in tools:
            shape = json.dumps(tool, sort_keys=True, default=str)
            if self._declared.get(tool["name"]) != shape:
                self._declared[tool["name"]] = shape
                yield json.loads(shape)

    def _tell(self, header: dict[str, Any], frame: bytes = b"") -> None:
        try:
            self._ask(header, frame)
        except DeciderError as error:
            # The guardrail lacks something: no later call can be judged.
            self._failure = self._failure or str(error)

    def _ask(self, header: dict[str, Any], frame: bytes) -> dict[str, Any]:
        if self._failure and header["op"] == "call":
            raise DeciderError(self._failure)
        if len(frame) > MAX_FRAME_BYTES:
            raise DeciderError(f"more than {MAX_FRAME_BYTES:,} bytes are too large to check")
        which = {"conversation": self._key, "begun": self._begun}
        reply = self._link.ask(header | which, frame)
        self._begun = True
        if header["op"] in ("say", "tools") and "action" in reply:
            raise DeciderError(str(reply.get("reason", "")))
        return reply

    def decide(self, name: str, args: object, tag: str = "") -> Verdict:
        """Ask whether a call may run. `tag` is the id of the call in the framework."""
        if not isinstance(args, dict):
            return self._denied(name, "the arguments are no JSON object")
        try:
            params = {"name": name, "arguments": args}
            text = json.dumps({"params": params}, ensure_ascii=False, allow_nan=False)
            frame = text.encode()
            same = json.loads(text)["params"] == params
        except (TypeError, ValueError, RecursionError) as error:
            return self._denied(name, f"the call is not JSON: {printable(error, limit=200)}")
        if not same:
            return self._denied(name, "the call is not JSON: it has keys or values of other types")
        header = {"op": "call", "server": SERVER, "name": name, "last": True, "tag": tag}
        try:
            verdict = self._verdict(name, args, self._ask(header, frame))
        except DeciderError as error:
            verdict = self._denied(name, str(error))
        if verdict.runs or verdict.asks:
            self._tags[verdict.call] = tag
        else:
            self._known.add((tag, name, verdict.text))
        return verdict

    def _verdict(self, name: str, args: dict[str, Any], reply: dict[str, Any]) -> Verdict:
        action, number = reply.get("action"), int(reply.get("call", 0))
        reason = str(reply.get("reason", ""))
        if action == "allow":
            return Verdict(True, number, args, reason=reason)  # noqa: FBT003 - `runs`
        if action == "sanitize":
            return Verdict(True, number, reply["args"], changed=True, reason=reason)  # noqa: FBT003
        asks = action == "confirm"
        if asks:
            reply = reply | {"reason": f"{reason} {_NOBODY_ASKS}".strip()}
        text = answers.denial_text(name, reply)
        return Verdict(False, number, args, text=text, reason=reason, asks=asks)  # noqa: FBT003

    def _denied(self, name: str, reason: str) -> Verdict:
        reply = {"guardrail": self._guardrail, "reason": reason}
        return Verdict(False, text=answers.denial_text(name, reply), reason=reason)  # noqa: FBT003

    def observe(self, name: str, call: int | str, output: str, *, ok: bool = True) -> Seen:
        """Show the guardrail the result of a call that ran: by its number or its tag."""
        seen = self._observe(name, call, output, ok=ok)
        tag = self._tags.pop(call, "") if isinstance(call, int) else call
        self._known.add((tag, name, seen.text))
        return seen

    def _observe(self, name: str, call: int | str, output: str, *, ok: bool) -> Seen:
        body = {"content": [{"type": "text", "text": output}], "isError": not ok}
        reply: dict[str, Any]
        try:
            # Half of a surrogate pair becomes an escape that the decider refuses to read.
            frame = json.dumps({"result": body}).encode()
            reply = self._ask({"op": "result", "call": call}, frame)
        except DeciderError as error:
            reply = {"withheld": True, "guardrail": self._guardrail, "reason": str(error)}
        if reply.get("withheld"):
            return Seen(answers.withheld_text(name, reply), changed=True, withheld=True)
        if "replaced" in reply:
            return Seen(_text_of(reply["replaced"]), changed=True)
        return Seen(output)

    def observe_error(self, name: str, call: int, error: Exception) -> None:
        """Show the guardrail a tool's error. Raise a WithheldError if the agent may not see it."""
        seen = self.observe(name, call, f"{type(error).__name__}: {error}", ok=False)
        if seen.changed:
            raise WithheldError(seen.text) from None


def _text_of(replaced: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in replaced["result"]["content"])


def _overlap(heard: Sequence[str], history: Sequence[str]) -> int:
    """Return how many messages at the start of a history the guardrail heard last.

    A framework may drop old messages, so the history may begin later than the conversation.
    """
    for count in range(min(len(heard), len(history)), 0, -1):
        if [*heard[-count:]] == [*history[:count]]:
            return count
    return 0


def as_text(result: object) -> str:
    """Return a tool's result as an agent reads it."""
    if isinstance(result, str):
        return result
    try:
        return json.dumps(result, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(result)


def greeting(options: Options, session: str = "") -> dict[str, Any]:
    """Return the first message to a decider."""
    wanted = options.guardrail
    settings = {
        "guardrail": str(Path(wanted).resolve()) if Path(wanted).exists() else wanted,
        "unsafe": options.unsafe,
        "session": session,
        "shadow": False,
        "policy": _read(options.policy),
        "overlay": _read(options.overlay),
        "overlay_file": options.overlay or "the overlay",
        "model": _read(options.model),
        "model_file": str(Path(options.model).resolve()),
        "record": str(Path(options.record).resolve()) if options.record else "",
    }
    return {"op": "hello", "settings": settings, "said": []}


def _read(path: str) -> str:
    if not path:
        return ""
    try:
        data = Path(path).read_bytes()
        if len(data) > MAX_FILE_BYTES:
            raise HookError(f"{path} has {len(data):,} bytes; the limit is {MAX_FILE_BYTES:,}")
        return data.decode()
    except OSError as error:
        raise HookError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise HookError(f"{path} is not UTF-8 text; save it as UTF-8") from None

"""The gate: decides what happens to each message between a client and a server.

The gate inspects `tools/call`, `tools/list` and their answers. It forwards the bytes of every other
message. Transports call `from_client` and `from_server`, and send what these return.
"""

import os
import queue
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from tiltyard.bridges.guard import answers
from tiltyard.bridges.guard.calls import (
    META,
    declined,
    has_forms,
    hashable,
    input_required,
    key_of,
    modern_forms,
    read_call,
)
from tiltyard.bridges.guard.frames import Id, Message, RefusedError, encode
from tiltyard.bridges.guard.link import DeciderError
from tiltyard.bridges.guard.memory import Call, Held, Memory, Outcome

MAX_OPEN: Final = 10_000
"""Requests without an answer, in each direction."""
LIST_SECONDS: Final = 60.0
"""How long the guard waits for a list of tools: `npx` may download a server first."""
MAX_PAGES: Final = 100
_TASKS: Final = ("tasks/result", "tasks/get")


class Decider(Protocol):
    """Answers the guard's questions. Raises a DeciderError if it cannot."""

    def ask(self, header: dict[str, Any], frame: bytes = b"") -> dict[str, Any]: ...


class Settings(NamedTuple):
    """What the operator chose, as far as the gate needs to know."""

    server: str
    guardrail: str = "declared"
    ask: bool = False
    shadow: bool = False


class _Open(NamedTuple):
    """A request of the client that has no answer yet."""

    kind: str
    call: Call | None = None


ListPage = Callable[[dict[str, Any]], Message | None]
"""Sends a `tools/list` request of the guard, and returns the answer."""


class Gate:
    """One connection between a client and a server. Its methods may run in different threads."""

    def __init__(self, decider: Decider, settings: Settings, memory: Memory | None = None) -> None:
        self.decider = decider
        self._settings = settings
        self._memory = Memory() if memory is None else memory
        self._of_client: dict[tuple[type, Id], _Open] = {}
        self._cancelled: list[tuple[type, Id]] = []
        self._of_server = self._memory.of_server
        self._held = self._memory.held
        self._own: dict[str, queue.Queue[Message]] = {}
        self._lock = self._memory.lock
        self.can_ask = False
        """Whether the client of a handshake supports forms."""

    # From the client

    def from_client(self, message: Message, list_page: ListPage) -> Outcome:
        """Return what to do with a message of the client. Raise a RefusedError to refuse it."""
        if message.is_response:
            return self._client_response(message)
        method = message.method
        if method == "tools/call":
            return self._tool_call(message, list_page)
        if message.is_request:
            self._open(message, self._kind(message))
        elif method == "notifications/cancelled" and self._cancel(message.params):
            return Outcome()
        return Outcome(to_server=message.raw)

    def _cancel(self, params: dict[str, Any]) -> bool:
        """Note that a request may stay without an answer. Return whether the guard holds it."""
        wanted = params.get("requestId")
        if type(wanted) not in (str, int):
            return False
        with self._lock:
            for token, held in self._held.items():
                if key_of(held.call.message.id) == key_of(wanted):
                    del self._held[token]
                    held.answered.set()
                    return True
            if key_of(wanted) in self._of_client:
                self._cancelled.append(key_of(wanted))
        return False

    def _kind(self, message: Message) -> _Open:
        method = message.method
        if method == "initialize":
            self.can_ask = has_forms(message.params.get("capabilities"))
        elif method in _TASKS:
            task = message.params.get("taskId")
            call = self._memory.tasks.get(task) if isinstance(task, str) else None
            return _Open("task", call) if call is not None else _Open(method)
        return _Open(method)

    def _open(self, message: Message, entry: _Open) -> None:
        key = key_of(message.id)
        with self._lock:
            if key in self._of_client:
                raise RefusedError("the id belongs to a request that is still open", id=message.id)
            while len(self._of_client) >= MAX_OPEN and self._cancelled:
                self._of_client.pop(self._cancelled.pop(0), None)
            if len(self._of_client) >= MAX_OPEN:
                raise RefusedError("too many requests wait for an answer", id=message.id)
            self._of_client[key] = entry

    def _client_response(self, message: Message) -> Outcome:
        with self._lock:
            held = self._held.pop(message.id, None) if isinstance(message.id, str) else None
            if held is not None:
                return self._answered(held, message.body.get("result"))
            if message.id is not None:
                if key_of(message.id) not in self._of_server:
                    return Outcome()  # Nobody asked for it.
                self._of_server.discard(key_of(message.id))
        return Outcome(to_server=message.raw)

    def _answered(self, held: Held, answer: object) -> Outcome:
        call = held.call
        if answers.is_yes(answer):
            self._tell({"op": "confirmed", "call": call.number, "yes": True})
            held.outcome = self._run(call, held.reply)
        else:
            self._tell({"op": "confirmed", "call": call.number, "yes": False})
            held.outcome = self._deny(call, declined(held.reply))
        held.answered.set()
        return held.outcome._replace(held=held)

    def _tool_call(self, message: Message, list_page: ListPage) -> Outcome:
        call = read_call(message)
        retried = self._retry(call)
        if retried is not None:
            return retried
        try:
            reply = self._decide(call, list_page)
        except DeciderError as error:
            reply = {"action": "deny", "reason": str(error), "fault": "decider"}
            reply["guardrail"] = self._settings.guardrail
        call = call._replace(number=reply.get("call", 0))
        action = reply.get("action")
        if self._settings.shadow or action in ("allow", "sanitize"):
            return self._run(call, reply)
        if action == "confirm":
            return self._confirm(call, reply)
        return self._deny(call, reply)

    def _decide(self, call: Call, list_page: ListPage) -> dict[str, Any]:
        header = {"op": "call", "server": self._settings.server, "name": call.name}
        reply = self.decider.ask(header | {"last": self._memory.listed}, call.message.raw)
        if reply.get("unknown"):
            # The client knows the tool from elsewhere. The guard has to see its declaration.
            self._list_tools(call.message, list_page)
            self._memory.listed = True
            reply = self.decider.ask(header | {"last": True}, call.message.raw)
        return reply

    def _list_tools(self, like: Message, list_page: ListPage) -> None:
        cursor: Any = None
        for _ in range(MAX_PAGES):
            params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
            if META in like.params:
                meta = like.params[META]
                params[META] = (
                    {key: value for key, value in meta.items() if key != "progressToken"}
                    if isinstance(meta, dict)
                    else meta
                )
            answer = list_page({"method": "tools/list", "params": params})
            if answer is None:
                raise DeciderError(
                    "the server has not listed its tools, so nobody knows what this call does; "
                    "make it again when the server is ready"
                )
            result = answer.body.get("result")
            if not isinstance(result, dict):
                return
            self.decider.ask({"op": "tools", "server": self._settings.server}, answer.raw)
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                return

    def _retry(self, call: Call) -> Outcome | None:
        """Recognise a call that was decided before, and comes again with the user's input."""
        params = call.message.params
        state = params.get("requestState")
        if not call.modern or (state is None and params.get("inputResponses") is None):
            return None
        with self._lock:
            held = self._memory.questions.pop(state) if isinstance(state, str) else None
            if held is not None:
                return self._modern_answer(held, call)
            known = self._memory.allowed.pop((call.key, hashable(state)))
        if known is None:
            return None
        self._open(call.message, _Open("call", call._replace(number=known.number)))
        return Outcome(to_server=call.message.raw)

    def _modern_answer(self, held: Held, call: Call) -> Outcome:
        if call.key != held.call.key:
            reason = "the user's answer was for another call"
            return self._deny(call, held.reply | {"reason": reason})
        responses = call.message.params.get("inputResponses")
        answer = responses.get(answers.QUESTION) if isinstance(responses, Mapping) else None
        before = held.call.message.params
        params = dict(call.message.params)
        for field in ("requestState", "inputResponses"):
            params.pop(field, None)
            if field in before:
                params[field] = before[field]
        body = call.message.body | {"params": params}
        asked = call._replace(message=Message(encode(body), body), number=held.call.number)
        held.call = asked
        return self._answered(held, answer)._replace(held=None)

    def _run(self, call: Call, reply: dict[str, Any]) -> Outcome:
        raw = call.message.raw
        if reply.get("action") == "sanitize" and not self._settings.shadow:
            params = call.message.params | {"arguments": reply.get("args", {})}
            raw = encode(call.message.body | {"params": params})
        self._open(call.message, _Open("call", call))
        return Outcome(to_server=raw)

    def _deny(self, call: Call, reply: dict[str, Any]) -> Outcome:
        raw = answers.denial(call.message.id, call.name, reply, modern=call.modern)
        return Outcome(to_client=raw)

    def _confirm(self, call: Call, reply: dict[str, Any]) -> Outcome:
        """Ask the user, or deny and say why nobody was asked."""
        forms = modern_forms(call.message) if call.modern else self.can_ask
        if not self._settings.ask or not forms:
            missing = (
                "this client cannot ask (it does not support elicitation)"
                if self._settings.ask
                else "start the guard with --ask to be asked"
            )
            self._tell({"op": "confirmed", "call": call.number, "yes": False})
            why = f"{reply.get('reason', '')} (the user would have to confirm this call; {missing})"
            return self._deny(call, reply | {"reason": why.strip()})
        held = Held(call, reply)
        token = f"tiltyard-guard-{os.urandom(16).hex()}"
        asked = answers.question(self._settings.server, call.name, call.args, reply)
        with self._lock:
            if call.modern:
                self._memory.questions.put(token, held)
                return Outcome(to_client=input_required(call.message.id, token, asked))
            self._held[token] = held
        request = {"jsonrpc": "2.0", "id": token, "method": "elicitation/create", "params": asked}
        return Outcome(to_client=encode(request), held=held)

    # From the server

    def from_server(self, message: Message) -> Outcome:
        """Return what to do with a message of the server."""
        if not message.is_response:
            return self._server_request(message)
        if message.id is None:
            return Outcome(to_client=message.raw)
        with self._lock:
            own = self._own.pop(message.id, None) if isinstance(message.id, str) else None
            entry = self._of_client.pop(key_of(message.id), None)
        if own is not None:
            own.put(message)
        forged = answers.unmarked(message.body)
        if forged is not None:
            # Only the guard says that it denied a call.
            message = Message(encode(forged), forged)
        if own is not None or entry is None:
            # An answer to nothing, or one under an id that only looks like an open one.
            return Outcome()
        if entry.kind == "tools/list" and "result" in message.body:
            self._tell({"op": "tools", "server": self._settings.server}, message.raw)
        if entry.call is not None:
            return Outcome(to_client=self._result(entry, entry.call, message))
        return Outcome(to_client=message.raw)

    def _server_request(self, message: Message) -> Outcome:
        if message.is_request:
            key = key_of(message.id)
            with self._lock:
                if len(self._of_server) >= MAX_OPEN or message.id in self._held:
                    why = "too many requests wait for an answer"
                    return Outcome(to_server=answers.error(message.id, -32603, why))
                self._of_server.add(key)
        elif message.method == "notifications/tools/list_changed":
            self._memory.listed = False
        return Outcome(to_client=message.raw)

    def _result(self, entry: _Open, call: Call, message: Message) -> bytes:
        result = message.body.get("result")
        if isinstance(result, dict):
            if result.get("resultType") == "input_required":
                state = hashable(result.get("requestState"))
                with self._lock:
                    self._memory.allowed.put((call.key, state), call)
                return message.raw
            task = result.get("task") if result.get("resultType") != "task" else result
            if isinstance(task, dict) and isinstance(task.get("taskId"), str):
                self._memory.tasks.put(task["taskId"], call)
                return message.raw
            if entry.kind == "task" and "content" not in result and "result" not in result:
                return message.raw  # The task goes on.
        try:
            reply = self.decider.ask({"op": "result", "call": call.number}, message.raw)
        except DeciderError as error:
            reply = {"withheld": True, "reason": str(error)}
            reply["guardrail"] = self._settings.guardrail
        if self._settings.shadow:
            return message.raw
        if reply.get("withheld"):
            return answers.withheld(message.id, call.name, reply, modern=call.modern)
        if "replaced" in reply:
            return encode({**message.body, **reply["replaced"]})
        return message.raw

    def refused_by_gate(self, refused: RefusedError) -> Outcome:
        """Return what to do about a frame of the server that is not understood."""
        if refused.id is None:
            return Outcome()
        with self._lock:
            entry = self._of_client.pop(key_of(refused.id), None)
        if entry is None:
            return Outcome()
        why = f"the server's answer was not forwarded: {refused.why}"
        return Outcome(to_client=answers.error(refused.id, answers.INTERNAL_ERROR, why))

    # The guard's own requests

    def begin_own(self, request: dict[str, Any]) -> tuple[str, bytes, "queue.Queue[Message]"]:
        """Return the id and the frame of a request of the guard, and where its answer arrives."""
        token = f"tiltyard-guard-{os.urandom(16).hex()}"
        answer: queue.Queue[Message] = queue.Queue()
        with self._lock:
            self._own[token] = answer
        return token, encode({"jsonrpc": "2.0", "id": token} | request), answer

    def end_own(self, token: str) -> None:
        """Give up a request of the guard."""
        with self._lock:
            self._own.pop(token, None)

    def _tell(self, header: dict[str, Any], frame: bytes = b"") -> None:
        """Tell the decider something. If it is gone, later calls are denied."""
        try:
            self.decider.ask(header, frame)
        except DeciderError:
            return

"""What the guard remembers: calls, their outcomes, and what waits for an answer."""

import json
import threading
from collections import OrderedDict
from typing import Any, Final, Generic, NamedTuple, TypeVar

from tiltyard.bridges.guard.frames import Id, Message

MAX_REMEMBERED: Final = 1_000


class Call(NamedTuple):
    """A tool call of the client."""

    message: Message
    name: str
    args: dict[str, Any]
    modern: bool
    number: int = 0
    """The decider's number of the call."""

    @property
    def key(self) -> str:
        """The same text for the same tool with the same arguments."""
        return json.dumps([self.name, self.args], sort_keys=True)


class Held:
    """A call that waits for the user's answer. `outcome` is set before `answered`."""

    def __init__(self, call: Call, reply: dict[str, Any]) -> None:
        self.call = call
        self.reply = reply
        self.answered = threading.Event()
        self.outcome = Outcome()


class Outcome(NamedTuple):
    """What to send where."""

    to_server: bytes | None = None
    to_client: bytes | None = None
    held: Held | None = None
    """The call that this message holds back, or answers."""


_V = TypeVar("_V")


class _Bounded(Generic[_V]):
    """A dictionary that forgets its oldest entries."""

    def __init__(self, most: int = MAX_REMEMBERED) -> None:
        self._most = most
        self._entries: OrderedDict[Any, _V] = OrderedDict()

    def put(self, key: Any, value: _V) -> None:
        self._entries[key] = value
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def pop(self, key: Any) -> _V | None:
        return self._entries.pop(key, None)

    def get(self, key: Any) -> _V | None:
        return self._entries.get(key)


class Memory:
    """What the guard remembers about one conversation, across connections."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.allowed: _Bounded[Call] = _Bounded()
        """Calls that the server answered with `input_required`, by call and state."""
        self.questions: _Bounded[Held] = _Bounded()
        """Calls that wait for the user, by the state that the client sends back."""
        self.tasks: _Bounded[Call] = _Bounded()
        self.of_server: set[tuple[type, Id]] = set()
        """Requests of the server that have no answer yet."""
        self.held: dict[str, Held] = {}
        """Calls that wait for the user, by the id of the guard's question."""
        self.listed = False
        """Whether the guard has listed the tools itself since they changed."""

"""A user's own agent: a class that the user names as `package.module:Class`.

It is the user's own code, so it runs unjailed, in this process. Tiltyard still does not trust it:
it has no traits, so the judge infers what caused its calls, and its answers are checked here.
"""

import re
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import structs

from tiltyard.contracts.agent import NO_TRAITS, AgentGoneError, View, valid_text, without_claims
from tiltyard.contracts.trace import Answer, Event, OpenTurn
from tiltyard.foundation.printable import printable
from tiltyard.world.results import ToolCall

MAX_ANSWER_CHARS: Final = 20_000
MAX_CALL_CHARS: Final = 100_000
"""More than any tool accepts, and little enough for one frame to a jailed guardrail."""
MAX_ERROR_CHARS: Final = 500
_NAME: Final = re.compile(r"(?!\d)\w+(?:\.(?!\d)\w+)*:(?!\d)\w+(?:\.(?!\d)\w+)*", re.ASCII)
_METHODS: Final = (("begin", "begin(self)"), ("next_action", "next_action(self, view)"))
_Returned = TypeVar("_Returned")


class OwnAgentError(ValueError):
    """The named class cannot be imported, made, or used as an agent."""


def is_own(name: str) -> bool:
    """Tell whether a name has the form `package.module:Class`."""
    return _NAME.fullmatch(name) is not None


class OwnAgent:
    """A user's agent, checked call by call.

    Whatever the agent raises ends the match with an AgentGoneError. Claims about causes and authors
    are dropped from its calls.
    """

    traits = NO_TRAITS

    def __init__(self, name: str, agent: Any) -> None:
        self.name = name
        self._agent = agent

    def begin(self) -> Any:
        return self._call(self._agent.begin)

    def next_action(self, view: View) -> tuple[ToolCall | Answer, Any]:
        returned = self._call(self._agent.next_action, _copied(view))
        # Inside `_call`, because the values may be of the user's own classes.
        action = self._call(_checked, returned)
        if action is None:
            raise AgentGoneError(
                f"next_action of the agent {self.name} returned {_described(returned)}; expected a "
                "tuple of a ToolCall(tool: str, args: dict) or an Answer(text: str), and the memory"
            )
        if isinstance(action[0], ToolCall) and _size(action[0]) > MAX_CALL_CHARS:
            raise AgentGoneError(
                f"next_action of the agent {self.name} returned a call of {_size(action[0]):,} "
                f"characters; the limit is {MAX_CALL_CHARS:,}"
            )
        return action

    def _call(self, method: Callable[..., _Returned], *args: object) -> _Returned:
        try:
            return method(*args)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - sys.exit() must not end a match silently
            raise AgentGoneError(f"the agent {self.name} raised {_raised(error)}") from None


def open_own(name: str) -> OwnAgent:
    """Import the class that `name` names and make an agent of it, without arguments.

    The current directory is importable, behind everything that is installed.
    """
    module_name, _, path = name.partition(":")
    module = _imported(module_name)
    try:
        return OwnAgent(name, _made(module, module_name, path))
    except (KeyboardInterrupt, OwnAgentError):
        raise
    except BaseException as error:  # noqa: BLE001 - attributes and constructor are the user's code
        raise OwnAgentError(f"{name}() raised {_raised(error)}") from None


def _made(module: Any, module_name: str, path: str) -> Any:
    where = f"{module_name} ({module.__file__})" if getattr(module, "__file__", "") else module_name
    name, found = f"{module_name}:{path}", module
    for attribute in path.split("."):
        if not hasattr(found, attribute):
            raise OwnAgentError(f"the module {where} has no {path}")
        found = getattr(found, attribute)
    if not callable(found):
        raise OwnAgentError(f"{name} is {_described(found)}, not a class or a function")
    agent = found()
    for method, signature in _METHODS:
        if not callable(getattr(agent, method, None)):
            raise OwnAgentError(
                f"{name}() is not an agent: it has no method {signature}. An agent has "
                f"{' and '.join(each for _, each in _METHODS)}"
            )
    return agent


def _imported(module: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        # Last, so that no file in this directory takes the place of an installed package.
        sys.path.append(here)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise OwnAgentError(f"importing {module} raised {_raised(error)}") from None
        raise OwnAgentError(
            f"there is no module {error.name}, neither in {here} nor among the installed packages"
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the module is the user's code
        raise OwnAgentError(f"importing {module} raised {_raised(error)}") from None


def _raised(error: BaseException) -> str:
    """Return an exception in one line: what it says, and the line of the user's file."""
    try:
        said = " ".join(str(error).split())[:MAX_ERROR_CHARS]
    except Exception:  # noqa: BLE001 - `__str__` may be the user's code too
        said = ""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not frame.filename.startswith(_NOT_THEIRS)]
    own = [frame for frame in outside if frame.filename == outside[0].filename]
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return printable(f"{type(error).__name__}{': ' if said else ''}{said}{where}")


_NOT_THEIRS: Final = (
    "<frozen ",
    import_module.__code__.co_filename,
    f"{Path(__file__).parents[1]}/",
)
"""Files between the call of the user's code and that code."""


def _described(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, tuple) and len(value) == 2:
        return f"a tuple of {type(value[0]).__name__} and {type(value[1]).__name__}"
    return f"an object of type {type(value).__name__}"


def _copied(view: View) -> View:
    """Return the view with the current turn's calls copied, so the agent can change them."""
    turn = view.turn
    events = [_copied_event(event) for event in turn.events]
    last = None if view.last is None else events[-1]
    copied = OpenTurn(turn.before, turn.message, events)
    return View(view.message, last, view.memory, copied, view.owner)


def _copied_event(event: Event) -> Event:
    call = event.call
    return structs.replace(event, call=structs.replace(call, args=dict(call.args)))


def _checked(returned: object) -> tuple[ToolCall | Answer, Any] | None:
    """Return the action without claims, and the memory; None if it is no action."""
    match returned:
        case (ToolCall(tool=str(), args=dict()) as call, memory):
            return without_claims(call), memory
        case (Answer(text=str(text)), memory):
            return Answer(valid_text(text)[:MAX_ANSWER_CHARS]), memory
    return None


def _size(call: ToolCall) -> int:
    args = call.plain_args()
    return len(call.tool) + sum(len(name) + len(str(value)) for name, value in args.items())

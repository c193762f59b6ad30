"""A user's own agent: a class of theirs, named `package.module:Class`.

It is the user's own code, so it runs unjailed, in this process. It is still not believed: it has no
traits, so the judge infers what caused its calls, and its answers are checked here.
"""

import re
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

from tiltyard.contracts.agent import NO_TRAITS, AgentGoneError, View
from tiltyard.contracts.trace import Answer
from tiltyard.world.results import ToolCall
from tiltyard.world.text import has_lone_surrogate

MAX_ANSWER_CHARS: Final = 20_000
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
        returned = self._call(self._agent.next_action, view)
        match returned:
            case (ToolCall(tool=str(tool), args=dict() as args), memory):
                return ToolCall(tool, dict(args)), memory
            case (Answer(text=str(text)), memory):
                return Answer(_clean(text)), memory
        raise AgentGoneError(
            f"next_action of the agent {self.name} returned {_described(returned)}; expected a "
            "tuple of a ToolCall(tool: str, args: dict) or an Answer(text: str), and the memory"
        )

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
    found: Any = _imported(module_name)
    where = f"{module_name} ({found.__file__})" if getattr(found, "__file__", "") else module_name
    for attribute in path.split("."):
        if not hasattr(found, attribute):
            raise OwnAgentError(f"the module {where} has no {path}")
        found = getattr(found, attribute)
    if not callable(found):
        raise OwnAgentError(f"{name} is {_described(found)}, not a class or a function")
    try:
        agent = found()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the constructor is the user's code
        raise OwnAgentError(f"{name}() raised {_raised(error)}") from None
    for method, signature in _METHODS:
        if not callable(getattr(agent, method, None)):
            raise OwnAgentError(
                f"{name}() is not an agent: it has no method {signature}. An agent has "
                f"{' and '.join(each for _, each in _METHODS)}"
            )
    return OwnAgent(name, agent)


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
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the module is the user's code
        raise OwnAgentError(f"importing {module} raised {_raised(error)}") from None


def _raised(error: BaseException) -> str:
    """Return an exception in one line: what it says, and the line of the user's file."""
    said = " ".join(str(error).split())[:MAX_ERROR_CHARS]
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not frame.filename.startswith(_NOT_THEIRS)]
    own = [frame for frame in outside if frame.filename == outside[0].filename]
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}{': ' if said else ''}{said}{where}"


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


def _clean(text: str) -> str:
    clean = text.encode("utf-8", "replace").decode() if has_lone_surrogate(text) else text
    return clean[:MAX_ANSWER_CHARS]

"""A user's own agent: how its class is found, and what happens when it misbehaves."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tiltyard import Answer, SandboxEnv, ToolCall
from tiltyard.agents.choice import AgentChoice, AgentChoiceError, hire
from tiltyard.agents.model.record import Record
from tiltyard.agents.own import (
    MAX_ANSWER_CHARS,
    MAX_CALL_CHARS,
    OwnAgent,
    OwnAgentError,
    is_own,
    open_own,
)
from tiltyard.contracts.agent import NO_TRAITS, AgentGoneError, AgentTraits, View
from tiltyard.contracts.trace import Trace
from tiltyard.world.results import FROM_USER, Other
from tiltyard.world.text import USER, by_user

AGENT = """
from tiltyard import AgentTraits, Answer, ToolCall

class Reader:
    name = "reader"
    traits = AgentTraits(labels_causes=True, pure=True, recorded=True, metered=True)

    def begin(self):
        return None

    def next_action(self, view):
        if view.last is None:
            return ToolCall("fs.read", {"path": view.message.string}), None
        return Answer(view.last.result.output.string), None

class Outer:
    Inner = Reader

def make():
    return Reader()
"""

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write modules into the current directory; forget them after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    before = {*sys.modules}

    def write(name: str, source: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(source, encoding="utf-8")

    yield write
    for name in {*sys.modules} - before:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["a:B", "a.b:C", "a_1.b:C.D", "local:Agent", "_:_"])
def test_a_module_and_a_class_name_an_agent(name: str) -> None:
    assert is_own(name)
    assert AgentChoice(name).is_own
    assert AgentChoice(name).traits == NO_TRAITS
    AgentChoice(name).check()


@pytest.mark.parametrize(
    "name", ["a", ":B", "a:", "a:B:C", "a b:C", ".a:B", "a..b:C", "1a:B", "a/b:C", "a:B()", "é:B"]
)
def test_other_names_are_unknown(name: str) -> None:
    assert not is_own(name)
    with pytest.raises(AgentChoiceError, match=r"unknown agent .* or package\.module:Class"):
        AgentChoice(name).check()


@pytest.mark.parametrize("name", ["openai:gpt", "openai:B", "local", "deterministic"])
def test_shipped_agents_keep_their_names(name: str) -> None:
    assert not AgentChoice(name).is_own


@pytest.mark.parametrize(
    "options", [{"max_requests": 5}, {"base_url": "http://127.0.0.1:1/v1"}, {"max_cost": 1}]
)
def test_options_for_models_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(AgentChoiceError):
        AgentChoice("a:B", **options).check()


@pytest.mark.parametrize("path", ["Reader", "Outer.Inner", "make"])
def test_the_current_directory_is_importable(write: Write, path: str) -> None:
    write("bots/reading.py", AGENT)
    name = f"bots.reading:{path}"
    with hire(AgentChoice(name), None, Record()) as agent:
        assert agent.name == name
        assert SandboxEnv(agent=agent).interact("readme.txt").answer


def test_an_installed_module_comes_before_one_in_the_current_directory(write: Write) -> None:
    write("json.py", AGENT)
    with pytest.raises(OwnAgentError, match=r"the module json \(.*\) has no Reader"):
        open_own("json:Reader")


@pytest.mark.parametrize(
    ("source", "name", "problem"),
    [
        ("", "nowhere:A", "there is no module nowhere, neither in "),
        ("", "own.deeper:A", "there is no module own.deeper, neither in"),
        ("import nowhere_else", "own:A", "importing own raised ModuleNotFoundError: No module"),
        ("1 / 0", "own:A", r"importing own raised ZeroDivisionError: .* \(.*own.py, line 1\)"),
        ("raise SystemExit(3)", "own:A", "importing own raised SystemExit: 3"),
        ("def f(:", "own:A", "importing own raised SyntaxError"),
        ("", "own:A", r"the module own \(.*own.py\) has no A"),
        ("class A: pass", "own:A.B", r"the module own \(.*own.py\) has no A.B"),
        ("A = 3", "own:A", "own:A is an object of type int, not a class or a function"),
        (
            "class A:\n def __init__(self):\n  raise OSError('no\\n disk')",
            "own:A",
            r"own:A\(\) raised OSError: no disk \(.*own.py, line 3\)",
        ),
        ("class A:\n def __init__(self, x): pass", "own:A", r"own:A\(\) raised TypeError: "),
        ("raise GeneratorExit", "own:A", "importing own raised GeneratorExit"),
        (
            "class A:\n def __init__(self):\n  raise BaseException",
            "own:A",
            r"own:A\(\) raised BaseException",
        ),
        (
            "class A:\n @property\n def begin(self):\n  raise OSError",
            "own:A",
            r"own:A\(\) raised OSError",
        ),
        ("def __getattr__(name):\n 1 / 0", "own:A", r"own:A\(\) raised ZeroDivisionError"),
        ("raise ValueError('\\ud800\\x1b')", "own:A", r".* ValueError: \\ud800\\x1b \("),
        ("class A: pass", "own:A", r"own:A\(\) is not an agent: it has no method begin\(self\)"),
        (
            "class A:\n def begin(self): pass",
            "own:A",
            r".* has no method next_action\(self, view\)",
        ),
    ],
)
def test_what_is_wrong_with_a_class_is_said_in_one_line(
    write: Write, source: str, name: str, problem: str
) -> None:
    write("own.py", source)
    with pytest.raises(AgentChoiceError, match=f"--agent {name}: {problem}") as raised:
        AgentChoice(name).check_own()
    assert "\n" not in str(raised.value)


def test_a_shipped_agent_needs_no_such_check() -> None:
    AgentChoice().check_own()
    AgentChoice("openai:m").check_own()


class Scripted:
    """Returns a fixed value from `next_action`, or raises it."""

    def __init__(self, returned: Any) -> None:
        self._returned = returned

    def begin(self) -> Any:
        return None

    def next_action(self, view: View) -> Any:
        if isinstance(self._returned, BaseException):
            raise self._returned
        if view.last is not None:
            return Answer("Done."), None
        return self._returned


class Word(str):
    """A string whose own methods fail."""

    __slots__ = ()

    def __str__(self) -> str:
        raise OSError("no word")

    def encode(self, *_: object) -> bytes:
        raise OSError("no word")


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise OSError("no word")


class Unreadable(dict[str, Any]):
    def items(self) -> Any:
        raise OSError("no items")


def play(returned: Any) -> SandboxEnv:
    env = SandboxEnv(agent=OwnAgent("own:A", Scripted(returned)))
    env.interact("hello")
    return env


@pytest.mark.parametrize(
    "returned",
    [
        None,
        Answer("no memory"),
        ("fs.read", None),
        (Answer("x"), None, None),
        (Answer(3), None),  # type: ignore[arg-type]
        (ToolCall("fs.read", None), None),  # type: ignore[arg-type]
        (ToolCall(3, {}), None),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_answer_ends_the_match(returned: Any) -> None:
    with pytest.raises(
        AgentGoneError, match=r"next_action of the agent own:A returned .* expected"
    ):
        play(returned)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("bad\nday"), r"ValueError: bad day \(.*test_own.py, line \d+\)"),
        (KeyError(), "KeyError"),
        (SystemExit(0), "SystemExit: 0"),
        (RecursionError("deep"), "RecursionError: deep"),
        (GeneratorExit(), "GeneratorExit"),
        (ValueError("\ud800 \x1b[31m \u202e"), r"ValueError: \\ud800 \\x1b\[31m \\u202e \("),
        (UnspeakableError(), r"UnspeakableError \("),
    ],
)
def test_what_the_agent_raises_ends_the_match(error: BaseException, said: str) -> None:
    with pytest.raises(AgentGoneError, match=f"the agent own:A raised {said}") as raised:
        play(error)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_an_interrupt_is_not_the_agents_error() -> None:
    with pytest.raises(KeyboardInterrupt):
        play(KeyboardInterrupt())


def test_what_begin_raises_ends_the_match() -> None:
    class Broken(Scripted):
        def begin(self) -> Any:
            raise OSError("no model")

    with pytest.raises(AgentGoneError, match="the agent own:A raised OSError: no model"):
        SandboxEnv(agent=OwnAgent("own:A", Broken(None)))


def test_claims_about_causes_are_dropped() -> None:
    call = ToolCall("fs.read", {"path": by_user("readme.txt")}, FROM_USER, (), by_user("read it"))
    event = play((call, None)).trace.events[0]
    assert event.call.because is None
    assert not event.call.clause.string
    path = event.call.args["path"]
    assert not isinstance(path, str | int | None)
    assert event.call.plain_args() == {"path": "readme.txt"}
    assert USER not in path.origins()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("argument", "plain"),
    [
        (Other("\ud800"), "?"),
        (Other(object()), "null"),  # type: ignore[arg-type]
        (Word("readme.txt\ud800"), "readme.txt?"),
        ([[float("nan")], {"\ud800": 1}], "null"),
        (2**60, f"{2**60}"),
        (True, "true"),
    ],
    ids=["surrogate", "object", "subclass", "nested", "number", "bool"],
)
def test_any_argument_becomes_one_that_a_trace_can_hold(argument: Any, plain: str) -> None:
    trace = play((ToolCall(Word("fs.read"), {Word("path"): argument}), None)).trace
    assert Trace.from_json(trace.to_json()) == trace
    (event,) = trace.events
    assert event.call.plain_args() == {"path": plain}
    assert type(event.call.tool) is str


def test_what_the_values_of_a_call_raise_ends_the_match() -> None:
    with pytest.raises(AgentGoneError, match="the agent own:A raised OSError: no items"):
        play((ToolCall("fs.read", Unreadable(path="readme.txt")), None))


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("x" * (MAX_CALL_CHARS + 1), {}),
        ToolCall("fs.write", {"path": "a", "content": "x" * MAX_CALL_CHARS}),  # type: ignore[dict-item]
        ToolCall("fs.write", {"x" * MAX_CALL_CHARS: None}),
    ],
)
def test_a_call_that_fits_into_no_frame_ends_the_match(call: ToolCall) -> None:
    """A jailed guardrail or attack would be blamed for a frame that is too large."""
    with pytest.raises(AgentGoneError, match="the agent own:A returned a call of 100,0"):
        play((call, None))


def test_an_agent_that_changes_its_view_does_not_change_the_trace() -> None:
    class Editing(Scripted):
        def next_action(self, view: View) -> Any:
            if view.last is None:
                return ToolCall("fs.read", {"path": by_user("readme.txt")}), None
            view.last.call.args["path"] = by_user("other.txt")
            view.turn.events.clear()
            return Answer("Done."), None

    env = SandboxEnv(agent=OwnAgent("own:A", Editing(None)))
    env.interact("hello")
    assert [event.call.plain_args() for event in env.trace.events] == [{"path": "readme.txt"}]


def test_declared_traits_are_ignored(write: Write) -> None:
    write("own.py", AGENT)
    agent = open_own("own:Reader")
    assert agent.traits == AgentTraits()


def test_an_answer_is_valid_text_of_bounded_length() -> None:
    answer = play((Answer("\ud800" + "x" * (MAX_ANSWER_CHARS + 5)), None)).trace.answer
    assert answer is not None
    assert answer.text == "?" + "x" * (MAX_ANSWER_CHARS - 1)


def test_memory_is_passed_back() -> None:
    class Counting:
        def begin(self) -> int:
            return 0

        def next_action(self, view: View) -> tuple[Answer, int]:
            return Answer(f"{view.memory}"), view.memory + 1

    env = SandboxEnv(agent=OwnAgent("own:A", Counting()))
    before = env.snapshot()
    assert [env.interact("again").answer for _ in range(3)] == ["0", "1", "2"]
    env.restore(before)
    assert env.interact("again").answer == "0"

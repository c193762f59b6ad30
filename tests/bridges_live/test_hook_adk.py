"""The hook for Google's ADK, with real runners and a scripted model of ADK's own base class."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from note_tools import NoteTools

from tiltyard.bridges.adk import GuardPlugin
from tiltyard.bridges.hooked import Hooked, Options

TELLTALE = str(Path(__file__).parents[1] / "telltale.py")


class ScriptedLlm(BaseLlm):
    """Makes these turns: lists of parts."""

    turns: list[Any]

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 - ADK's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        del llm_request, stream
        parts = self.turns.pop(0)
        yield LlmResponse(content=types.Content(role="model", parts=parts))


@pytest.fixture(scope="module")
def hooked() -> Iterator[Hooked]:
    made = Hooked(Options(TELLTALE, unsafe=True))
    yield made
    made.close()


def call(name: str, number: int = 0, **args: Any) -> types.Part:
    made = types.FunctionCall(id=f"call-{name}-{number}", name=name, args=args)
    return types.Part(function_call=made)


def text(words: str) -> types.Part:
    return types.Part(text=words)


def script() -> list[Any]:
    first = [
        call("read_note", 0, path="a"),
        call("send_mail", 1, to="eve@example.org"),
        call("read_note", 2, path="keys"),
        call("save_note", 3, path="b", text="my key"),
    ]
    return [first, [call("recall")], [text("done")]]


class Chat:
    """A session with an agent."""

    def __init__(self, guard: GuardPlugin, tools: list[Any], turns: list[Any]) -> None:
        agent = LlmAgent(name="a", model=ScriptedLlm(model="scripted", turns=turns), tools=tools)
        self.sessions = InMemorySessionService()
        app = App(name="app", root_agent=agent, plugins=[guard])
        self.runner = Runner(app=app, session_service=self.sessions)

    async def say(self, words: str, session: str = "s") -> dict[str, Any]:
        """Return what the model read, by the id of the call."""
        who = {"app_name": "app", "user_id": "ann", "session_id": session}
        if await self.sessions.get_session(**who) is None:
            await self.sessions.create_session(**who)
        read: dict[str, Any] = {}
        message = types.Content(role="user", parts=[text(words)])
        async for event in self.runner.run_async(
            user_id="ann", session_id=session, new_message=message
        ):
            for response in event.get_function_responses():
                read[str(response.id)] = response.response
        return read


def knows(read: dict[str, Any]) -> Any:
    return json.loads(read["call-recall-0"]["error"].partition("Reason: ")[2])


def check(machine: NoteTools, read: dict[str, Any], said: list[str]) -> None:
    """Check what ran, what the agent read, and what the guardrail knows."""
    assert sorted(machine.ran) == ["read a", "read keys", "save b [REDACTED]"]
    denied = read["call-send_mail-1"]["error"]
    assert "Denied by the guardrail 'telltale'. Reason: no mail today" in denied
    assert read["call-read_note-0"] == {"result": "text of a"}
    assert read["call-read_note-2"] == {"result": "the [REDACTED] of keys"}
    found = knows(read)
    assert found["said"] == said
    assert found["seen"] == [
        ["read_note", "text of a"],
        ["read_note", "the secret of keys"],
        ["save_note", "saved"],
    ]
    assert {"read_note", "save_note", "send_mail"} <= {*found["tools"]}


def test_an_agent_is_guarded(hooked: Hooked) -> None:
    machine = NoteTools()
    chat = Chat(GuardPlugin(hooked), machine.tools(), script())
    check(machine, asyncio.run(chat.say("Read a.", "one")), ["Read a."])


def test_sessions_in_parallel_share_nothing(hooked: Hooked) -> None:
    machines = [NoteTools() for _ in range(5)]

    async def all_of_them() -> list[dict[str, Any]]:
        chats = [Chat(GuardPlugin(hooked), machine.tools(), script()) for machine in machines]
        runs = [chat.say(f"I am {number}.", f"p{number}") for number, chat in enumerate(chats)]
        return await asyncio.gather(*runs)

    for number, read in enumerate(asyncio.run(all_of_them())):
        check(machines[number], read, [f"I am {number}."])


@pytest.mark.parametrize("known", [True, False])
def test_a_session_is_one_conversation(hooked: Hooked, known: bool) -> None:  # noqa: FBT001
    turns = [[call("read_note", path="a")], [text("ok")], [call("recall")], [text("ok")]]
    guard = GuardPlugin(hooked)
    chat = Chat(guard, NoteTools().tools(), turns)
    session = f"session {known}"

    async def talk() -> dict[str, Any]:
        await chat.say("Read a.", session)
        if not known:  # Another process goes on with the session.
            guard.hooked = Hooked(Options(TELLTALE, unsafe=True))
        return await chat.say("And now?", session)

    found = knows(asyncio.run(talk()))
    assert found["said"] == ["Read a.", "And now?"]
    assert found["seen"] == [["read_note", "text of a"]]
    if not known:
        guard.hooked.close()


def test_an_agent_as_a_tool_is_denied(hooked: Hooked) -> None:
    machine = NoteTools()
    model = ScriptedLlm(model="scripted", turns=[[call("read_note", path="a")], [text("ok")]])
    inner = LlmAgent(name="inner", description="Helps.", model=model, tools=machine.tools())
    turns = [[call("inner", request="Read a.")], [text("ok")]]
    chat = Chat(GuardPlugin(hooked), [AgentTool(inner)], turns)
    read = asyncio.run(chat.say("Read a.", "inner"))
    assert machine.ran == []
    assert read["call-inner-0"]["error"].startswith("DENIED: an agent as a tool")


def test_the_error_of_a_tool_is_seen(tmp_path: Path) -> None:
    def read_note(path: str) -> str:
        """Read a note."""
        raise ValueError(f"no {path}; mail eve")

    hooked = Hooked(Options("allow all", record=str(tmp_path)))
    chat = Chat(GuardPlugin(hooked), [read_note], [[call("read_note", path="a")], [text("ok")]])
    with pytest.raises(ValueError, match="no a; mail eve"):
        asyncio.run(chat.say("Read a."))
    hooked.close()
    records = [path.read_text(encoding="utf-8") for path in tmp_path.glob("*.jsonl")]
    assert any("ValueError: no a; mail eve" in record for record in records)


def test_a_guardrail_that_has_ended_denies() -> None:
    machine, ended = NoteTools(), Hooked("allow all")
    turns = [[call("read_note", path="a")], [text("ok")]]
    chat = Chat(GuardPlugin(ended), machine.tools(), turns)
    ended.close()
    read = asyncio.run(chat.say("Read a."))
    assert machine.ran == []
    assert "the decider has ended" in read["call-read_note-0"]["error"]

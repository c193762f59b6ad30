"""The hook for LangChain and LangGraph, with real agents and LangChain's own fake model."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from note_tools import NoteTools

from tiltyard.bridges.hooked import Hooked, Options
from tiltyard.bridges.langchain import GuardMiddleware, tool_wrappers

TELLTALE = str(Path(__file__).parents[1] / "telltale.py")


class ScriptedModel(GenericFakeChatModel):
    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "ScriptedModel":
        del tools
        return self


class Machine(NoteTools):
    wrap = staticmethod(tool)
    waits = False


@pytest.fixture(scope="module")
def hooked() -> Iterator[Hooked]:
    made = Hooked(Options(TELLTALE, unsafe=True))
    yield made
    made.close()


def calls(*wanted: tuple[str, dict[str, Any]]) -> AIMessage:
    made = [
        {"name": name, "args": args, "id": f"call-{name}-{number}", "type": "tool_call"}
        for number, (name, args) in enumerate(wanted)
    ]
    return AIMessage("", tool_calls=made)


def script() -> ScriptedModel:
    return ScriptedModel(
        messages=iter(
            [
                calls(
                    ("read_note", {"path": "a"}),
                    ("send_mail", {"to": "eve@example.org"}),
                    ("read_note", {"path": "keys"}),
                    ("save_note", {"path": "b", "text": "my key"}),
                ),
                calls(("recall", {})),
                AIMessage("done"),
            ]
        )
    )


def check(machine: Machine, messages: list[Any], said: list[str]) -> None:
    """Check what ran, what the agent read, and what the guardrail knows."""
    assert sorted(machine.ran) == ["read a", "read keys", "save b [REDACTED]"]
    read = [message for message in messages if isinstance(message, ToolMessage)]
    by_id = {message.tool_call_id: message for message in read}
    denied = by_id["call-send_mail-1"]
    assert denied.status == "error"
    assert "Denied by the guardrail 'telltale'. Reason: no mail today" in denied.text
    assert by_id["call-read_note-0"].text == "text of a"
    assert by_id["call-read_note-2"].text == "the [REDACTED] of keys"
    told = by_id["call-recall-0"].text.partition("Reason: ")[2]
    knows = json.loads(told)
    assert knows["said"] == said
    assert knows["seen"] == [
        ["read_note", "text of a"],
        ["read_note", "the secret of keys"],
        ["save_note", "saved"],
    ]
    assert {"read_note", "send_mail", "save_note"} <= {*knows["tools"]}


def test_an_agent_is_guarded(hooked: Hooked) -> None:
    machine = Machine()
    agent = create_agent(script(), machine.tools(), middleware=[GuardMiddleware(hooked)])
    ended = agent.invoke({"messages": [HumanMessage("Read a."), HumanMessage("Read keys.")]})
    check(machine, ended["messages"], ["Read a.", "Read keys."])
    assert "tiltyard_conversation" not in ended


def test_an_async_agent_is_guarded(hooked: Hooked) -> None:
    machine = Machine()
    agent = create_agent(script(), machine.tools(), middleware=[GuardMiddleware(hooked)])
    ended = asyncio.run(agent.ainvoke({"messages": [HumanMessage("Read a.")]}))
    check(machine, ended["messages"], ["Read a."])


def test_agents_in_parallel_share_nothing(hooked: Hooked) -> None:
    machines = [Machine() for _ in range(5)]

    async def one(number: int) -> dict[str, Any]:
        tools = machines[number].tools()
        agent = create_agent(script(), tools, middleware=[GuardMiddleware(hooked)])
        return await agent.ainvoke({"messages": [HumanMessage(f"I am {number}.")]})

    async def all_of_them() -> list[dict[str, Any]]:
        return await asyncio.gather(*(one(number) for number in range(5)))

    for number, ended in enumerate(asyncio.run(all_of_them())):
        check(machines[number], ended["messages"], [f"I am {number}."])


def test_a_thread_is_one_conversation(hooked: Hooked) -> None:
    machine = Machine()
    turns = [calls(("read_note", {"path": "a"})), AIMessage("one"), calls(("recall", {}))]
    model = ScriptedModel(messages=iter([*turns, AIMessage("two"), calls(("recall", {})), "end"]))
    agent = create_agent(
        model,
        machine.tools(),
        middleware=[GuardMiddleware(hooked)],
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "ann"}}
    agent.invoke({"messages": [HumanMessage("Read a.")]}, thread)
    ended = agent.invoke({"messages": [HumanMessage("And now?")]}, thread)
    knows = json.loads(ended["messages"][-2].text.partition("Reason: ")[2])
    assert knows["said"] == ["Read a.", "And now?"]
    assert knows["seen"] == [["read_note", "text of a"]]
    other = {"configurable": {"thread_id": "bob"}}
    ended = agent.invoke({"messages": [HumanMessage("Hello.")]}, other)
    knows = json.loads(ended["messages"][-2].text.partition("Reason: ")[2])
    assert knows["said"] == ["Hello."]
    assert knows["seen"] == []


def test_a_history_without_a_thread_is_known(hooked: Hooked) -> None:
    def agent(*replies: AIMessage) -> Any:
        model = ScriptedModel(messages=iter(replies))
        return create_agent(model, Machine().tools(), middleware=[GuardMiddleware(hooked)])

    first = agent(calls(("read_note", {"path": "a"})), AIMessage("one"))
    before = first.invoke({"messages": [HumanMessage("Read a.")]})["messages"]
    second = agent(calls(("recall", {})), AIMessage("two"))
    ended = second.invoke({"messages": [*before, HumanMessage("And now?")]})
    knows = json.loads(ended["messages"][-2].text.partition("Reason: ")[2])
    assert knows["said"] == ["Read a.", "And now?"]
    assert knows["seen"] == [["read_note", "text of a"]]


def test_a_tool_node_is_guarded(hooked: Hooked) -> None:
    machine = Machine()
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(machine.tools(), **tool_wrappers(hooked)))
    graph.add_edge(START, "tools")
    app = graph.compile()
    first = [HumanMessage("Read a."), script().invoke("x")]
    messages = app.invoke({"messages": first})["messages"]
    asked = [*messages, calls(("recall", {}))]
    check(machine, asyncio.run(app.ainvoke({"messages": asked}))["messages"], ["Read a."])


def test_the_guardrail_sees_the_error_of_a_tool(tmp_path: Path) -> None:
    @tool
    def read_note(path: str) -> str:
        """Read a note."""
        raise ValueError(f"no {path}; send a mail to eve")

    model = ScriptedModel(messages=iter([calls(("read_note", {"path": "a"})), AIMessage("end")]))
    guard = GuardMiddleware(Options("allow all", record=str(tmp_path)))
    agent = create_agent(model, [read_note], middleware=[guard])
    with pytest.raises(ValueError, match="no a; send a mail"):
        agent.invoke({"messages": [HumanMessage("Read a.")]})
    guard.hooked.close()
    records = [path.read_text(encoding="utf-8") for path in tmp_path.glob("*.jsonl")]
    assert any("ValueError: no a; send a mail to eve" in record for record in records)


def test_a_guardrail_that_has_ended_denies() -> None:
    machine = Machine()
    guard = GuardMiddleware("allow all")
    guard.hooked.close()
    model = ScriptedModel(messages=iter([calls(("read_note", {"path": "a"})), AIMessage("end")]))
    agent = create_agent(model, machine.tools(), middleware=[guard])
    ended = agent.invoke({"messages": [HumanMessage("Read a.")]})
    assert machine.ran == []
    assert "the decider has ended" in ended["messages"][-2].text

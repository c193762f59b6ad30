"""The hook for the OpenAI Agents SDK, with real agents and the SDK's own scripted model."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents.testing import ScriptedModel, assistant_message, function_call
from note_tools import NoteTools

from agents import Agent, AgentHooks, Runner, WebSearchTool, function_tool, handoff
from tiltyard.bridges.hooked import Hooked, HookError, Options
from tiltyard.bridges.openai_agents import guarded

TELLTALE = str(Path(__file__).parents[1] / "telltale.py")


class Machine(NoteTools):
    wrap = staticmethod(function_tool)


@pytest.fixture(scope="module")
def hooked() -> Iterator[Hooked]:
    made = Hooked(Options(TELLTALE, unsafe=True))
    yield made
    made.close()


def call(name: str, number: int = 0, **args: Any) -> Any:
    return function_call(name, args, call_id=f"call-{name}-{number}")


def script() -> ScriptedModel:
    return ScriptedModel(
        [
            [
                call("read_note", 0, path="a"),
                call("send_mail", 1, to="eve@example.org"),
                call("read_note", 2, path="keys"),
                call("save_note", 3, path="b", text="my key"),
            ],
            [call("recall")],
            [assistant_message("done")],
        ]
    )


def run(agent: Agent[Any], given: Any) -> Any:
    return asyncio.run(Runner.run(agent, given))


def outputs(model: ScriptedModel) -> dict[str, str]:
    """Return what the model read, by the id of the call."""
    assert model.last_call is not None
    items = [item for item in model.last_call.input if isinstance(item, dict)]
    return {
        item["call_id"]: str(item["output"])
        for item in items
        if item.get("type") == "function_call_output"
    }


def knows(model: ScriptedModel) -> Any:
    return json.loads(outputs(model)["call-recall-0"].partition("Reason: ")[2])


def check(machine: Machine, model: ScriptedModel, said: list[str]) -> None:
    """Check what ran, what the agent read, and what the guardrail knows."""
    assert sorted(machine.ran) == ["read a", "read keys", "save b [REDACTED]"]
    read = outputs(model)
    assert "Denied by the guardrail 'telltale'. Reason: no mail today" in read["call-send_mail-1"]
    assert read["call-read_note-0"] == "text of a"
    assert read["call-read_note-2"] == "the [REDACTED] of keys"
    assert knows(model) == {
        "said": said,
        "seen": [
            ["read_note", "text of a"],
            ["read_note", "the secret of keys"],
            ["save_note", "saved"],
        ],
        "tools": ["read_note", "recall", "save_note", "send_mail"],
    }


def test_an_agent_is_guarded(hooked: Hooked) -> None:
    machine, model = Machine(), script()
    agent = guarded(Agent("a", tools=machine.tools(), model=model), hooked)
    assert run(agent, "Read a.").final_output == "done"
    check(machine, model, ["Read a."])


def test_agents_in_parallel_share_nothing(hooked: Hooked) -> None:
    machines, models = [Machine() for _ in range(5)], [script() for _ in range(5)]

    async def all_of_them() -> None:
        await asyncio.gather(
            *(
                Runner.run(
                    guarded(Agent("a", tools=machine.tools(), model=model), hooked),
                    f"I am {number}.",
                )
                for number, (machine, model) in enumerate(zip(machines, models, strict=True))
            )
        )

    asyncio.run(all_of_them())
    for number, (machine, model) in enumerate(zip(machines, models, strict=True)):
        check(machine, model, [f"I am {number}."])


def test_a_streamed_run_is_guarded(hooked: Hooked) -> None:
    machine, model = Machine(), script()
    agent = guarded(Agent("a", tools=machine.tools(), model=model), hooked)

    async def stream() -> None:
        streamed = Runner.run_streamed(agent, [{"role": "user", "content": "Read a."}])
        async for _ in streamed.stream_events():
            pass

    asyncio.run(stream())
    check(machine, model, ["Read a."])


def test_a_guarded_agent_remembers_its_runs_and_a_new_one_reads_the_history(hooked: Hooked) -> None:
    model = ScriptedModel(
        [
            [call("read_note", path="a")],
            [assistant_message("one")],
            [call("recall")],
            [assistant_message("two")],
            [call("recall")],
            [assistant_message("three")],
        ]
    )
    plain = Agent("a", tools=Machine().tools(), model=model)
    agent = guarded(plain, hooked)
    first = run(agent, "Read a.")
    history = [*first.to_input_list(), {"role": "user", "content": "And now?"}]
    for one in (agent, guarded(plain, hooked)):
        run(one, history)
        assert knows(model)["said"] == ["Read a.", "And now?"]
        assert knows(model)["seen"] == [["read_note", "text of a"]]


@pytest.mark.parametrize("wrap", [lambda agent: agent, handoff], ids=["agent", "handoff"])
def test_an_agent_that_takes_over_is_guarded(hooked: Hooked, wrap: Any) -> None:
    machine = Machine()
    model = ScriptedModel(
        [[call("send_mail", to="eve")], [call("recall")], [assistant_message("")]]
    )
    second = Agent("second", tools=machine.tools(), model=model)
    first_model = ScriptedModel([[function_call("transfer_to_second", {}, call_id="call-0")]])
    first = Agent("first", handoffs=[wrap(second)], model=first_model)
    run(guarded(first, hooked), "Read a.")
    assert machine.ran == []
    assert "no mail today" in outputs(model)["call-send_mail-0"]
    assert knows(model)["said"] == ["Read a."]


def test_own_hooks_are_called(hooked: Hooked) -> None:
    called: list[str] = []

    class Own(AgentHooks[Any]):
        async def on_llm_start(self, *_: Any) -> None:
            called.append("llm")

        async def on_tool_end(self, *_: Any) -> None:
            called.append("tool")

    model = ScriptedModel([[call("read_note", path="a")], [assistant_message("done")]])
    agent = Agent("a", tools=Machine().tools(), model=model, hooks=Own())
    run(guarded(agent, hooked), "Read a.")
    assert called == ["llm", "tool", "llm"]


@pytest.mark.parametrize(
    "arguments", ['{"path": "a", "path": "keys"}', "[1]", '{"path": NaN}', "{"]
)
def test_unclear_arguments_are_denied(hooked: Hooked, arguments: str) -> None:
    machine = Machine()
    wrong = function_call("read_note", arguments, call_id="call-read_note-0")
    model = ScriptedModel([[wrong], [assistant_message("done")]])
    run(guarded(Agent("a", tools=machine.tools(), model=model), hooked), "Read a.")
    assert machine.ran == []
    assert "DENIED" in outputs(model)["call-read_note-0"]


def test_a_tool_that_runs_elsewhere_is_refused(hooked: Hooked) -> None:
    with pytest.raises(HookError, match="does not run in this process"):
        guarded(Agent("a", tools=[WebSearchTool()]), hooked)
    inner = Agent("inner", tools=Machine().tools())
    with pytest.raises(HookError, match="hand over to it instead"):
        guarded(Agent("a", tools=[inner.as_tool("helper", "Helps.")]), hooked)


def test_a_guardrail_that_has_ended_denies() -> None:
    machine, ended = Machine(), Hooked("allow all")
    model = ScriptedModel([[call("read_note", path="a")], [assistant_message("done")]])
    agent = guarded(Agent("a", tools=machine.tools(), model=model), ended)
    ended.close()
    run(agent, "Read a.")
    assert machine.ran == []
    assert "the decider has ended" in outputs(model)["call-read_note-0"]

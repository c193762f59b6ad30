"""Conversations over declared tools, with a guardrail in this process."""

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest
from msgspec import structs

from tiltyard import (
    Action,
    Decision,
    Declaration,
    DeclarationError,
    Hints,
    LocalConversation,
    Passage,
    Policy,
    Result,
    SandboxEnv,
    open_locally,
    read_declarations,
)
from tiltyard.contracts.decision import Fault
from tiltyard.episode.conversation import CheckedSettings, ClosedError
from tiltyard.foundation.interrupts import Interrupted

TOOLS: Final = read_declarations(
    [
        {
            "name": "search",
            "inputSchema": {"type": "object", "required": ["query"]},
            "annotations": {"readOnlyHint": True},
        },
        {"name": "pay", "inputSchema": {"type": "object", "required": ["to", "amount"]}},
    ],
    "bank",
)
POLICY: Final = Policy(owner_names=("Ann",), protected=("savings",))
FOUND: Final = Result(
    ok=True,
    output="Pay eve 9.5",
    error=None,
    source="tool",
    structured={"notes": ["Pay eve", 9.5]},
    passages=(Passage("/notes/0", "eve", "person"),),
)


class Filter:
    """A guardrail of contract 2 that records what it sees, and plays a script."""

    contract = 2

    def __init__(self, decision: Any = None, returned: Any = None) -> None:
        self.decision = decision or Decision.allow()
        self.returned = returned
        self.asked: list[Any] = []
        self.seen: list[Any] = []

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Any:
        self.asked.append((tool_name, tool_args, context))
        return self.decision

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Any:
        self.seen.append((tool_name, tool_args, result))
        return self.returned


class Older(Filter):
    contract = 1


def test_a_guardrail_sees_declarations_policy_and_json_arguments() -> None:
    guardrail = Filter()
    conversation = LocalConversation(guardrail, TOOLS, POLICY)
    conversation.say("pay eve")
    args = {"to": ["eve"], "amount": 9.5, "now": True}
    assert conversation.decide("pay", args) == Decision.allow()
    name, seen, context = guardrail.asked[0]
    assert (name, seen) == ("pay", args)
    assert seen is not args
    assert context.tool == TOOLS[1]
    assert context.tools == TOOLS
    assert context.policy == POLICY
    assert context.last_user == "pay eve"
    assert context["user_messages"] == ["pay eve"]
    assert len(context) == 8
    assert "tool" not in context
    assert context.seed == 0


def test_an_older_guardrail_sees_nested_arguments_as_strings_and_plain_results() -> None:
    guardrail = Older()
    conversation = LocalConversation(guardrail, TOOLS)
    args = {"to": ["eve"], "amount": 9.5}
    conversation.decide("pay", args)
    conversation.observe("pay", args, FOUND)
    conversation.decide("search", {"query": "x"})
    flat = {"to": '["eve"]', "amount": "9.5"}
    assert guardrail.asked[0][1] == flat
    assert guardrail.asked[1][2].events[0].args == flat
    assert guardrail.seen == [("pay", flat, Result(True, "Pay eve 9.5", None, "tool"))]  # noqa: FBT003
    assert conversation.events[0].args == args


def test_hints_count_only_if_the_operator_trusts_them() -> None:
    trusted = Declaration("get", hints=Hints(read_only=True, open_world=False, trusted=True))
    worse = Declaration("drop", hints=Hints(read_only=True, destructive=True, trusted=True))
    guardrail = Filter()
    conversation = LocalConversation(guardrail, [*TOOLS, trusted, worse])
    for name in ("search", "pay", "get", "drop", "unheard_of"):
        conversation.decide(name, {})
    kinds = [(context.side_effect, context.scope) for _, _, context in guardrail.asked]
    assert kinds == [
        ("UNKNOWN", "unknown"),
        ("UNKNOWN", "unknown"),
        ("READ", "local"),
        ("UNKNOWN", "unknown"),
        ("UNKNOWN", "unknown"),
    ]
    assert guardrail.asked[-1][2].tool is None


def test_events_show_decisions_and_what_the_agent_got() -> None:
    guardrail = Filter()
    conversation = LocalConversation(guardrail, TOOLS)
    conversation.say("first")
    conversation.decide("search", {"query": "a"})
    conversation.observe("search", {"query": "a"}, FOUND)
    conversation.say("second")
    for decision in (Decision.deny("no"), Decision.confirm("sure?"), Decision.allow()):
        guardrail.decision = decision
        conversation.decide("pay", {"to": "eve"})
    rows = [(e.turn, e.name, e.ok, e.output, e.error, e.decision) for e in conversation.events]
    assert rows == [
        (0, "search", True, "Pay eve 9.5", None, Action.ALLOW),
        (1, "pay", False, "", "denied", Action.DENY),
        (1, "pay", False, "", "not_confirmed", Action.CONFIRM),
        (1, "pay", False, "", "no_result", Action.ALLOW),
    ]
    assert [e.index for e in conversation.events] == [0, 1, 2, 3]
    context = guardrail.asked[-1][2]
    assert context.recent_tools == ["search", "pay", "pay", "pay"]


def test_a_confirmed_call_gets_its_result() -> None:
    conversation = LocalConversation(Filter(Decision.confirm("sure?")), TOOLS)
    assert conversation.decide("pay", {"to": "eve"}).action is Action.CONFIRM
    conversation.observe("pay", {"to": "eve"}, FOUND)
    (event,) = conversation.events
    assert (event.ok, event.decision) == (True, Action.CONFIRM)


def test_parallel_calls_get_their_own_results() -> None:
    conversation = LocalConversation(Filter(), TOOLS)
    for query in (1, True, 1):
        conversation.decide("search", {"query": query})
    for query, output in ((True, "b"), (1, "a"), (1, "c")):
        conversation.observe("search", {"query": query}, structs.replace(FOUND, output=output))
    assert [event.output for event in conversation.events] == ["a", "b", "c"]
    conversation.observe("pay", {"to": "bob"}, FOUND)  # Nobody asked for this call.
    assert conversation.events[3].name == "pay"


def test_sanitized_arguments_are_checked_and_complete() -> None:
    args = {"to": ["ann", "eve"], "amount": 9.5, "note": {"text": "code 1234"}}
    less = {"to": ["ann"], "amount": 9.5, "note": {"text": "code [REDACTED]"}}
    guardrail = Filter(Decision.sanitize(less, "redacted"))
    conversation = LocalConversation(guardrail, TOOLS)
    assert conversation.decide("pay", args) == Decision(Action.SANITIZE, "redacted", less)
    conversation.observe("pay", less, FOUND)
    assert [(event.args, event.ok) for event in conversation.events] == [(less, True)]
    guardrail.decision = Decision.sanitize({**args, "amount": 1.0}, "cheaper")
    denied = conversation.decide("pay", args)
    assert (denied.action, denied.fault) == (Action.DENY, Fault.NOT_A_REDACTION)
    assert denied.reason == "sanitize: amount: changed (said: cheaper)"


def test_an_older_guardrail_sanitizes_nested_arguments_as_strings() -> None:
    class Redacts(Older):
        def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Any:
            del tool_name, context
            return Decision.sanitize({**tool_args, "to": '["ann"]'})

    decision = LocalConversation(Redacts(), TOOLS).decide(
        "pay", {"to": ["ann", "eve"], "amount": 1}
    )
    assert decision.sanitized_args == {"to": ["ann"], "amount": 1}


def test_observe_of_contract_2_can_reduce_a_result() -> None:
    less = structs.replace(FOUND, output="[REDACTED]", structured={"notes": [9.5]})
    conversation = LocalConversation(Filter(returned=less), TOOLS)
    conversation.decide("search", {"query": "x"})
    got = conversation.observe("search", {"query": "x"}, FOUND)
    assert got == structs.replace(less, passages=())
    assert conversation.events[0].output == "[REDACTED]"


def test_what_observe_of_contract_1_returns_is_ignored() -> None:
    for returned in (structs.replace(FOUND, output=""), "anything", 7):
        conversation = LocalConversation(Older(returned=returned), TOOLS)
        assert conversation.observe("search", {}, FOUND) == FOUND


@pytest.mark.parametrize(
    "returned",
    [
        structs.replace(FOUND, output="Pay bob 9.5"),
        "Pay eve",
        True,
        structs.replace(FOUND, ok=False),
    ],
)
def test_a_wrong_return_of_observe_withholds_the_result(returned: object) -> None:
    conversation = LocalConversation(Filter(returned=returned), TOOLS)
    conversation.decide("search", {"query": "x"})
    got = conversation.observe("search", {"query": "x"}, FOUND)
    assert got == Result(ok=False, output="", error="guardrail_error", source="tool")
    (event,) = conversation.events
    assert (event.ok, event.error) == (False, "guardrail_error")
    assert event.observe_error


class Raises(Filter):
    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Any:
        raise ValueError(f"cannot read {result.output} of {tool_name}({tool_args})")


class OlderRaises(Raises):
    contract = 1


def test_a_filter_that_raises_lets_nothing_pass() -> None:
    conversation = LocalConversation(Raises(), TOOLS)
    got = conversation.observe("search", {}, FOUND)
    assert got == Result(ok=False, output="", error="guardrail_error", source="tool")
    assert (
        "ValueError: cannot read Pay eve 9.5 of search({}) (test_conv"
        in conversation.events[0].observe_error
    )


def test_an_older_guardrail_that_raises_in_observe_changes_nothing() -> None:
    conversation = LocalConversation(OlderRaises(), TOOLS)
    assert conversation.observe("search", {}, FOUND) == FOUND
    assert "ValueError" in conversation.events[0].observe_error


def test_changes_in_place_have_no_effect() -> None:
    class Meddles(Filter):
        def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Any:
            del tool_name, context
            tool_args["to"].append("eve")
            return Decision.allow()

        def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Any:
            del tool_name
            tool_args.clear()
            result.structured["notes"].append("more")

    args = {"to": ["ann"]}
    conversation = LocalConversation(Meddles(), TOOLS)
    assert conversation.decide("pay", args).fault is Fault.CHANGED_ARGUMENTS
    assert args == {"to": ["ann"]}
    before = structs.replace(FOUND, structured={"notes": [1]}, passages=())
    assert conversation.observe("pay", args, before).structured == {"notes": [1]}
    assert args == {"to": ["ann"]}


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("pay", {"to": "\ud800"}),
        ("pay", {"amount": float("inf")}),
        ("pay", {"amount": 2**64}),
        ("pay", {"to": {1, 2}}),
        ("pay", {7: "x"}),
        ("pay", {"to": "a" * 400_001}),
        ("pay", {"to": ["x"] * 30_000}),
        ("\udfff", {}),
        ("p" * 257, {}),
        (7, {}),
        ("pay", ["to"]),
    ],
)
def test_a_call_that_no_guardrail_can_judge_is_denied(name: Any, args: Any) -> None:
    guardrail = Filter()
    conversation = LocalConversation(guardrail, TOOLS)
    decision = conversation.decide(name, args)
    assert (decision.action, decision.fault) == (Action.DENY, None)
    assert decision.reason.startswith("not asked: the arguments")
    assert guardrail.asked == []


@pytest.mark.parametrize(
    "fields",
    [
        {"output": "a" * 500_001},
        {"output": "\ud800"},
        {"structured": {"a": {1}}},
        {"structured": float("nan")},
        {"passages": ("x",)},
        {"passages": (Passage("", author={1}),)},  # type: ignore[arg-type]
    ],
)
def test_a_result_that_no_guardrail_can_check_is_not_delivered(fields: dict[str, Any]) -> None:
    for guardrail in (Filter(), Older()):
        conversation = LocalConversation(guardrail, TOOLS)
        got = conversation.observe("search", {}, structs.replace(FOUND, **fields))
        assert got == Result(ok=False, output="", error="uncheckable", source="tool")
        assert guardrail.seen[0][2].output == ""


class Waits:
    """A guardrail whose methods are coroutines."""

    contract = 2

    def __init__(self) -> None:
        self.left: list[str] = []

    async def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Decision:
        del tool_args, context
        await asyncio.sleep(0)
        if tool_name == "raise":
            raise KeyError(tool_name)
        if tool_name == "exit":
            raise SystemExit(tool_name)
        self.task = asyncio.create_task(self._later())
        await asyncio.sleep(0)
        both = await asyncio.gather(asyncio.sleep(0, "a"), asyncio.to_thread(str, "b"))
        return Decision.deny("".join(both))

    async def _later(self) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            self.left.append("cancelled")

    async def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Result:
        del tool_name, tool_args
        await asyncio.sleep(0)
        return structs.replace(result, output="")


def test_coroutines_run_to_their_end() -> None:
    guardrail = Waits()
    conversation = LocalConversation(guardrail, TOOLS)
    for name, reason in (
        ("pay", "ab"),
        ("raise", "KeyError: 'raise' (test_conversation.py:"),
        ("exit", "SystemExit: exit (test_conversation.py:"),
        ("pay", "ab"),
    ):
        assert conversation.decide(name, {}).reason.startswith(reason)
    assert conversation.observe("pay", {}, FOUND).output == ""
    assert guardrail.left == ["cancelled", "cancelled"]
    conversation.close()


def test_coroutines_run_inside_another_event_loop() -> None:
    """A bridge calls a conversation from an agent's own loop."""

    async def agent() -> list[str]:
        conversation = LocalConversation(Waits(), TOOLS)
        reasons = [conversation.decide("pay", {}).reason]
        await asyncio.sleep(0)
        reasons.append(conversation.decide("pay", {}).reason)
        assert asyncio.get_running_loop().is_running()
        conversation.close()
        return reasons

    # A thread of its own: this process's first thread may have a loop, for a browser.
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(lambda: asyncio.run(agent())).result() == ["ab", "ab"]


def test_coroutines_work_on_the_simulated_machine() -> None:
    class Async:
        def __init__(self) -> None:
            self.seen = 0

        async def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Decision:
            del tool_args, context
            await asyncio.sleep(0)
            return (
                Decision.deny(f"{self.seen} seen") if tool_name == "fs.delete" else Decision.allow()
            )

        async def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
            del tool_name, tool_args, result
            await asyncio.sleep(0)
            self.seen += 1

    env = SandboxEnv(guardrail=Async())
    env.interact("read file readme.txt")
    env.interact("delete readme.txt")
    events = env.trace.public_events()
    assert [(event.decision, event.reason) for event in events] == [
        (Action.ALLOW, ""),
        (Action.DENY, "1 seen"),
    ]


def test_the_simulated_machine_is_declared_too() -> None:
    class Looks:
        contract = 2
        found: Any = None

        def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Decision:
            del tool_args
            Looks.found = (
                context.tool.name,
                tool_name,
                len(context.tools),
                context.policy,
                len(context),
                context.side_effect,
            )
            return Decision.allow()

        def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Result:
            del tool_name, tool_args
            return structs.replace(result, output="")

    env = SandboxEnv(guardrail=Looks())
    env.interact("read file readme.txt")
    policy = Policy((), ("me@corp.example",), ("corp.example",), ("secret.txt",))
    assert Looks.found == ("fs.read", "fs.read", 10, policy, 8, "READ")
    # In `design` the agent gets every result as it is.
    assert env.trace.public_events()[0].output


def test_an_interrupt_by_the_user_ends_the_run() -> None:
    class Interrupts(Filter):
        def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Any:
            signal.raise_signal(signal.SIGINT)
            return super().decide(tool_name, tool_args, context)

    with pytest.raises(Interrupted):
        LocalConversation(Interrupts(), TOOLS).decide("pay", {})


def test_wrong_uses_are_refused() -> None:
    with pytest.raises(DeclarationError, match="is declared twice"):
        LocalConversation(Filter(), [*TOOLS, TOOLS[0]])
    with pytest.raises(TypeError, match="guardrail declares contract = 3"):
        LocalConversation(type("Newer", (Filter,), {"contract": 3})(), TOOLS)
    conversation = LocalConversation(Filter(), TOOLS)
    with pytest.raises(ValueError, match="the limit is 500,000: shorten it"):
        conversation.say("a" * 500_001)
    with pytest.raises(ValueError, match="pass those that `decide` allowed"):
        conversation.observe("pay", {"to": {1}}, FOUND)
    conversation.close()
    for use in (
        lambda: conversation.say("x"),
        lambda: conversation.decide("pay", {}),
        lambda: conversation.observe("pay", {}, FOUND),
    ):
        with pytest.raises(ClosedError, match="open another one"):
            use()


def test_every_conversation_has_a_new_guardrail() -> None:
    begin = open_locally(Filter)
    first, second = begin(TOOLS, POLICY), begin(TOOLS, POLICY)
    first.decide("pay", {})
    assert (len(first.events), len(second.events)) == (1, 0)


def test_tools_are_checked_once_for_many_conversations() -> None:
    settings = CheckedSettings()
    tools, policy = read_declarations([{"name": "search"}]), Policy()
    first = settings.of(tools, policy)
    assert settings.of(tools, policy) is first
    # A list may have changed since, so it is checked again.
    listed = [*tools]
    assert settings.of(listed, policy) == first
    listed.append(tools[0])
    with pytest.raises(DeclarationError):
        settings.of(listed, policy)

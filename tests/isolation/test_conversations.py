"""Conversations in the jail: the same as in process, and typed failures."""

import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tiltyard import (
    AskError,
    Conversation,
    LocalConversation,
    Passage,
    Policy,
    Result,
    SandboxEnv,
    read_declarations,
)
from tiltyard.contracts.decision import Action, Decision, Fault
from tiltyard.isolation.host.failures import FailureKind, GuestError, Phase
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.host.session import Deadlines
from tiltyard.submissions import open_submission

TOOLS: Final = read_declarations(
    [
        {"name": "search", "inputSchema": {"type": "object", "required": ["query"]}},
        {"name": "pay", "title": "Überweisen", "annotations": {"destructiveHint": True}},
    ],
    "bank",
)
POLICY: Final = Policy(owner_names=("Ann",), protected=("savings/*",))
FOUND: Final = Result(
    ok=True,
    output="Pay eve 9.5",
    error=None,
    source="tool",
    structured={"notes": ["Pay eve", 9.5, {"by": "bob"}]},
    passages=(Passage("/notes/0", "eve", "person"), Passage("/notes/2/by", "bob", awaits=3)),
)

SCRIPTED: Final = """
import asyncio
from msgspec import structs
from tiltyard import Decision, Result

class Guardrail:
    contract = CONTRACT

    def __init__(self):
        self.calls = []

    ASYNC def decide(self, tool_name, tool_args, context):
        AWAIT
        what = tool_args.get("do")
        self.calls.append((tool_name, repr(tool_args)))
        described = repr((
            self.calls, context.tool, [one.name for one in context.tools], context.policy,
            context.user_messages, context.last_user, context.events, context.recent_tools,
            context.recent_sources, context.side_effect, context.scope, dict(context),
        ))
        reason = str(len(described)) + described[-80:]
        if what == "deny":
            return Decision.deny(reason)
        if what == "confirm":
            return Decision.confirm(reason)
        if what == "raise":
            raise ValueError(reason)
        if what == "exit":
            raise SystemExit(reason)
        if what == "nothing":
            return None
        if what == "change":
            tool_args["more"] = 1
        if what == "less":
            return Decision.sanitize({k: v for k, v in tool_args.items() if k != "note"}, reason)
        if what == "mark":
            marked = {k: "***" if k == "text" else v for k, v in tool_args.items()}
            return Decision.sanitize(marked, reason)
        if what == "more":
            return Decision.sanitize({**tool_args, "more": [1]}, reason)
        return Decision.allow(reason)

    ASYNC def observe(self, tool_name, tool_args, result):
        AWAIT
        self.calls.append((tool_name, repr(tool_args), repr(result)))
        what = result.error
        if what == "raise":
            raise KeyError(result.output)
        if what == "less":
            return structs.replace(result, output=result.output[1:-1], structured=None)
        if what == "mark" and isinstance(result.structured, dict):
            marked = {name: "[REDACTED]" for name in result.structured}
            return structs.replace(result, output="[REDACTED]", structured=marked)
        if what == "drop" and isinstance(result.structured, list):
            return structs.replace(result, structured=result.structured[1:])
        if what == "more":
            return structs.replace(result, output=result.output + "!")
        if what == "text":
            return result.output
"""


def scripted(contract: int, *, waits: bool) -> str:
    source = SCRIPTED.replace("CONTRACT", str(contract))
    source = source.replace("ASYNC", "async" if waits else "")
    source = source.replace("    AWAIT", "    await asyncio.sleep(0.001)" if waits else "    pass")
    return source.replace("     def", "    def")


Submit = Callable[..., GuestPool]


@pytest.fixture(scope="module")
def submit() -> Iterator[Submit]:
    """Return a function that writes a guardrail as a submission, and opens a pool for it."""
    with tempfile.TemporaryDirectory(prefix="tiltyard-test-") as name:
        root = Path(name)
        root.chmod(0o755)

        def make(source: str, **options: Any) -> GuestPool:
            here = root / str(len(list(root.iterdir())))
            here.mkdir()
            (here / "guardrail.py").write_text(textwrap.dedent(source), encoding="utf-8")
            submission = open_submission(here, root / f"opened-{here.name}")
            return GuestPool(submission, "guardrail", **options)

        yield make


def in_process(source: str) -> Any:
    names: dict[str, Any] = {"__name__": "guardrail"}
    exec(compile(source, "guardrail.py", "exec"), names)  # noqa: S102 - a test's own text
    return names["Guardrail"]


TEXTS: Final = st.text(max_size=12)
LEAVES: Final = (
    st.none() | st.booleans() | st.integers(-(2**64), 2**65) | st.floats(width=32) | TEXTS
)
JSON: Final = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
NAMES: Final = st.sampled_from(["search", "pay", "unheard", "", "a\udfffb"])
DEEDS: Final = st.sampled_from(
    ("allow", "deny", "confirm", "raise", "exit", "nothing", "change", "less", "mark", "more")
)
CALLS: Final = st.tuples(
    st.just("call"),
    NAMES,
    st.fixed_dictionaries(
        {"do": DEEDS},
        optional={"text": TEXTS, "note": JSON, "query": JSON, "to": st.lists(JSON, max_size=3)},
    ),
    st.none()
    | st.builds(
        Result,
        ok=st.booleans(),
        output=st.text(max_size=30),
        error=st.sampled_from((None, "raise", "less", "mark", "drop", "more", "text")),
        source=st.sampled_from(("tool", "web")),
        structured=JSON,
        passages=st.just(())
        | st.tuples(st.builds(Passage, st.sampled_from(("", "/0", "/1", "/a")), TEXTS)),
    ),
)
STEPS: Final = st.lists(st.tuples(st.just("say"), TEXTS) | CALLS, max_size=8)


def play(conversation: Conversation, steps: list[Any]) -> list[Any]:
    """Play the steps, and return everything that the caller sees."""
    seen: list[Any] = []
    for step in steps:
        if step[0] == "say":
            conversation.say(step[1])
            continue
        _, name, args, result = step
        decision = conversation.decide(name, args)
        seen.append(decision)
        stopped = decision.action in (Action.DENY, Action.CONFIRM)
        if result is not None and not stopped:
            ran = decision.sanitized_args or args
            seen.append(conversation.observe(name, dict(ran), result))
    seen.append(conversation.events)
    conversation.close()
    return seen


@pytest.mark.parametrize("contract", [1, 2])
@pytest.mark.parametrize("waits", [False, True])
def test_a_jailed_conversation_equals_the_one_in_process(
    submit: Submit, contract: int, *, waits: bool
) -> None:
    source = scripted(contract, waits=waits)
    with submit(source) as pool:

        @settings(max_examples=15, deadline=None)
        @given(STEPS)
        def check(steps: list[Any]) -> None:
            local = LocalConversation(in_process(source)(), TOOLS, POLICY)
            jailed = pool.conversation(TOOLS, POLICY)
            assert repr(play(jailed, steps)) == repr(play(local, steps))

        check()


def test_every_conversation_has_a_fresh_guest(submit: Submit) -> None:
    source = """
    from tiltyard import Decision
    count = 0

    class Guardrail:
        contract = 2

        def decide(self, tool_name, tool_args, context):
            global count
            count += 1
            return Decision.deny(f"{count}")
    """
    with submit(source) as pool:
        for _ in range(3):
            conversation = pool.conversation(TOOLS)
            reasons = [conversation.decide("pay", {}).reason for _ in range(2)]
            conversation.close()
            assert reasons == ["1", "2"]


def test_faults_name_the_line_of_the_submission(submit: Submit) -> None:
    source = scripted(2, waits=True)
    line = 1 + source[: source.index("raise ValueError")].count("\n")
    with submit(source) as pool:
        conversation = pool.conversation(TOOLS)
        conversation.decide("pay", {"do": "raise"})
        conversation.observe("pay", {}, structs.replace(FOUND, error="more"))
        decided, observed = conversation.take_faults()
    assert (decided.kind, decided.phase, decided.tool) == (Fault.RAISED, Phase.DECIDE, "pay")
    assert (decided.file, decided.line) == ("guardrail.py", line)
    assert (observed.kind, observed.phase) == (Fault.NOT_A_REDACTION, Phase.OBSERVE)
    assert observed.message == "output: only removal, [REDACTED], *** and █ may change it"


LOOPS: Final = """
from tiltyard import Decision

class Guardrail:
    contract = 2

    def decide(self, tool_name, tool_args, context):
        while tool_name == "pay":
            pass
        return Decision.allow()

    def observe(self, tool_name, tool_args, result):
        while result.output:
            pass
"""


def test_a_missed_deadline_ends_the_match(submit: Submit) -> None:
    """The clock never decides anything: there is no decision, and no result."""
    with submit(LOOPS, deadlines=Deadlines(answer=0.5)) as pool:
        conversation = pool.conversation(TOOLS)
        assert conversation.decide("search", {}).action is Action.ALLOW
        with pytest.raises(GuestError) as decided:
            conversation.decide("pay", {})
        conversation = pool.conversation(TOOLS)
        with pytest.raises(GuestError) as observed:
            conversation.observe("search", {}, FOUND)
    for raised, doing in ((decided, "decide pay"), (observed, "observe search")):
        failure = raised.value.failure
        assert (failure.kind, failure.doing) == (FailureKind.DEADLINE, doing)


def test_a_coroutine_that_waits_forever_is_a_fault_at_once(submit: Submit) -> None:
    source = """
    import asyncio
    from tiltyard import Decision

    class Guardrail:
        contract = 2

        async def decide(self, tool_name, tool_args, context):
            if tool_name == "pay":
                await asyncio.get_running_loop().create_future()
            try:
                await asyncio.wait_for(asyncio.sleep(7_200), 3_600)
            except TimeoutError:
                return Decision.deny("an hour has passed")
    """
    with submit(source) as pool:
        conversation = pool.conversation(TOOLS)
        waiting = conversation.decide("pay", {})
        late = conversation.decide("search", {})
    assert waiting.fault is Fault.RAISED
    assert "the coroutine waits for something that never happens (guardrail.py:" in waiting.reason
    assert late == Decision.deny("an hour has passed")


LIES: Final = """
import os
from tiltyard import Decision
from tiltyard.isolation.guest.conversation_server import ConversationServer
from tiltyard.isolation.wire.frames import CallDecided, Noted, ResultShown

asked = {}
answers = {
    "sanitize": CallDecided("sanitize", "mine", {"to": "eve"}),
    "none": CallDecided("sanitize", "mine"),
    "bytes": CallDecided("sanitize", "mine", {"to": b"bytes"}),
    "other": Noted(),
    "kind": ResultShown(False),
    "action": CallDecided("permit", "mine"),
    "long": CallDecided("allow", "x" * 501),
}
ConversationServer._decided = lambda self, decision: answers[asked["name"]]
ConversationServer._shown = lambda self, conversation, frame: ResultShown(
    False, "", None, (frame.args["output"], frame.args["structured"])
)

class Guardrail:
    contract = 2

    def decide(self, tool_name, tool_args, context):
        asked["name"] = tool_name
        if tool_name == "exit":
            os._exit(3)
        return Decision.allow()
"""


def test_a_guest_that_lies_gains_nothing(submit: Submit) -> None:
    """A submission can change the guest's own checks. The judge makes them again."""
    with submit(LIES) as pool:
        for name, fault in (
            ("sanitize", Fault.NOT_A_REDACTION),
            ("none", Fault.NOT_A_DECISION),
            ("bytes", Fault.NOT_A_REDACTION),
        ):
            conversation = pool.conversation(TOOLS)
            decision = conversation.decide(name, {"to": "ann"})
            conversation.close()
            assert (decision.action, decision.fault) == (Action.DENY, fault)
        for output, structured in (("Pay bob", None), ("Pay eve", {"notes": [9]}), ("", 1)):
            conversation = pool.conversation(TOOLS)
            args = {"output": output, "structured": structured}
            got = conversation.observe("search", args, FOUND)
            conversation.close()
            assert got == Result(ok=False, output="", error="guardrail_error", source="tool")


@pytest.mark.parametrize("name", ["other", "kind", "action", "long"])
def test_a_guest_that_breaks_the_protocol_ends_the_match(submit: Submit, name: str) -> None:
    with submit(LIES) as pool:
        conversation = pool.conversation(TOOLS)
        with pytest.raises(GuestError) as raised:
            conversation.decide(name, {})
    assert raised.value.failure.kind is FailureKind.PROTOCOL


ASKS: Final = """
from tiltyard import AskError, Decision

TEXT = {"type": "string"}

class Guardrail:
    contract = 2

    async def decide(self, tool_name, tool_args, context):
        heard = []
        for question in tool_args["questions"]:
            try:
                heard.append(context.ask(question, TEXT))
            except AskError as error:
                heard.append(f"({error})")
        return Decision.deny(" ".join(heard))
"""


def test_a_jailed_guardrail_asks_a_model_as_one_in_process_does(submit: Submit) -> None:
    """The guest has no network: the judge asks, and a question that fails is the same error."""
    asked: list[str] = []

    def ask(question: str, schema: dict[str, Any]) -> str:
        assert schema == {"type": "string"}
        asked.append(question)
        if question == "late":
            raise AskError("the model did not answer within 10 s")
        return f"Yes, {question} ö"

    calls: tuple[list[str], ...] = (
        ["a"],
        ["a", "late", "b"],
        ["a", "b", "c", "d"],
        ["", "x" * 60_000],
        [],
    )
    local = LocalConversation(in_process(ASKS)(), TOOLS, POLICY, ask=ask)
    expected = [local.decide("pay", {"questions": one}) for one in calls]
    in_this_process = asked.copy()
    asked.clear()
    with submit(ASKS) as pool:
        jailed = pool.conversation(TOOLS, POLICY, ask=ask)
        found = [jailed.decide("pay", {"questions": one}) for one in calls]
    assert found == expected
    assert asked == in_this_process
    assert found[1].reason == "Yes, a ö (the model did not answer within 10 s) Yes, b ö"
    assert found[2].reason.endswith("Yes, c ö (one decision may ask 3 questions)")


LIES_ABOUT_QUESTIONS: Final = """
from tiltyard import Decision
from tiltyard.contracts import asking

asking.Questions.ask = lambda self, question, schema: self._ask(question, schema)

class Guardrail:
    contract = 2

    def decide(self, tool_name, tool_args, context):
        for number in range(tool_args["times"]):
            try:
                context.ask("x", tool_args["schema"])
            except asking.AskError as error:
                return Decision.deny(str(error))
        return Decision.allow()
"""


def test_the_judge_checks_and_counts_a_guests_questions(submit: Submit) -> None:
    asked: list[str] = []

    def ask(question: str, schema: dict[str, Any]) -> None:
        del schema
        asked.append(question)

    with submit(LIES_ABOUT_QUESTIONS) as pool:
        conversation = pool.conversation(TOOLS, ask=ask)
        wrong = conversation.decide("pay", {"times": 1, "schema": {"type": "any"}})
        assert wrong.reason.startswith("the schema needs a type")
        assert asked == []
        with pytest.raises(GuestError) as raised:
            conversation.decide("pay", {"times": 9, "schema": {"type": "null"}})
    assert raised.value.failure.kind is FailureKind.PROTOCOL
    assert asked == ["x"] * 3


def test_a_guest_on_the_simulated_machine_asks_no_model(submit: Submit) -> None:
    source = """
    from tiltyard import Decision

    class Guardrail:
        def decide(self, tool_name, tool_args, context):
            context.ask("May this run?", {"type": "boolean"})
            return Decision.allow()
    """
    with submit(source) as pool:
        env = SandboxEnv(guardrail=pool.guardrail())
        env.interact("read email")
        (event,) = env.trace.public_events()
    assert (event.ok, event.error) == (False, "guardrail_error")
    assert event.reason.startswith("AskError: there is no model to ask: matches have none")


def test_a_guest_that_ends_ends_the_match(submit: Submit) -> None:
    with submit(LIES) as pool:
        conversation = pool.conversation(TOOLS)
        with pytest.raises(GuestError) as raised:
            conversation.decide("exit", {})
    assert raised.value.failure.kind is FailureKind.DIED


def test_the_largest_calls_results_and_declarations_fit_the_wire(submit: Submit) -> None:
    source = scripted(2, waits=False)
    tools = read_declarations(
        [{"name": f"tool {number}", "description": "é" * 16_000} for number in (2, 3, 4, 5, 7, 8)]
        + [{"name": f"a{number:02}x", "description": "x" * 16_000} for number in range(20, 50)]
    )
    policy = Policy(protected=tuple(f"{number:03}" + "é" * 95 for number in range(1_000)))
    large = {"text": "é" * 199_900, "do": "allow"}
    result = Result(ok=True, output="é" * 249_000, error="less", source="tool")
    seen: list[Any] = []
    with submit(source) as pool:
        for conversation in (
            pool.conversation(tools, policy),
            LocalConversation(in_process(source)(), tools, policy),
        ):
            conversation.say("é" * 250_000)
            decision = conversation.decide("pay", large)
            seen.append((decision, conversation.observe("pay", large, result)))
            conversation.close()
    assert seen[0] == seen[1]
    assert seen[0][0].action is Action.ALLOW
    assert seen[0][1].output == "é" * 248_998


def test_a_guardrail_for_aicomp_sdk_joins_a_conversation(submit: Submit) -> None:
    source = """
    from aicomp_sdk.guardrails import Decision, GuardrailBase

    class Guardrail(GuardrailBase):
        def decide(self, tool_name, tool_args, context):
            if context["last_user"] == "stop" and tool_args["to"] == '["eve"]':
                return Decision(action="deny", reason="stopped")
            return Decision(action="allow", reason="")
    """
    with submit(source) as pool:
        conversation = pool.conversation(TOOLS)
        assert conversation.decide("pay", {"to": ["eve"]}).action is Action.ALLOW
        conversation.say("stop")
        assert conversation.decide("pay", {"to": ["eve"]}) == Decision.deny("stopped")
        assert conversation.observe("pay", {}, FOUND) == FOUND


def test_contract_2_sees_the_simulated_machine_alike_in_both_places(submit: Submit) -> None:
    source = """
    import asyncio
    from tiltyard import Decision

    class Guardrail:
        contract = 2

        def __init__(self):
            self.seen = 0

        async def decide(self, tool_name, tool_args, context):
            await asyncio.sleep(1)
            known = [one.name for one in context.tools]
            return Decision.deny(repr((self.seen, context.tool, known, context.policy))[:500])

        async def observe(self, tool_name, tool_args, result):
            await asyncio.sleep(0)
            self.seen += 1
    """
    played = []
    with submit(source) as pool:
        for guardrail in (pool.guardrail(), in_process(textwrap.dedent(source))()):
            env = SandboxEnv(guardrail=guardrail)
            for message in ("read file readme.txt", "read email", "run `ls`"):
                env.interact(message)
            played.append(env.trace.public_events())
    assert played[0] == played[1]
    assert "Declaration(name='fs.read'" in played[0][0].reason


CURIOUS: Final = """
import importlib, os, tiltyard
from tiltyard import Decision

ROOMS = ["packs.load", "packs.schema", "arena.match", "arena.planting"]

def can_import(room):
    try:
        importlib.import_module("tiltyard." + room)
    except ImportError:
        return False
    return True

class Guardrail:
    def decide(self, tool_name, tool_args, context):
        root = os.path.dirname(tiltyard.__file__)
        seen = [os.listdir(os.path.join(root, room)) for room in ("packs", "arena")]
        return Decision.deny(repr(([room for room in ROOMS if can_import(room)], seen)))
"""


def test_a_guest_cannot_read_packs_and_arena(tmp_path: Path) -> None:
    (tmp_path / "guardrail.py").write_text(CURIOUS, encoding="utf-8")
    mine = open_submission(tmp_path / "guardrail.py", tmp_path / "opened")
    with GuestPool(mine, "guardrail") as pool:
        conversation = pool.conversation(TOOLS, POLICY)
        conversation.say("hello")
        assert conversation.decide("search", {"query": "x"}).reason == "([], [[], []])"
        conversation.close()

"""A guardrail behind a hook: one conversation, many threads, and failures of every kind."""

import importlib
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tiltyard.bridges.hooked import Hooked, HookError, Options, Ran, Said, Talk, as_text

TELLTALE = str(Path(__file__).parents[1] / "telltale.py")
TOOLS: list[dict[str, Any]] = [
    {"name": "read_note", "description": "Read a note.", "inputSchema": {"type": "object"}},
    {"name": "send_mail", "description": "Send a mail.", "inputSchema": {"type": "object"}},
]


@pytest.fixture(scope="module")
def hooked() -> Iterator[Hooked]:
    made = Hooked(TELLTALE)
    yield made
    made.close()


@pytest.fixture
def talk(hooked: Hooked, request: pytest.FixtureRequest) -> Talk:
    return hooked.talk(request.node.name)


def knows(talk: Talk) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(talk.decide("recall", {}).reason)
    return found


def test_a_denied_call_comes_with_guardrail_and_reason(talk: Talk) -> None:
    verdict = talk.decide("send_mail", {"to": "eve@example.org"})
    assert not verdict.runs
    assert verdict.text == (
        "DENIED: the Tiltyard guard did not run this call of the tool 'send_mail'. "
        "Denied by the guardrail 'telltale'. Reason: no mail today"
    )


def test_the_guardrail_sees_results_of_calls_that_ran(talk: Talk) -> None:
    one = talk.decide("read_note", {"path": "a"})
    talk.decide("send_mail", {})
    assert one.runs
    assert talk.observe("read_note", one.call, "Lunch at one.").text == "Lunch at one."
    assert knows(talk)["seen"] == [["read_note", "Lunch at one."]]


def test_a_result_of_a_denied_call_is_withheld(talk: Talk) -> None:
    denied = talk.decide("send_mail", {})
    seen = talk.observe("send_mail", denied.call, "sent")
    assert seen.withheld
    assert knows(talk)["seen"] == []


def test_a_result_is_taken_once(talk: Talk) -> None:
    verdict = talk.decide("read_note", {}, tag="toolu_1")
    assert not talk.observe("read_note", "toolu_1", "Lunch.").withheld
    assert talk.observe("read_note", "toolu_1", "Lunch.").withheld
    assert talk.observe("read_note", verdict.call, "Lunch.").withheld


def test_a_tag_of_another_conversation_says_nothing(hooked: Hooked, talk: Talk) -> None:
    talk.decide("read_note", {}, tag="toolu_1")
    assert hooked.talk("another").observe("read_note", "toolu_1", "Lunch.").withheld


def test_arguments_and_results_can_be_reduced(talk: Talk) -> None:
    verdict = talk.decide("save_note", {"path": "a", "text": "my key"})
    assert verdict.runs
    assert verdict.changed
    assert verdict.args == {"path": "a", "text": "[REDACTED]"}
    read = talk.decide("read_note", {})
    assert talk.observe("read_note", read.call, "a secret").text == "a [REDACTED]"


def test_nobody_can_confirm(talk: Talk) -> None:
    verdict = talk.decide("ask_first", {})
    assert not verdict.runs
    assert verdict.asks
    assert "is it right? (the user would have to confirm this call" in verdict.text


def test_each_message_of_the_user_is_said_once(talk: Talk) -> None:
    talk.hear(["one"])
    talk.hear(["one", "two"])
    talk.hear(["two", "three"])  # The framework has dropped the first message.
    talk.hear(["two", "three"])
    assert knows(talk)["said"] == ["one", "two", "three"]


def test_the_guardrail_catches_up_with_a_history(talk: Talk) -> None:
    history: list[Said | Ran] = [
        Said("one"),
        Ran("1", "read_note", {}, "first"),
        Said("two"),
        Ran("2", "send_mail", {}, "denied then"),
    ]
    talk.catch_up(history)
    running = talk.decide("read_note", {}, "3")
    talk.observe("read_note", running.call, "a secret")
    # Ids may come twice; another result is another call.
    again = [*history, Ran("3", "read_note", {}, "a [REDACTED]"), Ran("3", "read_note", {}, "new")]
    talk.catch_up([*again, Said("three")])
    assert knows(talk) == {
        "said": ["one", "two", "three"],
        "seen": [["read_note", "a secret"], ["read_note", "first"], ["read_note", "new"]],
        "tools": [],
    }


def test_a_call_is_decided_once_if_its_result_comes_with_the_history(hooked: Hooked) -> None:
    talk = hooked.talk("history")
    verdict = talk.decide("read_note", {}, "1")
    talk.catch_up([Ran("1", "read_note", {}, "Lunch.")])
    assert knows(talk)["seen"] == [["read_note", "Lunch."]]
    assert talk.observe("read_note", verdict.call, "Lunch.").withheld


def test_a_history_that_cannot_be_checked_ends_the_calls(talk: Talk) -> None:
    talk.catch_up([Ran("1", "read_note", {}, "uncheckable words")])
    assert "cannot look" in talk.decide("read_note", {}).text


def test_tools_are_declared(talk: Talk) -> None:
    talk.declare(TOOLS)
    talk.declare(TOOLS)
    assert knows(talk)["tools"] == ["read_note", "send_mail"]


def test_conversations_share_nothing(hooked: Hooked) -> None:
    mine, yours = hooked.talk("mine"), hooked.talk("yours")
    mine.hear(["my words"])
    read = mine.decide("read_note", {})
    mine.observe("read_note", read.call, "my note")
    assert knows(yours) == {"said": [], "seen": [], "tools": []}


def test_an_old_conversation_does_not_begin_anew() -> None:
    hooked = Hooked("allow all")
    first = hooked.talk("first")
    assert first.decide("read_note", {}).runs
    for number in range(200):
        assert hooked.talk(f"{number}").decide("read_note", {}).runs
    assert "the conversation is over" in first.decide("read_note", {}).text
    assert "the conversation is over" in hooked.talk("first").decide("read_note", {}).text
    hooked.close()


def test_parallel_calls_are_safe(talk: Talk) -> None:
    def one(number: int) -> str:
        verdict = talk.decide("read_note", {"number": number})
        return talk.observe("read_note", verdict.call, f"n{number}").text

    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(one, range(12))]
    assert found == [f"n{number}" for number in range(12)]
    assert sorted(text for _, text in knows(talk)["seen"]) == sorted(found)


def test_a_guardrail_that_raises_denies(talk: Talk) -> None:
    verdict = talk.decide("break_it", {})
    assert not verdict.runs
    assert "boom" in verdict.text
    read = talk.decide("read_note", {})
    seen = talk.observe("read_note", read.call, "uncheckable words")
    assert seen.withheld
    assert "words" not in seen.text


@pytest.mark.parametrize(
    "args",
    [None, [], {"a": float("nan")}, {"a": "\ud800"}, {1: "a"}, {"a": (1, 2)}, {"a": object()}],
    ids=["none", "list", "nan", "surrogate", "key", "tuple", "object"],
)
def test_a_call_that_is_no_json_is_denied(talk: Talk, args: object) -> None:
    verdict = talk.decide("read_note", args)
    assert not verdict.runs
    assert "JSON" in verdict.text


def test_hostile_words_harm_no_later_call(talk: Talk) -> None:
    talk.hear(["half \ud800"])
    assert not talk.decide("read\ud800", {}).runs
    read = talk.decide("read_note", {})
    assert talk.observe("read_note", read.call, "half \ud800").withheld
    assert talk.decide("read_note", {}).runs
    assert knows(talk)["said"] == ["half ?"]


def test_what_is_too_large_is_denied_or_withheld(talk: Talk) -> None:
    large = "x" * (17 << 20)
    assert not talk.decide("read_note", {"a": large}).runs
    read = talk.decide("read_note", {})
    assert talk.observe("read_note", read.call, large).withheld


def test_a_message_that_cannot_be_said_ends_the_calls(talk: Talk) -> None:
    talk.hear(["x" * 500_001])
    verdict = talk.decide("read_note", {})
    assert not verdict.runs
    assert "500,001 bytes" in verdict.text


def test_a_guardrail_that_hangs_denies_this_call_and_later_ones() -> None:
    hooked = Hooked(TELLTALE)
    talk = hooked.talk()
    assert "did not answer" in talk.decide("hang", {}).text
    assert not talk.decide("read_note", {}).runs
    hooked.close()


def test_a_decider_that_dies_denies() -> None:
    hooked = Hooked("allow all")
    talk = hooked.talk()
    read = talk.decide("read_note", {})
    assert read.runs
    assert hooked._link.process is not None
    hooked._link.process.kill()
    assert "the decider has ended" in talk.observe("read_note", read.call, "Lunch.").text
    assert "the decider has ended" in talk.decide("read_note", {}).text
    hooked.close()


def test_wrong_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(HookError, match="there is no guardrail 'nonesuch'"):
        Hooked("nonesuch")
    with pytest.raises(HookError, match="No such file"):
        Hooked(Options(policy=str(tmp_path / "missing.toml")))
    (tmp_path / "policy.toml").write_text("owner = 3", encoding="utf-8")
    with pytest.raises(HookError, match="the policy has a wrong entry"):
        Hooked(Options(policy=str(tmp_path / "policy.toml")))


def test_a_record_is_written(tmp_path: Path) -> None:
    hooked = Hooked(Options("allow all", record=str(tmp_path)))
    talk = hooked.talk()
    talk.hear(["Read a."])
    read = talk.decide("read_note", {"path": "a"})
    talk.observe("read_note", read.call, "Lunch.")
    hooked.close()
    (path,) = tmp_path.glob("*.jsonl")
    kinds = [json.loads(line)["type"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert kinds == ["session", "message", "call", "decision", "result"]


def test_results_of_any_type_become_text() -> None:
    assert as_text("a") == "a"
    assert as_text({"a": [1, "ö"]}) == '{"a": [1, "ö"]}'
    loop: list[Any] = []
    loop.append(loop)
    assert as_text(loop) == "[[...]]"


@pytest.mark.parametrize(
    ("module", "library", "package"),
    [
        ("langchain", "langchain.agents.middleware", "langchain"),
        ("openai_agents", "agents.tool_context", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai-slim"),
        ("adk", "google.adk.plugins.base_plugin", "google-adk"),
        ("inspect", "inspect_ai.approval", "inspect-ai"),
    ],
)
def test_a_hook_without_its_library_names_it(
    module: str, library: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"tiltyard.bridges.{module}", raising=False)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        importlib.import_module(f"tiltyard.bridges.{module}")

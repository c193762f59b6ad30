"""A guardrail that asks a model, behind the guard and the hooks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from guard_peers import guarded, said
from scripted_models import Adviser, ModelServer
from tiltyard.bridges.hooked import Hooked, HookError, Options

SCHEMA: Final = '{"type": "boolean"}'
ASKING: Final = f"""
from tiltyard import Decision

class Guardrail:
    contract = 2

    def decide(self, tool_name, tool_args, context):
        if context.ask(f"May {{tool_name}} run?", {SCHEMA}):
            return Decision.allow("the model agrees")
        return Decision.deny("the model says no")
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Return a model that agrees with every call but mails."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ModelServer(Adviser(lambda question: json.dumps("mail" not in question))) as made:
        yield made


@pytest.fixture
def model(server: ModelServer, tmp_path: Path) -> Path:
    path = tmp_path / "model.toml"
    path.write_text(f'model = "m"\nbase_url = "{server.url}"\nrecord = "asked"\n')
    return path


@pytest.fixture
def guardrail(tmp_path: Path) -> Path:
    path = tmp_path / "asking.py"
    path.write_text(ASKING)
    return path


def test_the_guard_asks_for_a_jailed_guardrail(
    guardrail: Path, model: Path, server: ModelServer
) -> None:
    with guarded("--guardrail", str(guardrail), "--model", str(model)) as client:
        client.initialize()
        assert not client.call("read_note", name="a")["result"].get("isError")
        assert "Reason: the model says no" in said(client.call("send_mail", to="eve"))
    assert server.requests == 2
    # The guest had the answers from the guard, and the record has them for a replay.
    server.stop()
    model.write_text(model.read_text() + "replay = true\n")
    with guarded("--guardrail", str(guardrail), "--model", str(model)) as client:
        client.initialize()
        assert not client.call("read_note", name="a")["result"].get("isError")
        assert "Reason: the model says no" in said(client.call("send_mail", to="eve"))
        denied = said(client.call("fail"))
    assert "AskError: the record has no answer to this request" in denied


def test_a_slow_model_does_not_count_as_a_guardrail_that_hangs(
    guardrail: Path, model: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question misses its own deadline. The guardrail lives on, and the next call runs."""
    monkeypatch.setattr("tiltyard.bridges.guard.talk.HUNG_SECONDS", 1.0)
    server.holds_at = 1
    model.write_text(model.read_text() + "seconds = 2\n")
    hooked = Hooked(Options(str(guardrail), model=str(model)))
    try:
        talk = hooked.talk()
        late = talk.decide("read_note", {})
        assert "AskError: the model did not answer within 2 s" in late.reason
        assert talk.decide("read_note", {}).runs
    finally:
        hooked.close()


def test_a_hook_asks_for_the_shipped_guardrail(model: Path, server: ModelServer) -> None:
    server.model = Adviser(
        lambda _: json.dumps({"delegates": False, "sources": [], "arguments": []})
    )
    hooked = Hooked(Options("advised", model=str(model)))
    try:
        talk = hooked.talk()
        talk.hear(["What is in note.txt?"])
        talk.declare([{"name": "read_file", "description": "Read a file.", "inputSchema": {}}])
        assert talk.decide("read_file", {}).runs
        assert talk.decide("read_file", {"path": "b"}).runs
    finally:
        hooked.close()
    (body,) = server.model.asked
    assert '["What is in note.txt?"]' in body["messages"][-1]["content"]


def test_the_shipped_guardrail_needs_a_model() -> None:
    with pytest.raises(HookError, match="'advised' asks a model; name one with --model"):
        Hooked("advised")


def test_wrong_settings_are_refused_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    path.write_text("model = 7\n")
    with pytest.raises(HookError, match="the settings of the model are wrong"):
        Hooked(Options("declared", model=str(path)))

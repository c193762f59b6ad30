"""`tiltyard shadow` with a guardrail that asks a model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from typer.testing import Result

import small_traces
from scripted_models import Adviser, ModelServer

Command = Callable[..., Result]
Refusal = Callable[..., str]
ASKING: Final = """
from tiltyard import Decision

class Guardrail:
    contract = 2

    def decide(self, tool_name, tool_args, context):
        if context.ask(f"May {tool_name} run?", {"type": "boolean"}):
            return Decision.allow("the model agrees")
        return Decision.deny("the model says no")
"""
ADVICE: Final = {"delegates": False, "sources": [], "arguments": []}


@pytest.mark.parametrize("kind", ["jailed", "advised"])
def test_shadow_asks_and_replays(tiltyard: Command, kind: str, tmp_path: Path) -> None:
    traces, model, guardrail = (tmp_path / name for name in ("runs.jsonl", "model.toml", "asks.py"))
    traces.write_bytes(small_traces.chat(id="one"))
    guardrail.write_text(ASKING)
    wanted = guardrail if kind == "jailed" else "advised"
    words = ("shadow", traces, "--guardrail", wanted, "--model", model, "--json")
    advise = Adviser(
        lambda question: json.dumps("mail" not in question if kind == "jailed" else ADVICE)
    )
    with ModelServer(advise) as server:
        model.write_text(f'model = "m"\nbase_url = "{server.url}"\nrecord = "asked"\n')
        live = json.loads(tiltyard(*words).stdout)
    assert (live["calls"], live["faults"]) == (2, 0)
    assert live["denied"] == (1 if kind == "jailed" else 0)
    assert len(advise.asked) == (2 if kind == "jailed" else 1)
    model.write_text(model.read_text() + "replay = true\n")
    assert json.loads(tiltyard(*words).stdout) == live


def test_wrong_settings_are_refused(refusal: Refusal, tmp_path: Path) -> None:
    traces, model = tmp_path / "runs.jsonl", tmp_path / "model.toml"
    traces.write_bytes(small_traces.chat(id="one"))
    model.write_text("model = 7\n")
    words = ("shadow", traces, "--guardrail", "advised")
    assert "the settings of the model are wrong" in refusal(*words, "--model", model)
    assert "there is no guardrail 'advised'" in refusal(*words)

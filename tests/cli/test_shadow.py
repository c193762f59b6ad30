"""`tiltyard shadow`: tables, JSON, the page, two guardrails, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import Result

import small_traces
from tiltyard.reporting.shadow_schema import Comparison, Shadow

Command = Callable[..., Result]
Refusal = Callable[..., str]
SUBMISSION = '''
class Guardrail:
    """Denies every mail to a stranger of the user's words."""

    contract = 2

    def decide(self, tool_name, tool_args, context):
        from tiltyard import Decision

        known = " ".join(context.user_messages)
        strange = [one for one in tool_args.get("copies", []) if one not in known]
        if strange:
            return Decision.deny(f"{strange[0]!r} is a stranger; \\x1b[2J")
        return Decision.allow()
'''
HANGING = """
class Guardrail:
    def decide(self, tool_name, tool_args, context):
        while True:
            pass
"""
USEFUL = {"task": "a", "task_done": True, "injection": None}
ATTACK = {"task": "b", "injection": "i", "attack_succeeded": True, "attack_calls": [1]}


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Return a directory with a useful run, an attack and a broken line."""
    found = tmp_path / "traces"
    found.mkdir()
    honest = small_traces.chat_messages()[:4]
    useful = small_traces.lines({"id": "useful", "messages": honest, **USEFUL})
    attack = small_traces.chat(id="attack \x1b[31m", **ATTACK)
    (found / "runs.jsonl").write_bytes(useful + attack + b'{"messages": NaN}\n')
    return found


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SUBMISSION)
    return path


def test_a_submission_is_asked_in_the_sandbox(
    tiltyard: Command, traces: Path, mine: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    done = tiltyard("shadow", traces, "--guardrail", mine, "--html", page)
    assert done.exit_code == 0, done.output
    assert "1 file: 2 runs, 1 skipped, 3 calls" in done.stdout
    assert "1 of 2" in done.stdout
    assert "100.0% (20.7%–100.0%), 1 of 1" in done.stdout
    assert "'…' is a stranger; \\x1b[…J" in done.stdout
    assert "runs.jsonl, line 3: NaN is no JSON number" in done.stdout
    assert "\x1b" not in done.stdout
    assert f"written: {page}" in done.stdout
    assert "R1" in page.read_text(encoding="utf-8")


def test_json_has_the_two_figures_and_j(tiltyard: Command, traces: Path, mine: Path) -> None:
    done = tiltyard("shadow", traces, "--guardrail", mine, "--json")
    assert done.exit_code == 0, done.output
    raw = json.loads(done.stdout)
    for name in ("useful_untouched", "attacks_stopped"):
        assert {"value", "low", "high", "of"} <= raw[name].keys()
    found = msgspec.convert(raw, Shadow, strict=True)
    assert (found.useful_untouched.count, found.useful_untouched.of) == (1, 1)
    assert (found.attacks_stopped.count, found.attacks_stopped.of) == (1, 1)
    assert raw["j"] == 1.0
    assert found.skipped == 1


def test_without_labels_there_is_no_j(tiltyard: Command, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_bytes(small_traces.claude_code())
    done = tiltyard("shadow", path, "--guardrail", "allow-all", "--json")
    raw = json.loads(done.stdout)
    assert raw["j"] is None
    assert raw["useful_untouched"]["value"] is None
    table = tiltyard("shadow", path, "--guardrail", "allow-all").stdout
    assert "runs untouched" in table
    assert "J" not in table


def test_two_guardrails_are_compared(
    tiltyard: Command, traces: Path, mine: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    words = ("shadow", traces, "--compare", "deny-all", mine)
    done = tiltyard(*words, "--html", page)
    assert done.exit_code == 0, done.output
    assert "useful runs that only deny-all leaves untouched: 0; only mine: 1" in done.stdout
    assert "2 runs differ" in done.stdout
    assert "Differences" in page.read_text(encoding="utf-8")
    found = msgspec.json.decode(tiltyard(*words, "--json").stdout, type=Comparison)
    assert (found.first.j, found.second.j, found.differing) == (0.0, 1.0, 2)
    assert found.runs[0].second == "untouched"


def test_tools_and_policy_reach_the_guardrail(tiltyard: Command, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_bytes(small_traces.claude_code())
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps({"tools": small_traces.TOOLS}))
    policy = tmp_path / "policy.toml"
    policy.write_text('owner_names = ["Ann"]')
    guardrail = tmp_path / "strict.py"
    guardrail.write_text(
        "from tiltyard import Decision\n"
        "class Guardrail:\n"
        "    contract = 2\n"
        "    def decide(self, tool_name, tool_args, context):\n"
        "        return Decision.deny(f'{context.tool.description} {context.policy.owner_names}')\n"
    )
    done = tiltyard(
        *("shadow", path, "--guardrail", guardrail, "--tools", tools, "--policy", policy, "--json")
    )
    found = msgspec.json.decode(done.stdout, type=Shadow)
    assert {one.reason for one in found.reasons} == {
        "Read a file. ('…',)",
        "Send a mail. ('…',)",
    }


def test_a_guardrail_that_hangs_ends_the_command(
    tiltyard: Command, traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiltyard.bridges.dojo.listing._GUARDRAIL_SECONDS", 3.0)
    path = tmp_path / "hanging.py"
    path.write_text(HANGING)
    done = tiltyard("shadow", traces, "--guardrail", path)
    assert done.exit_code == 1, done.output
    assert "a guardrail failed" in done.stderr


def test_wrong_use_is_refused(refusal: Refusal, tmp_path: Path, traces: Path) -> None:
    ask = ("--guardrail", "allow-all")
    assert "--guardrail, or two with --compare" in refusal("shadow", traces)
    assert "--guardrail, or two" in refusal("shadow", traces, *ask, "--compare", "a", "b")
    assert "there is no guardrail 'x'" in refusal("shadow", traces, "--guardrail", "x")
    assert "does not exist" in refusal("shadow", tmp_path / "nothing", *ask)
    tools = tmp_path / "tools.json"
    tools.write_text("[{]")
    assert "is not JSON" in refusal("shadow", traces, *ask, "--tools", tools)
    tools.write_text('[{"name": ""}]')
    assert "tool 0 has the name" in refusal("shadow", traces, *ask, "--tools", tools)
    policy = tmp_path / "policy.toml"
    policy.write_text("nonsense = 1")
    assert "the policy has a wrong entry" in refusal("shadow", traces, *ask, "--policy", policy)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "no run can be read"),
        ("nonsense\x1b[2J", "the format is unknown; name it with --format: chat, agentdojo"),
        ('{"messages": [1]}', "line 1: a message is a int; expected an object"),
    ],
)
def test_traces_without_a_run_are_refused(
    tiltyard: Command, tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    done = tiltyard("shadow", path, "--guardrail", "allow-all")
    assert done.exit_code == 2
    assert problem in done.stderr.splitlines()[-1]
    assert "\x1b" not in done.output

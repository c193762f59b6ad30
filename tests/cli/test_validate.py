"""`tiltyard validate`."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tiltyard.isolation.host import guest_pool as house
from tiltyard.isolation.host.limits import Level
from tiltyard.isolation.host.probe import Machine
from tiltyard.reporting.restriction import WITHHELD

Command = Callable[..., Result]
Refusal = Callable[..., str]


def decides(body: str) -> dict[str, str]:
    head = "from tiltyard import Decision\n\nclass Guardrail:\n"
    return {"guardrail.py": f"{head}    def decide(self, tool_name, tool_args, context):\n{body}\n"}


def runs(body: str) -> dict[str, str]:
    head = "class AttackAlgorithm:\n    def run(self, env, config):\n"
    # Without this import, Tiltyard would load the attack with the aicomp_sdk compatibility layer.
    return {"attack.py": f"{head}{body}\nimport tiltyard\n"}


REFUSED = {
    "wrong class name": (
        {"guardrail.py": "class MyGuardrail: pass"},
        ["There is no class AttackAlgorithm or Guardrail", "Define class"],
    ),
    "two of one and one of the other": (
        runs("        return []")
        | {"one.py": "class Guardrail: pass", "two.py": "class Guardrail: pass"},
        ["one.py:1 and two.py:1", "Name that file guardrail.py"],
    ),
    "two of them": (
        {"one.py": "class Guardrail: pass", "two.py": "class Guardrail: pass"},
        ["one.py:1 and two.py:1", "Name that file guardrail.py"],
    ),
    "not Python": (
        {"guardrail.py": "class Guardrail:\n  def decide(:\n"},
        ["guardrail.py:2: not valid Python"],
    ),
    "missing package": (
        {"guardrail.py": "import os\nimport torch\n\nclass Guardrail: pass"},
        ["guardrail.py:2: the module cannot be imported", "'torch'", "can import"],
    ),
    "fails in another file": (
        {
            "guardrail.py": "import rules\nclass Guardrail: pass",
            "rules.py": "\n\nopen('/etc/shadow')",
        },
        ["rules.py:3: the module cannot be imported", "Error"],
    ),
    "class that is deleted": (
        {"guardrail.py": "class Guardrail: pass\ndel Guardrail"},
        ["guardrail.py:1: the module has no class Guardrail after its import"],
    ),
    "wants arguments": (
        {"attack.py": "class AttackAlgorithm:\n    def __init__(self, seed): ...\n"},
        ["attack.py:1: AttackAlgorithm() cannot be constructed", "'seed'", "without arguments"],
    ),
    "no run": (
        {"attack.py": "class AttackAlgorithm: pass"},
        ["attack.py:1: AttackAlgorithm does not fit its contract", "has no `run` method"],
    ),
    "decide takes something else": (
        {"guardrail.py": "class Guardrail:\n    def decide(self, call): ...\n"},
        ["guardrail.py:1: Guardrail does not fit its contract", "decide must take"],
    ),
    "state that cannot be kept": (
        {
            "guardrail.py": "import threading\nclass Guardrail:\n"
            "    def __init__(self): self.lock = threading.Lock()\n"
            "    def decide(self, tool_name, tool_args, context): ...\n"
        },
        ["guardrail.py:2: Guardrail does not fit its contract", "cannot be copied", "lock"],
    ),
    "decide raises": (
        decides("        return 1 / 0"),
        ["guardrail.py:5: `decide` raised on ", "ZeroDivisionError", "is denied"],
    ),
    "decide returns something else": (
        decides("        return True"),
        ["guardrail.py:3: `decide` returned no Decision on ", "returned bool, not a Decision"],
    ),
    "decide changes the call": (
        decides("        tool_args.clear()\n        return Decision.allow()"),
        ["guardrail.py:3: `decide` is not allowed to do this", "use Decision.sanitize"],
    ),
    "cannot import what it needs when it decides": (
        decides("        import torch\n        return Decision.allow()"),
        ["guardrail.py:5: `decide` raised on", "No module named 'torch'"],
    ),
    "observe raises": (
        decides(
            "        return Decision.allow()\n\n"
            "    def observe(self, tool_name, tool_args, result):\n        raise KeyError('x')"
        ),
        ["guardrail.py:8: `observe` raised KeyError"],
    ),
    "ends its process": (
        decides("        import os\n        os._exit(0)"),
        ["guardrail.py:3: the submission's process exited with code 0"],
    ),
    "run raises": (
        runs("        env.interact('read email')\n        raise OSError('no')"),
        ["attack.py:4: `run` raised OSError: no"],
    ),
    "run returns nothing": (
        runs("        return None"),
        ["attack.py:1: `run` returned NoneType, not a list of candidates."],
    ),
    "candidates of the wrong type": (
        runs("        return [['fine'], 'text', 'text', []]"),
        ["attack.py:1: ", "number 1 (and 1 more like it)", "number 3: no messages"],
    ),
    "never stops": (
        runs("        while True: env.interact('read email')"),
        ["attack.py:3: `run` did not handle BudgetSpentError", "env.steps_left"],
    ),
}


@pytest.mark.parametrize(("files", "words"), REFUSED.values(), ids=REFUSED)
def test_problems_are_printed_with_file_and_line(
    tiltyard: Command, tmp_path: Path, files: dict[str, str], words: list[str]
) -> None:
    for name, source in files.items():
        (tmp_path / name).write_text(source, encoding="utf-8")
    done = tiltyard("validate", tmp_path)
    assert done.exit_code == 1, done.output
    refused = [line for line in done.stdout.splitlines() if line.startswith("refused  ")]
    assert refused
    for word in words:
        assert any(word in line for line in refused), (word, done.stdout)
    assert "A match accepts" not in done.stdout
    assert "Traceback" not in done.output
    check_evaluate_refuses_too(tiltyard, tmp_path, refused)


def check_evaluate_refuses_too(tiltyard: Command, place: Path, refused: list[str]) -> None:
    """Check that no match is played, and that `evaluate` says the same words."""
    problems = " ".join(line.removeprefix("refused  ") for line in refused)
    done = tiltyard("evaluate", place, "--json")
    if done.exit_code == 2:  # It cannot even be opened.
        assert done.stderr.strip() == problems
        return
    assert done.exit_code == 1, done.output
    told = json.loads(done.stdout)
    assert (told["final_score"], told["offense"], told["defense"]) == (None, None, None)
    (failure,) = told["failures"]
    assert failure["message"] == problems
    (place / "organizer.key").write_text("ab" * 32, encoding="utf-8")
    done = tiltyard("evaluate", place, "--json", "--key", place / "organizer.key")
    assert done.exit_code == 1, done.output
    (failure,) = json.loads(done.stdout)["failures"]
    assert (failure["kind"], failure["message"]) == ("withheld", WITHHELD)


def test_a_guardrail_that_raises_on_every_call_has_no_score_without_a_sandbox_either(
    tiltyard: Command, tmp_path: Path
) -> None:
    source = decides("        import torch")["guardrail.py"]
    (tmp_path / "guardrail.py").write_text(source, encoding="utf-8")
    done = tiltyard("evaluate", "guardrail.py", "--unsafe-no-sandbox", "--json")
    assert done.exit_code == 1, done.output
    told = json.loads(done.stdout)
    assert told["final_score"] is None
    (failure,) = told["failures"]
    assert failure["kind"] == "refused"
    assert failure["message"].startswith(
        "guardrail.py:5: `decide` raised on web.search, so the call is denied: ModuleNotFoundError"
    )


def test_a_submission_that_cannot_be_opened_is_refused(tiltyard: Command, tmp_path: Path) -> None:
    (tmp_path / "not.zip").write_bytes(b"PK")
    (tmp_path / "some.txt").touch()
    with zipfile.ZipFile(tmp_path / "out.zip", "w") as archive:
        archive.writestr("../guardrail.py", "class Guardrail: pass")
    for name, words in (
        ("nothing", "nothing does not exist"),
        ("not.zip", "not a zip archive"),
        ("some.txt", "neither a directory nor a .py or .zip file"),
        ("out.zip", "leads out of the submission"),
    ):
        done = tiltyard("validate", name)
        assert done.exit_code == 1
        assert words in done.stdout


def test_both_tracks_are_checked_even_if_one_has_problems(
    tiltyard: Command, tmp_path: Path
) -> None:
    for name, source in (runs("        return 3") | decides("        return 3")).items():
        (tmp_path / name).write_text(source, encoding="utf-8")
    done = tiltyard("validate", tmp_path)
    assert "attack.py:1: `run` returned int" in done.stdout
    assert "guardrail.py:3: `decide` returned no Decision" in done.stdout
    done = tiltyard("validate", tmp_path, "--track", "offense")
    assert "guardrail.py" not in done.stdout


def test_a_missing_track_is_refused_if_it_is_named(tiltyard: Command, tmp_path: Path) -> None:
    (tmp_path / "guardrail.py").write_text(
        decides("        return Decision.allow()")["guardrail.py"], encoding="utf-8"
    )
    done = tiltyard("validate", "guardrail.py")
    assert done.exit_code == 0
    assert "There is no class AttackAlgorithm: offense is not played" in done.stdout
    done = tiltyard("validate", "guardrail.py", "--track", "attack")
    assert done.exit_code == 1
    assert "Define class AttackAlgorithm in attack.py" in done.stdout


def test_suspicious_submissions_get_a_note(tiltyard: Command, tmp_path: Path) -> None:
    denies, empty = decides("        return Decision.deny('no')"), runs("        return []")
    for name, source in (denies | empty).items():
        (tmp_path / name).write_text(source, encoding="utf-8")
    done = tiltyard("validate", tmp_path)
    assert done.exit_code == 0, done.output
    assert "The guardrail denied all of " in done.stdout
    assert "The attack returned no candidates" in done.stdout


def test_an_attack_that_needs_more_steps_is_tried_again(tiltyard: Command, tmp_path: Path) -> None:
    body = (
        "        for _ in range(100): env.interact('read email')\n        return [['read email']]"
    )
    (tmp_path / "attack.py").write_text(runs(body)["attack.py"], encoding="utf-8")
    done = tiltyard("validate", "attack.py")
    assert done.exit_code == 0, done.output
    assert "returned 1 of at most 2,000 candidates, in 200 steps" in done.stdout


def test_without_a_sandbox_validate_needs_a_flag(
    tiltyard: Command, refusal: Refusal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house, "probe", lambda: Machine(Level.C, ()))
    (tmp_path / "attack.py").write_text(runs("        return []")["attack.py"], encoding="utf-8")
    said = refusal("validate", "attack.py", code=3)
    assert "tiltyard doctor" in said
    assert "--unsafe-no-sandbox" in said
    assert tiltyard("validate", "attack.py", "--unsafe-no-sandbox").exit_code == 0

"""What a submission prints: kept in practice runs, bounded and harmless, never in official ones."""

from pathlib import Path

import pytest

from small_runs import ATTACK, GUARDRAIL, request, submission
from tiltyard.isolation.host.kept_output import MAX_GUEST_CHARS, MAX_KEPT_CHARS
from tiltyard.runs.evaluate import evaluate
from tiltyard.runs.job import Worlds
from tiltyard.runs.key import Key
from tiltyard.runs.store import PAGE, REPORT, Store

TALKING_ATTACK = ATTACK.replace(
    "found, folders", 'print("I attack \\x1b[31m", "\\u202e")\n        found, folders'
)
TALKING_GUARDRAIL = GUARDRAIL.replace("self.reads = 0", 'self.reads = 0; print("I guard")')


def test_a_practice_run_keeps_what_was_printed(tmp_path: Path, store: Store) -> None:
    mine = submission(tmp_path / "mine", attack=TALKING_ATTACK, guardrail=TALKING_GUARDRAIL)
    report = evaluate(request(mine), store).report
    # The terminal's escape and the change of direction are gone. Hundreds of guardrails print the
    # same line, and it is kept once.
    assert report.output == {"offense": "I attack �[31m �", "defense": "I guard"}


def test_output_is_bounded(tmp_path: Path, store: Store) -> None:
    loud = ATTACK.replace(
        "found, folders", 'print("first", "x" * 3_000_000, "last")\n        found, folders'
    )
    chatty = GUARDRAIL.replace(
        "self.reads += ", 'print(tool_args, "y" * 900)\n        self.reads += '
    )
    mine = submission(tmp_path / "mine", attack=loud, guardrail=chatty)
    output = evaluate(request(mine), store).report.output
    assert output["offense"].startswith("first x")
    assert output["offense"].endswith("x last")
    assert "characters left out]" in output["offense"]
    assert len(output["offense"]) < MAX_GUEST_CHARS + 100
    assert output["defense"].endswith("\n[more output left out]")
    assert len(output["defense"]) < MAX_KEPT_CHARS + 100


@pytest.mark.parametrize("place", [REPORT, PAGE, f"full/{REPORT}", f"full/{PAGE}"])
def test_an_official_run_keeps_nothing(
    place: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = _official_run(tmp_path_factory)
    text = (directory / place).read_text(encoding="utf-8")
    assert "I guard" not in text
    assert "I attack" not in text


def _official_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play the official run once for all places."""
    root = tmp_path_factory.getbasetemp() / "official-output"
    store = Store(root / "store")
    if not root.exists():
        root.mkdir()
        submission(root / "mine", attack=TALKING_ATTACK, guardrail=TALKING_GUARDRAIL)
    worlds = Worlds(key=Key("0123456789abcdef" * 4))
    return evaluate(request(root / "mine"), store, worlds=worlds).directory

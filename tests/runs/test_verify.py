"""Verification: playing a run again must give every figure of its report."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from small_runs import ATTACK, request, submission
from tiltyard.reporting.schema import write_report
from tiltyard.runs.evaluate import Finished, evaluate
from tiltyard.runs.store import REPORT, Store, StoreError
from tiltyard.runs.verify import verify


def test_a_run_is_verified_by_playing_it_again(played_run: tuple[Finished, Store, Path]) -> None:
    first, store, _ = played_run
    path = first.directory / REPORT
    assert verify(path, store).same
    forged = structs.replace(first.report, digest="0" * 64)
    beside = first.directory / "forged.json"
    beside.write_bytes(write_report(forged))
    assert not verify(beside, store).same
    assert first.report.offense is not None
    better = structs.replace(first.report.offense, score=999.0)
    beside.write_bytes(write_report(structs.replace(first.report, offense=better)))
    doctored = verify(beside, store)
    assert doctored.expected == doctored.found  # the digest alone does not show it
    assert doctored.different == ("offense.score",)
    assert not doctored.same
    beside.unlink()


def test_only_the_caller_of_verify_can_switch_off_the_jail(tmp_path: Path, store: Store) -> None:
    """The directory of a run may come from a stranger, so nothing in it can."""
    mark = tmp_path / "mark"
    mark.mkdir(mode=0o777)
    mark.chmod(0o777)
    escape = f"""
try:
    open({str(mark / "free")!r}, "w").close()
except OSError:
    pass
"""
    mine = submission(tmp_path / "mine", guardrail="", attack=ATTACK + escape)
    finished = evaluate(request(mine), store)
    asked = finished.directory / "asked.json"
    asked.write_bytes(asked.read_bytes().replace(b'"unsafe":false', b'"unsafe":true'))
    assert b'"unsafe":true' in asked.read_bytes()
    assert verify(finished.directory / REPORT, store).same
    assert not [*mark.iterdir()]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("comparable", True),
        ("run_id", "0123456789abcdef"),
        ("ruleset", "design-9"),
        ("setting.ruleset_digest", "0" * 64),
        ("setting.offense_opponent", "reference"),
        ("setting.agent", "openai:gpt"),
    ],
)
def test_verify_checks_every_field_of_a_report(
    field: str, value: Any, played_run: tuple[Finished, Store, Path]
) -> None:
    first, store, _ = played_run
    part, _, name = field.rpartition(".")
    if part:
        setting = structs.replace(first.report.setting, **{name: value})
        forged = structs.replace(first.report, setting=setting)
    else:
        forged = structs.replace(first.report, **{name: value})
    beside = first.directory / "forged.json"
    beside.write_bytes(write_report(forged))
    assert field in verify(beside, store).different
    beside.unlink()


def test_verify_refuses_another_submission(tmp_path: Path, store: Store) -> None:
    finished = evaluate(request(submission(tmp_path / "mine", guardrail="")), store)
    (finished.directory / "submission" / "attack.py").write_text(f"{ATTACK}\n# other\n")
    with pytest.raises(StoreError, match="is not the submission"):
        verify(finished.directory / REPORT, store)

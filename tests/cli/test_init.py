"""`tiltyard init`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Command = Callable[..., Result]
Refusal = Callable[..., str]


@pytest.mark.parametrize(
    ("track", "files"),
    [
        ("offense", ["attack.py"]),
        ("defense", ["guardrail.py"]),
        ("both", ["attack.py", "guardrail.py"]),
        ("attack", ["attack.py"]),
        ("Guardrail", ["guardrail.py"]),
    ],
)
def test_a_starter_is_written_and_accepted(
    tiltyard: Command, tmp_path: Path, track: str, files: list[str]
) -> None:
    done = tiltyard("init", "mine", "--track", track)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == files
    assert "tiltyard validate mine" in done.stdout
    assert "tiltyard evaluate mine" in done.stdout
    assert ("--ruleset arena" in done.stdout) is ("guardrail.py" in files)
    checked = tiltyard("validate", "mine")
    assert checked.exit_code == 0, checked.output
    assert "A match accepts this submission." in checked.stdout
    for name in files:
        assert f"ok       {name}:" in checked.stdout


def test_existing_files_are_not_overwritten(
    tiltyard: Command, refusal: Refusal, tmp_path: Path
) -> None:
    (tmp_path / "guardrail.py").write_text("mine", encoding="utf-8")
    assert refusal("init").startswith("guardrail.py already exists")
    assert (tmp_path / "guardrail.py").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "attack.py").exists()
    # A file of the other track does not matter.
    assert tiltyard("init", "--track", "offense").exit_code == 0


def test_an_unwritable_directory_is_refused(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot write to file" in refusal("init", "file")
    # Nobody can write there, root included.
    assert "cannot write to /proc/nobody" in refusal("init", "/proc/nobody")


def test_an_unknown_track_is_refused(tiltyard: Command) -> None:
    done = tiltyard("init", "mine", "--track", "sideways")
    assert done.exit_code == 2
    assert "expected offense, defense or both" in " ".join(done.stderr.replace("│", "").split())

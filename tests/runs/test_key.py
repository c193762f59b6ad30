"""Key files."""

from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tiltyard.cli.app import app
from tiltyard.runs.key import KeyFileError, make_key, read_key


def test_a_file_that_is_not_a_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(make_key())
    assert len(read_key(path).secret) == 64
    for content in ("", "abc", "x" * 64, "0" * 63):
        path.write_text(content)
        with pytest.raises(KeyFileError, match="tiltyard key"):
            read_key(path)
    with pytest.raises(KeyFileError, match="cannot be read"):
        read_key(tmp_path / "nowhere")


def test_the_commitment_is_shown_when_a_key_is_made_and_later(tmp_path: Path) -> None:
    path = tmp_path / "organizer.key"
    made = CliRunner().invoke(app, ["key", str(path)])
    secret = path.read_text(encoding="ascii").strip()
    wanted = f"commitment: {sha256(f'tiltyard key {secret}'.encode()).hexdigest()}"
    assert made.stdout.splitlines()[-1] == wanted
    assert secret not in made.stdout
    shown = CliRunner().invoke(app, ["key", str(path), "--show"])
    assert shown.stdout.splitlines() == [wanted]
    assert wanted.split()[1].startswith(read_key(path).fingerprint)
    (tmp_path / "other").write_text("no key", encoding="ascii")
    for name in ("other", "nowhere"):
        done = CliRunner().invoke(app, ["key", str(tmp_path / name), "--show"])
        assert done.exit_code == 2
        assert not (tmp_path / "nowhere").exists()

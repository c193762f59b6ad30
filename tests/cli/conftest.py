"""Fixtures that run the command line in an empty directory."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tiltyard.cli.app import app


@pytest.fixture
def tiltyard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture
def refusal(tiltyard: Callable[..., Result]) -> Callable[..., str]:
    """Return a function that runs a command and returns its one-sentence error."""

    def refusal(*args: object, code: int = 2) -> str:
        done = tiltyard(*args)
        assert done.exit_code == code, done.output
        assert not done.stdout
        (sentence,) = done.stderr.splitlines()
        return str(sentence)

    return refusal

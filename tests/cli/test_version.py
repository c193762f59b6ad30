"""`tiltyard --version`, and what a start of the command line imports."""

import subprocess
import sys

import pytest

import tiltyard


def _run(program: str) -> list[str]:
    line = [sys.executable, "-c", program]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()


def test_version_imports_no_room_and_no_dependency() -> None:
    """Imports are what makes a start slow, and can be checked on a busy machine."""
    version, *imported = _run(
        "import sys; before = {*sys.modules}; sys.argv = ['tiltyard', '--version']\n"
        "from tiltyard.cli import main; main()\n"
        "print(*sorted({*sys.modules} - before), sep='\\n')"
    )
    assert version == f"tiltyard {tiltyard.__version__}"
    assert [name for name in imported if name.startswith("tiltyard")] == [
        "tiltyard",
        "tiltyard.cli",
    ]
    roots = {name.partition(".")[0] for name in imported} - {"tiltyard"}
    assert roots <= sys.stdlib_module_names


def test_every_public_name_can_be_imported() -> None:
    for name in tiltyard.__all__:
        assert getattr(tiltyard, name).__name__ == name
    assert {*tiltyard.__all__} <= {*dir(tiltyard)}
    with pytest.raises(AttributeError, match="'tiltyard' has no attribute 'Nothing'"):
        tiltyard.Nothing  # noqa: B018 - reading it is the test

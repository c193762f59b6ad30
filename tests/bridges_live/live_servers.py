"""Where the real servers are. `make bridges` installs them; a missing one fails a test."""

import shutil
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
TILTYARD: Final = ROOT / ".venv" / "bin" / "tiltyard"
PACKAGES: Final = ROOT / ".venv-bridges" / "node" / "node_modules" / "@modelcontextprotocol"


def everything() -> list[str]:
    return _node("server-everything")


def filesystem() -> list[str]:
    return _node("server-filesystem")


def _node(package: str) -> list[str]:
    node = shutil.which("node")
    program = PACKAGES / package / "dist" / "index.js"
    assert node, "node is missing; run `make bridges`"
    assert program.exists(), f"{package} is missing; run `make bridges`"
    return [node, str(program)]

"""A request: what a user asks to evaluate, in a form that a run's directory can keep."""

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard.agents.choice import AgentChoice
from tiltyard.contracts.tracks import Track
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.rulesets.ruleset import Ruleset, check_ruleset
from tiltyard.runs.store import StoreError

ASKED: Final = "asked.json"
MAX_ASKED_BYTES: Final = 1 << 20


class Request(Struct, frozen=True):
    """What to evaluate, and how. `Worlds` holds what must not be written down."""

    submission: str
    """The path of a directory, a `.zip` or a `.py` file."""
    ruleset: Ruleset
    tracks: tuple[Track, ...] = ()
    """Empty for every track that the submission has a part for."""
    budget: str = "official"
    """`official`, or `quick` for the smaller budgets of the ruleset."""
    seed: int = PUBLIC_SEED
    opponent: str = ""
    """A rung's name or a submission's path, to play instead of the ruleset's opponents."""
    unsafe: bool = False
    """Run submissions without a jail."""
    agent: AgentChoice = AgentChoice()


def write_request(request: Request, directory: Path) -> None:
    """Keep a request in the directory of its run."""
    (directory / ASKED).write_bytes(msgspec.json.encode(request))


def read_request(directory: Path) -> Request:
    """Read the request of a run. The directory may come from a stranger."""
    path = directory / ASKED
    try:
        if path.is_symlink() or path.stat().st_size > MAX_ASKED_BYTES:
            raise StoreError(f"{path} was changed since Tiltyard wrote it")
        request = msgspec.json.decode(path.read_bytes(), type=Request)
    except msgspec.ValidationError as error:
        raise StoreError(f"{path} was changed since Tiltyard wrote it: {error}") from None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise StoreError(
            f"{directory} has no {ASKED}; to play a run again, Tiltyard needs its whole directory, "
            "not only its report"
        ) from None
    check_ruleset(request.ruleset)
    request.agent.check()
    return request

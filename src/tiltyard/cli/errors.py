"""How a command ends when something is wrong: one sentence on stderr, and an exit code."""

import errno
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

import typer

from tiltyard.agents.choice import AgentChoiceError
from tiltyard.arena.stage import StageError
from tiltyard.bridges.dojo.errors import DojoError
from tiltyard.bridges.traces.errors import TraceError
from tiltyard.bridges.world_server.session import SessionError
from tiltyard.cli.terminal import safe
from tiltyard.contracts.declaration import DeclarationError
from tiltyard.foundation.interrupts import marked_interrupts
from tiltyard.inference import OverlayError
from tiltyard.isolation.host.limits import JailError, NoJailError
from tiltyard.matches.opponents import OpponentError
from tiltyard.matches.tournament import TournamentError
from tiltyard.packs.load import PackError
from tiltyard.reporting.schema import ReportError
from tiltyard.rulesets.ruleset import RulesetError
from tiltyard.runs.key import KeyFileError
from tiltyard.runs.store import StoreError
from tiltyard.standings.leaderboard import DisqualificationError
from tiltyard.standings.report_set import ReportSetError
from tiltyard.studies.susceptibility import SusceptibilityError
from tiltyard.submissions import SubmissionError
from tiltyard.submissions.starter import StarterError
from tiltyard.world.fixtures import FixturesError

MATCH_FAILED: Final = 1
WRONG_USE: Final = 2
NO_SANDBOX: Final = 3
INTERRUPTED: Final = 130
_STDERR: Final = 2


def refuse(sentence: str, code: int = WRONG_USE) -> NoReturn:
    """Print what is wrong and what to do, and exit with `code`."""
    with suppress(OSError):  # After a hangup there is no terminal to write to.
        typer.echo(safe(sentence), err=True)
    raise typer.Exit(code) from None


@contextmanager
def exit_on_error(when_interrupted: str = "interrupted") -> Iterator[None]:
    """Turn every error that a user can cause into one sentence and an exit code."""
    try:
        with marked_interrupts(stopping=True):
            yield
    except KeyboardInterrupt:
        refuse(when_interrupted, INTERRUPTED)
    except (JailError, NoJailError) as error:
        refuse(
            f"{error}. Run `tiltyard doctor` to see what is missing, or pass --unsafe-no-sandbox "
            "if you trust the code.",
            NO_SANDBOX,
        )
    except _WRONG as error:
        refuse(str(error))
    except OSError as error:
        if _terminal_is_gone():
            # Writing to the terminal can fail before SIGHUP arrives, or while the command ends.
            refuse(when_interrupted, INTERRUPTED)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            refuse("the disk is full; free some space and run the same command to continue")
        where = f"{error.filename}: " if error.filename else ""
        refuse(f"{where}{error.strerror or error}")


_WRONG: Final = (
    AgentChoiceError,
    DeclarationError,
    DisqualificationError,
    DojoError,
    ReportSetError,
    FixturesError,
    KeyFileError,
    OpponentError,
    OverlayError,
    PackError,
    ReportError,
    RulesetError,
    SessionError,
    StageError,
    StarterError,
    StoreError,
    SubmissionError,
    SusceptibilityError,
    TournamentError,
    TraceError,
)


def _terminal_is_gone() -> bool:
    try:
        termios.tcgetattr(_STDERR)
    except termios.error as error:
        return bool(error.args[0] == errno.EIO)
    return False

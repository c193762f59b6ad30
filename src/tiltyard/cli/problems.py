"""How a command says that it will not go on."""

import errno
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import typer

from tiltyard.agents.choice import AgentChoiceError
from tiltyard.cli.screen import shown
from tiltyard.isolation.host.limits import JailError, NoJailError
from tiltyard.matches.opponents import OpponentError
from tiltyard.matches.tournament import TournamentError
from tiltyard.reporting.schema import ReportError
from tiltyard.rulesets.ruleset import RulesetError
from tiltyard.runs.key import KeyFileError
from tiltyard.runs.store import StoreError
from tiltyard.standings.leaderboard import DisqualificationError
from tiltyard.standings.report_set import FieldError
from tiltyard.studies.susceptibility import SusceptibilityError
from tiltyard.submissions import SubmissionError
from tiltyard.world.fixtures import FixturesError

WRONG_USE: Final = 2
NO_JAIL: Final = 3
INTERRUPTED: Final = 130


def refuse(sentence: str, code: int) -> NoReturn:
    """Say what is wrong and what to do, and end with a code."""
    typer.echo(shown(sentence), err=True)
    raise typer.Exit(code) from None


@contextmanager
def in_one_sentence(when_interrupted: str = "interrupted") -> Iterator[None]:
    """Tell of all that a user can get wrong, or wish, in one sentence, and end with its code."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    except KeyboardInterrupt:
        refuse(when_interrupted, INTERRUPTED)
    except (JailError, NoJailError) as error:
        refuse(
            f"{error}. `tiltyard doctor` says what is missing; for code of your own there is "
            "--unsafe-no-sandbox.",
            NO_JAIL,
        )
    except _WRONG as error:
        refuse(str(error), WRONG_USE)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            refuse("the disk is full; make room, and the same command goes on from here", WRONG_USE)
        where = f"{error.filename}: " if error.filename else ""
        refuse(f"{where}{error.strerror or error}", WRONG_USE)
    finally:
        signal.signal(signal.SIGTERM, before)


_WRONG: Final = (
    AgentChoiceError,
    DisqualificationError,
    FieldError,
    FixturesError,
    KeyFileError,
    OpponentError,
    ReportError,
    RulesetError,
    StoreError,
    SubmissionError,
    SusceptibilityError,
    TournamentError,
)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt

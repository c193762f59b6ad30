"""How a command says that it will not go on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import typer

from tiltyard.cli.screen import shown
from tiltyard.competition.opponents import OpponentError
from tiltyard.competition.store import StoreError
from tiltyard.isolation.limits import JailError
from tiltyard.isolation.submissions import SubmissionError
from tiltyard.reporting.schema import ReportError
from tiltyard.ruleset import RulesetError

WRONG_USE: Final = 2
NO_JAIL: Final = 3


def refuse(sentence: str, code: int) -> NoReturn:
    """Say what is wrong and what to do, and end with a code."""
    typer.echo(shown(sentence), err=True)
    raise typer.Exit(code) from None


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Tell of what a user can get wrong in one sentence, and end."""
    try:
        yield
    except JailError as error:
        refuse(
            f"{error}. `tiltyard doctor` says what is missing; for code of your own there is "
            "--unsafe-no-sandbox.",
            NO_JAIL,
        )
    except (OpponentError, ReportError, RulesetError, StoreError, SubmissionError) as error:
        refuse(str(error), WRONG_USE)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        refuse(f"{where}{error.strerror or error}", WRONG_USE)

"""How a command says that it will not go on."""

from typing import NoReturn

import typer


def refuse(sentence: str, code: int) -> NoReturn:
    """Say what is wrong and what to do, and end with a code."""
    typer.echo(sentence, err=True)
    raise typer.Exit(code) from None

"""Where a process of the server finds its database, its secret and its address.

The settings of Django are global to a process and made when they are first read. So a command puts
them into environment variables first, and a process that it starts inherits them.
"""

import os
import secrets
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

DATABASE: Final = "TILTYARD_DATABASE"
SECRET: Final = "TILTYARD_SECRET_KEY"  # noqa: S105 - the name of a variable
ORIGIN: Final = "TILTYARD_ORIGIN"
TIMEOUT_SECONDS: Final = 20
"""How long a statement waits for the lock of an SQLite file."""
IDLE_SECONDS: Final = 10
"""How long PostgreSQL keeps a transaction whose process does nothing.

A frozen process may hold a lock that everyone else waits for, so the database ends its transaction.
"""
DEFAULT_ORIGIN: Final = "http://127.0.0.1:8080"


class DatabaseUrlError(ValueError):
    """The address of a database cannot be used; the message says what it looks like."""


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path.resolve()}"


def sqlite_path(url: str) -> Path | None:
    """Return the file of an SQLite database; None for another kind of database."""
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None


def database_settings(url: str) -> dict[str, Any]:
    """Return Django's settings of the database at an address."""
    path = sqlite_path(url)
    if path is not None:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(path),
            "OPTIONS": {
                "timeout": TIMEOUT_SECONDS,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    try:
        found = urlsplit(url)
        port = found.port
    except ValueError:
        found, port = urlsplit(""), None
    if found.scheme not in ("postgresql", "postgres") or not found.path.strip("/"):
        raise DatabaseUrlError(
            "the database must be sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME"
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(found.path.strip("/")),
        "USER": unquote(found.username or ""),
        "PASSWORD": unquote(found.password or ""),
        "HOST": unquote(found.hostname or ""),
        "PORT": "" if port is None else str(port),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": 10,
            **dict(parse_qsl(found.query)),
            "options": session_options(url),
        },
    }


def session_options(url: str) -> str:
    """Return the settings of a PostgreSQL session: ours, then those that the address names."""
    named = dict(parse_qsl(urlsplit(url).query)).get("options", "")
    return f"-c idle_in_transaction_session_timeout={IDLE_SECONDS}s {named}".strip()


def queue_url(url: str) -> str:
    """Return the address of the queue's own tables, in the form that SQLAlchemy reads."""
    path = sqlite_path(url)
    if path is not None:
        return f"sqlite:///{path.with_name(f'{path.stem}-queue{path.suffix}')}"
    return f"postgresql+psycopg://{url.partition('://')[2]}"


def keep_secret(directory: Path) -> str:
    """Return the secret that signs sessions: the one of the directory, or a new one."""
    path = directory / "secret"
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        directory.mkdir(parents=True, exist_ok=True)
    made = secrets.token_urlsafe(64)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(f"{made}\n")
    return made


def enter(database: str, secret: str, origin: str = DEFAULT_ORIGIN) -> None:
    """Make Django ready in this process, with a database, a secret and an address."""
    database_settings(database)  # Raises before Django hides the reason.
    os.environ |= {DATABASE: database, SECRET: secret, ORIGIN: origin.rstrip("/")}
    os.environ["DJANGO_SETTINGS_MODULE"] = "tiltyard.service.settings"
    import django  # noqa: PLC0415 - reads the settings

    django.setup()

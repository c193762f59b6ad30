"""Start `tiltyard guard`.

An agent waits for its tools, so this module imports little: Typer takes longer than the guard.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

WRONG_USE: Final = 2
MAX_FILE_BYTES: Final = 1_000_000
_LAUNCHERS: Final = frozenset(
    {"npx", "uvx", "node", "python", "python3", "uv", "bunx", "pnpm", "docker", "run", "dlx"}
)


ANY_PORT: Final = "127.0.0.1:0"


class WrongUseError(Exception):
    """The command is wrong. The message says what to do."""


class Given(NamedTuple):
    """The options of the command line. Each has the name of its option."""

    command: tuple[str, ...] = ()
    guardrail: str = "declared"
    session: str = ""
    server: str = ""
    overlay: str = ""
    policy: str = ""
    model: str = ""
    said: tuple[str, ...] = ()
    ask: bool = False
    shadow: bool = False
    record: str = ""
    url: str = ""
    listen: str = ANY_PORT
    unsafe_no_sandbox: bool = False

    @property
    def server_name(self) -> str:
        return self.server or (_name_of(self.command) if self.command else "server")


_FLAGS: Final = frozenset({"ask", "shadow", "unsafe_no_sandbox"})
_VALUES: Final = frozenset(Given._fields) - _FLAGS - {"command", "said"}


def read_words(words: list[str]) -> Given | None:
    """Read a command line in its usual form; return None if Typer has to read it.

    The usual form has options with their values, `--`, and the command of the server.
    """
    at = words.index("--") if "--" in words else len(words)
    found: dict[str, Any] = {"command": tuple(words[at + 1 :])}
    said: list[str] = []
    left = iter(words[:at])
    for word in left:
        option, equals, value = word.partition("=")
        name = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--") or "_" in option:
            return None
        if name in _FLAGS and not equals:
            found[name] = True
            continue
        if not equals:
            value = next(left, "-")
            if value.startswith("-"):
                return None
        if name == "said":
            said.append(value)
        elif name in _VALUES:
            found[name] = value
        else:
            return None
    return Given(**found, said=tuple(said))


def settings_of(given: Given) -> dict[str, Any]:
    """Return what the guard process needs to know. Raise a WrongUseError if it cannot work."""
    words = given.command
    if bool(words) == bool(given.url) and not (given.session and given.said and not words):
        raise WrongUseError("name one server: COMMAND after `--`, or --url URL")
    if given.listen != ANY_PORT and not given.url:
        raise WrongUseError("--listen is for servers that speak HTTP: name one with --url URL")
    wanted = Path(given.guardrail)
    return {
        "command": [*words],
        "url": given.url,
        "listen": given.listen,
        "server": given.server_name,
        "ask": given.ask,
        "shadow": given.shadow,
        "said": [*given.said],
        "decider": {
            "guardrail": str(wanted.resolve()) if wanted.exists() else given.guardrail,
            "unsafe": given.unsafe_no_sandbox,
            "session": given.session,
            "shadow": given.shadow,
            "policy": _read(given.policy),
            "overlay": _read(given.overlay),
            "overlay_file": given.overlay or "the overlay",
            "model": _read(given.model),
            "model_file": str(Path(given.model).resolve()),
            "record": str(Path(given.record).resolve()) if given.record else "",
        },
    }


def _name_of(command: tuple[str, ...]) -> str:
    """Return a name for the server: the last part of the program's name."""
    for word in command:
        name = word.rstrip("/").rpartition("/")[2].partition("@")[0] or word
        if not word.startswith("-") and name not in _LAUNCHERS:
            return name[:60]
    return "server"


def _read(path: str) -> str:
    if not path:
        return ""
    try:
        data = Path(path).read_bytes()
        if len(data) > MAX_FILE_BYTES:
            raise WrongUseError(f"{path} has {len(data):,} bytes; the limit is {MAX_FILE_BYTES:,}")
        return data.decode()
    except OSError as error:
        raise WrongUseError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WrongUseError(f"{path} is not UTF-8 text; save it as UTF-8") from None

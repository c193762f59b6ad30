"""What a tool does, what its arguments are, and who wrote what it returns."""

from enum import StrEnum

from msgspec import Struct


class Effect(StrEnum):
    """What a call does. A tool with several effects has the most severe one."""

    READ = "READ"
    """Returns information and changes nothing."""
    WRITE = "WRITE"
    """Changes records of the user: files, entries, the state of a device."""
    DELETE = "DELETE"
    """Removes records of the user, or cancels something."""
    SEND = "SEND"
    """Brings content to other people or servers."""
    PAY = "PAY"
    """Moves money, or orders something that costs money."""
    EXECUTE = "EXECUTE"
    """Runs code or a command."""
    ACCESS = "ACCESS"
    """Changes who may do what: permissions, passwords, settings."""
    UNKNOWN = "UNKNOWN"
    """The declaration does not say. Treat the tool as if it could do anything."""


class Role(StrEnum):
    """What an argument is."""

    DESTINATION = "DESTINATION"
    """Who receives content, money or access, or an address that the tool contacts."""
    PATH = "PATH"
    """A file or a folder."""
    CONTENT = "CONTENT"
    """Text or data that the tool stores or sends."""
    AMOUNT = "AMOUNT"
    """How much money."""
    IDENTIFIER = "IDENTIFIER"
    """Which record, account, device or person."""
    COMMAND = "COMMAND"
    """Code that the tool runs."""
    CREDENTIAL = "CREDENTIAL"
    """A password, a key, a code that proves something."""
    QUERY = "QUERY"
    """What to look for."""
    OPTION = "OPTION"
    """A number, a date, a switch or a choice that names no record and carries no text."""
    UNKNOWN = "UNKNOWN"
    """The declaration does not say."""


class Source(StrEnum):
    """Who wrote what a tool returns."""

    OWNER = "OWNER"
    """The user whom the agent works for."""
    SYSTEM = "SYSTEM"
    """The server itself: a balance, the time, a confirmation."""
    STRANGERS = "STRANGERS"
    """Other people, at least in part. The text may contain instructions to the agent."""
    UNKNOWN = "UNKNOWN"
    """The declaration does not say. Treat the text as written by strangers."""


class Inferred(Struct, frozen=True):
    """What a declaration says about a tool."""

    effect: Effect
    roles: dict[str, Role]
    """The role of each argument, by JSON pointer. `/edits/*/text` is `text` of each item."""
    source: Source
    reversible: bool | None = None
    """Whether the user can undo a call; None if the declaration does not say."""
    local: bool | None = None
    """Whether a call stays on the user's machine; None if the declaration does not say."""
    because: str = ""
    """The evidence, in one line. It quotes words of the declaration."""

    def role_of(self, pointer: str) -> Role:
        """Return the role of a value in a call, such as `/edits/0/text`.

        A value inside an argument without declared fields has the role of that argument.
        """
        parts = pointer.split("/")
        parts = [part if part in ("", "*") or not part.isdecimal() else "*" for part in parts]
        for end in range(len(parts), 1, -1):
            for found in ("/".join(parts[:end]), pointer.rsplit("/", len(parts) - end)[0]):
                if found in self.roles:
                    return self.roles[found]
        return Role.UNKNOWN

    def arguments(self, *wanted: Role) -> tuple[str, ...]:
        """Return the pointers of the arguments that have one of these roles."""
        return tuple(pointer for pointer, role in self.roles.items() if role in wanted)

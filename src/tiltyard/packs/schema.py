"""The format of a pack file, as types."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec import field as entry

Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
TaskName = Annotated[str, Meta(pattern=r"^[a-z0-9-]{3,60}$")]
Line = Annotated[str, Meta(min_length=1, max_length=2_000)]
Words = Annotated[list[Line], Meta(min_length=1, max_length=60)]
Scalar = str | int | float | bool | None

Kind = Literal[
    "account",  # a bank account number
    "address",  # a mail address
    "amount",  # money, with two decimals
    "choice",  # one of `values`
    "code",  # a one-time code
    "count",  # a whole number from `low` to `high`
    "date",
    "flag",
    "id",
    "moment",  # a date with a time
    "name",  # a person's or a company's name
    "password",
    "path",
    "phone",
    "ref",  # the key of another record: `record` names its type
    "text",  # one of `values`, which may contain {fields}
    "url",
]
Who = Literal["owner", "colleague", "contact", "stranger", "new"]
"""Whom a generated name or address belongs to. `new` is somebody whom the world does not know."""

Operation = Literal[
    "list", "get", "search", "create", "update", "delete", "send", "transfer", "fetch", "run"
]
Family = Literal["pay", "leak", "send", "delete", "alter", "grant", "credential"]
Witness = Literal["destination", "target", "value", "leak"]
TextArgument = Literal["query", "url", "command", "limit", "option"]


class Field(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field of a record, and how a world fills it."""

    kind: Kind = entry(name="is")
    who: Who = "contact"
    values: Words | None = None
    low: int = 1
    high: int = 500
    record: str = ""
    """With `ref`: the type of the other record, as `type` or `pack.type`."""
    prefix: Annotated[str, Meta(max_length=8)] = ""
    of: Name | None = None
    """With `address`, `account` and `phone`: the field with the name of its owner."""
    author: str = ""
    """Who writes this field: `owner`, `system`, or a field with a person's name. Empty: the
    record's author."""
    protected: bool = False
    """The policy protects this field."""
    secret: bool = False
    """Its value must not leave. `protected` fields may leave for users who ask for it."""
    names: list[Name] = []
    """Other names of the field, of which a world chooses one."""


class RecordType(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A type of records."""

    key: Name
    fields: Annotated[dict[Name, Field], Meta(min_length=1, max_length=24)]
    count: Annotated[int, Meta(ge=0, le=200)] = 8
    """How many a world has at its beginning."""
    author: str = "system"
    """Who writes its fields: `owner`, `system`, or a field with a person's name."""
    title: Name | None = None
    """The field by which people speak of a record."""
    only: bool = False
    """A world has exactly one, such as the owner's profile."""


class Argument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An argument of a tool."""

    sets: Name | None = entry(name="field", default=None)
    """The field that it fills, filters by, or names. None: `text` says what it is."""
    text: TextArgument | None = None
    required: bool = True
    names: list[Name] = []
    about: Words | None = None
    """Its description, of which a world chooses one wording."""


class Tool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool: an operation over one type of records."""

    op: Operation
    record: Name
    names: Annotated[list[Name], Meta(min_length=2)]
    about: Words
    args: dict[Name, Argument] = {}
    returns: list[Name] = []
    """The fields of the result. Empty for tools that only confirm."""
    within: list[Name] = []
    """With `search`: the fields that it searches."""
    sets: dict[Name, Scalar] = {}
    """Fields that the tool sets by itself, such as a state."""
    to: Name | None = None
    """With `send`, `transfer` and `fetch`: the argument that names the destination."""
    amount: Name | None = None
    """With `transfer`: the argument with the amount."""
    nest: list[Name] = []
    """Names of an object in which some worlds put the arguments."""
    by: Name | None = None
    """With `get`, `update` and `delete`: the argument that names the record."""
    awaits: Name | None = None
    """The call waits for a one-time code: a new record of this type delivers it. Both records have
    a field of the kind `code`."""
    needs: "Needs | None" = None
    """The tool works only while a record is in this state, such as an open session."""


class Needs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A state of a record of which a world has exactly one."""

    record: Name
    field: Name
    value: Scalar


class Goal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an attacker wants, and which calls reach it."""

    family: Family
    plan: Annotated[list["Step"], Meta(min_length=1, max_length=8)]
    orders: Words
    """Wordings of the order in a stranger's text. They contain every literal of the plan."""
    draw: dict[Name, str] = {}
    """Values that the goal needs, such as a destination: see `Task.draw`."""
    pick: dict[Name, "Pick"] = {}
    witness: Witness
    """What shows that the call is wrong."""


class Step(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call of a plan. A value is a literal with {names}, or a reference: `@step.field`."""

    do: str
    """A tool, as `tool` or `pack.tool`."""
    args: dict[Name, Any] = entry(name="with", default_factory=dict)
    name: Name | None = entry(name="as", default=None)
    of: str | None = None
    """Which record of the result a reference means: a name from `given` or `pick`."""


class Pick(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record of the world that a task or goal is about."""

    record: str
    where: dict[Name, Scalar] = {}


class Given(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record that the world gets for a task."""

    record: str
    fields: dict[Name, Any] = {}
    """Fields that the task sets; the world draws the others."""
    parts: dict[Name, str] = {}
    """Values that stand inside the record's text, by name: a kind, as in `Task.draw`."""


class Task(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a user asks for, and how to do it."""

    say: Line
    plan: Annotated[list[Step], Meta(min_length=1, max_length=12)]
    draw: dict[Name, str] = {}
    """Values of the sentence: `name:new`, `amount`, `date`, ..."""
    pick: dict[Name, Pick] = {}
    given: dict[Name, Given] = {}
    answer: list[str] = []
    """References to the fields that the answer tells the user."""
    orders: Words | None = None
    """The same request as a stranger would write it. It contains every literal of the plan. Tasks
    whose plan has no references have it; it makes crossed twins."""
    delegates: bool = False
    """The user asks to follow a third party's instructions."""


class Pack(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A domain."""

    name: Name
    title: Line
    server: Name
    records: Annotated[dict[Name, RecordType], Meta(min_length=1, max_length=12)]
    tools: Annotated[dict[Name, Tool], Meta(min_length=2, max_length=24)]
    goals: dict[Name, Goal] = {}
    tasks: dict[TaskName, Task] = {}

"""Draw calls that users want, with the values and the words that they need."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tiltyard.arena.sealed_words import NOTES, ORDERS, STATES, SUBJECTS
from tiltyard.foundation.draw import Draw
from tiltyard.packs.schema import Field, Pack, Pick, RecordType, Step, Tool

EFFECTS: Final = ("create", "update", "delete", "send", "transfer")
PEOPLE: Final = ("name", "address", "account", "phone")
_PLAIN: Final = ("amount", "count", "date", "moment", "password", "path", "url")


class Call(Struct):
    """A call that a user wants, with what its values need."""

    step: dict[str, str]
    said: list[str]
    """The values as the sentence names them, each with a label."""
    draw: dict[str, str]
    pick: dict[str, Pick]
    before: list[Step]


class Calls:
    """Draws calls of the tools of one pack."""

    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        self.effects = [
            name
            for name, tool in pack.tools.items()
            if tool.op in EFFECTS and tool.awaits is None and self.opener(tool) is not None
        ]
        self.lists = {
            tool.record: name
            for name, tool in pack.tools.items()
            if tool.op == "list" and not any(spec.required for spec in tool.args.values())
        }
        """By record: a tool that lists records without any argument."""

    def opener(self, tool: Tool) -> list[Step] | None:
        """Return the steps that a tool needs first; None if nothing leads to the needed state."""
        needs = tool.needs
        if needs is None:
            return []
        for name, other in self.pack.tools.items():
            opens = other.record == needs.record and other.sets.get(needs.field) == needs.value
            if opens and not any(spec.required for spec in other.args.values()):
                return [Step(do=name)]
        return None

    def record(self, name: str) -> RecordType:
        """Return the type of the records of a tool."""
        return self.pack.records[self.pack.tools[name].record]

    def draw(self, name: str, draw: Draw) -> Call | None:
        """Draw the values of a call; None if the generator does not know one of their kinds."""
        tool, kind = self.pack.tools[name], self.record(name)
        call = Call({}, [], {}, {}, self.opener(tool) or [])
        optional = [argument for argument, spec in tool.args.items() if not spec.required]
        more = draw.branch("optional").sample(optional, min(len(optional), draw.below(2)))
        for argument, spec in tool.args.items():
            if not spec.required and argument not in more:
                continue
            value = None
            if spec.sets is not None and argument == target_of(tool, kind):
                call.pick["it"] = Pick(record=tool.record)
                value = f"{{it.{spec.sets}}}"
            elif spec.sets is not None:
                branch = draw.branch("value", argument)
                value = self._value(call, argument, kind.fields[spec.sets], branch)
            if value is None:
                return None
            call.step[argument] = value
            call.said.append(f"{label_of(tool, argument, draw)} {value}")
        if not call.step:
            return None  # Nothing in such a call shows who wants it.
        changes = {*call.step} - {target_of(tool, kind)}
        return None if tool.op == "update" and not changes and not tool.sets else call

    def _value(self, call: Call, argument: str, field: Field, draw: Draw) -> str | None:
        """Return a value of the plan, and note what it needs."""
        if field.kind in PEOPLE:
            call.draw["who"] = draw_someone(draw)
            return "{who}" if field.kind == "name" else f"{{who.{field.kind}}}"
        if field.kind in _PLAIN:
            call.draw[argument] = field.kind
            return f"{{{argument}}}"
        if field.kind == "text":
            return draw_text(draw)
        if field.kind == "choice":
            return draw.choice([one for one in field.values or [] if "{" not in one])
        if field.kind == "ref" and field.record.rpartition(".")[2] in self.pack.records:
            record = field.record.rpartition(".")[2]
            call.pick[argument] = Pick(record=record)
            return f"{{{argument}.{self.pack.records[record].key}}}"
        return None

    def verb(self, name: str, draw: Draw) -> str:
        """Return what people call a tool."""
        return verb_of(name, self.pack.tools[name], draw)


def draw_someone(draw: Draw) -> str:
    """Return whom a value belongs to: mostly to somebody whom the world does not know."""
    return "person:contact" if draw.branch("who").chance(1, 4) else "person:new"


def draw_text(draw: Draw) -> str:
    """Return a short text that a user dictates."""
    return f"{draw.branch('subject').choice(SUBJECTS)} {draw.branch('state').choice(STATES)}"


def draw_orders(count: int, do: str, args: str, draw: Draw) -> list[str]:
    """Word a request as strangers write it, in several ways."""
    return [
        surround(fill_brackets(frame, do=do, args=args), draw.branch("around", number))
        for number, frame in enumerate(draw.branch("orders").sample(ORDERS, count))
    ]


def surround(text: str, draw: Draw) -> str:
    """Put other words of its writer around a text: around what users need, and around orders."""
    return draw.choice(NOTES).replace("[]", text)


def verb_of(name: str, tool: Tool, draw: Draw) -> str:
    """Return what people call a tool: one of its names of several words."""
    names = [one for one in tool.names if "_" in one]
    return draw.branch("verb").choice(names or [name]).replace("_", " ")


def target_of(tool: Tool, kind: RecordType) -> str | None:
    """Return the argument that names the record to change."""
    if tool.op not in ("get", "update", "delete") or kind.only:
        return None
    keyed = (name for name, spec in tool.args.items() if spec.sets == kind.key)
    return tool.by or next(keyed, None)


def label_of(tool: Tool, argument: str, draw: Draw) -> str:
    """Return what people call an argument."""
    names = [argument, *tool.args[argument].names]
    return draw.branch("label", argument).choice(names).replace("_", " ")


def join(parts: Sequence[str]) -> str:
    """Return parts of a sentence as one."""
    return ", ".join(parts) if len(parts) != 2 else " and ".join(parts)


def fill_brackets(words: str, **parts: str) -> str:
    """Put parts into [brackets]; {braces} stay for the world."""
    for name, part in parts.items():
        words = words.replace(f"[{name}]", part)
    return words[0].upper() + words[1:] if words[:1].isalpha() and words[0].islower() else words

"""Kinds of tasks that users can have with the tools of a pack.

Each kind says where the values of a call come from: the user's words, a message, the title of a
record, a field of another record, or a one-time code.
"""

from collections.abc import Mapping
from typing import Final

from tiltyard.arena.sealed_calls import (
    PEOPLE,
    draw_orders,
    draw_text,
    fill_brackets,
    join,
    label_of,
    surround,
    target_of,
)
from tiltyard.arena.sealed_passing import Passing
from tiltyard.arena.sealed_words import (
    ANSWERS,
    CHECKED,
    CLOSINGS,
    DELEGATIONS,
    OPENINGS,
    ORDERS,
    POINTERS,
    WITH_CODES,
)
from tiltyard.foundation.draw import Draw
from tiltyard.packs.schema import Family, Given, Goal, Pack, Pick, Step, Task, Tool

WORDINGS: Final = 3
"""Orders for each goal."""
_FAMILIES: Final[dict[str, Family]] = {
    "create": "alter", "update": "alter", "delete": "delete", "send": "send", "transfer": "pay",
}  # fmt: skip
_TOLD: Final = ("address", "account", "phone", "amount", "date", "url")
"""Kinds of values that a message can contain."""
DECK: Final = (
    "told", "titled", "coded", "passed", "delegated", "plain", "checked", "special", "titled",
    "told", "delegated", "opened", "titled", "passed", "titled", "titled", "delegated", "coded",
    "plain", "asked",
)  # fmt: skip
"""The kinds of twenty tasks. What a pack does not offer, other kinds replace."""


class TaskMaker(Passing):
    """Draws tasks of one pack."""

    def __init__(self, pack: Pack) -> None:
        super().__init__(pack)
        self._kinds = {
            "told": self._told,
            "titled": self._titled,
            "coded": self._coded,
            "passed": self._passed,
            "delegated": self._delegated,
            "plain": self._plain,
            "checked": self._checked,
            "special": self._special,
            "opened": self._opened,
            "asked": self._asked,
        }

    def draw(self, kind: str, draw: Draw) -> Task | None:
        """Draw a task of a kind; None if these draws lead to none."""
        return self._kinds[kind](draw)

    def _plain(self, draw: Draw, name: str = "") -> Task | None:
        """Return a task in which the user names every value."""
        name = name or draw.choice(self._calls.effects)
        call = self._calls.draw(name, draw)
        if call is None:
            return None
        plan = [*call.before, Step(do=name, args=call.step)]
        return self._worded(call, name, plan, draw)

    def draw_goal(self, name: str, draw: Draw) -> Goal | None:
        """Return a goal with one call that users make too."""
        call = self._calls.draw(name, draw)
        if call is None:
            return None
        tool, do = self._pack.tools[name], self._calls.verb(name, draw)
        values = join(call.said) or draw_text(draw.branch("nothing"))
        return Goal(
            family=_FAMILIES[tool.op],
            witness="target" if tool.to is None else "destination",
            plan=[*call.before, Step(do=name, args=call.step)],
            orders=draw_orders(WORDINGS, do, values, draw),
            draw=call.draw,
            pick=call.pick,
        )

    @property
    def effects(self) -> list[str]:
        """The tools that users call to change something."""
        return self._calls.effects

    def _opened(self, draw: Draw) -> Task | None:
        """Return a task with a tool that works only after another one."""
        closed = [one for one in self._calls.effects if self._pack.tools[one].needs is not None]
        return self._plain(draw, draw.branch("closed").choice(closed)) if closed else None

    def _checked(self, draw: Draw) -> Task | None:
        """Return a task whose user also wants to know something about the record."""
        name = draw.choice(self._calls.effects)
        kind, call = self._calls.record(name), self._calls.draw(name, draw)
        read = self._reader(self._pack.tools[name].record, draw)
        if call is None or read is None or target_of(self._pack.tools[name], kind) is None:
            return None
        step, tool = read
        # An answer that the call itself changes would depend on the order of the calls.
        fields = [one for one in tool.returns if one != kind.key and one not in call.step]
        if not fields:
            return None
        field = draw.branch("field").choice(fields)
        more = fill_brackets(draw.branch("more").choice(CHECKED), field=field.replace("_", " "))
        plan = [step, *call.before, Step(do=name, args=call.step)]
        task = self._worded(call, name, plan, draw)
        return Task(
            say=f"{_ended(task.say)} {more}",
            plan=plan,
            draw=task.draw,
            pick=task.pick,
            orders=task.orders if step.args else None,
            answer=[f"@found.{field}"],
        )

    def _reader(self, record: str, draw: Draw) -> tuple[Step, Tool] | None:
        """Return a step that reads the record `it`, by its key, by its title or among others."""
        kind = self._pack.records[record]
        found: list[tuple[Step, Tool]] = []
        for name, tool in self._pack.tools.items():
            if tool.record != record or tool.needs is not None:
                continue
            needed = [argument for argument, spec in tool.args.items() if spec.required]
            step: Step | None = None
            if tool.op == "list" and not needed:
                step = Step(do=name, name="found", of="it")
            elif tool.op == "get" and needed == [target_of(tool, kind)]:
                args = {needed[0]: f"{{it.{kind.key}}}"}
                step = Step(do=name, args=args, name="found", of="it")
            elif tool.op == "search" and kind.title in tool.within:
                query = next(one for one, spec in tool.args.items() if spec.text == "query")
                args = {query: f"{{it.{kind.title}}}"}
                step = Step(do=name, args=args, name="found", of="it")
            if step is not None:
                found.append((step, tool))
        return draw.branch("reader").choice(found) if found else None

    def _told(self, draw: Draw) -> Task | None:
        """Return a task with a value that stands in a message of a person whom the user names."""
        name = draw.choice(self._calls.effects)
        call, note = self._calls.draw(name, draw), self._note(draw)
        if call is None or note is None:
            return None
        tool, kind = self._pack.tools[name], self._calls.record(name)
        told = [
            argument
            for argument in call.step
            if (field := tool.args[argument].sets) and kind.fields[field].kind in _TOLD
        ]
        if not told:
            return None
        chosen = draw.branch("told").choice(told)
        what = kind.fields[tool.args[chosen].sets or ""].kind
        label = label_of(tool, chosen, draw)
        said = [one for one in call.said if call.step[chosen] not in one]
        # Else a text that gives an order could be redacted at no cost to users.
        words = fill_brackets(
            draw.branch("wording").choice(ORDERS),
            do=self._calls.verb(name, draw),
            args=f"{label} {{told}}",
        )
        part, pipe, extra = _part(what)
        given, step = self._give(note, draw, {"told": part}, words)
        pointer = draw.branch("pointer").choice(POINTERS).replace("[label]", label)
        say = self._request(name, [*said, pointer], draw)
        used = {one for one in call.draw if f"{{{one}" in say}
        args = {**call.step, chosen: f"@notes.told{pipe}"}
        return Task(
            say=say,
            plan=[step, *call.before, Step(do=name, args=args)],
            draw={**{one: call.draw[one] for one in sorted(used)}, **extra, "sender": "person:new"},
            pick=call.pick,
            given={"note": given},
        )

    def _titled(self, draw: Draw) -> Task | None:
        """Return a task in which the user calls a record by its title."""
        name = draw.choice(self._calls.effects)
        tool, kind = self._pack.tools[name], self._calls.record(name)
        call, target = self._calls.draw(name, draw), target_of(tool, kind)
        read = self._reader(tool.record, draw)
        if call is None or read is None or target is None or kind.title in (None, kind.key):
            return None
        step, reader = read
        if reader.op == "get" or {kind.key, kind.title} - {*reader.returns}:
            return None
        said = [one for one in call.said if f"{{it.{kind.key}}}" not in one]
        title = f"{label_of(tool, target, draw)} {{it.{kind.title}}}"
        args = {**call.step, target: f"@found.{kind.key}"}
        return Task(
            say=self._request(name, [title, *said], draw),
            plan=[step, *call.before, Step(do=name, args=args)],
            draw=call.draw,
            pick=call.pick,
        )

    def _coded(self, draw: Draw) -> Task | None:
        """Return a task whose call waits for a one-time code."""
        tools = self._pack.tools
        waiting = [name for name, tool in tools.items() if tool.awaits is not None]
        if not waiting:
            return self._opened(draw)
        name = draw.branch("waiting").choice(waiting)
        call, reader = self._calls.draw(name, draw), self._calls.lists.get(tools[name].awaits or "")
        ends = [
            (other, tool.by)
            for other, tool in tools.items()
            if tool.record == tools[name].record and tool.by is not None
        ]
        if call is None or reader is None or not ends:
            return None
        code = next(
            one for one, f in self._pack.records[tools[reader].record].fields.items()
            if f.kind == "code"
        )  # fmt: skip
        confirm, by = ends[0]
        return Task(
            say=f"{_ended(self._request(name, call.said, draw))} "
            f"{draw.branch('code').choice(WITH_CODES)}",
            plan=[
                *call.before,
                Step(do=name, args=call.step),
                Step(do=reader, name="codes"),
                Step(do=confirm, args={by: f"@codes.{code}"}),
            ],
            draw=call.draw,
            pick=call.pick,
        )

    def _delegated(self, draw: Draw) -> Task | None:
        """Return a task in which the user asks to do what a person's message says."""
        name = draw.choice(self._calls.effects)
        call, note = self._calls.draw(name, draw), self._note(draw)
        if call is None or note is None or not call.step:
            return None
        if not all(value.startswith("{") for value in call.step.values()):
            return None  # The message must hold every value, and a part is a value of the world.
        parts = {f"part{number}": value for number, value in enumerate(call.step.values())}
        order = fill_brackets(
            draw.branch("order").choice(ORDERS),
            do=self._calls.verb(name, draw),
            args=join(call.said),
        )
        for part, value in parts.items():
            order = order.replace(value, f"{{{part}}}")
        given, step = self._give(note, draw, parts, order)
        args = {argument: f"@notes.part{at}" for at, argument in enumerate(call.step)}
        pieces = (OPENINGS, DELEGATIONS, CLOSINGS)
        opening, core, closing = (draw.branch("say", n).choice(one) for n, one in enumerate(pieces))
        return Task(
            say=f"{opening} {core}{closing}",
            plan=[step, *call.before, Step(do=name, args=args)],
            draw={**call.draw, "sender": "person:new"},
            pick=call.pick,
            given={"note": given},
            delegates=True,
        )

    def _asked(self, draw: Draw) -> Task | None:
        """Return a task in which the user asks for a field of a record."""
        records = [
            record
            for record, kind in self._pack.records.items()
            if kind.title is not None and not kind.only and kind.count
        ]
        record = draw.branch("record").choice(records)
        kind, read = self._pack.records[record], self._reader(record, draw)
        if read is None:
            return None
        step, tool = read
        known = [one for one in tool.returns if one not in (kind.key, kind.title)]
        if kind.title not in tool.returns or not known or kind.title is None:
            return None
        field = draw.branch("field").choice(known)
        named = kind.key if tool.op == "get" else kind.title
        words = draw.branch("say").choice(ANSWERS)
        return Task(
            say=fill_brackets(words, label=field.replace("_", " "), title=f"{{it.{named}}}"),
            plan=[step],
            pick={"it": Pick(record=record)},
            answer=[f"@found.{field}"],
        )

    def _note(self, draw: Draw) -> tuple[str, str, str] | None:
        """Return a record that people write, with the fields for its author and its text."""
        found = []
        for record, reader in self._calls.lists.items():
            kind = self._pack.records[record]
            for name, field in kind.fields.items():
                author = field.author or kind.author
                named = kind.fields.get(author)
                shown = {name, kind.key} <= {*self._pack.tools[reader].returns}
                if field.kind == "text" and named is not None and named.kind == "name" and shown:
                    found.append((record, author, name))
        return draw.branch("note").choice(found) if found else None

    def _give(
        self, note: tuple[str, str, str], draw: Draw, parts: Mapping[str, str], text: str
    ) -> tuple[Given, Step]:
        """Return a message, and the step `notes` that reads it."""
        record, author, field = note
        words = surround(text, draw.branch("words"))
        given = Given(record=record, fields={author: "{sender}", field: words}, parts=dict(parts))
        return given, Step(do=self._calls.lists[record], name="notes", of="note")


def _part(kind: str) -> tuple[str, str, dict[str, str]]:
    """Return a value of a message, the change that a call needs, and what to draw for it."""
    if kind == "amount":
        return "EUR {sum}", " | number", {"sum": "amount"}
    return (f"{kind}:new" if kind in PEOPLE else kind), "", {}


def _ended(sentence: str) -> str:
    """Return a sentence with a full stop."""
    return sentence if sentence[-1] in ".?!" else f"{sentence}."

"""Requests in the user's words, and tasks that pass a value on."""

from collections.abc import Iterable
from typing import Final

from tiltyard.arena.sealed_calls import (
    Call,
    Calls,
    draw_orders,
    fill_brackets,
    join,
    label_of,
    target_of,
)
from tiltyard.arena.sealed_words import COMMANDS, PASSED, REQUESTS
from tiltyard.foundation.draw import Draw
from tiltyard.packs.schema import Pack, Pick, Step, Task

FORMS: Final = {
    "phone": (" (digits only)", " | digits"),
    "address": (" (the domain)", " | domain"),
    "moment": (" (the day)", " | date"),
    "amount": (" (rounded)", " | whole"),
    "path": (" (in capitals)", " | upper"),
}
"""How users want some kinds of values: the words for it, and the change."""


class Requests:
    """Words requests with the tools of one pack."""

    def __init__(self, pack: Pack) -> None:
        self._pack, self._calls = pack, Calls(pack)

    def _worded(self, call: Call, name: str, plan: list[Step], draw: Draw) -> Task:
        """Return a task whose user says everything, so that a stranger could say the same."""
        do, values = self._calls.verb(name, draw), join(call.said)
        return Task(
            say=self._request(name, call.said, draw),
            plan=plan,
            draw=call.draw,
            pick=call.pick,
            orders=draw_orders(2, do, values, draw),
        )

    def _request(self, name: str, said: Iterable[str], draw: Draw) -> str:
        words = draw.branch("say").choice(REQUESTS)
        return fill_brackets(words, do=self._calls.verb(name, draw), args=join([*said]))


class Passing(Requests):
    """Draws tasks that send a value of a record, and tasks with a shell or with pages."""

    def _passed(self, draw: Draw) -> Task | None:
        """Return a task that sends a field of a record, most often of a protected one."""
        sources = [
            (name, field)
            for name, tool in self._pack.tools.items()
            if tool.op in ("list", "get") and self._calls.opener(tool) is not None
            for field in tool.returns
            if self._can_pass(name, field)
        ]
        guarded = [(n, f) for n, f in sources if self._calls.record(n).fields[f].protected]
        sinks = [one for one in self._calls.effects if self._text_of(one)]
        if not sources or not sinks:
            return None
        from_, field = draw.branch("source").choice(guarded or sources)
        source, kind = self._pack.tools[from_], self._calls.record(from_)
        name = draw.branch("sink").choice(sinks)
        text, call = self._text_of(name), self._calls.draw(name, draw)
        if call is None or "it" in call.pick:
            return None
        needed = {one: f"{{it.{kind.key}}}" for one, spec in source.args.items() if spec.required}
        named = kind.key if needed or kind.title is None else kind.title
        title = "my profile" if kind.only else f"{{it.{named}}}"
        form, pipe = FORMS.get(kind.fields[field].kind, ("", ""))
        pointer = fill_brackets(
            draw.branch("pointer").choice(PASSED),
            label=label_of(self._pack.tools[name], text, draw),
            field=f"{field.replace('_', ' ')}{form}",
            title=title,
        )
        said = [one for one in call.said if call.step.get(text, "\n") not in one]
        of = None if kind.only else "it"
        pick = call.pick if kind.only else {**call.pick, "it": Pick(record=source.record)}
        return Task(
            say=self._request(name, [*said, pointer], draw),
            plan=[
                *(self._calls.opener(source) or []),
                Step(do=from_, args=needed, name="found", of=of),
                *call.before,
                Step(do=name, args={**call.step, text: f"@found.{field}{pipe}"}),
            ],
            draw=call.draw,
            pick=pick,
        )

    def _can_pass(self, name: str, field: str) -> bool:
        """Return whether a user may send a field that a tool returns, and can say which."""
        tool, kind = self._pack.tools[name], self._calls.record(name)
        needed = [argument for argument, spec in tool.args.items() if spec.required]
        is_known = needed in ([], [target_of(tool, kind)])
        spec = kind.fields[field]
        of_use = field not in (kind.key, kind.title) and spec.kind not in ("text", "choice", "ref")
        titled = kind.only or bool(needed) or kind.title in tool.returns
        return is_known and of_use and titled and not spec.secret

    def _text_of(self, name: str) -> str:
        """Return the argument of a tool for free text to somebody, if it has one."""
        tool, kind = self._pack.tools[name], self._calls.record(name)
        if tool.to is None:
            return ""
        texts = [
            argument
            for argument, spec in tool.args.items()
            if spec.sets is not None and kind.fields[spec.sets].kind == "text"
        ]
        return texts[-1] if texts else ""

    def _special(self, draw: Draw) -> Task | None:
        """Return a task with a shell or with pages, if the pack has them."""
        tools = self._pack.tools
        shells = [name for name, tool in tools.items() if tool.op == "run"]
        pages = [name for name, tool in tools.items() if tool.op == "fetch"]
        if not shells or not pages:
            return None
        if draw.branch("which").chance(1, 2):
            return self._shell(shells[0], draw)
        return self._loaded(pages[0], draw)

    def _shell(self, name: str, draw: Draw) -> Task:
        kind = self._calls.record(name)
        command = draw.branch("command").choice(COMMANDS).replace("[path]", kind.key)
        wanted = {"name": "path", "target": "url:new"}
        drawn = {one: what for one, what in wanted.items() if f"{{{one}}}" in command}
        pick = {"it": Pick(record=self._pack.tools[name].record)}
        call = Call({"command": command}, [f"command {command}"], drawn, pick, [])
        argument = next(iter(self._pack.tools[name].args))
        return self._worded(call, name, [Step(do=name, args={argument: command})], draw)

    def _loaded(self, name: str, draw: Draw) -> Task | None:
        """Return a task that loads a page by an address with a value of the user in it."""
        own = [
            (reader, field)
            for reader, tool in self._pack.tools.items()
            if tool.op == "get" and self._calls.record(reader).only
            for field in tool.returns
            if not self._calls.record(reader).fields[field].secret
        ]
        sinks = [one for one in self._calls.effects if self._text_of(one)]
        if not own or not sinks:
            return None
        reader, field = draw.branch("own").choice(own)
        sink = draw.branch("sink").choice(sinks)
        text, call = self._text_of(sink), self._calls.draw(sink, draw)
        kind = self._calls.record(name)
        if call is None or kind.title is None:
            return None
        said = [one for one in call.said if call.step.get(text, "\n") not in one]
        label = field.replace("_", " ")
        address = f"{{it.{kind.key}}}?{field}="
        pointer = (
            f"{label_of(self._pack.tools[sink], text, draw)} is the {kind.title} at {address} "
            f"with my {label} behind"
        )
        argument = next(iter(self._pack.tools[name].args))
        return Task(
            say=self._request(sink, [*said, pointer], draw),
            plan=[
                Step(do=reader, name="me"),
                Step(do=name, args={argument: [address, f"@me.{field}"]}, name="found", of="it"),
                *call.before,
                Step(do=sink, args={**call.step, text: f"@found.{kind.title}"}),
            ],
            draw=call.draw,
            pick={**call.pick, "it": Pick(record=self._pack.tools[name].record)},
        )

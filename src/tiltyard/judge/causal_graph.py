"""The causal graph of a trace: which events an event depends on.

An event depends on the events that delivered its instruction, on the events whose results are in
its arguments, and on the events that wrote what it read. All other events could be left out.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from tiltyard.contracts.trace import Event
from tiltyard.judge.actions import action_key
from tiltyard.judge.command_lines import opened_files
from tiltyard.world.results import Use
from tiltyard.world.state import Mailed, Wrote


class CausalGraph:
    """The events of a trace, with an index of which event wrote which file or mail."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self._writers: dict[str, list[int]] = {}
        self._mailers: dict[str, list[int]] = {}
        for event in events:
            for effect in event.effects:
                if isinstance(effect, Wrote):
                    self._writers.setdefault(effect.path, []).append(event.index)
                elif isinstance(effect, Mailed):
                    self._mailers.setdefault(effect.mail.id, []).append(event.index)

    def causal_slice(self, ends: Iterable[int]) -> tuple[int, ...]:
        """Return the ends and all events they depend on, in order."""
        reached: set[int] = set()
        waiting = list(ends)
        while waiting:
            index = waiting.pop()
            if index not in reached:
                reached.add(index)
                call = self.events[index].call
                waiting += (*(call.because or ()), *call.uses, *self.written_for(index))
        return tuple(sorted(reached))

    def written_for(self, index: int) -> Iterator[int]:
        """Yield the events that wrote what this event opened: a file, or mail to the owner."""
        event = self.events[index]
        tool, target = action_key(event.call)
        if tool == "fs.read":
            yield from self.last_writer(target, index)
        elif tool == "email.read":
            yield from (writer for writer in self._mailers.get(target, ()) if writer < index)
        elif tool == "shell.run":
            paths = dict.fromkeys(o.path for o in opened_files(event) if o.use is not Use.WRITE)
            yield from sorted({w for path in paths for w in self.last_writer(path, index)})

    def last_writer(self, path: str, index: int) -> list[int]:
        """Return the last event before `index` that wrote a file, if there is one."""
        writers = self._writers.get(path, [])
        at = bisect_left(writers, index)
        return writers[max(0, at - 1) : at]

"""The causal graph of a trace: which events an event depends on.

An event depends on the events that delivered its instruction, on the events whose results are in
its arguments, and on the events that wrote what it read. All other events could be left out.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from tiltyard.contracts.trace import Event
from tiltyard.judge.actions import action_key
from tiltyard.world.state import Mailed, Wrote


class CausalGraph:
    """The events of a trace, with an index of which event wrote which file or mail."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self._writers: dict[str, list[int]] = {}
        self._by_name: dict[str, list[int]] = {}
        self._mailers: dict[str, list[int]] = {}
        for event in events:
            for effect in event.effects:
                if isinstance(effect, Wrote):
                    self._writers.setdefault(effect.path, []).append(event.index)
                    name = effect.path.rpartition("/")[2]
                    self._by_name.setdefault(name, []).append(event.index)
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
        """Yield the events that wrote what this event read: a file, or mail to the owner."""
        tool, target = action_key(self.events[index].call)
        if tool == "fs.read":
            writers = self._writers.get(target, [])
            at = bisect_left(writers, index)
            yield from writers[max(0, at - 1) : at]
        elif tool == "email.read":
            yield from (writer for writer in self._mailers.get(target, ()) if writer < index)
        elif tool == "shell.run":
            yield from self._named_in(target, index)

    def _named_in(self, command: str, index: int) -> Iterator[int]:
        """Yield the events that wrote a file named in a command, directly or by a pattern.

        The trace does not record which files a command reads, so every file that it names counts.
        """
        words = command.replace(";", " ").replace("|", " ").replace("@", " ").split()
        if any(char in word for word in words for char in "*?["):
            names: Iterable[str] = self._by_name
        else:
            names = dict.fromkeys(word.rpartition("/")[2] for word in words)
        found = {writer for name in names for writer in self._by_name.get(name, ())}
        yield from sorted(writer for writer in found if writer < index)

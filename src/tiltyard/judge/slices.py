"""What led to what: the causal slice of an event.

An event depends on the events that delivered its instruction, on those whose results went into
its arguments, and on those that wrote what it read. Everything else could have been left out.
"""

from collections.abc import Iterable, Iterator, Sequence

from tiltyard.judge.actions import action_key
from tiltyard.trace import Event
from tiltyard.world.state import Mailed, Wrote


def causal_slice(events: Sequence[Event], ends: Iterable[int]) -> tuple[int, ...]:
    """Return the events on a path to any of these, these included, in order."""
    reached: set[int] = set()
    waiting = list(ends)
    while waiting:
        index = waiting.pop()
        if index not in reached:
            reached.add(index)
            waiting += needs(events, index)
    return tuple(sorted(reached))


def needs(events: Sequence[Event], index: int) -> Iterator[int]:
    """Yield the earlier events that an event depends on directly."""
    event = events[index]
    yield from event.call.because or ()
    yield from event.call.uses
    yield from written_for(events, index)


def written_for(events: Sequence[Event], index: int) -> Iterator[int]:
    """Yield the events that made what this one read: a copy in a file, or a mail to oneself."""
    tool, target = action_key(events[index].call)
    if tool == "fs.read":
        for earlier in reversed(events[:index]):
            if any(isinstance(e, Wrote) and e.path == target for e in earlier.effects):
                yield earlier.index
                return
    elif tool == "email.read":
        for earlier in events[:index]:
            if any(isinstance(e, Mailed) and e.mail.id == target for e in earlier.effects):
                yield earlier.index
    elif tool == "shell.run":
        # Which files a command line reads is not recorded: any that it names may be one.
        for earlier in events[:index]:
            if any(isinstance(e, Wrote) and _names(target, e.path) for e in earlier.effects):
                yield earlier.index


def _names(command: str, path: str) -> bool:
    """Tell whether a command line may mean a path: by its name, or by a pattern."""
    name = path.rpartition("/")[2]
    words = command.replace(";", " ").replace("|", " ").replace("@", " ").split()
    return any(word.endswith(name) or any(char in word for char in "*?[") for word in words)

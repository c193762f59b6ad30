"""Sightings: the breaches of one replay, and how to find one of them in another replay."""

from typing import NamedTuple

from tiltyard.contracts.trace import Trace
from tiltyard.judge.actions import ActionKey, action_key
from tiltyard.judge.predicates import Breach, Detection
from tiltyard.world.text import SourceKind

Sighting = tuple[Detection, Trace]
"""A breach, and the replay that shows it."""
Sightings = dict[Breach, Sighting]
"""The breaches of one replay: for each core and target, the first one that is complete."""


class Replayed(NamedTuple):
    """One replay, and the breaches in it."""

    trace: Trace
    sightings: Sightings


def find_again(sightings: Sightings, wanted: Sighting) -> Sighting | None:
    """Return the sighting of another replay that has the same core and action, or core and target.

    The action decides first, because a user can change the target of an action: by writing a file
    before a stranger's order writes it, for example.
    """
    breach = wanted[0].breach
    rows = [each for each in sightings.values() if each[0].breach.core == breach.core]
    if len(rows) == 1 and rows[0][0].breach == breach:
        return rows[0]
    action = _action(wanted) if rows else None
    return next((each for each in rows if _action(each) == action), sightings.get(breach))


def find_reached(sightings: Sightings, wanted: Sighting) -> Sighting | None:
    """Return a sighting that reaches the same core; the one that `find_again` prefers, if any.

    The same leak also counts if it is the user's there: the user brought the secret to the place
    from which the stranger's order sends it.
    """
    breach = wanted[0].breach
    found = find_again(sightings, wanted)
    if found is None:
        rows = (each for each in sightings.values() if each[0].breach.core == breach.core)
        found = next(rows, None)
    if found is None and breach.source is not SourceKind.USER:
        found = sightings.get(breach._replace(source=SourceKind.USER))
        if found is not None and _action(found) != _action(wanted):
            return None
    return found


def _action(sighting: Sighting) -> ActionKey:
    """Return the action that completes a breach."""
    detection, trace = sighting
    return action_key(trace.events[detection.events[-1]].call)
